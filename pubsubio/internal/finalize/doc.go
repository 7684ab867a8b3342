// Package finalize calls back when a runner has finalized a bundle, for every
// bundle, and when a bundle has failed.
//
// Beam's own callback, beam.BundleFinalization, fires once for each execution
// plan: a plan swaps its finalizer when it is finalized, and the DoFns keep the
// old one, so what they register from the second bundle on is never looked at.
// This package therefore stands where the instructions of the runner pass: in
// hooks of the public package core/util/hooks.
//
// A DoFn that wants to know still declares a beam.BundleFinalization parameter,
// or the runner is never asked to finalize its stage; it then registers with
// the bundle's [Scope], which is in its context. A transform that uses the
// package calls [Enable] when it is built.
//
// # Guarantees
//
// OnCommitted callbacks run at most once, after the runner said that the bundle
// is finalized; what that proves depends on the runner. OnFinished callbacks run
// at most once, when the bundle has ended well, and OnFailed callbacks at most
// once, when it failed. A bundle that is neither, because its
// runner does not finalize or its worker lost the connection, calls nothing and
// is forgotten after an hour. Callbacks that other DoFns registered with Beam
// itself run as ever.
//
// # Goroutines and locks
//
// The package starts no goroutine. Callbacks run inside a hook, on the
// harness's goroutine and under the hooks package's lock: they return at once
// and make no call. Lock order: hooks, then a Scope's or the registry's mutex,
// neither of which is held while a callback runs.
package finalize
