//go:build !unix

package main

import (
	"errors"
	"time"
)

func cpuTime() (time.Duration, error) { return 0, errUsage }

func peakMemory() (int64, error) { return 0, errUsage }

var errUsage = errors.New("what a process uses can be measured on Unix only")
