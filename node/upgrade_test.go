package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// oldBase is the address of the node whose database is brought up to date.
const oldBase = "http://127.0.0.1:8800"

// An oldNode is what a node of the first version held.
type oldNode struct {
	exec  func(query string, args ...any)
	lite  bool // SQLite
	began time.Time
	posts map[string]string // id by title
	feed  []string          // ids of the visible items, oldest first
}

// seqOfID is the number under which the first version stored a thing: the first 63
// bits of the time and the randomness that the id is made of.
func seqOfID(id string) int64 {
	var hi, lo uint64
	for _, c := range id[len(id)-26:] {
		hi, lo = hi<<5|lo>>59, lo<<5|uint64(strings.IndexRune("0123456789abcdefghjkmnpqrstvwxyz", c))
	}
	return int64(hi>>16<<21 | (hi&0xfff)<<9 | lo>>53&0x1ff)
}

func (o *oldNode) profile(handle string, kind protocol.ProfileKind, endpoint string) {
	draft, _ := json.Marshal(protocol.ProfileDraft{Handle: handle, Name: "Name of " + handle, Kind: kind, Headline: "Paper of " + handle, Tags: []string{"paper"},
		Capabilities: []protocol.Capability{{ID: "make", Name: "Make", Description: "Makes rag paper.", Endpoint: endpoint}}})
	at := o.began.UnixMilli()
	o.exec(`INSERT INTO profile (handle, draft, identity_note, created_at, updated_at) VALUES (?, ?, ?, ?, ?)`, handle, string(draft), protocol.NoIdentity, at, at)
	o.words("profile_word", int64(len(handle)), "paper rag ")
}

// words fills the index of the first version, whose form is not today's.
func (o *oldNode) words(table string, seq int64, words string) {
	if o.lite {
		o.exec(`INSERT INTO `+table+` (rowid, words) VALUES (?, ?)`, seq, words)
		return
	}
	o.exec(`INSERT INTO `+table+` (seq, words) VALUES (?, array_to_tsvector(string_to_array(trim(?), ' ')))`, seq, words)
}

