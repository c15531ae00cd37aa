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

// A logBlock is a run of our log between two multiples of maxLogPage, serialized.
// Each page is built from one block, so that its cost does not depend on where it
// begins. A block is immutable; it is replaced by another.
type logBlock struct {
	first   int64    // number of the first entry
	entries [][]byte // as they are served
}

// blockAge is how long a block that is not used stays in memory.
const blockAge = 10 * time.Minute

// blocks are the blocks in memory and the position up to which they are current.
type blocks struct {
	mu    sync.Mutex // guards epoch, head and turn
	epoch string
	turn  int                     // part of the names, so that all blocks can be dropped
	head  int64                   // changes by the entries up to it are applied to the blocks
	rows  *cache.Cache[*logBlock] // by name

	making chan struct{} // slots for making blocks for readers that are not peers
}

func newBlocks() *blocks {
	return &blocks{rows: cache.OfBytes[*logBlock](32 << 20), making: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4))}
}

// makeWait is how long a reader that is not a peer waits for a slot.
const makeWait = 2 * time.Second

// name is the name of a block; its caller holds mu.
func (b *blocks) name(epoch string, at int64) string {
	return epoch + " " + strconv.Itoa(b.turn) + " " + strconv.FormatInt(at, 10)
}

// errUnmade is returned when a page needs a block that is not in memory.
var errUnmade = errors.New("this part of the log is not in memory")

// makeBlocks waits for a slot to make blocks. Making one costs the signatures of
// 200 posts, so readers that are not peers share few slots.
func (f *Federation) makeBlocks(ctx context.Context) (func(), error) {
	timeout := time.NewTimer(makeWait)
	defer timeout.Stop()
	select {
	case f.blocks.making <- struct{}{}:
		return func() { <-f.blocks.making }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timeout.C:
		return nil, refuse(http.StatusServiceUnavailable, "too many requests for old parts of the log; try again later", nil)
	}
}

// logPage makes a page of the log after a number, up to the end of its block. It
// returns errUnmade if mayMake is false and the block is not in memory.
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
		end := min(int64(len(b.entries)), head-b.first+1) // a later reader may have extended it
		if from := after - b.first + 1; from < end {
			entries = b.entries[from:min(end, from+int64(limit))]
		}
	}
	size, n := 0, 0
	for n < len(entries) && (n == 0 || size+len(entries[n]) <= maxLogBytes) {
		size, n = size+len(entries[n]), n+1
	}
	signed, err := f.signedHead(ctx, tx, epoch, head)
	if err != nil {
		return nil, err
	}
	o := f.site.LogPage(after, limit, epoch, head, after+int64(n), signed, []any{})
	if err := f.nameTree(ctx, tx, o, epoch); err != nil {
		return nil, err
	}
	page, err := o.Bytes()
	if err != nil || n == 0 {
		return page, err
	}
	// The entries are JSON already and are inserted unchanged.
	front, rest, _ := bytes.Cut(page, []byte(`"orderedItems":[]`))
	whole := append(make([]byte, 0, len(page)+size+n), front...)
	whole = append(whole, `"orderedItems":[`...)
	for _, raw := range entries[:n] {
		whole = append(append(whole, raw...), ',')
	}
	whole[len(whole)-1] = ']'
	return append(whole, rest...), nil
}

// refreshBlocks drops the blocks with entries that have changed: each change of an
// entry is itself an entry.
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
	changed, err := tx.Logs().Changed(ctx, f.site.Board(), b.head, head)
	if err != nil {
		return err
	}
	for _, seq := range changed {
		b.rows.Drop(b.name(epoch, (seq-1)/maxLogPage))
	}
	all, err := tx.Logs().ShopChanged(ctx, f.site.Board(), b.head, head)
	if err != nil {
		return err
	}
	if all { // any block may have news of the shop
		b.turn++
	}
	b.head = head
	return nil
}

// logBlock takes a block from memory, or makes or extends it.
func (f *Federation) logBlock(ctx context.Context, tx *storage.Tx, epoch string, head, at int64, mayMake bool) (*logBlock, error) {
	f.blocks.mu.Lock()
	name, first := f.blocks.name(epoch, at), at*maxLogPage+1
	f.blocks.mu.Unlock()
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
	more, err := tx.Logs().After(ctx, f.site.Board(), last, most-len(b.entries))
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
	if f.blocks.epoch == epoch && f.blocks.head == head { // otherwise the block may predate a known change
		f.blocks.rows.Put(name, b, size, f.now().Add(blockAge))
	}
	return b, nil
}
