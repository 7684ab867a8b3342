// Package transport holds this process's connections to Pub/Sub: to the service,
// over TLS and with credentials, or to an emulator, in plaintext and without.
// Beside them stands the one function that says what an error of a call means,
// [Classify].
//
// # What callers get
//
// [Dial] returns a connection of a configuration and a direction; equal ones
// share one, which closes with its last user. Streaming pulls have connections of
// their own, 90 on each, and the calls that settle what they brought another: the
// service admits about a hundred streams on one. The stubs are the
// generated ones over that connection, without the retries of the generated
// client, which lose the last status, and without its hook for
// PUBSUB_EMULATOR_HOST: only the configuration says where a call goes.
//
// [WithTopic] and [WithSubscription] put the headers that the service routes by
// into a context. Make such a context once and derive each call's from it.
//
// # Goroutines and locks
//
// The package starts no goroutine of its own; gRPC's end with the connection.
// The registry's lock is held for map access only, never while dialling or
// closing.
package transport
