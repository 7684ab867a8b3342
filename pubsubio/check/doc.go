// Package check asks the service, before a pipeline runs, whether what its
// configurations use is there and can be used as they say: each subscription, its
// topic, the topics that are published to, those of dead letters.
//
//	report, err := check.Run(ctx, check.Configs{
//		Sources: []source.Config{orders},
//		Sinks:   []sink.Config{paid},
//	}, check.Options{})
//	if err == nil {
//		err = report.Err()
//	}
//
// # What it finds
//
// A [Report] has a [Resource] for each: whether it exists, will be created or is
// missing; which permissions are granted and missing; and [Finding]s, each with what
// mends it, as commands that can be copied. A [Fault] keeps a pipeline from running: what
// Validate says, a subscription that cannot be read as configured, a topic that is
// missing, a permission. With a [Warning] it runs, and something is lost or goes in
// circles: dead letters that nobody reads, a topic that is written and read. A [Note] says
// what is good to know.
//
// Faults that have to do with the service are those that the pipeline itself would find
// when it starts: both have their rules from the same place.
//
// # What it does not know
//
// Permissions are those of the account that asks, which may be another than that of
// the workers. The service is asked for them (TestIamPermissions), and for those on a
// project Google's Resource Manager; where it does not say, as Google's emulator, a
// permission is [NotKnown], which is no fault. What may not be looked up is taken to be as it
// should be, as a pipeline takes it, and a note says so. What a service does not say that is
// busy, though it is asked again, is [Unknown], and a warning says so. Topics that
// sink.Config.Resolve chooses are known at run time only.
//
// It changes nothing, and makes no call about messages.
//
// Run starts goroutines that look at several resources at once, and returns when they
// have ended. The package has no state.
package check
