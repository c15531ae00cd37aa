package feed

import (
	"runtime/debug"
	"time"
)

// Streams come and go in thousands, as when a proxy restarts. What their requests and their
// stacks took is garbage that an idle process collects late, and memory that it does not
// give back: so the hub sees to both once they have settled.

const (
	tidyStreams = 256              // so many streams have begun or ended
	tidyAfter   = 10 * time.Second // since the last of them
)

// A tidier gives memory back. Its owner calls it each second or more often.
type tidier struct {
	free    func()
	turns   uint64 // streams that had begun or ended at the last look
	tidied  uint64 // at the last time that memory was given back
	settled time.Time
}

func newTidier() *tidier { return &tidier{free: debug.FreeOSMemory} }

// look gives memory back when many of turns, which count the streams that ever began or ended,
// are new, and the last of them is some time ago.
func (t *tidier) look(turns uint64, now time.Time) {
	if turns != t.turns {
		t.turns, t.settled = turns, now
	}
	if t.turns-t.tidied >= tidyStreams && now.Sub(t.settled) >= tidyAfter {
		t.tidied = t.turns
		t.free()
	}
}
