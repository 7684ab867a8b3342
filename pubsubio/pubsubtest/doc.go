// Package pubsubtest is a Pub/Sub server of its own, in the process, for tests,
// demonstrations and benchmarks. It speaks real gRPC over loopback, so that the
// code under test runs with the client, the connections and the flow control
// that it has in production. It is as strict as the service, and takes orders:
// what to answer to which calls.
//
// # In a test
//
// [New] starts a server on a free port and closes it when the test ends. The
// endpoint goes where the code under test takes an emulator endpoint:
//
//	srv := pubsubtest.New(t)
//	srv.MustCreateTopic("projects/p/topics/input")
//	srv.MustCreateSubscription("projects/p/subscriptions/input", "projects/p/topics/input")
//	srv.PublishData(t, "projects/p/topics/input", "hello")
//	… run against srv.Endpoint() …
//	srv.WantPublished(t, "projects/p/topics/output", "HELLO")
//	srv.WantAcknowledged(t, "projects/p/subscriptions/input", 1)
//
// [RunUntil] runs a pipeline that does not end by itself, [Server.Eventually] and those
// beside it wait for what a pipeline does on the side, and [Server.Await] is for a
// program that has a context of its own. A check or a wait of a test fails where the topic
// or the subscription does not exist. README.md shows the test of a pipeline.
//
// # What happened
//
// [Server.Stats] counts what a subscription delivered, got back and lost.
// [Server.Events] is the order in which things happened: publishes, deliveries,
// acknowledgements, refusals, streams that open and close. [Server.Messages] is
// what was published to a topic, [Server.Calls] how often a method was called.
//
// [Server.PublishLoad] tells how much a client had in flight at once, over all
// topics or to one, exactly and at its most: whether it holds to its caps, and to
// one request at a time for an ordering key. [Server.Connections] counts its
// connections.
//
// # What to answer
//
// [Server.Order] takes a [Rule], which chooses calls by method, topic,
// subscription, ordering key, attribute, message, number or chance, and the
// [Action]s that are taken with them. Orders compose, and count the calls that
// they applied to:
//
//	// Every request with such a message is refused.
//	srv.Order(pubsubtest.Rule{Method: "Publish", Attribute: "poison"},
//		pubsubtest.Fail(status.Error(codes.InvalidArgument, "poison")))
//
//	// The third request is stored, and its answer lost.
//	srv.Order(pubsubtest.Rule{Method: "Publish", Skip: 2, Times: 1},
//		pubsubtest.CarryOut(), pubsubtest.Fail(status.Error(codes.DeadlineExceeded, "lost")))
//
//	// Each request takes as long as it does over a network, and some break.
//	srv.Order(pubsubtest.Rule{}, pubsubtest.WaitBetween(10*time.Millisecond, 50*time.Millisecond))
//	srv.Order(pubsubtest.Rule{Probability: 0.01, Seed: 1}, pubsubtest.Disconnect())
//
//	// A request is held until the test has looked around.
//	held := srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitFor(gate))
//	err := held.AwaitFired(ctx, 1)
//
// Some orders have names: [Server.Answer] and [Server.Delay] for one method,
// [Server.Deny] takes a permission away, [Server.RefuseMessages] is a topic's
// schema, [Server.HideNewTopics] and [Server.HideNewSubscriptions] a service that
// knows what was created only after a while, [Server.Redeliver] a worker that was killed.
//
// # Connections and streams that end
//
// [Server.EndStreams] ends the open streams of a subscription with a status.
// [Server.KeepAlives] leaves their pings without answers. [Server.GoAway] sends
// clients elsewhere, [Server.BreakConnections] resets connections, and
// [Server.Silence] makes them black holes. [Server.Stop], [Server.Resume] and
// [Server.Restart] take the server away and bring it back on the same port with
// all of its state.
//
// # What it does as the service does
//
// Topics and subscriptions are created, read, updated, listed, detached and
// deleted; messages are published, pulled by stream or by call, acknowledged,
// extended and returned. A stream's flow control (messages and bytes) holds;
// several streams of a subscription share its load; a lease that ends makes the
// message available again; a deadline of zero returns it at once; a dead-letter
// policy forwards what was delivered too often, with the attributes that tell
// from where. A connection carries at most [Config.MaxConcurrentStreams] calls at
// once, streams among them.
//
// With message ordering, messages of a key are delivered in their order, and to
// one stream as long as any of them is outstanding. One that comes back brings
// all later ones of its key with it, acknowledged or not. A filter keeps away
// what its expression does not match. A seek acknowledges what was published
// before its time, and brings back what the subscription or its topic retains.
//
// Limits are the service's: 10,000,000 bytes and 1,000 messages in a publish
// request, of one ordering key; data or an attribute in a message; 100 attributes,
// keys of 1 to 256 bytes that are not the service's own, values and ordering keys
// of up to 1,024; 512 KiB in an acknowledgement; names, deadlines, retentions,
// delivery attempts and filters in their bounds. What breaks one is refused with
// the status that the service has for it, and nothing of the request is done.
//
// An acknowledgement id of an earlier delivery of a message still acknowledges
// it, as the service does where it can. [Config.IgnoreStaleAcks] shows code the
// service at its worst, where it does not.
//
// # Where it differs
//
// Without message ordering, messages are delivered in the order of their
// publishing, returned ones first; code must not count on that. Exactly-once
// delivery is told to clients but not enforced. Retry policies and expiration are
// kept and told, and do nothing. A subscription that delivers by push or export is
// kept and told, refuses pulls, and delivers nothing. There are no snapshots, schemas
// and message transforms.
//
// The package's tests run one suite of promises against this server, Google's
// emulator and the fake in Google's Go client, with a table of what the other two
// do instead.
//
// # Time
//
// Leases run in real time. [Config.LeaseSecond] says how long one second of a
// lease lasts, so that a test need not wait ten seconds for a lease to lapse.
// Retention and the times of seeks are not scaled: a message published with
// [Server.Publish] may be as old as a test needs it.
//
// # Goroutines and cost
//
// A server has the goroutines of its gRPC server, one that accepts connections
// and two per open stream; all have ended when [Server.Close] returns. Work per
// message is constant, whatever the backlog. Payloads are kept in their wire form,
// once, however many subscriptions the topic has; they are decoded for a filter,
// and for an order that asks about messages.
//
// The command pubsubtestd runs the server as a process of its own.
package pubsubtest
