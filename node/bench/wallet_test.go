package bench_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/session"
	"stoa/node/nodetest"
	"stoa/protocol/must"
)

// BenchmarkWalletWrite is the CPU of the node, without its clients, for a board post that is signed by a profile's Ed25519 key, by the wallet
// of an identity (ERC-8128, an ordinary account), and sent with the token of an agent that signed in.
func BenchmarkWalletWrite(b *testing.B) {
	s := nodetest.NewStage(b, "")
	id, account := s.Register(0), s.Chain.Accounts[0]
	wallet, pair := must.Get(erc8004.ParseWalletKey(account.PrivateKey))(b), s.Hosted("load")
	as := httpsig.Account{Chain: s.Chain.ChainID, Address: strings.ToLower(account.Address)}
	number := 0
	body := func() string {
		number++
		return fmt.Sprintf(`{"kind":"offer","title":"Post %d","body":"Two hundred sheets of hand-made paper from Jaipur, number %d."}`, number, number)
	}
	posted := func(text string, headers ...string) *http.Request {
		return s.Request("POST", "/api/public/board", text, headers...)
	}
	until := time.Now().Add(time.Hour).Unix()
	token := s.Table.Gate.SignIn.Challenges.Seal(session.Grant{Identity: id.String(), Chain: as.Chain, Account: as.Address, Until: until})
	for _, kind := range []struct {
		name string
		make func() *http.Request
	}{
		{"ed25519", func() *http.Request { text := body(); return s.Sign(posted(text), text, pair, httpsig.SignOptions{}) }},
		{"wallet", func() *http.Request {
			text := body()
			r := posted(text, "Agent-Identity", id.String())
			nodetest.SignByAccount(b, r, []byte(text), func(digest []byte) ([]byte, error) { return crypto.Sign(digest, wallet) }, as, false, "agent-identity")
			return r
		}},
		{"token", func() *http.Request { return posted(body(), "Authorization", "Bearer "+token) }},
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