func (o *oldNode) token(secret, handle string, hours int) {
	at, hash := o.began.UnixMilli(), sha256.Sum256([]byte(secret))
	o.exec(`INSERT INTO api_token (id, hash, account, handle, name, scopes, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		protocol.NewID(protocol.TokenID, o.began), hash[:], protocol.NewID(protocol.AccountID, o.began), handle, "old laptop", "[]", at, at+int64(hours)*3_600_000)
}

type oldPost struct {
	title, to, kind, state string
	handle                 string // of the author, who is verified; "" is someone who paid with work
	replies                int
}

func (o *oldNode) post(n int, p oldPost) {
	at := o.began.Add(time.Duration(n) * time.Second)
	id := protocol.NewID(protocol.PostID, at)
	o.posts[p.title] = id
	var parent, handle, key, replyTo any
	method, name, replyTo := "pow", "Somebody", ""
	if p.to != "" {
		parent, replyTo = o.posts[p.to], oldBase+"/ap/posts/"+o.posts[p.to]
	}
	if p.handle != "" {
		handle, key, method, name = p.handle, "key of "+p.handle, "signature", "Name of "+p.handle
	}
	o.exec(`INSERT INTO post (seq, id, uri, foreign_uri, url, kind, state, title, tags, in_reply_to, reply_to, board, author_name, author_handle,
		author_local, author_method, author_keyid, verified, reply_count, created_at, stored_at, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, seqOfID(id), id, oldBase+"/ap/posts/"+id, false, oldBase+"/board/"+id,
		p.kind, p.state, p.title, `["paper"]`, parent, replyTo, oldBase+"/ap/board", name, handle, true, method, key, p.handle != "", p.replies,
		at.UnixMilli(), at.UnixMilli(), "Body of "+p.title)
	item := protocol.FeedItem{ID: protocol.NewID(protocol.FeedID, at), Type: protocol.FeedBoardPost, At: at,
		Actor:   protocol.Author{Name: name, Method: protocol.Method(method)},
		Subject: protocol.Subject{Kind: "post", ID: id, URL: oldBase + "/board/" + id, Title: p.title}, Summary: p.title, Untrusted: true}
	o.item(item, p.state == "visible")
	if p.state == "visible" {
		o.exec(`INSERT INTO post_tag (tag, kind, verified, seq) VALUES (?, ?, ?, ?)`, "paper", p.kind, p.handle != "", seqOfID(id))
		o.words("post_word", seqOfID(id), "body of ")
	}
}

func (o *oldNode) item(item protocol.FeedItem, visible bool) {
	doc, _ := json.Marshal(item)
	o.exec(`INSERT INTO feed (seq, id, type, subject_id, visible, doc) VALUES (?, ?, ?, ?, ?, ?)`, seqOfID(item.ID), item.ID, string(item.Type),
		item.Subject.ID, visible, string(doc))
	if visible {
		o.feed = append(o.feed, item.ID)
	}
}

func (o *oldNode) fill() {
	o.profile("asha", protocol.Person, "https://asha.example/make")
	o.profile("rao", protocol.Business, "")
	o.token("stoa_old-secret-of-a-laptop", "asha", 1000)
	o.token("stoa_second-secret-of-a-laptop", "asha", 1000)
	o.token("stoa_ended-secret-of-a-laptop", "rao", 0)
	o.token("stoa_orphan-secret-of-a-laptop", "nobody", 1000)
	o.item(protocol.FeedItem{ID: protocol.NewID(protocol.FeedID, o.began), Type: protocol.FeedMerchantJoined, At: o.began,
		Subject: protocol.Subject{Kind: "profile", ID: "rao", Title: "Name of rao"}, Summary: "Name of rao joined."}, true)
	for n, p := range []oldPost{
		{title: "Sheets wanted", kind: "requirement", state: "visible", handle: "asha", replies: 2},
		{title: "How many", to: "Sheets wanted", kind: "question", state: "visible", replies: 1},
		{title: "Two hundred", to: "How many", kind: "announcement", state: "visible", handle: "asha", replies: 1},
		{title: "Spam", to: "Two hundred", kind: "offer", state: "hidden", replies: 1},
		{title: "Under spam", to: "Spam", kind: "offer", state: "visible"},
		{title: "Too many", to: "Two hundred", kind: "offer", state: "visible"},
		{title: "Found them", to: "Sheets wanted", kind: "resolution", state: "visible", handle: "asha"},
		{title: "Looms", kind: "challenge", state: "visible", handle: "rao", replies: 1},
		{title: "I have some", to: "Looms", kind: "resolution", state: "visible", handle: "asha"},
	} {
		o.post(n+1, p)
	}
	o.exec(`INSERT INTO report (post_id, reporter, reason, at) VALUES (?, ?, ?, ?)`, o.posts["Too many"], "network x", "spam", o.began.UnixMilli())
	o.exec(`INSERT INTO stream (board, epoch, head) VALUES (?, ?, ?)`, oldBase+"/ap/board", "e1", 1)
	o.exec(`INSERT INTO log (stream, seq, kind, object_id, at, redacted, activity) VALUES (1, 1, 'create', ?, ?, ?, ?)`, o.posts["Sheets wanted"],
		o.began.UnixMilli(), false, []byte(`{}`))
	for _, j := range [][2]string{{"prune", "waiting"}, {"deliver", "done"}, {"submit", "dead"}} {
		o.exec(`INSERT INTO job (kind, args, state, run_at, last_error) VALUES (?, ?, ?, ?, ?)`, j[0], []byte(`{}`), j[1], o.began.UnixMilli(), "")
	}
}

// TestUpgrade starts a node on the database of a first version.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, change func(*Config)) {
		c := Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Dev: true, Version: "test", BaseURL: oldBase}
		change(&c)
		if c.Database != "" {
			c.Database = storagetest.EmptyPostgresURL(t)
		}
		at := storage.Config{URL: c.Database}
		if c.Database == "" {
			at.Path = filepath.Join(c.Data, "stoa.db")
		}
		old := &oldNode{lite: c.Database == "", began: time.Now().Add(-48 * time.Hour).Truncate(time.Millisecond).UTC(), posts: map[string]string{}}
		storagetest.Old(t, at, func(exec func(string, ...any)) {
			old.exec = exec
			old.fill()
		})
		h := newHouse(t, func(to *Config) { *to = c })

		t.Run("board", func(t *testing.T) { h.oldBoard(t, old) })
		t.Run("directory", func(t *testing.T) { h.oldDirectory(t) })
		t.Run("tokens", func(t *testing.T) { h.oldTokens(t, old) })
		t.Run("feed", func(t *testing.T) { h.oldFeed(t, old, c) })
		t.Run("jobs", func(t *testing.T) {
			require.NoError(t, h.db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				dead, err := tx.Jobs().List(ctx, storage.JobDead, "", 10, "")
				require.Len(t, dead.Items, 1)
				require.Equal(t, storage.SubmitJob, dead.Items[0].Kind)
				if err != nil {
					return err
				}
				probes, err := tx.Probes().OfProfile(ctx, "asha")
				require.Len(t, probes, 1, "what an old profile lists is asked whether it answers")
				return err
			}))
		})
	})
}

