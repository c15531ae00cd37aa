package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A fixture is a running hub and its database.
type fixture struct {
	*Feed
	t    *testing.T
	db   *storage.DB
	stop func() // ends the hub and waits for it
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()
	hub := NewHub(db, "https://n.example", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	require.Eventually(t, func() bool {
		hub.mu.Lock()
		defer hub.mu.Unlock()
		return hub.running()
	}, time.Minute, time.Millisecond)
	s := &fixture{&Feed{Base: hub.Base, Hub: hub}, t, db, sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})}
	t.Cleanup(s.stop)
	return s
}

// add makes items, each in its own transaction.
func (s *fixture) add(kind protocol.FeedType, subjects ...string) {
	s.t.Helper()
	for _, subject := range subjects {
		require.NoError(s.t, s.db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Feed().Append(ctx, protocol.FeedItem{ID: protocol.NewID(protocol.FeedID, tx.Now), Type: kind, At: tx.Now,
				Actor: protocol.Author{Name: "Asha"}, Subject: protocol.Subject{Kind: "item", ID: subject, Title: subject}})
		}))
	}
	require.NoError(s.t, s.db.Numbered(context.Background()))
}

func (s *fixture) stream(network, types, after string) (r protocol.Stream, err error) {
	s.t.Helper()
	return s.streamOf(protocol.Caller{Network: network}, types, after)
}

func (s *fixture) streamOf(c protocol.Caller, types, after string) (r protocol.Stream, err error) {
	s.t.Helper()
	err = s.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
		r, err = s.Stream(ctx, tx, c, protocol.FeedStream{Types: types, After: after})
		return err
	})
	return r, err
}

func (s *fixture) mustStream(types, after string) protocol.Stream {
	s.t.Helper()
	r := must.Get(s.stream("here", types, after))(s.t)
	s.t.Cleanup(r.Close)
	return r
}

// next reads n events, at most a minute long.
func next(t *testing.T, r protocol.Stream, n int) (ids []string, titles []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for len(ids) < n {
		events, err := r.Next(ctx)
		require.NoError(t, err, "after %v", titles)
		for _, e := range events.Events {
			ids, titles = append(ids, e.ID), append(titles, titleOf(t, e))
		}
	}
	require.Len(t, ids, n)
	return ids, titles
}

func TestStream_FromNowAndFromAnItem(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		s := newFixture(t, db)
		s.add(protocol.FeedListing, "a", "b")
		r := s.mustStream("", "")
		require.NotEmpty(t, r.Place(), "a reader can continue from before its first event")
		s.add(protocol.FeedListing, "c")
		s.add(protocol.FeedReview, "d")
		ids, titles := next(t, r, 2)
		require.Equal(t, []string{"c", "d"}, titles)
		require.Equal(t, ids[1], r.Place())

		_, titles = next(t, s.mustStream("", ids[0]), 1)
		require.Equal(t, []string{"d"}, titles)
		reviews := s.mustStream("review,attention_bid", ids[0])
		s.add(protocol.FeedListing, "e")
		s.add(protocol.FeedReview, "f")
		_, titles = next(t, reviews, 2)
		require.Equal(t, []string{"d", "f"}, titles)
	})
}

// TestStream_Local: a stream of what happened on this node leaves out the rest, of all types and of some, also while it
// shares batches with others.
func TestStream_Local(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		s := newFixture(t, db)
		local := func(types, after string) (r protocol.Stream) {
			require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
				r, err = s.Stream(ctx, tx, protocol.Caller{Network: "there"}, protocol.FeedStream{Types: types, After: after, Local: true})
				return err
			}))
			return r
		}
		all, here, listings := s.mustStream("", ""), local("", ""), local("listing", "")
		away := "n2.example"
		for i, node := range []*string{&away, nil, &away, nil} {
			require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return tx.Feed().Append(ctx, protocol.FeedItem{ID: protocol.NewID(protocol.FeedID, tx.Now), Type: protocol.FeedListing, At: tx.Now, Node: node,
					Actor: protocol.Author{Name: "Asha"}, Subject: protocol.Subject{Kind: "item", ID: fmt.Sprint(i), Title: fmt.Sprint(i)}})
			}))
		}
		s.add(protocol.FeedReview, "4")
		require.NoError(t, db.Numbered(t.Context()))
		ids, titles := next(t, all, 5)
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, titles)
		_, titles = next(t, here, 3)
		require.Equal(t, []string{"1", "3", "4"}, titles)
		_, titles = next(t, listings, 2)
		require.Equal(t, []string{"1", "3"}, titles)
		_, titles = next(t, local("", ids[1]), 2)
		require.Equal(t, []string{"3", "4"}, titles, "from the database")
	})
}

