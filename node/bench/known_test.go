package bench_test

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"stoa/identity/httpsig"
	"stoa/node/nodetest"
)

// BenchmarkKnownRead compares what a read of something public costs that is signed,
// or sent with a token, with an anonymous one and with refusing the same request
// under a forged signature: no sockets, one request of each kind in turn. The
// figure sum is signed/(anonymous+forged).
func BenchmarkKnownRead(b *testing.B) {
	h := nodetest.New(b)
	pair := h.Hosted("load")
	secret := h.TokenOf("load", "t")
	for i := range 30 {
		seedPost(b, h, i)
	}
	for _, path := range []string{"/api/public/agents/load", "/api/public/feed"} {
		b.Run(path, func(b *testing.B) {
			signed := h.Sign(h.Request("GET", path, ""), "", pair, httpsig.SignOptions{TTL: 4 * time.Minute}).Header
			forged := signed.Clone()
			forged.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(make([]byte, 64))+":")
			kinds := []struct {
				name   string
				fields http.Header
				want   int
				spent  time.Duration
			}{
				{"anonymous", http.Header{}, 200, 0}, {"forged", forged, 401, 0}, {"signed", signed, 200, 0},
				{"token", http.Header{"Authorization": {"Bearer " + secret}}, 200, 0},
			}
			for b.Loop() {
				for i := range kinds {
					k := &kinds[i]
					r := h.Request("GET", path, "")
					r.Header = k.fields
					w := &blank{head: http.Header{}}
					start := time.Now()
					h.Handler().ServeHTTP(w, r)
					k.spent += time.Since(start)
					if w.status != k.want {
						b.Fatalf("%s: %d", k.name, w.status)
					}
				}
			}
			for _, k := range kinds {
				b.ReportMetric(float64(k.spent.Nanoseconds())/float64(b.N), k.name+"-ns/op")
			}
			sum := kinds[0].spent + kinds[1].spent
			b.ReportMetric(float64(kinds[2].spent)/float64(sum), "signed/sum")
			b.ReportMetric(float64(kinds[3].spent)/float64(sum), "token/sum")
		})
	}
}

// blank is an answer that nobody reads.
type blank struct {
	head   http.Header
	status int
}

func (w *blank) Header() http.Header         { return w.head }
func (w *blank) WriteHeader(status int)      { w.status = status }
func (w *blank) Write(p []byte) (int, error) { return len(p), nil }
