package federation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// Hosts that do not answer delay nobody: of 300 followers 200 never answer, more than there are slots, and the others have a post
// as soon as one that all answer for.
func TestFanOut_DeadHosts(t *testing.T) {
	t.Parallel()
	nodeKeys(1)
	synctest.Test(t, func(t *testing.T) {
		to := &sink{}
		f := simNode(t, "b.example", to, 1)
		follow(t, f, 300)
		simStart(t, f, nil)
		took := func(i int, live int64) time.Duration {
			before, began := to.got.Load(), time.Now()
			publish(t, f, i)
			require.Eventually(t, func() bool { return to.got.Load()-before == live }, time.Minute, 10*time.Millisecond)
			return time.Since(began)
		}
		all := took(0, 300)
		to.dead.Store(200)
		require.Less(t, took(1, 100)-all, fetchTimeout*9/10, "with 128 slots the last would wait for those that are given up")
	})
}

// A slot that is held long is given to others; the host's own limit is not.
func TestSlots_Late(t *testing.T) {
	t.Parallel()
	s := newSlots()
	var ends []func()
	for i := range slotsInAll { // all of them, each on a host of its own
		end := must.Get(s.take(t.Context(), fmt.Sprint("h", i)))(t)
		ends = append(ends, end)
	}
	began := time.Now()
	for i := range slotsInAll {
		end := must.Get(s.take(t.Context(), fmt.Sprint("other", i)))(t)
		ends = append(ends, end)
	}
	require.GreaterOrEqual(t, time.Since(began), lateAfter/2)
	require.Eventually(t, func() bool { return len(s.late) == 2*slotsInAll && len(s.all) == 0 }, time.Minute, time.Millisecond)
	one := must.Get(s.take(t.Context(), "h0"))(t)
	short, cancel := context.WithTimeout(t.Context(), 2*lateAfter)
	defer cancel()
	require.ErrorIs(t, must.Err(s.take(short, "h0")), context.DeadlineExceeded, "two requests to one host")
	for _, end := range append(ends, one) {
		end()
	}
	require.Zero(t, len(s.all)+len(s.late)+len(s.hosts))
}

// A follower that has missed many entries gets of each thread the newest reply, and
// everything else.
func TestFediverse_Gathered(t *testing.T) {
	onEachFollower(t, func(t *testing.T, f *follower) {
		w := f.w
		one, two := w.node.post(known), w.node.post(known)
		settle(t, w.node)
		require.Equal(t, "Announce Announce", f.types())
		f.got = nil
		var last [2]string
		for i := range 30 {
			root := []*protocol.StoredPost{one, two}[i%2]
			last[i%2] = w.node.post(func(p *protocol.StoredPost) { known(p); p.ReplyTo = root.URI }).URI
		}
		w.change(one, protocol.Hidden, "hide")
		settle(t, w.node)
		require.Equal(t, "Announce Announce Undo", f.types())
		require.Equal(t, last[:], []string{f.got[0].ObjectID(), f.got[1].ObjectID()})
		f.got = nil
		for range 5 { // few are sent one by one
			w.node.post(func(p *protocol.StoredPost) { known(p); p.ReplyTo = two.URI })
		}
		settle(t, w.node)
		require.Equal(t, strings.TrimSpace(strings.Repeat("Announce ", 5)), f.types())
	})
}

// Deliveries yield to activities that wait to be applied, and not for ever.
func TestFanOut_Yields(t *testing.T) {
	w := newWorld(t)
	f := w.node.f
	require.False(t, f.applying(t.Context()))
	require.NoError(t, w.node.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Enqueue(ctx, storage.Job{Kind: storage.ProcessJob, Args: []byte(`"x"`)})
	}))
	time.Sleep(yieldPause)
	require.True(t, f.applying(t.Context()))
	short, cancel := context.WithTimeout(t.Context(), 3*yieldPause)
	defer cancel()
	f.prepare(short, true)()
	require.Error(t, short.Err(), "it waits to the end")
	f.prepare(t.Context(), false)() // an answer to a Follow does not
	f.preparation.since = time.Now().Add(-maxYield)
	require.False(t, f.applying(t.Context()), "a flood does not stop them")
}
