// Loadgen publishes a stream of numbered messages to a topic, at a rate, which verify
// can check at the other end:
//
//	loadgen --topic=projects/p/topics/input --messages=10000 --rate=5000 --report=sent.json
//	loadgen --topic=projects/p/topics/input --duration=10m --rate=2000 --burst=500 --keys=50 --ordering
//
// It goes on until --messages or --duration ends it, or an interrupt (SIGINT, SIGTERM):
// then it stops making messages, waits until those that are on their way are answered,
// and reports them; a second interrupt kills it.
//
// # Messages
//
// Keys take turns, and each message has a number within its key, from 0. Its run, key
// and number and the time when it was sent are in attributes that begin with load_,
// which pass any relay. The payload is a JSON object of --size bytes:
//
//	{"key":"key-0003","sequence":17,"filler":"012345678901234567"}
//
// A share of them, --poison, has a first byte that no JSON begins with: a consumer
// that decodes strictly must refuse these, and only these. With --ordering the key is
// the message's ordering key, too.
//
// # Rate
//
// Message n, from 0, is due n / --rate seconds after the first. With --burst they are due
// in groups of that many, at the same rate on average. What is due is sent every 5 ms or
// as soon as the topic takes it: where the service is slower than the rate, loadgen falls
// behind, and catches up when it can. --rate=0 is as fast as it goes.
//
// # Report
//
// --report writes how many messages each key has, which is what verify takes for
// --expected. It is complete only where every message was answered: after an error,
// which ends the run, nobody knows of the last ones whether they were stored.
//
// It runs on prism, Beam's local runner: one process keeps the rate and the count.
//
// # Exit codes
//
//	0    every message is published
//	1    it has failed
//	2    a flag is wrong
//	130  it was interrupted; what it had sent is published and reported
package main
