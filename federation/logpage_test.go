package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// page asks for a page of the node's log.
func (n *node) page(query string) (status int, page logPage) {
	n.t.Helper()
	w := httptest.NewRecorder()
	n.f.Handler().ServeHTTP(w, httptest.NewRequestWithContext(n.t.Context(), "GET", "https://"+n.name+"/ap/board/log"+query, nil))
	if w.Code == 200 {
		require.NoError(n.t, json.Unmarshal(w.Body.Bytes(), &page))
		require.True(n.t, json.Valid(w.Body.Bytes()))
	}
	return w.Code, page
}

// entries are the numbers and types of a page.
func entriesOf(t *testing.T, p logPage) (seqs []int64, kinds []string) {
	t.Helper()
	for _, raw := range p.OrderedItems {
		var e struct {
			Seq  int64  `json:"stoa:seq"`
			Type string `json:"type"`
		}
		require.NoError(t, json.Unmarshal(raw, &e))
		seqs, kinds = append(seqs, e.Seq), append(kinds, e.Type)
	}
	return seqs, kinds
}

// A page begins anywhere and ends at a border, so that all pages are cut out of
// few blocks: once a block is there, no place in it makes work.
func TestLogPages_Borders(t *testing.T) {
	t.Parallel()
	a := newNode(t, newNetwork(), newClock(), 0, nil)
	var posts []*protocol.StoredPost
	for range 2*maxLogPage + 50 {
		posts = append(posts, a.post(nil))
	}
	for _, first := range []string{"?after=7", "?after=207", "?after=400"} {
		status, _ := a.page(first)
		require.Equal(t, 200, status)
	}
	for range cap(a.f.blocks.making) {
		a.f.blocks.making <- struct{}{} // nobody can make a block
	}
	for after := range 451 {
		if in := after % maxLogPage; in > 3 && in < maxLogPage-3 && in != 30 && after < 447 {
			continue // between the borders of blocks
		}
		status, p := a.page(fmt.Sprintf("?after=%d", after))
		require.Equal(t, 200, status, after)
		seqs, _ := entriesOf(t, p)
		require.Len(t, seqs, min(maxLogPage-after%maxLogPage, 450-after), after)
		if len(seqs) > 0 {
			require.Equal(t, int64(after+1), seqs[0])
			require.Equal(t, int64(after+len(seqs)), seqs[len(seqs)-1])
		}
	}
	_, p := a.page("?after=30&limit=5")
	seqs, _ := entriesOf(t, p)
	require.Equal(t, []int64{31, 32, 33, 34, 35}, seqs)
	for range cap(a.f.blocks.making) {
		<-a.f.blocks.making
	}

	change := func(p *protocol.StoredPost, to protocol.PostState, kind storage.LogKind) string {
		a.change(p, to, kind)
		_, page := a.page("?after=20")
		_, kinds := entriesOf(t, page)
		return kinds[20]
	}
	require.Equal(t, "Tombstone", change(posts[40], protocol.Hidden, "hide"))
	require.Equal(t, "Announce", change(posts[40], protocol.Visible, "restore"))
	require.Equal(t, "Tombstone", change(posts[40], protocol.Deleted, "delete"))
	for i := range 3 { // the last block grows
		_, p := a.page("?after=400")
		seqs, _ := entriesOf(t, p)
		require.Equal(t, int64(453+i), seqs[len(seqs)-1])
		a.post(nil)
	}
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Logs().NewEpoch(ctx, protocol.BoardID(a.base)))
	}))
	_, q := a.page("?after=20")
	require.NotEqual(t, p.Epoch, q.Epoch)
	_, kinds := entriesOf(t, q)
	require.Equal(t, "Tombstone", kinds[20])
}

// Readers of uncached blocks share few slots; a peer needs none of them.
func TestAttack_LogPagesNotInMemory(t *testing.T) {
	a, b := pairOf(t)
	a.post(nil)
	for range cap(a.f.blocks.making) {
		a.f.blocks.making <- struct{}{}
	}
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Logs().NewEpoch(ctx, protocol.BoardID(a.base)))
	}))
	w := httptest.NewRecorder()
	a.f.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "https://a.example/ap/board/log?after=0", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))

	r := httptest.NewRequestWithContext(t.Context(), "GET", "https://a.example/ap/board/log?after=0", nil)
	require.NoError(t, httpsig.SignRequest(r, httpsig.NewTarget("https", "a.example"), nil, httpsig.SignOptions{
		Key: b.f.c.Keys.Ed25519.Signer(), KeyID: b.f.site.Node() + "#ed25519-key", Tag: "-", Nonce: "-", Created: b.f.now(), TTL: requestTTL,
		Components: []string{"@method", "@target-uri"},
	}))
	w = httptest.NewRecorder()
	a.f.Handler().ServeHTTP(w, r)
	require.Equal(t, 200, w.Code)
}

// TestEntry_Redacted: an entry that was redacted announces nothing, whatever its post is by now.
func TestEntry_Redacted(t *testing.T) {
	t.Parallel()
	a, _ := two(t, nil)
	p := a.post(nil)
	a.read(func(ctx context.Context, tx *storage.Tx) error {
		for _, kind := range []storage.LogKind{storage.LogCreate, storage.LogUpdate} {
			for _, redacted := range []bool{false, true} {
				raw := must.Get(a.f.innerOf(ctx, tx, storage.LogEntry{Seq: 1, Kind: kind, ObjectID: p.ID, At: p.CreatedAt, Redacted: redacted}))(t)
				require.Equal(t, redacted, raw == nil, kind)
			}
		}
		return nil
	})
}
