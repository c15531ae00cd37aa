package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"stoa/identity/strictjson"
	"stoa/protocol/activity"
	"stoa/storage"
)

// A reading is an entry of a page of a log. It is read while the entries before it are stored;
// its members are set once done is closed.
type reading struct {
	raw       json.RawMessage
	done      chan struct{}
	entry     activity.Activity
	shape     error // why raw is no entry
	announced *announcement
	effect    after
	err       error // why the entry is tried again later
}

// selfContained reports whether effect and err are set: the entry is read without what the
// entries before it say.
func (r *reading) selfContained() bool { return !r.entry.Embedded() || r.announced.selfContained() }

// readAhead reads the entries of a page on every processor, while those before them are
// stored: the check of two signatures and the decoding are most of what an entry costs.
// stop ends the reading and waits until it has ended.
func (f *Federation) readAhead(ctx context.Context, s storage.Subscription, items []json.RawMessage) (entries []*reading, stop func()) {
	for _, raw := range items {
		entries = append(entries, &reading{raw: raw, done: make(chan struct{})})
	}
	ctx, cancel := context.WithCancel(ctx)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(items)) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(entries)); i = next.Add(1) - 1 {
				f.readOne(ctx, &s, entries[i])
			}
		})
	}
	return entries, func() { cancel(); group.Wait() }
}

func (f *Federation) readOne(ctx context.Context, s *storage.Subscription, r *reading) {
	defer close(r.done)
	defer func() {
		if v := recover(); v != nil { // the job fails, as a panic in it would make it
			r.shape = fmt.Errorf("panic: %v", v)
		}
	}()
	if r.shape = ctx.Err(); r.shape != nil {
		return
	}
	if r.shape = strictjson.DecodeChecked(r.raw, &r.entry); r.shape != nil {
		return
	}
	if r.announced = announcedBy(&r.entry); r.selfContained() {
		r.effect, r.err = f.readEntry(ctx, s, &r.entry, r.announced, r.raw)
	}
}
