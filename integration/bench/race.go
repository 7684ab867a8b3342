package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// race has every contestant run once in each round at each load, one after the
// other, so that whatever else the machine does meets all of them.
func race(ctx context.Context, f flags, r *report, progress io.Writer) error {
	if err := raceLive(ctx, f, r, progress); err != nil {
		return err
	}
	if err := enter(ctx, f, r, progress); err != nil {
		return err
	}
	for round := range f.rounds {
		for _, s := range r.Series {
			t := f.task(s.contestant, s.load, s.Messages)
			file := s.contestant.file() + "-" + s.load.file()
			t.CPUProfile = profileFile(f.cpuProfile, file, round, "cpu")
			t.MemProfile = profileFile(f.memProfile, file, round, "mem")
			res, err := run[result](ctx, t)
			if err != nil {
				return fmt.Errorf("%s, %v, round %d: %w", s.fullName(), s.load, round+1, err)
			}
			fmt.Fprintf(progress, "%v, round %d/%d, %s: %.2f µs, %.0f/s\n", s.load, round+1, f.rounds,
				s.fullName(), 1e6*res.CPU/float64(s.Messages), float64(s.Messages)/res.Seconds)
			s.Runs = append(s.Runs, res)
		}
	}
	return nil
}

// enter fills r with who runs at which load, and with how many messages.
func enter(ctx context.Context, f flags, r *report, progress io.Writer) error {
	for _, l := range f.loads() {
		for _, c := range f.contestants() {
			if c.Work == live || !c.suits(l) {
				continue
			}
			n, err := f.count(ctx, c, l)
			if err != nil {
				return fmt.Errorf("%s, %v, trial: %w", c.fullName(), l, err)
			}
			if f.duration > 0 {
				fmt.Fprintf(progress, "%v, %s: %d messages a round\n", l, c.fullName(), n)
			}
			r.Series = append(r.Series, &series{contestant: c, load: l, Messages: n})
		}
	}
	return nil
}

// profileFile names the file of one run. pprof adds up several that it is given.
func profileFile(dir, of string, round int, kind string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%d.%s", of, round+1, kind))
}

// run has one contestant run against a server of its own, and checks with the
// server that it did its work.
func run[R any](ctx context.Context, t task) (R, error) {
	srv, err := startServer(ctx, t.serverSpec())
	if err != nil {
		return *new(R), err
	}
	t.Server = srv.address
	var res R
	err = runContestant(ctx, t, &res)
	if err == nil && t.Live == nil {
		err = srv.verify(t)
	}
	return res, errors.Join(err, srv.stop())
}

// command is a process of this binary in another role.
func command(ctx context.Context, role string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// runContestant fills result with what the contestant reports.
func runContestant(ctx context.Context, t task, result any) error {
	cmd, err := command(ctx, roleContestant)
	if err != nil {
		return err
	}
	in, err := json.Marshal(t)
	if err != nil {
		return err
	}
	// Beam leaves a temporary file for every pipeline.
	dir, err := os.MkdirTemp("", "pubsubio-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout = bytes.NewReader(in), &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("contestant: %w", err)
	}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		return fmt.Errorf("read the contestant's result %q: %w", out.String(), err)
	}
	return nil
}
