package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how far the heap grows between two collections, in percent of the live heap. A
// node's live heap is small and its requests leave much garbage, so with Go's default of 100 it
// would collect most of the time.
const gcPercent = 300

// tuneCollector sets the target of the garbage collector and its soft memory limit in MiB, 0 for
// none. The environment variables GOGC and GOMEMLIMIT take precedence.
func tuneCollector(limit uint32) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" && limit > 0 {
		debug.SetMemoryLimit(int64(limit) << 20)
	}
}
