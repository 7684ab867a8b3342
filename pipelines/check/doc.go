// Check asks Pub/Sub whether a pipeline can run, before it does, and says what mends
// what keeps it from running. It takes the command line of another of these programs as it is:
//
//	check relay --input_subscriptions=projects/p/subscriptions/orders --output_topic=projects/p/topics/moved
//	check --report=found.json loadgen --topic=projects/p/topics/input --rate=100 --keys=50
//
// Its own flags come first, then the name of the program, then that program's flags; it
// knows relay, replay, loadgen, verify and windowcount. Nothing of these is run. A --report
// behind the name is the program's, and not written.
//
// Or it takes a file with the configurations of a pipeline of your own, as JSON:
//
//	cat > pipeline.json <<'END'
//	{
//	  "source": {
//	    "Subscriptions": ["projects/p/subscriptions/orders"],
//	    "OnDecodeFailure": {"SendTo": {"Topic": "projects/p/topics/dead-letters"}}
//	  },
//	  "sink": [
//	    {"Topic": "projects/p/topics/paid", "CreateDisposition": "CreateNever"},
//	    {"Topic": "projects/p/topics/unpaid", "Publisher": {"RetryTotalTimeout": "90s"}}
//	  ]
//	}
//	END
//	check --config=pipeline.json --account=worker@p.iam.gserviceaccount.com
//
// # What it prints
//
// First what is wrong with the settings by themselves. Then a block for each subscription
// and topic: what it is for, whether it exists or will be created, which permissions are
// granted, missing or unknown, what else was found, and the commands that mend it, which
// can be copied. Of a subscription it tells whether it can be read as it is to be: by
// pull, in order, not exactly once, attached to a topic that is there; and of a topic of
// dead letters whether anybody reads it.
//
//	fault    keeps the pipeline from running, or has the program refuse to
//	warning  lets it run, and something is lost, or goes round in circles
//	note     is good to know
//
// --report writes the same as JSON. It changes nothing, and reads no message.
//
// # Permissions
//
// They are those of the account that check runs as, which may be another than that of the
// workers. One is unknown where the server does not say, as Google's emulator, and where
// it cannot be asked for yet, on what does not exist. Those on a project are asked for at
// Google's Resource Manager, an API that the project must have enabled.
//
// MEMBER in a command stands for the account that the workers run as. --account puts it in.
//
// # The file
//
// "source", "sink" and "dlq" each hold a Config of the package of that name, or an array of
// them, with the names that its fields have in Go, each once. A duration is a text as "90s", an
// enumeration the name of its constant as "PerKey", a number may be "Unbounded",
// "WriteThrough" or "Disabled" where the field takes that. A subscription may be its name
// alone. StartPosition is "EarliestRetained", "Latest" or a time as "2026-11-30T12:00:00Z".
// OnDecodeFailure and OnFailure are the name of a policy, or {"SendTo": {…}} with a
// dlq.Config.
//
// Functions of a program cannot be in a file: neither sink.Config.Resolve, whose topics
// nobody knows before the pipeline runs, nor a handler of failures, nor a queue of a type of
// your own. Leave them out; package check of this module, which check uses, takes them.
//
// A connection flag holds for each configuration that says nothing of its connection, those
// of a policy's queue included.
//
// # Exit codes
//
//	0    there is nothing to mend
//	1    something is to be mended, or the service does not answer
//	2    a flag, or the file, is wrong
package main
