package storage_test

import (
	"context"
	"crypto/rand"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

const writers = 64

// BenchmarkWritePost is a verified write as the node does it: a nonce is spent,
// the post is stored with its tags and words, the feed and the log grow.
func BenchmarkWritePost(b *testing.B) {
	onEach(b, func(b *testing.B, db *storage.DB) {
		run(b, func(ctx context.Context, n int64) error {
			p := samplePost(time.Now(), n)
			s := spend()
			return db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return publishSpending(ctx, tx, p, s) }, s)
		})
	})
}

// BenchmarkBareGroupedInsert is its limit: one narrow row in the same group
// commit.
func BenchmarkBareGroupedInsert(b *testing.B) {
	onEach(b, func(b *testing.B, db *storage.DB) {
		run(b, func(ctx context.Context, n int64) error {
			s := spend()
			return db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Requests().Spend(ctx, s) }, s)
		})
	})
}

func BenchmarkLimit(b *testing.B) {
	db := storagetest.Open(b)
	require.NoError(b, db.Read(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for b.Loop() {
			if _, err := tx.Feed().After(ctx, 0, 20); err != nil {
				return err
			}
			if _, err := tx.Threads().ListMessages(ctx, "thr_x", 20, ""); err != nil {
				return err
			}
		}
		return nil
	}))
}

func onEach(b *testing.B, fn func(b *testing.B, db *storage.DB)) {
	b.Run("sqlite", func(b *testing.B) { fn(b, storagetest.Open(b)) })
	if os.Getenv(storagetest.PostgresEnv) == "" {
		return
	}
	b.Run("postgres", func(b *testing.B) {
		db := must.Get(storage.Open(b.Context(), storage.Config{URL: storagetest.PostgresURL(b)}))(b)
		defer db.Close()
		fn(b, db)
	})
}

// run does b.N operations from 64 goroutines and reports throughput and the CPU
// time of the whole process for each.
func run(b *testing.B, do func(ctx context.Context, n int64) error) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var n atomic.Int64
	b.SetParallelism(writers / max(1, cpus()))
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := do(ctx, n.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func spend() protocol.Spend {
	s := protocol.Spend{Until: time.Now().Add(time.Hour), Code: protocol.SignatureReplayed}
	rand.Read(s.Key[:])
	return s
}

// publish does what a room does for a post.
func publish(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) error {
	return publishSpending(ctx, tx, p, spend())
}

func publishSpending(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, s protocol.Spend) error {
	if err := tx.Requests().Spend(ctx, s); err != nil {
		return err
	}
	if err := tx.Posts().Insert(ctx, p); err != nil {
		return err
	}
	if err := tx.Feed().Append(ctx, feedItem(p)); err != nil {
		return err
	}
	err := tx.Logs().Append(ctx, boardID, "create", p.ID, nil)
	return err
}
