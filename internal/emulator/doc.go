// Package emulator lets tests run against Google's Pub/Sub emulator, and gives
// them the same few calls against any Pub/Sub endpoint.
//
// [Start] runs an emulator for one test and its subtests: share it between
// subtests, it takes some seconds to start. Where the emulator is not installed
// the test is skipped, or fails if PUBSUBIO_REQUIRE_EMULATOR is 1.
//
// [Dial] returns a [Client] of an endpoint, the emulator's or that of package
// pubsubtest. Its methods end the test if they fail.
package emulator
