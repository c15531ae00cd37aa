package node_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/node/nodetest"
	"stoa/protocol/must"
)

// BenchmarkWalletWrite is the CPU of the node, without its clients, for a board post that is signed by a profile's Ed25519 key, by the wallet
// of an identity (ERC-8128, an ordinary account), and sent with the token of an agent that signed in.
func BenchmarkWalletWrite(b *testing.B) {
	s := nodetest.NewStage(b, "")
	id := s.Register(0)
	owner, pair, target := accountOf(s, 0, id.String()), s.Hosted("load"), must.Get(httpsig.ParseTarget(s.Base))(b)
	number := 0
	body := func() string {
		number++
		return fmt.Sprintf(`{"kind":"offer","title":"Post %d","body":"Two hundred sheets of hand-made paper from Jaipur, number %d."}`, number, number)
	}
	posted := func(text string) *http.Request {
		r := httptest.NewRequest("POST", s.Base+"/api/public/board", strings.NewReader(text))
		r.RequestURI = "/api/public/board"
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	token := nodetest.As[struct{ Token string }](owner.signIn(owner.text(nil)))
	for _, kind := range []struct {
		name string
		make func() *http.Request
	}{
		{"ed25519", func() *http.Request {
			text := body()
			r := posted(text)
			require.NoError(b, httpsig.SignRequest(r, target, []byte(text), httpsig.SignOptions{Key: pair.Signer()}))
			return r
		}},
		{"wallet", func() *http.Request { return owner.request("POST", "/api/public/board", body(), false) }},
		{"token", func() *http.Request {
			r := posted(body())
			r.Header.Set("Authorization", "Bearer "+token.Token)
			return r
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			requests := make([]*http.Request, b.N)
			for i := range requests {
				requests[i] = kind.make()
			}
			var next, failed atomic.Int64
			b.ResetTimer()
			before := cpuTime()
			var group sync.WaitGroup
			for range connections {
				group.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						w := httptest.NewRecorder()
						if s.Handler().ServeHTTP(w, requests[i-1]); w.Code != 201 {
							failed.Add(1)
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
			require.Zero(b, failed.Load())
		})
	}
}
