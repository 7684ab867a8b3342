// Package iam is what the account of a pipeline must be granted: which permission, on
// what, and which role has it. Whatever names a permission to a user has it from here,
// and so has docs/guide/permissions.md, which a test of package check compares.
package iam

// A Grant is a permission that a use needs.
type Grant struct {
	// Permission is its name, as "pubsub.topics.publish".
	Permission string
	// Role is the smallest predefined role that has it.
	Role string
	// Project is set where it is granted on the project, for want of a resource.
	Project bool
}

// What pipelines need.
var (
	Consume            = Grant{Permission: "pubsub.subscriptions.consume", Role: "roles/pubsub.subscriber"}
	GetSubscription    = Grant{Permission: "pubsub.subscriptions.get", Role: "roles/pubsub.viewer"}
	CreateSubscription = Grant{Permission: "pubsub.subscriptions.create", Role: "roles/pubsub.editor", Project: true}
	DeleteSubscription = Grant{Permission: "pubsub.subscriptions.delete", Role: "roles/pubsub.editor"}
	AttachSubscription = Grant{Permission: "pubsub.topics.attachSubscription", Role: "roles/pubsub.subscriber"}
	Publish            = Grant{Permission: "pubsub.topics.publish", Role: "roles/pubsub.publisher"}
	GetTopic           = Grant{Permission: "pubsub.topics.get", Role: "roles/pubsub.viewer"}
	CreateTopic        = Grant{Permission: "pubsub.topics.create", Role: "roles/pubsub.editor", Project: true}
)

// All are the grants above.
var All = []Grant{Consume, GetSubscription, CreateSubscription, DeleteSubscription, AttachSubscription, Publish, GetTopic, CreateTopic}
