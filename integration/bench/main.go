package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// roleVar makes a process of this binary a server or a contestant. The
// coordinator sets it on those that it starts.
const roleVar = "PUBSUBIO_BENCH_ROLE"

const (
	roleServer     = "server"
	roleContestant = "contestant"
)

func main() {
	var err error
	switch role := os.Getenv(roleVar); role {
	case "":
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = coordinate(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
	default:
		err = play(role, os.Stdin, os.Stdout)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// play is a process that the coordinator has started.
func play(role string, stdin io.Reader, stdout io.Writer) error {
	switch role {
	case roleServer:
		return serve(stdin, stdout)
	case roleContestant:
		return compete(stdin, stdout)
	default:
		return fmt.Errorf("%s=%s: want %s or %s, or nothing", roleVar, role, roleServer, roleContestant)
	}
}

// coordinate is the process that a person starts: it has the contestants run in
// turn and prints what came out.
func coordinate(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parse(args, stderr)
	if err != nil {
		return err
	}
	r := newReport(f)
	if err := race(ctx, f, r, stderr); err != nil {
		return err
	}
	printTables(stdout, r)
	if f.report == "" {
		return nil
	}
	return r.writeFile(f.report)
}
