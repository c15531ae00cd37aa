package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const passphrase = "correct horse battery"

// get reads a public address, with the node's own address as {base}.
func get(m *nodetest.Mover, path string, header ...string) string {
	m.T.Helper()
	req := must.Get(http.NewRequestWithContext(m.T.Context(), "GET", m.Base+path, nil))(m.T)
	if len(header) == 2 {
		req.Header.Set(header[0], header[1])
	}
	resp := must.Get(http.DefaultClient.Do(req))(m.T)
	defer resp.Body.Close()
	raw := must.Get(io.ReadAll(resp.Body))(m.T)
	require.Equal(m.T, 200, resp.StatusCode, "%s: %s", path, raw)
	return strings.ReplaceAll(string(raw), m.Base, "{base}")
}

// findings are what a node finds out by itself about a profile.
var findings = regexp.MustCompile(`,"alive":(true|false)|,"lastSeenAt":"[^"]*"`)

// profile is asha's, byte for byte, but for addresses and the node's findings.
func profile(m *nodetest.Mover) string {
	return findings.ReplaceAllString(get(m, "/api/public/agents/asha"), "")
}

func writeIn(m *nodetest.Mover, fn func(context.Context, *storage.Tx) error) {
	m.T.Helper()
	require.NoError(m.T, m.DB.Write(m.T.Context(), fn))
}

const rich = `{"handle":"asha","name":"Asha <Rao>","kind":"person","headline":"हाथ से बुना कपड़ा","description":"Weaves.","tags":["weaving","cotton"],
	"languages":["en","hi"],"regions":["IN-KA"],"timezone":"Asia/Kolkata","capabilities":[{"id":"weave","name":"Weave","description":"Cloth to order.",
	"pricing":{"model":"fixed","currency":"INR","amount":1500.5}}],
	"needs":[{"id":"yarn","description":"Hand-spun yarn."}],"contactPolicy":{"anonymous":true,"outsideAgentsWithIdentity":true,"kinds":["question",
	"support"],"responseTime":"a day"}}`

// settle makes asha on a node, with everything that an archive holds.
func settle(m *nodetest.Mover) (thread protocol.ContactReceipt, posts []protocol.Post) {
	t, admin := m.T, m.Admin()
	_, _, err := admin.PutProfile(t.Context(), []byte(rich))
	require.NoError(t, err)
	var account string
	writeIn(m, func(ctx context.Context, tx *storage.Tx) error {
		a, err := tx.Accounts().OfProfile(ctx, "home")
		account = a.ID
		return err
	})
	require.NoError(t, admin.LinkProfile(t.Context(), account, "asha"))
	require.NoError(t, m.Call(protocol.MakeKey.Operation, map[string]any{"handle": "asha"}, nil, nil))
	post := func(args map[string]any) (p protocol.Post) {
		secret, _, err := admin.CreateToken(t.Context(), "asha", "posts", 0)
		require.NoError(t, err)
		require.NoError(t, m.CallWith(secret, protocol.PostToBoard.Operation, args, nil, &p))
		return p
	}
	first := post(map[string]any{"kind": "question", "title": "Who spins?", "body": "Looking for yarn.", "tags": []string{"Yarn", "सूत"}})
	reply := post(map[string]any{"kind": "resolution", "title": "Found", "body": "Thanks.", "inReplyTo": first.ID})
	gone := post(map[string]any{"kind": "offer", "title": "Mistake", "body": "Not this."})
	require.NoError(t, m.Call(protocol.DeleteOwnPost.Operation, map[string]any{"handle": "asha", "id": gone.ID}, nil, nil))

	require.NoError(t, m.CallWith("", protocol.ContactAgent.Operation,
		map[string]any{"handle": "asha", "message": "Do you ship?", "name": "Visitor", "callbackUrl": "https://reader.example.org/replies"}, nil, &thread))
	require.NoError(t, m.Call(protocol.AnswerThread.Operation, map[string]any{"threadId": thread.ThreadID, "message": "We do."}, nil, nil))
	var other protocol.ContactReceipt
	m.Hosted("loud")
	loud, _, err := admin.CreateToken(t.Context(), "loud", "loud", 0)
	require.NoError(t, err)
	require.NoError(t, m.CallWith(loud, protocol.ContactAgent.Operation, map[string]any{"handle": "asha", "message": "Buy now!!!"}, nil, &other))
	require.NoError(t, m.Call(protocol.BlockWriter.Operation, map[string]any{"threadId": other.ThreadID, "note": "spam"}, nil, nil))
	writeIn(m, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "asha", Mail: "asha@example.org", Confirmed: true,
			Webhook: "https://reader.example.org/notices", Events: []protocol.NoticeEvent{protocol.ThreadBegun}})
	})
	return thread, []protocol.Post{first, reply}
}

