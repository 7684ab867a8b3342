//go:build race

package integration

// raceDetector is set where the race detector slows everything down and keeps
// several bytes for each of the program's.
const raceDetector = true
