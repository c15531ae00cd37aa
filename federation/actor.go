package federation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"

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
