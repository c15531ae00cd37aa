package federation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"stoa/identity/httpsig"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// collectionPage is how many items a page of an outbox or thread holds.
const collectionPage = 40

// A document is what a handler serves: bytes, or a status without any.
type document struct {
	body   []byte
	status int
}

// serve reads a document in one snapshot and answers with it, its ETag and its
// cache time. Nothing here asks for a signature: two servers that both insist
// on signed reads never get to know each other.
func (f *Federation) serve(w http.ResponseWriter, r *http.Request, make func(ctx context.Context, tx *storage.Tx) (activity.Object, error)) {
	var d document
	err := f.c.DB.Read(r.Context(), func(ctx context.Context, tx *storage.Tx) error {
		o, err := make(ctx, tx)
		if err != nil || o == nil {
			return err
		}
		d.status = http.StatusOK
		if s, ok := o[statusMember].(int); ok {
			d.status = s
			delete(o, statusMember)
		}
		d.body, err = o.Bytes()
		return err
	})
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && d.body == nil:
		f.problem(w, refuse(http.StatusNotFound, "there is no such object", nil))
	case err != nil:
		f.problem(w, err)
	default:
		writeDocument(w, r, d)
	}
}

// statusMember carries the HTTP status of a Tombstone through serve.
const statusMember = "\x00status"

func writeDocument(w http.ResponseWriter, r *http.Request, d document) {
	sum := sha256.Sum256(d.body)
	etag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	head := w.Header()
	head.Set("Content-Type", activity.MediaType)
	head.Set("ETag", etag)
	head.Set("Cache-Control", "public, max-age=180")
	head.Set("Vary", "Accept")
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("X-Content-Type-Options", "nosniff")
	if d.status == http.StatusOK && precondition(r, etag, "") == http.StatusNotModified {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(d.status)
	_, _ = w.Write(d.body)
}

// serveActor serves the actors of the node itself.
func (f *Federation) serveActor(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(context.Context, *storage.Tx) (activity.Object, error) {
		switch r.PathValue("actor") {
		case "node":
			return f.site.NodeActor(f.c.Base.Hostname()), nil
		case "board":
			return f.site.BoardActor(), nil
		case "feed":
			return f.site.FeedActor(), nil
		case "anon":
			return f.site.AnonActor(), nil
		}
		return nil, nil
	})
}

// serveAgent serves the actor of a hosted profile.
func (f *Federation) serveAgent(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		p, err := tx.ProfileByHandle(ctx, r.PathValue("handle"))
		if err != nil {
			return nil, err
		}
		return f.site.AgentActor(p.Draft, p.ERC8004, p.KeyHash, p.CreatedAt, p.UpdatedAt), nil
	})
}

func (f *Federation) serveActorPart(w http.ResponseWriter, r *http.Request) {
	actor, part := r.PathValue("actor"), r.PathValue("part")
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		switch actor {
		case "board":
			if part == "outbox" || part == "posts" {
				return f.boardPosts(ctx, tx, part, r.URL.Query().Get("before"))
			}
			return f.counted(ctx, tx, f.site.Board(), part)
		case "node", "feed", "anon":
			return f.counted(ctx, tx, f.site.Base+"/ap/"+actor, part)
		}
		return nil, nil
	})
}

func (f *Federation) serveAgentPart(w http.ResponseWriter, r *http.Request) {
	handle, part := r.PathValue("handle"), r.PathValue("part")
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		if _, err := tx.ProfileByHandle(ctx, handle); err != nil {
			return nil, err
		}
		if part == "outbox" {
			return f.agentPosts(ctx, tx, handle, r.URL.Query().Get("before"))
		}
		return f.counted(ctx, tx, f.site.Agent(handle), part)
	})
}

