package directory

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
)

// BenchmarkLookup is what a signed request pays when its directory is cached.
func BenchmarkLookup(b *testing.B) {
	c, err := New(Config{Client: http.DefaultClient})
	require.NoError(b, err)
	p := newPair(b)
	k, err := httpsig.NewKey(p.Public())
	require.NoError(b, err)
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
