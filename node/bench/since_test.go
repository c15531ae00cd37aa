package bench_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage/storagetest"
)

// BenchmarkWhatsNew is a poll of a known caller for whom nothing is new, without sockets: with its ETag, and without.
func BenchmarkWhatsNew(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { polls(b, nodetest.New(b)) })
	if os.Getenv(storagetest.PostgresEnv) != "" {
		b.Run("postgres", func(b *testing.B) {
			polls(b, nodetest.New(b, func(c *node.Config) { c.Database = storagetest.PostgresURL(b) }))
		})
	}
}

func polls(b *testing.B, h *nodetest.House) {
	h.Hosted("load")
	seedPost(b, h, 1)
	require.NoError(b, h.DB.Numbered(b.Context()))
	bearer := "Bearer " + h.OwnerToken("load")
	ask := func(after, tag string) nodetest.Answer {
		return h.Ask("GET", "/api/public/since?after="+after, "", "Authorization", bearer, "If-None-Match", tag)
	}
	var d protocol.Digest
	require.NoError(b, json.Unmarshal(ask("", "").Body.Bytes(), &d))
	after := d.Next
	tag := ask(after, "").Header().Get("ETag")
	for _, c := range []struct {
		name, tag string
		status    int
	}{{"whole", "", 200}, {"unchanged", tag, 304}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpuTime()
			for b.Loop() {
				if w := ask(after, c.tag); w.Code != c.status {
					b.Fatal(w.Code, w.Body)
				}
			}
			b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
		})
	}
}