// TestStream_Long is a reader that is far behind while writers continue: it reads
// by itself, joins the others in the middle, and sees each item once.
func TestStream_Long(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		s := newFixture(t, db)
		s.add(protocol.FeedListing, "first")
		companion := s.mustStream("", "")
		const writers, each = 4, 90
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for i := range each {
					s.add(protocol.FeedListing, fmt.Sprint(w, "-", i))
				}
			})
		}
		var first storage.FeedEntry
		require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			entries, err := tx.Feed().After(ctx, 0, 1)
			first = entries[0]
			return err
		}))
		_, behind := next(t, s.mustStream("", first.ID), writers*each)
		_, together := next(t, companion, writers*each)
		group.Wait()
		require.Equal(t, behind, together, "one order for all")
		seen := map[string]bool{}
		for _, title := range behind {
			require.False(t, seen[title], title)
			seen[title] = true
		}
	})
}

// TestStream_OtherProcess follows at one process what is written at another,
// and continues at a third, after the first has ended.
func TestStream_OtherProcess(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		open := func() *fixture {
			db := must.Get(storage.Open(t.Context(), c))(t)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			return newFixture(t, db)
		}
		one, two := open(), open()
		r := one.mustStream("", "")
		two.add(protocol.FeedListing, "a", "b")
		ids, _ := next(t, r, 2)
		one.stop()
		require.ErrorIs(t, must.Err(r.Next(t.Context())), io.EOF)
		two.add(protocol.FeedListing, "c")
		_, titles := next(t, open().mustStream("", ids[0]), 2)
		require.Equal(t, []string{"b", "c"}, titles)
	})
}

// TestHub_Ends: streams end with the hub, whatever they are doing, and there are
// none before and after it.
func TestHub_Ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storagetest.Open(t)
		hub := NewHub(db, "https://n.example", slog.New(slog.DiscardHandler))
		_, err := hub.open(protocol.Caller{Network: "here"}, 0, "", protocol.FeedStream{})
		require.Equal(t, protocol.Overloaded, protocol.CodeOf(err), "before Open")
		hub.Open()
		early, err := hub.open(protocol.Caller{Network: "here"}, 0, "", protocol.FeedStream{})
		require.NoError(t, err, "a server behind the hub refuses no stream while Run is about to begin")
		over, end := context.WithCancel(context.Background())
		end()
		require.NoError(t, hub.Run(over))
		require.ErrorIs(t, must.Err(early.Next(context.Background())), io.EOF)
		early.Close()

		s := newFixture(t, db)
		s.add(protocol.FeedListing, "a")
		waiting, behind, closed := s.mustStream("", ""), s.mustStream("", ""), s.mustStream("", "")
		ended := make(chan error)
		go func() {
			_, err := waiting.Next(context.Background())
			ended <- err
		}()
		synctest.Wait()
		closed.Close()
		closed.Close()
		require.Equal(t, 2, s.Hub.Streams())
		s.stop()
		require.ErrorIs(t, <-ended, io.EOF)
		require.ErrorIs(t, must.Err(behind.Next(context.Background())), io.EOF)
		_, err = s.stream("here", "", "")
		require.Equal(t, protocol.Overloaded, protocol.CodeOf(err), "after Run")
		require.Positive(t, protocol.AsError(err).RetryAfter)
		waiting.Close()
		behind.Close()
		require.Zero(t, s.Hub.Streams())
	})
}

