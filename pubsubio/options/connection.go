package options

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Connection says which Pub/Sub to talk to, and as whom. The zero value is the
// global service with application default credentials.
//
// The environment variable PUBSUB_EMULATOR_HOST has no influence: a stray
// variable must not redirect a production pipeline.
type Connection struct {
	// EmulatorEndpoint is the host:port of an emulator, or of pubsubtest's
	// server, reached in plaintext and without credentials. Never production.
	// Default: none. Refused beside Endpoint and ServiceAccountKeyFile.
	EmulatorEndpoint string

	// Endpoint is a regional endpoint of the service, as
	// "europe-west1-pubsub.googleapis.com:443", reached over TLS and with
	// credentials. Messages with ordering keys keep their order across
	// publishers only within one region. Default: the global service.
	Endpoint string

	// ServiceAccountKeyFile is the path of a service account's JSON key, read
	// by each worker when it connects: every worker must see the same path.
	// Errors name neither the path nor the contents. Default: application
	// default credentials.
	ServiceAccountKeyFile string
}

// Faults records in f each rule that c breaks; prefix names the struct that
// holds c's fields, as "sink.Config".
func (c Connection) Faults(f *Faults, prefix string) {
	hostPort := func(field, value string) {
		if value == "" {
			return
		}
		host, port, err := net.SplitHostPort(value)
		if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 || host == "" || strings.ContainsAny(host, "/@ ") {
			f.Add(prefix+"."+field, fmt.Sprintf("%q", value), "must be host:port")
		}
	}
	hostPort("EmulatorEndpoint", c.EmulatorEndpoint)
	hostPort("Endpoint", c.Endpoint)
	if c.EmulatorEndpoint != "" && c.Endpoint != "" {
		f.Add(prefix+".Endpoint", fmt.Sprintf("%q", c.Endpoint), "must be empty beside EmulatorEndpoint")
	}
	if c.EmulatorEndpoint != "" && c.ServiceAccountKeyFile != "" {
		f.Add(prefix+".ServiceAccountKeyFile", "(set)", "must be empty beside EmulatorEndpoint, which takes no credentials")
	}
}