func export(m *nodetest.Mover, args map[string]any) (raw []byte) {
	m.T.Helper()
	require.NoError(m.T, m.Call(protocol.ExportArchive.Operation, args, nil, &raw))
	return raw
}

var count = func(n, same, left int) protocol.ImportCount {
	return protocol.ImportCount{New: n, Same: same, LeftOut: left}
}

// TestArchive moves a profile from SQLite to the other engine and on to SQLite
// again, through the doors.
func TestArchive(t *testing.T) {
	t.Parallel()
	one := nodetest.NewMover(t)
	two := nodetest.NewMover(t, func(c *node.Config) {
		if os.Getenv(storagetest.PostgresEnv) != "" {
			c.Database = storagetest.PostgresURL(t)
		}
	})
	thread, posts := settle(one)
	raw := export(one, map[string]any{"handle": "asha", "passphrase": passphrase})
	require.NotContains(t, nodetest.Unpacked(t, raw), `"d":`, "no private half in clear")
	require.NotContains(t, nodetest.Unpacked(t, raw), "stoa_", "no token and no session")

	want := map[string]any{"passphrase": passphrase}
	dry := must.Get(two.Imports(raw, map[string]any{"passphrase": passphrase, "dryRun": true}))(t)
	require.True(t, dry.DryRun)
	require.Equal(t, protocol.NotFound, protocol.CodeOf(must.Err(two.Admin().Profile(t.Context(), "asha"))), "a dry run leaves nothing")

	report := must.Get(two.Imports(raw, want))(t)
	require.Equal(t, "created", report.Profile)
	require.Equal(t, one.Base, report.From)
	require.Equal(t, count(1, 0, 0), report.Keys)
	require.Equal(t, count(1, 0, 0), report.PrivateKeys)
	require.Equal(t, count(3, 0, 0), report.Posts, "%v", report.Notes)
	require.Equal(t, count(2, 0, 0), report.Threads)
	require.Equal(t, count(1, 0, 0), report.Callbacks)
	require.Equal(t, count(1, 0, 0), report.Blocks)
	dry.DryRun = false
	require.Equal(t, report, dry, "a dry run says what happens")

	// The profile is the same but for addresses.
	require.Equal(t, profile(one), profile(two))

	// Posts stay those of the node that made them, and are verified by their own key.
	page := must.JSON[protocol.Page[protocol.Post]]([]byte(get(two, "/api/public/board?q=yarn")))(t)
	require.Len(t, page.Items, 1)
	got := page.Items[0]
	require.Equal(t, posts[0].URI, got.URI)
	require.Equal(t, posts[0].Title+posts[0].Body, got.Title+got.Body)
	require.Equal(t, posts[0].CreatedAt, got.CreatedAt)
	require.Equal(t, strings.TrimPrefix(one.Base, "http://"), *got.Node)
	require.True(t, got.Author.Verified, "%v", report.Notes)
	require.Equal(t, protocol.ByProfileKey, got.Author.Proof.Level)
	require.Equal(t, posts[0].Author.KeyID, got.Author.KeyID)
	require.True(t, got.Resolved, "the reply came with it")
	require.Equal(t, 1, got.ReplyCount)
	require.JSONEq(t, `{"items":[],"next":null}`, get(two, "/api/public/feed"), "the feed tells nothing of it")
	writeIn(two, func(ctx context.Context, tx *storage.Tx) error {
		entries, err := tx.Logs().After(ctx, protocol.BoardID(two.Base), 0, 10)
		for _, e := range entries { // what lists the two profiles may be there by now
			assert.Contains(t, []string{storage.LogAgent + "home", storage.LogAgent + "asha"}, e.ObjectID, "and no peer")
		}
		return err
	})

	// The writer's token opens the thread, and the writer continues.
	was := get(one, "/api/public/threads/"+thread.ThreadID, "Authorization", "Bearer "+thread.ReadToken)
	now := get(two, "/api/public/threads/"+thread.ThreadID, "Authorization", "Bearer "+thread.ReadToken)
	require.Equal(t, said(t, was), said(t, now))
	require.NoError(t, two.CallWith("", protocol.ContinueConversation.Operation,
		map[string]any{"threadId": thread.ThreadID, "readToken": thread.ReadToken, "message": "And here?"}, nil, nil))
	require.NoError(t, two.Call(protocol.AnswerThread.Operation, map[string]any{"threadId": thread.ThreadID, "message": "Here too."}, nil, nil))

	// The kept key signs here.
	secret := two.TokenOf("asha", "t")
	var fresh protocol.Post
	require.NoError(t, two.CallWith(secret, protocol.PostToBoard.Operation, map[string]any{"kind": "offer", "title": "From here", "body": "b"}, nil, &fresh))
	require.Equal(t, posts[0].Author.KeyID, fresh.Author.KeyID)

	// Once more changes nothing.
	before := nodetest.Unpacked(t, export(two, map[string]any{"handle": "asha"}))
	again := must.Get(two.Imports(raw, want))(t)
	require.Equal(t, "kept", again.Profile)
	require.Equal(t, []protocol.ImportCount{count(0, 1, 0), count(0, 1, 0), count(0, 3, 0), count(0, 2, 0), count(0, 1, 0), count(0, 1, 0)},
		[]protocol.ImportCount{again.Keys, again.PrivateKeys, again.Posts, again.Threads, again.Callbacks, again.Blocks})
	require.Equal(t, before, nodetest.Unpacked(t, export(two, map[string]any{"handle": "asha"})))

	// And on: what was made on the first node is its word, not the second's.
	three := nodetest.NewMover(t)
	last := must.Get(three.Imports(export(two, map[string]any{"handle": "asha", "passphrase": passphrase}), want))(t)
	require.Equal(t, profile(one), profile(three))
	require.Equal(t, count(1, 0, 3), last.Posts)
	require.Equal(t, count(2, 0, 0), last.Threads)
	require.Contains(t, get(three, "/api/public/threads/"+thread.ThreadID, "Authorization", "Bearer "+thread.ReadToken), "Here too.")
	whole := must.Get(three.Imports(raw, want))(t)
	require.Equal(t, count(3, 0, 0), whole.Posts, "the first archive brings them")

	// And back: nothing is doubled.
	back := must.Get(one.Imports(export(two, map[string]any{"handle": "asha"}), nil))(t)
	require.Equal(t, "kept", back.Profile)
	require.Equal(t, count(1, 3, 0), back.Posts)
	require.Equal(t, count(0, 2, 0), back.Threads)
}

// said is what a conversation holds, without what each node says by itself: who
// is verified.
func said(t *testing.T, raw string) (lines []string) {
	c := must.JSON[protocol.Conversation]([]byte(raw))(t)
	lines = append(lines, c.ThreadID, string(c.Kind), string(c.State), c.CreatedAt.String(), c.UpdatedAt.String())
	for _, m := range c.Messages.Items {
		lines = append(lines, m.ID, string(m.From), m.Author.Name, m.Text, m.CreatedAt.String())
	}
	return lines
}

func pack(t testing.TB, all []nodetest.Packed) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, m := range all {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: m.Name, Size: int64(len(m.Body)), Typeflag: tar.TypeReg, Mode: 0o600}))
		must.Get(w.Write(m.Body))(t)
	}
	require.NoError(t, errors.Join(w.Close(), zip.Close()))
	return out.Bytes()
}
