package source

// overdue warns, once for a subscription in this process, where a message has been
// delivered more often than the subscription's dead-letter policy has it. The service
// forwards a message only where its own account may; where it may not, it delivers
// the message without end, and says so nowhere but in the console.
func (v *visit) overdue(d *delivery) {
	if v.maxDelivery == 0 || d.attempt <= v.maxDelivery {
		return
	}
	if _, told := v.group.overdue.LoadOrStore(v.reader.subscription, true); told {
		return
	}
	warn("a message was delivered more often than the dead-letter policy says, so the service cannot forward it: grant roles/pubsub.publisher on the dead-letter topic and roles/pubsub.subscriber on the subscription to service-<project number>@gcp-sa-pubsub.iam.gserviceaccount.com, with the number of the subscription's project",
		"subscription", v.reader.subscription, "message", d.msg.ID, "delivery attempt", d.attempt, "maximum", v.maxDelivery)
}
