package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how far the heap grows between two collections, in percent of what
// is live. What a node has live is small and what its requests leave is much, so
// that Go's own 100 collects most of the time.
const gcPercent = 300

// tuneCollector sets the target of the garbage collector and its soft memory limit
// in MiB, 0 for none. The environment of the Go runtime, GOGC and GOMEMLIMIT, wins.
func tuneCollector(limit uint32) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" && limit > 0 {
		debug.SetMemoryLimit(int64(limit) << 20)
	}
}
