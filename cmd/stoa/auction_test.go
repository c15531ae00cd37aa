package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/protocol/pow"
	"stoa/storage"
)

// An auction is a node, of one process on SQLite and two on PostgreSQL, that is killed while many
// bid on its boards.
type auction struct {
	t      *testing.T
	base   string
	target httpsig.Target
	nodes  []*server
	of     []string    // where its data is
	admin  *node.Admin // another process of it
	plain  *sql.DB     // its database; PostgreSQL only
	http   *http.Client
}

func newAuction(t *testing.T, database string) *auction { return newAuctionOn(t, 0, database) }

// newAuctionOn has the port of the first process, from freePorts, and more settings; 0 is any port.
func newAuctionOn(t *testing.T, port int, database string, settings ...string) *auction {
	processes := 1
	if database != "" {
		processes = 2
	}
	if port == 0 {
		port = freePorts(t, processes)
	}
	a := &auction{t: t, base: fmt.Sprintf("http://127.0.0.1:%d", port)}
	more := []string{"--pay-sandbox", "--trusted-proxies", "127.0.0.0/8", "--no-probes", "--base-url", a.base}
	if database != "" {
		more = append(more, "--database", database)
	}
	more = append(more, settings...)
	a.nodes = []*server{newServerProcess(t, port, more...)}
	data := a.nodes[0].data
	for i := 1; i < processes; i++ {
		a.nodes = append(a.nodes, newServerProcess(t, port+10*i, append(more, "--data", data)...))
	}
	a.of = []string{"--data", data, "--database", database}
	a.target = must.Get(httpsig.ParseTarget(a.base))(t)
	a.admin = must.Get(node.OpenAdmin(t.Context(), node.Config{Data: data, Database: database}, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { a.admin.Close() })
	if database != "" {
		a.plain = must.Get(sql.Open("pgx", database))(t)
		t.Cleanup(func() { a.plain.Close() })
	}
	// Each request goes to any process, under the address of the node.
	a.http = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port+10*rand.IntN(processes)))
		}}}
	return a
}

// bidder makes a profile with a key.
func (a *auction) bidder(handle string) key.Pair {
	a.t.Helper()
	must.Get(putProfile(a.t.Context(), a.admin, fmt.Appendf(nil, `{"handle":%q,"name":"Bidder","kind":"person"}`, handle)))(a.t)
	pair := must.Get(key.GenerateEd25519())(a.t)
	jwk := must.Get(pair.MarshalPrivate())(a.t)
	_, _, err := addKey(a.t.Context(), a.admin, handle, jwk)
	require.NoError(a.t, err)
	return pair
}

// opens opens the board of a new person.
func (a *auction) opens(handle string) {
	a.t.Helper()
	a.bidder(handle)
	made := must.Get(node.Do(a.t.Context(), a.admin, protocol.GrantToken, protocol.TokenGrant{NewToken: protocol.NewToken{Handle: handle, Name: "test",
		Scopes: protocol.OwnerScopes}}))(a.t)
	require.NoError(a.t, openRooms(a.t.Context(), a.base, devAgent{OwnerToken: made.Secret},
		seeded{Attention: map[string]any{"slots": slots, "protectHours": 0}}))
}

// proofs fetches challenges for n strangers and solves them. A challenge for contact pays for bids too.
func (a *auction) proofs(n int, network func(i int) string) func(i int) func(*http.Request, []byte) {
	a.t.Helper()
	headers := make([]func(*http.Request, []byte), n)
	challenges := make([]pow.Challenge, n)
	for i := range n {
		from := func(r *http.Request, _ []byte) { r.Header.Set("X-Forwarded-For", network(i)) }
		require.Empty(a.t, a.ask("GET", "/api/public/pow?purpose=contact", "", from, &challenges[i]))
		s := must.Get(pow.SolveParallel(a.t.Context(), challenges[i], 2))(a.t)
		proof := s.Encode()
		headers[i] = func(r *http.Request, body []byte) {
			from(r, body)
			r.Header.Set("Proof-Of-Work", proof)
		}
	}
	return func(i int) func(*http.Request, []byte) { return headers[i] }
}

// ask sends a request until it is answered, and returns the code of the problem, "" for none.
func (a *auction) ask(method, path, body string, sign func(*http.Request, []byte), into any) protocol.Code {
	var last any
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		req, err := http.NewRequest(method, a.base+path, bytes.NewReader([]byte(body)))
		if err != nil {
			a.t.Error(err)
			return protocol.Internal
		}
		req.Header.Set("Content-Type", "application/json")
		if strings.HasSuffix(path, "/bids") {
			req.Header.Set("Idempotency-Key", fmt.Sprintf("%x", sha256.Sum256([]byte(body)))[:32])
		}
		sign(req, []byte(body))
		res, err := a.http.Do(req)
		if last = err; err != nil {
			continue
		}
		raw, err := io.ReadAll(res.Body)
		res.Body.Close()
		var problem struct{ Code protocol.Code }
		switch {
		case err != nil || res.StatusCode >= 500:
			last = fmt.Sprint(err, res.Status, string(raw))
			continue
		case res.StatusCode >= 400:
			into = &problem
		}
		if err := json.Unmarshal(raw, into); err != nil && res.StatusCode != http.StatusNoContent {
			a.t.Errorf("%s %s: %v", res.Status, raw, err)
		}
		return problem.Code
	}
	a.t.Errorf("%s %s is not answered: %v", method, path, last)
	return protocol.Internal
}

func (a *auction) bid(handle string, rupees int64, message string, sign func(*http.Request, []byte)) (made protocol.BidReceipt, code protocol.Code) {
	code = a.ask("POST", "/api/public/agents/"+handle+"/attention/bids", fmt.Sprintf(`{"amount":%d,"message":%q}`, rupees, message), sign, &made)
	return made, code
}

// crash kills a process as a power cut would, and starts it again.
func (a *auction) crash(i int) {
	s := a.nodes[i]
	owner := fmt.Sprintf("%%:%d:%%", s.command.Process.Pid)
	s.kill()
	a.expire(owner)
	s.start()
	a.expire(owner) // PostgreSQL may have committed for the process after its end
}

// expire ends the leases of the jobs that a killed process ran, as two minutes do. On SQLite
// the next process ends them when it starts.
func (a *auction) expire(owner string) {
	if a.plain == nil {
		return
	}
	must.Get(a.plain.Exec(`UPDATE job SET run_at = 0 WHERE owner LIKE '` + owner + `'`))(a.t)
}

// open returns the unpaid and live bids of a board.
func (a *auction) open(handle string) (bids []storage.StoredBid) {
	a.t.Helper()
	require.NoError(a.t, a.admin.DB.Read(a.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		board, err := tx.AttentionBoards().ByHandle(ctx, handle)
		if err == nil {
			bids, err = tx.Bids().ListOpen(ctx, board.ID)
		}
		return err
	}))
	return bids
}

func bearer(secret string) func(*http.Request, []byte) {
	secret = secret[strings.LastIndexByte(secret, '/')+1:]
	return func(r *http.Request, _ []byte) { r.Header.Set("Authorization", "Bearer "+secret) }
}
