// Package message holds what every other package of this project talks about: a
// Pub/Sub message as a pipeline sees it, and the names of topics and
// subscriptions.
//
// A [Message] is a plain value. It may be the element of a PCollection: the
// package registers a Beam coder for *Message, which carries any message, also one
// that the service would refuse, and nil.
//
// [ParseTopic] and [ParseSubscription] accept what the service accepts as a
// resource name, and otherwise say which rule is broken. They make no call.
// [TopicIn] and [SubscriptionIn] also take an id alone.
package message