func TestHub_Places(t *testing.T) {
	t.Parallel()
	s := newFixture(t, storagetest.Open(t))
	var open []protocol.Stream
	for range maxNetworkStreams {
		r := must.Get(s.stream("there", "", ""))(t)
		open = append(open, r)
	}
	_, err := s.stream("there", "", "")
	require.Equal(t, protocol.Overloaded, protocol.CodeOf(err))
	require.Equal(t, retryStream, protocol.AsError(err).RetryAfter)
	open[0].Close()
	r, err := s.stream("there", "", "")
	require.NoError(t, err, "a place that was given back")
	open = append(open, r)
	for n := 0; s.Hub.Streams() < MaxStreams/2; n++ {
		r := must.Get(s.stream(fmt.Sprint("net", n), "", ""))(t)
		open = append(open, r)
	}
	require.Equal(t, protocol.Overloaded, protocol.CodeOf(must.Err(s.stream("one more", "", ""))), "strangers have half")
	for n := 0; s.Hub.Streams() < MaxStreams; n++ {
		r := must.Get(s.streamOf(protocol.Caller{Network: fmt.Sprint("known", n/maxNetworkStreams), Standing: protocol.Owner}, "", ""))(t)
		open = append(open, r)
	}
	require.Equal(t, protocol.Overloaded, protocol.CodeOf(must.Err(s.streamOf(protocol.Caller{Network: "another", Standing: protocol.Federated}, "", ""))))
	for _, r := range open {
		r.Close()
	}
	require.Zero(t, s.Hub.Streams())
	require.Empty(t, s.Hub.seats.networks)
}

// TestPulse_Places: what strangers keep open leaves places for who is signed in.
func TestPulse_Places(t *testing.T) {
	t.Parallel()
	p := NewPulse(storagetest.Open(t), slog.New(slog.DiscardHandler))
	require.Equal(t, protocol.Overloaded, protocol.CodeOf(must.Err(p.Join("net", true))), "before Run")
	p.running = true
	for n := range maxPulse / 2 {
		must.Get(p.Join(fmt.Sprint("net", n), false))(t)
	}
	require.Equal(t, protocol.Overloaded, protocol.CodeOf(must.Err(p.Join("one more", false))))
	leave := must.Get(p.Join("owner", true))(t)
	leave()
	require.Equal(t, maxPulse/2, p.Pages())
}

// A reader that takes nothing is cut when its pages are full; the others continue,
// and the one that was cut continues from where it stopped.
func TestHub_SlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, storagetest.Open(t))
		s.add(protocol.FeedListing, "a")
		slow, quick := s.mustStream("", ""), s.mustStream("", "")
		attached(t, slow)
		attached(t, quick)
		const items = waitingBatches + 5
		for i := range items {
			s.add(protocol.FeedListing, fmt.Sprint(i))
			next(t, quick, 1) // so that each item is a page of its own
		}
		got := 0
		var err error
		for err == nil {
			var b *protocol.Batch
			if b, err = slow.Next(t.Context()); err == nil {
				got += len(b.Events)
			}
		}
		require.Equal(t, protocol.Overloaded, protocol.CodeOf(err))
		require.LessOrEqual(t, got, waitingBatches)
		_, titles := next(t, s.mustStream("", slow.Place()), items-got)
		require.Equal(t, fmt.Sprint(got), titles[0])
	})
}

// attached lets a reader that has nothing to read catch up.
func attached(t *testing.T, r protocol.Stream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, must.Err(r.Next(ctx)), context.DeadlineExceeded)
	require.NotNil(t, r.(*reader).wake)
}

func titleOf(t *testing.T, e protocol.Event) string {
	t.Helper()
	item := must.JSON[protocol.FeedItem](e.Data)(t)
	require.Equal(t, e.ID, item.ID)
	require.Equal(t, e.Type, string(item.Type))
	return item.Subject.Title
}

