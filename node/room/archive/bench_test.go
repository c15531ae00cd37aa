package archive_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// BenchmarkImport imports 20,000 posts and 2,000 threads, while another writer
// makes one post after the other, and says how long that one waits.
func BenchmarkImport(b *testing.B) {
	engines := map[string]func(*node.Config){"sqlite": func(*node.Config) {}}
	if os.Getenv(storagetest.PostgresEnv) != "" {
		engines["postgres"] = func(c *node.Config) { c.Database = storagetest.PostgresURL(b) }
	}
	one := nodetest.NewMover(b)
	settle(one)
	raw := many(b, export(one, map[string]any{"handle": "asha"}), 20_000, 2_000)
	for name, change := range engines {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				n := nodetest.Start(b, change)
				file := archiveFile(b, raw)
				done := make(chan error, 1)
				start := time.Now()
				go func() {
					_, err := n.Archive.Read(b.Context(), file, vouched(nil))
					done <- err
				}()
				waits := []time.Duration{}
				for running := true; running; {
					before := time.Now()
					require.NoError(b, n.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
						_, err := n.Board.Post(ctx, tx, protocol.Caller{Standing: protocol.Proof},
							protocol.NewPost{Kind: protocol.Offer, Title: fmt.Sprint(len(waits)), Body: "Meanwhile."})
						return err
					}))
					waits = append(waits, time.Since(before))
					select {
					case err := <-done:
						require.NoError(b, err)
						running = false
					default:
					}
				}
				took := time.Since(start)
				slices.Sort(waits)
				b.ReportMetric(took.Seconds(), "s/import")
				b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1e3, "ms-median-wait")
				b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1e3, "ms-p99-wait")
				b.ReportMetric(float64(waits[len(waits)-1].Microseconds())/1e3, "ms-longest-wait")
				b.ReportMetric(float64(len(waits)), "writes")
				require.Equal(b, "profile 20003 posts 2002 threads ", arrived(b, n, "asha"))
			}
		})
	}
}
