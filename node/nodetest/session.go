package nodetest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/session"
	"stoa/node"
	"stoa/protocol"
	"stoa/storage"
)

// SignIn spends a sign-in link and gives the session's cookie.
func (h *House) SignIn(link string) string {
	h.T.Helper()
	secret, err := h.Begin(link)
	require.NoError(h.T, err)
	return secret
}

// Begin is SignIn that may fail.
func (h *House) Begin(link string) (secret string, err error) {
	ticket := link[len(h.Base+"/sign-in?ticket="):]
	err = h.DB.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		secret, err = h.Accounts.SignIn(ctx, tx, session.Browser{Program: "Browser\x00 1.0\u202e"}, ticket)
		return err
	})
	return secret, err
}

// OwnerOf puts a profile with a key on the node and returns a token of its owner.
func OwnerOf(t *testing.T, h *House, handle string) string {
	t.Helper()
	h.Hosted(handle)
	return h.OwnerToken(handle)
}

// SessionOf makes a session of an account that began some time ago.
func (h *House) SessionOf(account string, ago time.Duration) (cookie string) {
	h.T.Helper()
	secret, hash := session.New(session.Cookie)
	require.NoError(h.T, h.DB.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		at := tx.Now.Add(-ago)
		return tx.Sessions().Insert(ctx, storage.Session{ID: protocol.NewID(protocol.SessionID, at), Hash: hash, Account: account,
			Program: "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0 Safari/537.36", CreatedAt: at, ExpiresAt: tx.Now.Add(time.Hour)})
	}))
	return "stoa_session=" + secret
}

// AtLocalhost gives a node an address that browsers take passkeys from.
func AtLocalhost(c *node.Config) { c.BaseURL = "http://localhost:8080" }

// ConflictOf stores that the log of a followed board contradicts what was taken of it.
func ConflictOf(board string) func(ctx context.Context, tx *storage.Tx) error {
	return func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Subscriptions().NoteConflict(ctx, storage.Conflict{Board: board, Kind: storage.ConflictFork, Epoch: "e", Seq: 3,
			Ours: "sha256:01", Theirs: "sha256:02", OursDoc: []byte(`{"a":1}`), TheirsDoc: []byte(`{"a":2}`)})
		return err
	}
}

// SignInOperator opens an operator's account and returns its session.
func (h *House) SignInOperator() string {
	h.T.Helper()
	_, link := h.OpenAccount("Kiran", protocol.RoleOperator, "")
	return h.SignIn(link)
}

// An Operator asks over HTTP, with a token of an operator's account.
type Operator struct {
	*House
	Account, Bearer string
}

// Operator opens an operator's account.
func (h *House) Operator() Operator {
	h.T.Helper()
	acc, _ := h.OpenAccount("Kiran", protocol.RoleOperator, "")
	token := h.AccountToken(acc.ID, "moderation", protocol.ScopeOperator)
	return Operator{h, acc.ID, "Bearer " + token}
}

// Do asks and reads the answer into out, nil for none.
func (o Operator) Do(status int, method, path string, in, out any) {
	o.T.Helper()
	body := ""
	if in != nil {
		raw, err := json.Marshal(in)
		require.NoError(o.T, err)
		body = string(raw)
	}
	a := o.Ask(method, path, body, "Authorization", o.Bearer)
	require.Equal(o.T, status, a.Code, "%s %s: %s", method, path, a.Body)
	if out != nil {
		a.Into(out)
	}
}

// From asks as someone at an address.
func (h *House) From(address, method, path, body string, headers ...string) Answer {
	h.T.Helper()
	r := h.Request(method, path, body, headers...)
	r.RemoteAddr = address + ":4711"
	return h.Serve(r)
}

// Report reports a post as spam, from an address.
func (h *House) Report(address, id string) {
	h.T.Helper()
	h.From(address, "POST", "/api/public/board/"+id+"/report", `{"reason":"spam"}`, "Proof-Of-Work", h.Proof("report")).Is(202)
}
