package federation

import (
	"context"
	"runtime"
	"sync"
	"time"

	"stoa/storage"
)

// Limits of yielding.
const (
	yieldPause = 50 * time.Millisecond // between two checks whether activities wait
	maxYield   = 10 * time.Second      // at a stretch, so that a flood of activities cannot stop the deliveries
)

// A preparation limits how many deliveries are read, built and signed at once: one on each
// processor, however many wait for their hosts to answer. Those of the fan-out yield while received
// activities wait to be applied, so that what readers see here comes first.
type preparation struct {
	places chan struct{}

	mu       sync.Mutex
	looked   time.Time
	applying bool
	since    time.Time // since when applying is true
}

func newPreparation() *preparation {
	return &preparation{places: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// prepare waits for a place, and until the caller need not yield. leave gives the place
// back.
func (f *Federation) prepare(ctx context.Context, yields bool) (leave func()) {
	for {
		f.preparation.places <- struct{}{}
		if !yields || ctx.Err() != nil || !f.applying(ctx) {
			return func() { <-f.preparation.places }
		}
		<-f.preparation.places
		select {
		case <-ctx.Done():
		case <-time.After(yieldPause):
		}
	}
}

// applying reports whether activities wait to be applied, for at most maxYield.
func (f *Federation) applying(ctx context.Context) bool {
	b := f.preparation
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Sub(b.looked) < yieldPause {
		return b.applying && now.Sub(b.since) < maxYield
	}
	var due bool
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		due, err = tx.Jobs().Due(ctx, storage.ProcessJob)
		return err
	})
	if err != nil { // perhaps only the caller's time is up: what is known stays
		return false
	}
	if due && !b.applying {
		b.since = now
	}
	b.looked, b.applying = now, due
	return due && now.Sub(b.since) < maxYield
}