// counted is a collection of which others see only the number.
func (f *Federation) counted(ctx context.Context, tx *storage.Tx, actor, part string) (activity.Object, error) {
	switch part {
	case "followers":
		n, err := tx.CountFollowers(ctx, actor)
		return activity.Collection(actor+"/followers", n, ""), err
	case "following", "outbox":
		return activity.Collection(actor+"/"+part, 0, ""), nil
	}
	return nil, nil
}

// boardPosts is the board's outbox (what it announced) or its posts, newest
// first.
func (f *Federation) boardPosts(ctx context.Context, tx *storage.Tx, part, before string) (activity.Object, error) {
	id := f.site.Board() + "/" + part
	return f.listing(ctx, tx, id, before, protocol.BoardQuery{}, func(p protocol.Post) any {
		if part == "posts" {
			return p.URI
		}
		return activity.Object{"type": "Announce", "actor": f.site.Board(), "object": p.URI, "to": []string{activity.Public}}
	})
}

func (f *Federation) agentPosts(ctx context.Context, tx *storage.Tx, handle, before string) (activity.Object, error) {
	actor := f.site.Agent(handle)
	return f.listing(ctx, tx, actor+"/outbox", before, protocol.BoardQuery{Author: handle}, func(p protocol.Post) any {
		return activity.Object{"id": activity.CreateID(p.URI), "type": "Create", "actor": actor, "object": p.URI, "to": []string{activity.Public}}
	})
}

// listing is a collection of local posts and its pages. "before" is "first" for
// the first page, then the cursor of the listing.
func (f *Federation) listing(ctx context.Context, tx *storage.Tx, id, before string, q protocol.BoardQuery, item func(protocol.Post) any) (activity.Object, error) {
	if before == "" {
		total, err := tx.CountPosts(ctx)
		if q.Author != "" {
			total = 0
		}
		o := activity.Collection(id, total, id+"?before=first")
		if q.Author != "" {
			delete(o, "totalItems")
		}
		return o, err
	}
	q.Limit = collectionPage
	if before != "first" {
		q.After = before
	}
	page, err := tx.ListPosts(ctx, q)
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, p := range page.Items {
		if p.Node == nil {
			items = append(items, item(p))
		}
	}
	next := ""
	if page.Next != nil {
		next = id + "?before=" + *page.Next
	}
	return activity.CollectionPage(id+"?before="+before, id, next, items), nil
}

// servePost serves a local post as its Note: 410 with a Tombstone when it is
// deleted, 200 with one while it is hidden (FEP-4f05).
func (f *Federation) servePost(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		p, err := f.localPost(ctx, tx, r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		if p.State != protocol.Visible {
			return f.tombstone(p), nil
		}
		digest, err := digestOf(p)
		if err != nil {
			return nil, err
		}
		parent, err := f.parentOf(ctx, tx, p)
		if err != nil {
			return nil, err
		}
		return activity.WithContext(f.site.Note(p, parent, digest)), nil
	})
}

func (f *Federation) tombstone(p *protocol.StoredPost) activity.Object {
	o := activity.WithContext(activity.Tombstone(p.URI, p.CreatedAt))
	delete(o, "deleted")
	o[statusMember] = http.StatusOK
	if p.State == protocol.Deleted {
		o[statusMember] = http.StatusGone
	}
	return o
}

func (f *Federation) localPost(ctx context.Context, tx *storage.Tx, id string) (*protocol.StoredPost, error) {
	if !protocol.IsID(protocol.PostID, id) {
		return nil, storage.ErrNotFound
	}
	p, err := tx.PostByID(ctx, id)
	if err == nil && p.Node != nil {
		return nil, storage.ErrNotFound
	}
	return p, err
}

