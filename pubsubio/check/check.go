package check

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// Configs are what a pipeline reads and writes with. A dead-letter queue that is part
// of a source's or a sink's policy is looked at with it; Queues are those of transforms
// of the pipeline's own.
type Configs struct {
	Sources []source.Config
	Sinks   []sink.Config
	Queues  []dlq.Config
}

// Options say how to check. The zero value means every default.
type Options struct {
	// Member is whom the commands grant permissions to, as gcloud takes it:
	// "serviceAccount:NAME@PROJECT.iam.gserviceaccount.com". Default "MEMBER", to be
	// filled in.
	Member string
	// Patience is how long a service that cannot be reached, or is busy, is asked again.
	// Default 5 s: it is for somebody who waits in front of a screen. A source and a sink
	// have much more.
	Patience time.Duration
}

// concurrency is how many resources are looked at once: little, beside what a front
// end of the service admits on a connection.
const concurrency = 16

// Run looks at everything that c uses, as far as the account may, and changes nothing.
//
// The error is not about what it found, which Report.Err joins: it says why there is no
// report. A service of which no call is answered is an [*AbsentError], and a connection that
// cannot be made for want of credentials is an error, too.
func Run(ctx context.Context, c Configs, o Options) (Report, error) {
	o.Member = cmp.Or(o.Member, "MEMBER")
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
	s := survey{member: o.Member, subjects: make(map[key]*subject)}
	s.collect(c)
	services, err := dialAll(s.order, o.Patience)
	defer services.close()
	if err != nil {
		return Report{}, err
	}
	// Topics come last: subscriptions lead to some.
	if err := each(ctx, services, s.of("subscription"), (*service).lookAtSubscription); err != nil {
		return Report{}, err
	}
	s.follow()
	if err := each(ctx, services, s.of("topic"), (*service).lookAtTopic); err != nil {
		return Report{}, err
	}
	s.conclude()
	s.askProjects(ctx, services)
	return s.report(), nil
}

// each looks at subjects, some at once. It starts the goroutines and waits for them.
func each(ctx context.Context, services services, subjects []*subject, look func(*service, context.Context, *subject) error) error {
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(concurrency)
	for _, s := range subjects {
		service := services[s.connection]
		if service == nil {
			s.State = Unknown
			continue
		}
		calls.Go(func() error { return look(service, ctx, s) })
	}
	return calls.Wait()
}

// An AbsentError says that the service has answered nothing.
type AbsentError struct {
	// Endpoint is where it was asked, a host and a port.
	Endpoint string

	patience time.Duration
	text     string // of the last status
	err      error
}

func (e *AbsentError) Error() string {
	return fmt.Sprintf("Pub/Sub at %s has not answered within %v: %s; check that it runs and can be reached, and EmulatorEndpoint and Endpoint",
		e.Endpoint, e.patience, e.text)
}

// Unwrap returns the last status.
func (e *AbsentError) Unwrap() error { return e.err }

// connectionOf returns the connection of a queue over Pub/Sub.
func connectionOf(c dlq.Config) options.Connection {
	return options.Connection{EmulatorEndpoint: c.EmulatorEndpoint, Endpoint: c.Endpoint, ServiceAccountKeyFile: c.ServiceAccountKeyFile}
}
