package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os/exec"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A serverProcess is a server as the coordinator sees it.
type serverProcess struct {
	address address
	cmd     *exec.Cmd
	stdin   io.Closer
}

// startServer returns once the server listens.
func startServer(ctx context.Context, spec serverSpec) (*serverProcess, error) {
	cmd, err := command(ctx, roleServer)
	if err != nil {
		return nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &serverProcess{cmd: cmd, stdin: stdin}
	err = json.NewEncoder(stdin).Encode(spec)
	if err == nil {
		err = json.NewDecoder(stdout).Decode(&s.address)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the server: %w", err), s.stop())
	}
	return s, nil
}

// stop ends the server and waits for its end.
func (s *serverProcess) stop() error { return errors.Join(s.stdin.Close(), s.cmd.Wait()) }

// verify asks the server whether the work was done: every message acknowledged,
// every message published to its topic, their data as long as it was, those of a
// key in their order. A message that came twice may be published twice by any
// contestant; more than that is a fault.
func (s *serverProcess) verify(t task) error {
	control, err := rpc.Dial("tcp", s.address.Control)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }()
	var faults options.Faults
	for _, p := range []Phase{warmup, measured} {
		var state State
		var kept Kept
		err := errors.Join(control.Call("Control.State", p, &state), control.Call("Control.Look", p, &kept))
		if err != nil {
			return err
		}
		t.goal(p).faults(&faults, state, kept)
	}
	return faults.Err()
}

// faults records where a phase that has ended is not what it was to be.
func (g Goal) faults(f *options.Faults, state State, kept Kept) {
	if state.Input.Acknowledged != g.Acknowledged {
		f.Add("acknowledged", state.Input.Acknowledged, fmt.Sprintf("must be %d", g.Acknowledged))
	}
	for i, published := range state.Published {
		if extra := published - g.Published[i]; extra < 0 || extra > state.Input.Redelivered {
			f.Add("published to "+g.Phase.outputTopic(i), published,
				fmt.Sprintf("must be %d, or as many more as were redelivered, %d", g.Published[i], state.Input.Redelivered))
		}
	}
	if kept.WrongSize > 0 {
		f.Add("of another size", kept.WrongSize, fmt.Sprintf("must be none of the last %d", kept.Seen))
	}
	if kept.OutOfOrder > 0 {
		f.Add("out of order", kept.OutOfOrder, fmt.Sprintf("must be none of the last %d", kept.Seen))
	}
}