func (f *Federation) parentOf(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (*protocol.StoredPost, error) {
	if p.ReplyTo == "" {
		return nil, nil
	}
	parent, err := tx.PostByURI(ctx, p.ReplyTo)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	return parent, err
}

// servePostPart serves a post's Create with its proof, its replies and its
// thread, oldest first.
func (f *Federation) servePostPart(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		p, err := f.localPost(ctx, tx, r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		if p.State != protocol.Visible {
			return f.tombstone(p), nil
		}
		switch part := r.PathValue("part"); part {
		case "activity":
			raw, err := f.createOf(ctx, tx, p)
			if err != nil {
				return nil, err
			}
			return unpack(raw)
		case "replies", "context":
			return f.thread(ctx, tx, p, part, r.URL.Query().Get("after"))
		}
		return nil, nil
	})
}

// unpack reads a document back member by member; its values stay as they are.
func unpack(raw []byte) (activity.Object, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	o := activity.Object{}
	for name, value := range members {
		o[name] = value
	}
	return o, nil
}

func (f *Federation) thread(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, part, after string) (activity.Object, error) {
	id := p.URI + "/" + part
	if after == "" {
		return activity.Collection(id, p.ReplyCount, id+"?after=first"), nil
	}
	from, items := after, []any{}
	if after == "first" {
		from = ""
		if part == "context" {
			items = append(items, p.URI)
		}
	}
	page, err := tx.ListReplies(ctx, p.ID, collectionPage, from)
	if err != nil {
		return nil, err
	}
	for _, reply := range page.Items {
		items = append(items, reply.URI)
	}
	next := ""
	if page.Next != nil {
		next = id + "?after=" + *page.Next
	}
	return activity.CollectionPage(id+"?after="+after, id, next, items), nil
}

// knownSigner returns the host of the actor that signed a read, when its key is
// known here and verifies.
func (f *Federation) knownSigner(r *http.Request) (string, bool) {
	if !httpsig.Signed(r.Header) {
		return "", false
	}
	msg, err := httpsig.FromRequest(r, f.target)
	if err != nil {
		return "", false
	}
	keys := &storedKeys{f: f}
	v := httpsig.Verifier{Keys: keys, Now: f.now, AllowLoopback: f.c.AllowPrivate}
	if _, err := v.Verify(r.Context(), &msg, nil, httpsig.FederationPolicy()); err != nil {
		return "", false
	}
	return hostOf(keys.owner), keys.owner != ""
}

// storedKeys finds keys that are in the database and fetches none.
type storedKeys struct {
	f     *Federation
	owner string
}

func (k *storedKeys) Resolve(ctx context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	found, err := k.f.knownKey(ctx, strings.Clone(q.Params.KeyID))
	if err != nil || found == nil {
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	pub, err := httpKey(found)
	if err != nil {
		return httpsig.Resolved{}, err
	}
	k.owner = found.Owner
	return httpsig.Resolved{Key: pub}, nil
}

// serveBoost serves a boost of the board by its number.
func (f *Federation) serveBoost(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
		if err != nil || seq < 1 {
			return nil, storage.ErrNotFound
		}
		entries, err := tx.LogAfter(ctx, f.site.Board(), seq-1, 1)
		if err != nil || len(entries) == 0 || entries[0].Kind != "create" && entries[0].Kind != "restore" {
			return nil, err
		}
		p, err := tx.PostByID(ctx, entries[0].ObjectID)
		if err != nil || p.State != protocol.Visible {
			return nil, absent(err)
		}
		return f.site.Boost(p.URI, seq, entries[0].At), nil
	})
}

// serveEntry serves one entry of the log by its id.
func (f *Federation) serveEntry(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
		if err != nil || seq < 1 {
			return nil, storage.ErrNotFound
		}
		epoch, _, err := tx.LogHead(ctx, f.site.Board())
		if err != nil {
			return nil, err
		}
		entries, err := tx.LogAfter(ctx, f.site.Board(), seq-1, 1)
		if err != nil || len(entries) == 0 {
			return nil, err
		}
		raw, _, err := f.entry(ctx, tx, epoch, entries[0])
		if err != nil {
			return nil, err
		}
		return unpack(raw)
	})
}
