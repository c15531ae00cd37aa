package node

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const passphrase = "correct horse battery"

// mover is one end of a move: a running node, and the owner who is signed in.
type mover struct {
	t testing.TB
	*house
	token string
}

// call makes a call as the owner, in the node's own JSON.
func (m *mover) call(op *protocol.Operation, args map[string]any, file []byte, into any) error {
	m.t.Helper()
	return m.callWith(m.token, op, args, file, into)
}

func (m *mover) callWith(token string, op *protocol.Operation, args map[string]any, file []byte, into any) error {
	m.t.Helper()
	c, err := client.New(m.URL, client.Options{Token: token})
	require.NoError(m.t, err)
	call := client.Call{Operation: op.Name, Args: args}
	if file != nil {
		call.File = bytes.NewReader(file)
	}
	out, raw := &bytes.Buffer{}, []byte(nil)
	if op.GivesFile() {
		call.Out = out
	}
	res, err := c.Do(m.t.Context(), call)
	if err == nil {
		raw = res.Body
		if op.GivesFile() {
			*into.(*[]byte) = out.Bytes()
		} else if into != nil {
			require.NoError(m.t, json.Unmarshal(raw, into), "%s", raw)
		}
	}
	return err
}

// get reads a public address, with the node's own address as {base}.
func (m *mover) get(path string, header ...string) string {
	m.t.Helper()
	req, err := http.NewRequestWithContext(m.t.Context(), "GET", m.Base+path, nil)
	require.NoError(m.t, err)
	if len(header) == 2 {
		req.Header.Set(header[0], header[1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(m.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(m.t, err)
	require.Equal(m.t, 200, resp.StatusCode, "%s: %s", path, raw)
	return strings.ReplaceAll(string(raw), m.Base, "{base}")
}

// findings are what a node finds out by itself about a profile.
var findings = regexp.MustCompile(`,"alive":(true|false)|,"lastSeenAt":"[^"]*"`)

// profile is asha's, byte for byte, but for addresses and the node's findings.
func (m *mover) profile() string {
	return findings.ReplaceAllString(m.get("/api/public/agents/asha"), "")
}

func (m *mover) write(fn func(context.Context, *storage.Tx) error) {
	m.t.Helper()
	require.NoError(m.t, m.db.Write(m.t.Context(), fn))
}

// newMover starts a node with an account that has the profile home.
func newMover(t testing.TB, change ...func(*Config)) *mover {
	m := &mover{t: t, house: startNode(t, change...)}
	m.hosted("home")
	_, _, err := m.Admin().CreateToken(t.Context(), "home", "first", 0)
	require.NoError(t, err)
	secret, _, err := m.Admin().CreateAccountToken(t.Context(), "home", "mover", 0, protocol.OwnerScopes...)
	require.NoError(t, err)
	m.token = secret
	return m
}

const rich = `{"handle":"asha","name":"Asha <Rao>","kind":"person","headline":"हाथ से बुना कपड़ा","description":"Weaves.","tags":["weaving","cotton"],
	"languages":["en","hi"],"regions":["IN-KA"],"timezone":"Asia/Kolkata","capabilities":[{"id":"weave","name":"Weave","description":"Cloth to order.",
	"pricing":{"model":"fixed","currency":"INR","amount":1500.5}}],
	"needs":[{"id":"yarn","description":"Hand-spun yarn."}],"contactPolicy":{"anonymous":true,"outsideAgentsWithIdentity":true,"kinds":["question",
	"support"],"responseTime":"a day"}}`

// settle makes asha on a node, with everything that an archive holds.
func (m *mover) settle() (thread protocol.ContactReceipt, posts []protocol.Post) {
	t, admin := m.t, m.Admin()
	_, _, err := admin.PutProfile(t.Context(), []byte(rich))
	require.NoError(t, err)
	var account string
	m.write(func(ctx context.Context, tx *storage.Tx) error {
		a, err := tx.Accounts().OfProfile(ctx, "home")
		account = a.ID
		return err
	})
	require.NoError(t, admin.LinkProfile(t.Context(), account, "asha"))
	require.NoError(t, m.call(protocol.MakeKey.Operation, map[string]any{"handle": "asha"}, nil, nil))
	post := func(args map[string]any) (p protocol.Post) {
		secret, _, err := admin.CreateToken(t.Context(), "asha", "posts", 0)
		require.NoError(t, err)
		require.NoError(t, m.callWith(secret, protocol.PostToBoard.Operation, args, nil, &p))
		return p
	}
	first := post(map[string]any{"kind": "question", "title": "Who spins?", "body": "Looking for yarn.", "tags": []string{"Yarn", "सूत"}})
	reply := post(map[string]any{"kind": "resolution", "title": "Found", "body": "Thanks.", "inReplyTo": first.ID})
	gone := post(map[string]any{"kind": "offer", "title": "Mistake", "body": "Not this."})
	require.NoError(t, m.call(protocol.DeleteOwnPost.Operation, map[string]any{"handle": "asha", "id": gone.ID}, nil, nil))

	require.NoError(t, m.callWith("", protocol.ContactAgent.Operation,
		map[string]any{"handle": "asha", "message": "Do you ship?", "name": "Visitor", "callbackUrl": "https://reader.example.org/replies"}, nil, &thread))
	require.NoError(t, m.call(protocol.AnswerThread.Operation, map[string]any{"threadId": thread.ThreadID, "message": "We do."}, nil, nil))
	var other protocol.ContactReceipt
	m.hosted("loud")
	loud, _, err := admin.CreateToken(t.Context(), "loud", "loud", 0)
	require.NoError(t, err)
	require.NoError(t, m.callWith(loud, protocol.ContactAgent.Operation, map[string]any{"handle": "asha", "message": "Buy now!!!"}, nil, &other))
	require.NoError(t, m.call(protocol.BlockWriter.Operation, map[string]any{"threadId": other.ThreadID, "note": "spam"}, nil, nil))
	m.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "asha", Mail: "asha@example.org", Confirmed: true,
			Webhook: "https://reader.example.org/notices", Events: []protocol.NoticeEvent{protocol.ThreadBegun}})
	})
	return thread, []protocol.Post{first, reply}
}

