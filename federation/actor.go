package federation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// collectionPage is how many items a page of an outbox or thread holds.
const collectionPage = 40

// boostedAge is the longest time that the number of posts in the board's outbox is
// served from memory.
const boostedAge = time.Minute

// A document is the answer of a handler: bytes, or a status without a body.
type document struct {
	body   []byte
	status int
}

// serve reads a document in one snapshot and answers with it, its ETag and its
// cache time. No signature is required: two servers that both insist on signed
// reads could never fetch each other's keys.
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
	head.Add("Vary", "Accept")
	head.Set("Access-Control-Allow-Origin", "*")
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
		o, err := f.agentActor(ctx, tx, r.PathValue("handle"))
		if !errors.Is(err, storage.ErrNotFound) {
			return o, err
		}
		at, err := tx.Handles().Gone(ctx, r.PathValue("handle"))
		if err != nil {
			return nil, err
		}
		o = activity.GoneActor(f.site.Agent(r.PathValue("handle")), at)
		o[statusMember] = http.StatusGone
		return o, nil
	})
}

func (f *Federation) agentActor(ctx context.Context, tx *storage.Tx, handle string) (activity.Object, error) {
	p, err := tx.Profiles().ByHandle(ctx, handle)
	if err != nil {
		return nil, err
	}
	o := f.site.AgentActor(p.Draft, p.ERC8004, p.KeyHash, p.CreatedAt, p.UpdatedAt)
	if x := p.Picture.Public(f.site.Base); x != nil {
		o["icon"] = activity.Object{"type": "Image", "mediaType": "image/jpeg", "url": x.URL, "name": x.Alt}
	}
	return o, nil
}

// agentUpdate is the activity that tells the followers of an agent that its profile has changed, by the entry of its log; nil when
// a later entry tells it, or the profile is deleted.
func (f *Federation) agentUpdate(ctx context.Context, tx *storage.Tx, e storage.LogEntry) ([]byte, error) {
	if e.Redacted {
		return nil, nil
	}
	o, err := f.agentActor(ctx, tx, strings.TrimPrefix(e.ObjectID, storage.LogAgent))
	if err != nil {
		return nil, absent(err)
	}
	return f.site.UpdateActor(e.Board, o, e.At).Bytes()
}

func (f *Federation) serveActorPart(w http.ResponseWriter, r *http.Request) {
	actor, part := r.PathValue("actor"), r.PathValue("part")
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		switch actor {
		case "board":
			if part == "outbox" || part == "posts" {
				return f.boardPosts(ctx, tx, part, r.URL.Query().Get("before"))
			}
			return f.countCollection(ctx, tx, f.site.Board(), part)
		case "node", "feed", "anon":
			return f.countCollection(ctx, tx, f.site.Base+"/ap/"+actor, part)
		}
		return nil, nil
	})
}

func (f *Federation) serveAgentPart(w http.ResponseWriter, r *http.Request) {
	handle, part := r.PathValue("handle"), r.PathValue("part")
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		if _, err := tx.Profiles().ByHandle(ctx, handle); err != nil {
			return nil, err
		}
		if part == "outbox" {
			return f.agentPosts(ctx, tx, handle, r.URL.Query().Get("before"))
		}
		return f.countCollection(ctx, tx, f.site.Agent(handle), part)
	})
}

// countCollection is a collection that shows only its number of items.
func (f *Federation) countCollection(ctx context.Context, tx *storage.Tx, actor, part string) (activity.Object, error) {
	switch part {
	case "followers":
		n, err := tx.Followers().Count(ctx, actor)
		return activity.Collection(actor+"/followers", n, ""), err
	case "following", "outbox":
		return activity.Collection(actor+"/"+part, 0, ""), nil
	}
	return nil, nil
}

// boardPosts is the board's outbox (what it announced to the fediverse) or its
// posts, newest first.
func (f *Federation) boardPosts(ctx context.Context, tx *storage.Tx, part, before string) (activity.Object, error) {
	board := f.site.Board()
	id := board + "/" + part
	if before == "" {
		total, err := f.boosted.Get(ctx, tx)
		return activity.Collection(id, total, id+"?before=first"), err
	}
	page, err := tx.Posts().ListBoosted(ctx, board, collectionPage, cursorOf(before))
	if err != nil {
		return nil, err
	}
	items := []any{}
	for i := range page.Items {
		p := &page.Items[i]
		if p.Unlisted {
			continue
		}
		if part == "posts" {
			items = append(items, p.URI)
			continue
		}
		shown, err := tx.Logs().LastBoost(ctx, board, p.ID, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		if shown.Seq > 0 {
			items = append(items, f.site.Boost(p.URI, shown.Seq, shown.At).Inside())
		}
	}
	return pageOf(id, before, items, page.Next), nil
}

func (f *Federation) agentPosts(ctx context.Context, tx *storage.Tx, handle, before string) (activity.Object, error) {
	actor := f.site.Agent(handle)
	id := actor + "/outbox"
	if before == "" {
		o := activity.Collection(id, 0, id+"?before=first")
		delete(o, "totalItems")
		return o, nil
	}
	page, err := tx.Posts().List(ctx, protocol.BoardQuery{Author: handle, Paging: protocol.Paging{Limit: collectionPage, After: cursorOf(before)}})
	if err != nil {
		return nil, err
	}
	items := []any{}
	for i := range page.Items {
		items = append(items, f.site.CreateOf(&page.Items[i], actor))
	}
	return pageOf(id, before, items, page.Next), nil
}

// cursorOf converts the name of a page to the cursor of a listing; the first page
// is named "first".
func cursorOf(before string) string {
	if before == "first" {
		return ""
	}
	return before
}

func pageOf(id, before string, items []any, next *string) activity.Object {
	at := ""
	if next != nil {
		at = id + "?before=" + *next
	}
	return activity.CollectionPage(id+"?before="+before, id, at, items)
}
