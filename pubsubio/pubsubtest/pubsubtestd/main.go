// Command pubsubtestd runs the server of package pubsubtest as a process of its
// own, for benchmarks and for programs that are not tests.
//
//	pubsubtestd --addr=127.0.0.1:8085 \
//		--topic=projects/p/topics/orders \
//		--subscription=projects/p/subscriptions/orders=projects/p/topics/orders \
//		--publish=1000000 --size=1024
//
// Once it is ready it prints "listening on HOST:PORT" to standard output. It
// ends, with exit code 0, on an interrupt, on SIGTERM, and with
// --until-stdin-closes at the end of its standard input.
//
// --delay and --fail make it slow or faulty, as a service under load:
// --delay=Publish=20ms --fail=Publish=UNAVAILABLE:0.01 holds every publish back
// and fails one of a hundred. A topic of --json-only refuses what is no JSON, for ever,
// as a topic with a schema does.
//
// With --stats-addr it also serves its counts as JSON over HTTP, at any path,
// after a line "stats on http://HOST:PORT".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "pubsubtestd:", err)
		os.Exit(1)
	}
}

// flags are what the command line asks for.
type flags struct {
	addr             string
	statsAddr        string
	topics           list
	subscriptions    list // SUBSCRIPTION=TOPIC
	publish          int
	size             int
	delays           list // METHOD=DURATION
	fails            list // METHOD=CODE or METHOD=CODE:PROBABILITY
	jsonOnly         list // topics
	untilStdinCloses bool
}

// list is a flag that may be given several times.
type list []string

// String is for package flag.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set is for package flag.
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func parse(args []string, stderr io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("pubsubtestd", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&f.addr, "addr", "127.0.0.1:0", "where to listen, as `host:port`")
	set.StringVar(&f.statsAddr, "stats-addr", "", "where to serve counts as JSON over HTTP, as `host:port`; nowhere if empty")
	set.Var(&f.topics, "topic", "a `topic` to create, by full name; may be repeated")
	set.Var(&f.subscriptions, "subscription", "a `subscription=topic` to create, by full names; may be repeated")
	set.IntVar(&f.publish, "publish", 0, "how many `messages` to publish to each topic before listening is reported")
	set.IntVar(&f.size, "size", 1024, "the `bytes` of data of each of them")
	set.Var(&f.delays, "delay", "hold calls back, as `method=duration`; may be repeated")
	set.Var(&f.fails, "fail", "fail calls, as `method=code`, or method=code:probability; may be repeated")
	set.Var(&f.jsonOnly, "json-only", "a `topic` that refuses what is no JSON; may be repeated")
	set.BoolVar(&f.untilStdinCloses, "until-stdin-closes", false, "end when standard input ends")
	if err := set.Parse(args); err != nil {
		return flags{}, err
	}
	switch {
	case set.NArg() > 0:
		return flags{}, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case f.publish < 0:
		return flags{}, fmt.Errorf("--publish is %d: want 0 or more", f.publish)
	case f.publish > 0 && f.size < 1:
		return flags{}, fmt.Errorf("--size is %d: want 1 or more", f.size)
	}
	return f, nil
}

// run is the whole program: it returns when ctx is done, or when stdin ends if
// the flags say so.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	f, err := parse(args, stderr)
	if err != nil {
		return err
	}
	srv, err := pubsubtest.Start(pubsubtest.Config{Addr: f.addr})
	if err != nil {
		return err
	}
	defer srv.Close()
	if err := prepare(srv, f); err != nil {
		return err
	}
	if err := order(srv, f); err != nil {
		return err
	}
	if f.statsAddr != "" {
		stats, err := serveStats(srv, f.statsAddr)
		if err != nil {
			return err
		}
		defer stats.close()
		fmt.Fprintf(stdout, "stats on http://%s\n", stats.addr)
	}
	fmt.Fprintf(stdout, "listening on %s\n", srv.Endpoint())
	if f.untilStdinCloses {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		// Ends with stdin, or with the process.
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	<-ctx.Done()
	return nil
}

// prepare creates what the flags name and publishes what they ask for.
func prepare(srv *pubsubtest.Server, f flags) error {
	for _, topic := range f.topics {
		if err := srv.CreateTopic(topic); err != nil {
			return err
		}
	}
	for _, s := range f.subscriptions {
		name, topic, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("--subscription=%s: want subscription=topic", s)
		}
		if err := srv.CreateSubscription(name, topic); err != nil {
			return err
		}
	}
	if f.publish == 0 {
		return nil
	}
	m := &message.Message{Data: []byte(strings.Repeat("x", f.size))}
	for _, topic := range f.topics {
		if err := srv.Preload(topic, f.publish, m); err != nil {
			return err
		}
	}
	return nil
}