func (m *mover) export(args map[string]any) (raw []byte) {
	m.t.Helper()
	require.NoError(m.t, m.call(protocol.ExportArchive.Operation, args, nil, &raw))
	return raw
}

func (m *mover) imports(raw []byte, args map[string]any) (r protocol.ImportReport, err error) {
	m.t.Helper()
	err = m.call(protocol.ImportArchive.Operation, args, raw, &r)
	return r, err
}

var count = func(n, same, left int) protocol.ImportCount {
	return protocol.ImportCount{New: n, Same: same, LeftOut: left}
}

// TestArchive moves a profile from SQLite to the other engine and on to SQLite
// again, through the doors.
func TestArchive(t *testing.T) {
	t.Parallel()
	one := newMover(t)
	two := newMover(t, func(c *Config) {
		if os.Getenv(storagetest.PostgresEnv) != "" {
			c.Database = storagetest.PostgresURL(t)
		}
	})
	thread, posts := one.settle()
	raw := one.export(map[string]any{"handle": "asha", "passphrase": passphrase})
	require.NotContains(t, unpacked(t, raw), `"d":`, "no private half in clear")
	require.NotContains(t, unpacked(t, raw), "stoa_", "no token and no session")

	want := map[string]any{"passphrase": passphrase}
	dry, err := two.imports(raw, map[string]any{"passphrase": passphrase, "dryRun": true})
	require.NoError(t, err)
	require.True(t, dry.DryRun)
	_, err = two.Admin().Profile(t.Context(), "asha")
	require.Equal(t, protocol.NotFound, protocol.CodeOf(err), "a dry run leaves nothing")

	report, err := two.imports(raw, want)
	require.NoError(t, err)
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
	require.Equal(t, one.profile(), two.profile())

	// Posts stay those of the node that made them, and are verified by their own key.
	var page protocol.Page[protocol.Post]
	require.NoError(t, json.Unmarshal([]byte(two.get("/api/public/board?q=yarn")), &page))
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
	require.JSONEq(t, `{"items":[],"next":null}`, two.get("/api/public/feed"), "the feed tells nothing of it")
	two.write(func(ctx context.Context, tx *storage.Tx) error {
		entries, err := tx.Logs().After(ctx, protocol.BoardID(two.Base), 0, 10)
		for _, e := range entries { // what lists the two profiles may be there by now
			assert.Contains(t, []string{storage.LogAgent + "home", storage.LogAgent + "asha"}, e.ObjectID, "and no peer")
		}
		return err
	})

	// The writer's token opens the thread, and the writer continues.
	was := one.get("/api/public/threads/"+thread.ThreadID, "Authorization", "Bearer "+thread.ReadToken)
	now := two.get("/api/public/threads/"+thread.ThreadID, "Authorization", "Bearer "+thread.ReadToken)
	require.Equal(t, said(t, was), said(t, now))
	require.NoError(t, two.callWith("", protocol.ContinueConversation.Operation,
		map[string]any{"threadId": thread.ThreadID, "readToken": thread.ReadToken, "message": "And here?"}, nil, nil))
	require.NoError(t, two.call(protocol.AnswerThread.Operation, map[string]any{"threadId": thread.ThreadID, "message": "Here too."}, nil, nil))

	// The kept key signs here.
	secret, _, err := two.Admin().CreateToken(t.Context(), "asha", "t", 0)
	require.NoError(t, err)
	var fresh protocol.Post
	require.NoError(t, two.callWith(secret, protocol.PostToBoard.Operation, map[string]any{"kind": "offer", "title": "From here", "body": "b"}, nil, &fresh))
	require.Equal(t, posts[0].Author.KeyID, fresh.Author.KeyID)

	// Once more changes nothing.
	before := unpacked(t, two.export(map[string]any{"handle": "asha"}))
	again, err := two.imports(raw, want)
	require.NoError(t, err)
	require.Equal(t, "kept", again.Profile)
	require.Equal(t, []protocol.ImportCount{count(0, 1, 0), count(0, 1, 0), count(0, 3, 0), count(0, 2, 0), count(0, 1, 0), count(0, 1, 0)},
		[]protocol.ImportCount{again.Keys, again.PrivateKeys, again.Posts, again.Threads, again.Callbacks, again.Blocks})
	require.Equal(t, before, unpacked(t, two.export(map[string]any{"handle": "asha"})))

	// And on: what was made on the first node is its word, not the second's.
	three := newMover(t)
	last, err := three.imports(two.export(map[string]any{"handle": "asha", "passphrase": passphrase}), want)
	require.NoError(t, err)
	require.Equal(t, one.profile(), three.profile())
	require.Equal(t, count(1, 0, 3), last.Posts)
	require.Equal(t, count(2, 0, 0), last.Threads)
	require.Contains(t, three.get("/api/public/threads/"+thread.ThreadID, "Authorization", "Bearer "+thread.ReadToken), "Here too.")
	whole, err := three.imports(raw, want)
	require.NoError(t, err)
	require.Equal(t, count(3, 0, 0), whole.Posts, "the first archive brings them")

	// And back: nothing is doubled.
	back, err := one.imports(two.export(map[string]any{"handle": "asha"}), nil)
	require.NoError(t, err)
	require.Equal(t, "kept", back.Profile)
	require.Equal(t, count(1, 3, 0), back.Posts)
	require.Equal(t, count(0, 2, 0), back.Threads)
}