// TestHub_Work counts what streams cost while items come all the time: a write a
// wake for each that wants something, and none for each item.
func TestHub_Work(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, storagetest.Open(t))
		s.add(protocol.FeedListing, "before")
		const all, filtered, items = 30, 10, 400
		over, end := context.WithCancel(context.Background())
		var group sync.WaitGroup
		got := make([]int, all+filtered)
		seen := make([]time.Duration, all) // the longest time from an item to its stream
		for i := range got {
			types := ""
			if i >= all {
				types = "review"
			}
			r := must.Get(s.stream(fmt.Sprint(i), types, ""))(t)
			group.Go(func() {
				defer r.Close()
				for {
					b, err := r.Next(over)
					if err != nil {
						return
					}
					got[i] += len(b.Events)
					for _, e := range b.Events {
						var item protocol.FeedItem
						if json.Unmarshal(e.Data, &item) == nil && i < all {
							seen[i] = max(seen[i], time.Since(item.At))
						}
					}
				}
			})
		}
		synctest.Wait()
		<-time.After(time.Second)
		began, before := time.Now(), s.Hub.Counts()
		for n := range items {
			s.add(protocol.FeedListing, fmt.Sprint(n))
			<-time.After(5 * time.Millisecond)
		}
		<-time.After(leastRest)
		synctest.Wait()
		wakes := uint64(time.Since(began)/leastRest) + 2
		c := s.Hub.Counts()
		require.LessOrEqual(t, c.Wakes-before.Wakes, wakes)
		require.LessOrEqual(t, c.Batches-before.Batches, all*wakes, "a stream that wants none of it writes nothing")
		require.EqualValues(t, all*items, c.Events-before.Events)
		require.False(t, c.Behind)
		for i, n := range got {
			want := items
			if i >= all {
				want = 0
			}
			require.Equal(t, want, n, "stream %d", i)
		}
		for _, late := range seen {
			require.LessOrEqual(t, late, leastRest+50*time.Millisecond)
		}
		end()
		group.Wait()
	})
}

// TestHub_Share: what streams cost in a second is bounded by constants, whatever
// their number and whatever is written.
func TestHub_Share(t *testing.T) {
	t.Parallel()
	for _, streams := range []int{0, 1, 8, 100, 1024, 4000, 5000} {
		perSecond := func(behind bool) float64 {
			return float64(streams) * float64(time.Second) / float64(rest(streams, behind))
		}
		require.LessOrEqual(t, perSecond(false), 5000.0, "writes a second of %d", streams)
		require.LessOrEqual(t, perSecond(true), 2500.0, "writes a second of %d that are behind", streams)
		require.LessOrEqual(t, perSecond(true)*float64(share(streams)), float64(3*wakeBytes), "bytes a second of %d", streams)
		require.GreaterOrEqual(t, share(streams), leastBytes)
	}
	require.LessOrEqual(t, rest(1024, false), 260*time.Millisecond)
}

// TestHub_Budget: what one wake cannot give comes with the next ones, whole and in order.
func TestHub_Budget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, storagetest.Open(t))
		s.add(protocol.FeedListing, "before")
		r := s.mustStream("", "")
		attached(t, r)
		const items = 3000
		require.NoError(t, s.db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for i := range items {
				at := tx.Now.Add(time.Duration(i) * time.Millisecond) // ids of one moment have no order that a test could name
				if err := tx.Feed().Append(ctx, protocol.FeedItem{ID: protocol.NewID(protocol.FeedID, at), Type: protocol.FeedListing, At: at,
					Subject: protocol.Subject{Kind: "item", ID: fmt.Sprint(i), Title: fmt.Sprint(i)}}); err != nil {
					return err
				}
			}
			return nil
		}))
		got, batches, behind := 0, 0, false
		for got < items {
			b := must.Get(r.Next(t.Context()))(t)
			bytes := 0
			for _, e := range b.Events {
				require.Equal(t, fmt.Sprint(got), titleOf(t, e))
				bytes += len(e.Data)
				got++
			}
			require.Less(t, bytes, mostBytes+1000)
			batches++
			synctest.Wait()
			behind = behind || s.Hub.Counts().Behind
		}
		require.Greater(t, batches, 2)
		require.True(t, behind)
	})
}

// TestStream_Resumes comes back again and again while items are written and wakes
// are gathered: nothing is missed and nothing doubled.
func TestStream_Resumes(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		s := newFixture(t, db)
		s.add(protocol.FeedListing, "first")
		companion := s.mustStream("", "")
		const items = 120
		var group sync.WaitGroup
		group.Go(func() {
			for i := range items {
				s.add(protocol.FeedListing, fmt.Sprint(i))
			}
		})
		var got []string
		for place := companion.Place(); len(got) < items; {
			r := must.Get(s.stream("here", "", place))(t)
			for range 2 { // one page by itself, one from the hub or the database
				b := must.Get(r.Next(t.Context()))(t)
				for _, e := range b.Events {
					got = append(got, titleOf(t, e))
				}
				if len(got) == items {
					break
				}
			}
			place = r.Place()
			r.Close()
		}
		group.Wait()
		for i, title := range got {
			require.Equal(t, fmt.Sprint(i), title)
		}
		_, together := next(t, companion, items)
		require.Equal(t, got, together)
	})
}
