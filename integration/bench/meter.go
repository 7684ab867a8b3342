package main

import (
	"runtime"
	"time"
)

// A meter knows what this process had used when it was started.
type meter struct {
	memory runtime.MemStats
	cpu    time.Duration
	start  time.Time
}

func startMeter() (*meter, error) {
	var m meter
	runtime.ReadMemStats(&m.memory)
	var err error
	m.cpu, err = cpuTime()
	m.start = time.Now()
	return &m, err
}

// stop returns what was used since; the peak is the process's.
func (m *meter) stop() (result, error) {
	elapsed := time.Since(m.start)
	cpu, err := cpuTime()
	if err != nil {
		return result{}, err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	peak, err := peakMemory()
	return result{
		Seconds:     elapsed.Seconds(),
		CPU:         (cpu - m.cpu).Seconds(),
		Allocations: memory.Mallocs - m.memory.Mallocs,
		AllocBytes:  memory.TotalAlloc - m.memory.TotalAlloc,
		PeakRSS:     peak,
	}, err
}
