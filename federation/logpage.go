package federation

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"stoa/identity/cache"
	"stoa/storage"
)

// A logBlock is a run of our log between two multiples of maxLogPage, as ready
// bytes. Every page is cut out of one, so that a page costs the same wherever it
// begins. A block is not changed; another takes its place.
type logBlock struct {
	first   int64    // number of the first entry
	entries [][]byte // as other nodes read them
}

// blockAge is how long a block is kept that nothing is heard of.
const blockAge = 10 * time.Minute

// blocks are the blocks in memory and how far they are known to be true.
type blocks struct {
	mu    sync.Mutex // guards epoch and head
	epoch string
	head  int64                   // entries up to it have been looked at for what they change
	rows  *cache.Cache[*logBlock] // by name

	making chan struct{} // who makes blocks for others than peers
}

func newBlocks() *blocks {
	return &blocks{rows: cache.OfBytes[*logBlock](32 << 20), making: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4))}
}

// makeWait is how long a reader that is no peer waits for its turn.
const makeWait = 2 * time.Second

func blockName(epoch string, at int64) string { return epoch + " " + strconv.FormatInt(at, 10) }

// errUnmade says that a page needs a block that is not in memory.
var errUnmade = errors.New("this part of the log is not in memory")

// makeBlocks waits for a turn to make blocks: it costs the signatures of 200 posts,
// so that those who are no peers have few turns at once.
func (f *Federation) makeBlocks(ctx context.Context) (func(), error) {
	timeout := time.NewTimer(makeWait)
	defer timeout.Stop()
	select {
	case f.blocks.making <- struct{}{}:
		return func() { <-f.blocks.making }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timeout.C:
		return nil, refuse(http.StatusServiceUnavailable, "many read parts of the log that are not in memory; try again later", nil)
	}
}

// logPage makes a page of the log after a number, up to the next border. Where
// mayMake is false and it needs a block that is not in memory, it is errUnmade.
func (f *Federation) logPage(ctx context.Context, tx *storage.Tx, epoch string, head, after int64, limit int, mayMake bool) ([]byte, error) {
	if err := f.refreshBlocks(ctx, tx, epoch, head); err != nil {
		return nil, err
	}
	var entries [][]byte
	if after < head {
		b, err := f.logBlock(ctx, tx, epoch, head, after/maxLogPage, mayMake)
		if err != nil {
			return nil, err
		}
		end := min(int64(len(b.entries)), head-b.first+1) // a later reader may have made more of it
		if from := after - b.first + 1; from < end {
			entries = b.entries[from:min(end, from+int64(limit))]
		}
	}
	size, n := 0, 0
	for n < len(entries) && (n == 0 || size+len(entries[n]) <= maxLogBytes) {
		size, n = size+len(entries[n]), n+1
	}
	page, err := f.site.LogPage(after, limit, epoch, head, after+int64(n), []any{}).Bytes()
	if err != nil || n == 0 {
		return page, err
	}
	// The entries are JSON already: they are put in as they are.
	front, rest, _ := bytes.Cut(page, []byte(`"orderedItems":[]`))
	whole := append(make([]byte, 0, len(page)+size+n), front...)
	whole = append(whole, `"orderedItems":[`...)
	for _, raw := range entries[:n] {
		whole = append(append(whole, raw...), ',')
	}
	whole[len(whole)-1] = ']'
	return append(whole, rest...), nil
}

// refreshBlocks drops the blocks with entries that read otherwise by now: whatever
// changes an entry is an entry itself.
func (f *Federation) refreshBlocks(ctx context.Context, tx *storage.Tx, epoch string, head int64) error {
	f.blocks.mu.Lock()
	defer f.blocks.mu.Unlock()
	b := f.blocks
	if b.epoch != epoch {
		b.epoch, b.head = epoch, head // blocks of another epoch have other names
		return nil
	}
	if head <= b.head {
		return nil
	}
	changed, err := tx.LogChanged(ctx, f.site.Board(), b.head, head)
	if err != nil {
		return err
	}
	for _, seq := range changed {
		b.rows.Drop(blockName(epoch, (seq-1)/maxLogPage))
	}
	b.head = head
	return nil
}

// logBlock takes a block from memory, or makes it, or makes more of it.
func (f *Federation) logBlock(ctx context.Context, tx *storage.Tx, epoch string, head, at int64, mayMake bool) (*logBlock, error) {
	name, first := blockName(epoch, at), at*maxLogPage+1
	most := int(min(maxLogPage, head-first+1))
	b := &logBlock{first: first}
	if known, ok := f.blocks.rows.Get(name, f.now()); ok {
		if b = known; len(b.entries) >= most {
			return b, nil
		}
	}
	if !mayMake {
		return nil, errUnmade
	}
	last := first - 1 + int64(len(b.entries))
	more, err := tx.LogAfter(ctx, f.site.Board(), last, most-len(b.entries))
	if err != nil {
		return nil, err
	}
	b = &logBlock{first: first, entries: append(make([][]byte, 0, most), b.entries...)}
	size := 0
	for _, e := range more {
		raw, _, err := f.entry(ctx, tx, epoch, e)
		if err != nil {
			return nil, err
		}
		b.entries = append(b.entries, raw)
	}
	for _, raw := range b.entries {
		size += len(raw)
	}
	f.blocks.mu.Lock()
	defer f.blocks.mu.Unlock()
	if f.blocks.epoch == epoch && f.blocks.head == head { // else it may be older than what is known to have changed
		f.blocks.rows.Put(name, b, size, f.now().Add(blockAge))
	}
	return b, nil
}
