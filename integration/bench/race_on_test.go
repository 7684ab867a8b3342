//go:build race

package main

// raceDetector is set where the race detector slows everything down: the program
// takes most of its time in processes of its own, whose data it does not share.
const raceDetector = true
