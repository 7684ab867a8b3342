//go:build unix

package main

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTime is what this process has used in user and system mode.
func cpuTime() (time.Duration, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, err
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}

// peakMemory is the most that this process has had resident, in bytes. Linux's
// rusage has the parent's in it, whose memory a new process shares until it is
// a program of its own, hence /proc.
func peakMemory() (int64, error) {
	if kib, ok := highWaterMark(); ok {
		return kib << 10, nil
	}
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, err
	}
	if runtime.GOOS == "darwin" {
		return r.Maxrss, nil
	}
	return r.Maxrss << 10, nil
}

func highWaterMark() (kib int64, ok bool) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib, err == nil
		}
	}
	return 0, false
}
