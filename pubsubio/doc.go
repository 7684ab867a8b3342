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
// A program calls beam.Init before it builds a pipeline, registers its decoders
// and encoders in init, and imports nothing else: this package brings Beam's
// runners with it.
package pubsubio