func titles(posts []protocol.Post) (names []string) {
	for _, p := range posts {
		names = append(names, p.Title)
	}
	return names
}

func (h *house) oldBoard(t *testing.T, o *oldNode) {
	for query, want := range map[string][]string{
		"":                                  {"I have some", "Looms", "Found them", "Too many", "Under spam", "Two hundred", "How many", "Sheets wanted"},
		"?root=" + o.posts["Sheets wanted"]: {"Found them", "Too many", "Under spam", "Two hundred", "How many"},
		"?resolved=true":                    {"Sheets wanted"},
		"?resolved=false":                   {"Looms", "How many"},
		"?q=hundred":                        {"Two hundred"},
		"?q=hundred&author=asha":            {"Two hundred"},
		"?tag=paper&verifiedOnly=true":      {"I have some", "Looms", "Found them", "Two hundred", "Sheets wanted"},
	} {
		var page protocol.Page[protocol.Post]
		h.ask("GET", "/api/public/board"+query, "").into(&page)
		require.Equal(t, want, titles(page.Items), query)
	}
	var deep protocol.PostWithReplies
	h.ask("GET", "/api/public/board/"+o.posts["Under spam"], "").into(&deep)
	require.Equal(t, o.posts["Sheets wanted"], *deep.Post.Root)
}

func (h *house) oldDirectory(t *testing.T) {
	for path, want := range map[string][]string{
		"agents":             {"asha", "rao"},
		"agents?q=rag":       {"asha", "rao"},
		"agents?kind=person": {"asha"},
		"agents?q=name+asha": {"asha"},
		"people?q=rag":       {"asha"},
		"merchants?q=rag":    {"rao"},
	} {
		var page protocol.Page[struct{ Handle string }]
		h.ask("GET", "/api/public/"+path, "").into(&page)
		got := []string{}
		for _, i := range page.Items {
			got = append(got, i.Handle)
		}
		require.ElementsMatch(t, want, got, path)
	}
}

func (h *house) oldTokens(t *testing.T, o *oldNode) {
	for _, secret := range []string{"stoa_old-secret-of-a-laptop", "stoa_second-secret-of-a-laptop"} {
		bearer := "Bearer " + secret
		var p protocol.Post
		a := h.ask("POST", "/api/public/board", fmt.Sprintf(`{"kind":"offer","title":"By %s","body":"b","inReplyTo":%q}`, secret, o.posts["Too many"]),
			"Authorization", bearer)
		require.Equal(t, 201, a.Code, "%s", a.Body)
		a.into(&p)
		require.Equal(t, "asha", *p.Author.Handle)
		require.Equal(t, o.posts["Sheets wanted"], *p.Root)
		require.Equal(t, 200, h.ask("GET", "/api/owner/profile", "", "Authorization", bearer).Code)
		a = h.ask("PUT", "/api/owner/needs/looms", `{"description":"Looms"}`, "Authorization", bearer)
		require.Less(t, a.Code, 300, "%s", a.Body)
	}
	for _, secret := range []string{"stoa_ended-secret-of-a-laptop", "stoa_orphan-secret-of-a-laptop"} {
		require.Equal(t, 401, h.ask("GET", "/api/owner/profile", "", "Authorization", "Bearer "+secret).Code, secret)
	}
}

// oldFeed continues after an item of the old node, and a business that joined then
// does not join again.
func (h *house) oldFeed(t *testing.T, o *oldNode, c Config) {
	var page protocol.Page[protocol.FeedItem]
	h.ask("GET", "/api/public/feed?limit=100", "").into(&page)
	require.Len(t, page.Items, len(o.feed)+2, "the old items and those of the tokens' posts")
	require.NoError(t, h.db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		p, err := tx.Profiles().ByHandle(ctx, "rao")
		if err == nil {
			_, err = h.directory.Put(ctx, tx, p)
		}
		return err
	}))
	at := h
	if c.Database == "" { // one process serves SQLite
		require.NoError(t, h.Close())
		defer func() { h.Node = newHouse(h.t, func(to *Config) { *to = c }).Node }()
	}
	two, stop := run(t, c)
	defer stop()
	if c.Database == "" {
		at = &house{two, t}
	}
	resumed := subscribe(t, two.URL, "", "Last-Event-ID", o.feed[len(o.feed)-2])
	for _, want := range []string{"I have some", "By stoa_old-secret-of-a-laptop", "By stoa_second-secret-of-a-laptop"} {
		_, item, ok := resumed.event()
		require.True(t, ok)
		require.Equal(t, want, item.Subject.Title)
	}
	at.post("After the upgrade")
	_, item, ok := resumed.event()
	require.True(t, ok)
	require.Equal(t, "After the upgrade", item.Subject.Title)
}
