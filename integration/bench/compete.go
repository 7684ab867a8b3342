package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/rpc"
	"os"
	"runtime"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

// stopTimeout is how long a program may take to end when it is told to.
const stopTimeout = 30 * time.Second

// A task is what the coordinator wants of a contestant, on standard input.
type task struct {
	Contestant contestant
	Server     address
	Messages   map[Phase]int
	Load       load
	CPUProfile string // files; none if empty
	MemProfile string
	Live       *liveTask `json:",omitempty"`
}

// A job is a program's part of a task: one phase of it.
type job struct {
	endpoint string
	phase    Phase
	messages int
	load     load
	settings settings
}

// A result is what a contestant found out about itself, on standard output.
type result struct {
	Seconds     float64
	CPU         float64 // seconds
	ServerCPU   float64 // seconds
	Requests    int64   // of publishing
	Allocations uint64
	AllocBytes  uint64
	PeakRSS     int64
}

// compete is the process of a contestant: it does its work twice, a little to be
// warm and then as much as is measured, and reports the second.
func compete(stdin io.Reader, stdout io.Writer) error {
	// Before anything else: Beam's log handler and flags.
	beam.Init()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	var t task
	if err := json.NewDecoder(stdin).Decode(&t); err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	control, err := rpc.Dial("tcp", t.Server.Control)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }()
	if t.Messages[warmup] > 0 {
		if _, err := t.do(warmup, control); err != nil {
			return fmt.Errorf("warm-up: %w", err)
		}
	}
	stop, err := startProfiles(t)
	if err != nil {
		return err
	}
	var r any
	if t.Live != nil {
		r, err = t.Live.do(t, control)
	} else {
		r, err = t.do(measured, control)
	}
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(r)
}

// do runs a phase and measures it: from before the program starts until its work
// is done.
func (t task) do(p Phase, control *rpc.Client) (result, error) {
	j := job{
		endpoint: t.Server.Endpoint, phase: p, messages: t.Messages[p],
		load: t.Load, settings: t.Contestant.Settings,
	}
	run := programs[t.Contestant.Work][t.Contestant.Program]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var before, after State
	if err := control.Call("Control.State", p, &before); err != nil {
		return result{}, err
	}
	runtime.GC()
	m, err := startMeter()
	if err != nil {
		return result{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, j) }() // Ends with ctx; awaitEnd waits for it.

	reached := control.Go("Control.Await", t.goal(p), &after, make(chan *rpc.Call, 1))
	err = t.Contestant.awaitGoal(reached, ended)
	r, meterErr := m.stop()
	r.ServerCPU, r.Requests = (after.CPU - before.CPU).Seconds(), after.Requests-before.Requests
	cancel()
	return r, errors.Join(err, meterErr, awaitEnd(ended))
}

// goal is what the server must have seen before the work is done.
func (t task) goal(p Phase) Goal {
	g := Goal{Phase: p, Published: make([]int64, t.Load.Topics)}
	if t.Contestant.Program == engine {
		return g
	}
	if t.Contestant.Work != toTopic {
		g.Acknowledged = int64(t.Messages[p])
	}
	if t.Contestant.Work != fromTopic {
		g.Published = t.Load.shares(t.Messages[p])
	}
	return g
}

// awaitGoal waits until the work is done: a program of toTopic knows when, by the
// answers that it gets, and ends; of the others the server knows. A program that
// fails ends the wait. What it has sent in ended is put back.
func (c contestant) awaitGoal(reached *rpc.Call, ended chan error) error {
	server := reached.Done
	if c.Work == toTopic {
		server = nil
	}
	select {
	case <-server:
		return reached.Error
	case err := <-ended:
		ended <- nil
		if err == nil {
			<-reached.Done
			err = reached.Error
		}
		return err
	}
}

// awaitEnd waits for the end of a program that was told to end.
func awaitEnd(ended chan error) error {
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case err := <-ended:
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	case <-timer.C:
		return fmt.Errorf("the program did not end within %v", stopTimeout)
	}
}
