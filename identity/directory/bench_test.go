package directory

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/protocol/must"
)

// BenchmarkLookup is what a signed request pays when its directory is cached.
func BenchmarkLookup(b *testing.B) {
	c := must.Get(New(Config{Client: http.DefaultClient}))(b)
	p := newPair(b)
	k := must.Get(httpsig.NewKey(p.Public()))(b)
	src, failure := sourceOf(origin("agent.example"), false)
	require.Nil(b, failure)
	c.adopt(c.insert(src), &found{keys: map[string]listed{p.Thumbprint(): {key: k}}, at: time.Now(), lifetime: time.Hour})
	now := time.Now()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Lookup(origin("agent.example"), p.Thumbprint(), now); err != nil {
				b.Error(err)
			}
		}
	})
}
