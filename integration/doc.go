// Package integration holds the tests that run whole pipelines: on prism and on
// the direct runner, against the server of package pubsubtest, in the process or
// in one of its own, and against Google's emulator. It has no code of its own.
//
// Tests of more than five seconds are skipped with -short; those that measure
// processor time or memory also under the race detector. A test that is named
// after a case, such as C01, keeps out the fault of a public bug report.
package integration
