package main

import (
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
)

// startProfiles begins the profiles that a task asks for; stop writes them.
func startProfiles(t task) (stop func() error, err error) {
	stop = func() error { return nil }
	if t.CPUProfile != "" {
		f, err := os.Create(t.CPUProfile)
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		stop = func() error {
			pprof.StopCPUProfile()
			return f.Close()
		}
	}
	if t.MemProfile == "" {
		return stop, nil
	}
	// Finer than the default, which is made for heaps: an allocation is counted
	// for every 16 KiB.
	runtime.MemProfileRate = 16 << 10
	cpuStop := stop
	return func() error { return errors.Join(cpuStop(), writeAllocations(t.MemProfile)) }, nil
}

func writeAllocations(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
