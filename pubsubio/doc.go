// Package pubsubio is the front door to reading and writing Cloud Pub/Sub from
// Apache Beam pipelines in Go.
//
// Package source reads, package sink writes, and [Run] runs the pipeline: on the
// runner of the flag --runner, prism where none is given. Run knows which signal
// proves on that runner that a bundle has committed, stops cleanly when its
// context is cancelled, and on the direct runner acknowledges what was read once
// the pipeline has succeeded. A pipeline may also be run without it; what is
// then different, package source says.
//
// Package check says before a pipeline runs whether what it reads and writes is there
// and can be used, and what mends it.
//
// A program calls beam.Init before it builds a pipeline, registers its decoders
// and encoders in init, and imports nothing else: this package brings Beam's
// runners with it.
//
// # Coming from Beam's own pubsubio
//
// [Read] and [Write] have the signatures of the package of that name in Beam, which runs
// on Dataflow only. A program that uses it compiles with the import changed and nothing
// else, and then also runs on prism. What differs:
//
//   - Names may be given in full, as projects/<project>/topics/<id>, beside ids. They are
//     checked where the pipeline is built, with all other options, and the panic says
//     what is wrong.
//   - ReadOptions.Topic gets a subscription that is deleted when a local run of [Run] has
//     ended, and expires elsewhere.
//   - Write needs no other step to wrap []byte, keeps ordering keys, and takes *Message.
//   - Dataflow, too, runs this package's own transforms: the workers pull and publish, as
//     elsewhere, and the service's own source and sink have no part in it.
//   - [Run] in place of beamx.Run stops cleanly, acknowledges sooner, and deletes that
//     subscription.
//   - The type of whole messages is that of cloud.google.com/go/pubsub/v2/apiv1/pubsubpb,
//     [PubsubMessage]. The package google.golang.org/genproto/googleapis/pubsub/v1, by
//     which Beam names it, only had aliases of it and is no longer part of genproto at
//     the version that Google's client needs: a program that imports it changes that
//     import, too.
//
// A [Service] has the same two as methods, for an emulator, a regional endpoint or a
// service account's key.
package pubsubio
