// Bench measures what this module costs beside programs written by hand. Each of these
// takes minutes:
//
//	go run ./integration/bench
//	go run ./integration/bench --size=100,1024,10240 --work=sink --latency=10ms
//	go run ./integration/bench --only='relay pubsubio' --with=MaxRecordsPerBundle=1000 --with=BatchDelay=1ms
//	go run ./integration/bench --topics=1,1000 --keys=0,100 --duration=2s
//	go run ./integration/bench --matrix=all --report=matrix.json
//	go run ./integration/bench --matrix=all --work=source
//	go run ./integration/bench --splits=1,4,16 --backlog=1000000 --example
//	go run ./integration/bench --work=live --with=WatermarkLag=1s --duration=30s
//
// Four kinds of work: relay moves messages from a subscription to a topic,
// source reads a subscription into a counter, sink publishes messages that are
// made in memory, live reads as source does while messages come at a rate, and has
// a section of its own below. The contestants:
//
//   - pubsubio is this module on prism: with default options; tuned, with options for
//     throughput; wide, a sink with large bundles, too; and with those of --with.
//   - client is the same work by hand on the Go client, cloud.google.com/go/pubsub/v2,
//     at the best settings that were found for it, a publisher for each topic, with
//     message ordering where there are keys. It is what the others are compared
//     with. --client adds it with other settings. client default reads with the
//     settings that a program has whose author set none: MaxOutstandingMessages 1,000.
//   - stubs is by hand on the generated gRPC stubs, without retries, leases or
//     bounds in bytes: about the least that Go and gRPC allow.
//   - engine is prism alone: the messages of sink, into a counter.
//   - example, where --example asks for it, is the transform of Beam's own example
//     nativepubsubio, as it is. It moves a thousand messages, without a warm-up: those
//     that the client lets it hold. It acknowledges them when its first bundle ends,
//     after 5 s of silence, and those of later bundles never, so that a larger work
//     would not end.
//
// # What a source reads
//
// A source finds all messages in its subscription. --backlog says how many, and that
// it reads all of them; the others read as many as a run is to have. The
// server keeps about 100 bytes for a message that waits, for they share their payload:
// a gigabyte for the ten million of --matrix=backlog. --splits is source.Config's
// Splits, and how many streams (NumGoroutines) the client has; stubs stays at one.
//
// With --keys the subscription is ordered, and this module reads it with
// options.PerKey. The server does not hold back what follows on a key until it is
// acknowledged, as the service does after about a request's worth: the rate of one key
// here is what reader, engine and server allow. That order is kept is what the tests
// look at; here nobody does.
//
// # What a sink publishes
//
// The messages of sink go to --topics topics and have --keys ordering keys, each in
// turn. Their data is one of 251 payloads, which are made once: to make a message
// costs every contestant the same, next to nothing. The payload tells a message's
// place in the sequence of its topic and key.
//
// --matrix varies size, topics, keys and latency, or for a source size, splits,
// backlog and keys, one at a time: through 1,024 B, one
// topic, one split, no keys and no latency, or what the other flags say. A run then takes
// about five seconds for every contestant: a trial before the first round tells how
// many messages that is.
//
// MaxRecordsPerBundle is an option of a source. A sink's messages come from a
// generator in the shape of one, which keeps to it.
//
// # How it is measured
//
// Every run has two processes of its own: a server, that of package pubsubtest,
// and the contestant. The contestant moves a few messages first, to be warm, then
// those that are measured, from a subscription that holds all of them when it
// starts. It is measured in its own process, from before its program or pipeline
// is started until the work is done: until the server has the last message
// acknowledged, and where nothing is read, until the program has its last answer
// and has ended. Then the server is asked whether the work was done: everything
// acknowledged, everything published to the topic where it was to go, and the
// messages of every key in their order, of those that it keeps: 20,000, so that all
// of a warm-up and the end of what is measured are looked at. To start a pipeline takes 7 to 10 ms of CPU
// time, a program by hand 1 to 2 ms: that is in the figures, so that short runs
// flatter the programs by hand.
//
// Contestants take turns, a run each at every load per round, so that what else the
// machine does meets all of them.
//
// # Live
//
// live measures what a message waits for, and what waiting costs. The server publishes
// 1,000 messages a second to a subscription that is being read, or none to one or to
// twelve of them, or ten a second that are counted by windows of a second. After 2 s, in
// which programs get warm, it lasts 10 s, or --duration, and is told of:
//
//   - % of a core is the contestant's processor time, its engine included.
//   - publish→emit is from the server's storing a message until the next step of the
//     pipeline, or the client's callback, has it; emit→ack from there until the server
//     has it acknowledged. The client acknowledges every 100 ms.
//   - window fires is how long after the end of a window, by the clock and the publish
//     times, the step behind the window has it, of those that it gets within the time:
//     make that longer than WatermarkLag.
//
// # How to read the table
//
// All figures are for one message; each is the median of the rounds.
//
//   - CPU µs is the processor time of the contestant's process, user and system,
//     its engine and its garbage collection included. It is the first figure to
//     look at: it hardly depends on how many cores there are, and it is what is
//     paid for. min–max, here and elsewhere, are the extremes of the rounds.
//   - × client behind it says how many times less CPU than the client's that is:
//     above 1 is better. The ratio is taken in each round, and its median shown.
//     Where client does not run, the first row takes its place.
//   - k/s is the rate, in thousand messages a second, and × client how many times
//     the client's rate. Contestant and server share the machine, so the rate
//     tells of both: on few cores a contestant that is cheap for the server is
//     faster.
//   - allocs and B alloc are heap allocations and their bytes; in sink are the
//     allocations of this module without the engine's: less those of the same
//     round's engine.
//   - MB peak is the most memory that the process had resident in any round.
//   - a request is how many messages a publish request has.
//   - server µs is the server's processor time: it shows what small requests cost
//     the other side.
//   - CPU × that at 1, in a table of --matrix, is what a message costs as a multiple
//     of what it costs the same contestant at the table's first load.
//
// Ratios can be compared between machines, within reason; the rest cannot. On a
// machine that is used by others medians of five rounds differ by 7 % without a
// reason: --with=BatchDelay=1ms --work=source, an option that a source does not
// have, tells what the noise is.
package main
