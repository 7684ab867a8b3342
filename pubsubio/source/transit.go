package source

import "time"

// A transit tells whether messages may have been on their way for long. The service
// counts a lease from when it sends a message; a reader that holds its stream back,
// because its buffers are full, leaves messages waiting in the transport, and would
// take their lease for a new one. Those get a receipt: an extension at once.
//
// The goroutine that reads the stream owns it.
type transit struct {
	// held is for how long the stream was held back since nothing was on its way.
	held time.Duration
}

// emptyAfter is how long reading must have taken to show that nothing was there, nor
// with a service that waited for room in the transport.
const emptyAfter = 50 * time.Millisecond

// pulled hears of a response that was read after the stream was held back so long,
// and reading it took so long. It reports whether the messages may have waited for a
// good part of a lease of that period.
func (t *transit) pulled(held, read, period time.Duration) bool {
	t.held += held
	if read >= emptyAfter {
		t.held = 0
	}
	return t.held >= period/4
}
