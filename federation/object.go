package federation

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// servePost serves a local post as its Note: 410 with a Tombstone if it is deleted,
// 200 with a Tombstone while it is hidden (FEP-4f05).
func (f *Federation) servePost(w http.ResponseWriter, r *http.Request) {
	shown := ""
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		p, err := f.localPost(ctx, tx, r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		if p.State != protocol.Visible {
			return f.tombstone(p), nil
		}
		parent, digest, err := f.noteParts(ctx, tx, p)
		if err != nil {
			return nil, err
		}
		shown = p.ID
		return activity.WithContext(activity.WithCounts(f.site.Note(p, parent, digest), p)), nil
	})
	if shown != "" {
		f.noteReader(r, shown)
	}
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
	p, err := tx.Posts().ByID(ctx, id)
	if err == nil && p.Node != nil {
		return nil, storage.ErrNotFound
	}
	return p, err
}

func (f *Federation) parentOf(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (*protocol.StoredPost, error) {
	if p.ReplyTo == "" {
		return nil, nil
	}
	parent, err := tx.Posts().ByURI(ctx, p.ReplyTo)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	return parent, err
}

// servePostPart serves a post's Create with its proof, its replies or its thread,
// oldest first, or how many like or boosted it.
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
		case "likes", "shares":
			return activity.WithContext(activity.Counted(p, part)), nil
		}
		return nil, nil
	})
}

// unpack decodes a document into its members; their values stay unchanged.
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
	whole := part == "context" // FEP-7888: the post and every reply below it
	if after == "" {
		total := p.ReplyCount
		if whole {
			below, err := tx.Posts().CountThread(ctx, p.ID)
			if err != nil {
				return nil, err
			}
			total = 1 + below
		}
		return activity.Collection(id, total, id+"?after=first"), nil
	}
	from, items, list := after, []any{}, tx.Posts().ListReplies
	if whole {
		list = tx.Posts().ListThread
	}
	if after == "first" {
		from = ""
		if whole {
			items = append(items, p.URI)
		}
	}
	page, err := list(ctx, p.ID, collectionPage, from)
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

// serveBoost serves a boost of the board by its sequence number.
func (f *Federation) serveBoost(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
		if err != nil || seq < 1 {
			return nil, storage.ErrNotFound
		}
		entries, err := tx.Logs().After(ctx, f.site.Board(), seq-1, 1)
		if err != nil || len(entries) == 0 || entries[0].Kind != storage.LogCreate && entries[0].Kind != storage.LogRestore {
			return nil, err
		}
		p, err := tx.Posts().ByID(ctx, entries[0].ObjectID)
		if err != nil || p.State != protocol.Visible || p.Unlisted {
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
		epoch, _, err := tx.Logs().Head(ctx, f.site.Board())
		if err != nil {
			return nil, err
		}
		entries, err := tx.Logs().After(ctx, f.site.Board(), seq-1, 1)
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