// said is what a conversation holds, without what each node says by itself: who
// is verified.
func said(t *testing.T, raw string) (lines []string) {
	var c protocol.Conversation
	require.NoError(t, json.Unmarshal([]byte(raw), &c))
	lines = append(lines, c.ThreadID, string(c.Kind), string(c.State), c.CreatedAt.String(), c.UpdatedAt.String())
	for _, m := range c.Messages.Items {
		lines = append(lines, m.ID, string(m.From), m.Author.Name, m.Text, m.CreatedAt.String())
	}
	return lines
}

// tries are what a callback has been through, which continues by itself.
var tries = regexp.MustCompile(`("callback":\{"id":"[^"]*","n":\d+,"url":"[^"]*"),[^\n]*`)

// unpacked is everything in an archive but the manifest, its signature, what is
// encrypted, and tries.
func unpacked(t testing.TB, raw []byte) string {
	var all strings.Builder
	for _, m := range membersOf(t, raw) {
		if !strings.HasPrefix(m.name, "manifest") && m.name != "private-keys.age" {
			all.WriteString(m.name + "\n" + string(m.body))
		}
	}
	return tries.ReplaceAllString(all.String(), "$1}}")
}

type packed struct {
	name string
	body []byte
}

func membersOf(t testing.TB, raw []byte) (all []packed) {
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	require.NoError(t, err)
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		all = append(all, packed{h.Name, body})
	}
}

func pack(t testing.TB, all []packed) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, m := range all {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: m.name, Size: int64(len(m.body)), Typeflag: tar.TypeReg, Mode: 0o600}))
		_, err := w.Write(m.body)
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(w.Close(), zip.Close()))
	return out.Bytes()
}
