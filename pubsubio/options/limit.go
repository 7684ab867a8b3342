package options

import "time"

// Limit makes a read end by itself. The zero value is no limit; with several
// set, the first that is reached ends the read. A message that was received and
// not emitted is returned to its subscription.
type Limit struct {
	// MaxMessages ends the read after that many messages. All subscriptions of the
	// read share it where one process is known to read them all: where
	// pubsubio.Run runs the pipeline on prism or on the direct runner, and with an
	// explicit --runner=prism. Elsewhere each subscription has it for itself.
	// Default 0: any number. Copies that source.Config.IDAttribute suppresses are
	// acknowledged with their original and not counted; a message that is refused or
	// dropped counts, each time that it comes.
	MaxMessages int64

	// MaxDuration ends the read that long after the job started to read.
	// Default 0: never. At least 1 ms.
	MaxDuration time.Duration

	// StopWhenIdle ends the read once no message has come from any of its
	// subscriptions for that long. It looks at the readers of its own process: on
	// several workers, each ends what it reads when that has been idle. Default 0:
	// never. At least 1 ms. The service may hold a message back for seconds, so a
	// short value can end a read before it is drained.
	StopWhenIdle time.Duration
}

// IsSet reports whether l bounds anything.
func (l Limit) IsSet() bool { return l != Limit{} }

// Faults records in f each rule that l breaks.
func (l Limit) Faults(f *Faults) {
	const in = "options.Limit."
	atLeast(f, in+"MaxMessages", l.MaxMessages, 0)
	if l.MaxDuration != 0 {
		millis(f, in+"MaxDuration", l.MaxDuration)
	}
	if l.StopWhenIdle != 0 {
		millis(f, in+"StopWhenIdle", l.StopWhenIdle)
	}
}
