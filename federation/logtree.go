package federation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"stoa/identity/strictjson"
	"stoa/identity/tree"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// The entries of our log are put into its tree after they are numbered, in order, some hundred at a time: a post takes no statement more,
// and the entries of a database that is older than the tree are put into it in the same way. Several processes may do so at once; one of
// them adds the leaves after a given one, the others change nothing (storage.Logs.GrowTree).

const (
	treeStep = 512                    // leaves added in one transaction
	treeRest = 200 * time.Millisecond // from one step to the next while the tree is not behind by more than a step
	treeTell = 10 * time.Second       // how often a long catching up is logged
)

// keepTree adds to the tree what was appended to the log, until ctx ends.
func (f *Federation) keepTree(ctx context.Context) {
	told := f.now()
	for ctx.Err() == nil {
		behind, err := f.growTree(ctx)
		if err != nil && ctx.Err() == nil {
			f.log.Error("tree of the log", "err", err)
		}
		if behind > 0 && err == nil {
			if now := f.now(); now.Sub(told) > treeTell {
				told = now
				f.log.Info("the tree of the log is being made", "missing", behind)
			}
			continue
		}
		told = f.now()
		select {
		case <-ctx.Done():
			return
		case <-f.treeDue:
		case <-time.After(poll):
		}
		select {
		case <-ctx.Done():
		case <-time.After(treeRest):
		}
	}
}

// growTree adds up to 512 entries to the tree of our log, or deletes a part of one of an earlier epoch. It returns how many
// entries more are to be added at once, 0 when it is not behind by a step.
func (f *Federation) growTree(ctx context.Context) (behind int64, err error) {
	var t storage.LogTree
	var leaves []storage.TreeLeaf
	var tiles []tree.Stored
	var root []byte
	err = f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if t, err = tx.Logs().Tree(ctx, f.site.Board()); err != nil || t.Size >= t.Head {
			return absent(err)
		}
		if leaves, err = f.leavesAfter(ctx, tx, t); err != nil {
			return err
		}
		texts := make([][]byte, len(leaves))
		for i, l := range leaves {
			texts[i] = tree.Leaf{Seq: l.Seq, Entry: l.Entry, Content: l.Content}.Bytes()
		}
		added, hash, err := tree.Append(t.Size, texts, readTiles(ctx, tx, t.ID))
		tiles, root = added, hash[:]
		return err
	})
	if err != nil || len(leaves) == 0 && t.Old == 0 {
		return 0, err
	}
	stored := make([]storage.TreeTile, len(tiles))
	for i, s := range tiles {
		stored[i] = storage.TreeTile{Level: s.L, N: s.N, Hashes: s.Hashes}
	}
	err = f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if len(leaves) == 0 {
			return tx.Logs().DropTree(ctx, t.Old)
		}
		_, err := tx.Logs().GrowTree(ctx, t, leaves, stored, root)
		return err
	})
	if behind = t.Head - t.Size - int64(len(leaves)); behind == 0 && t.Old > 0 {
		behind = 1
	}
	return behind, err
}

func readTiles(ctx context.Context, tx *storage.Tx, id int64) tree.ReadTile {
	return func(t tree.Tile) ([]byte, error) { return tx.Logs().TreeTile(ctx, id, t.L, t.N) }
}

// leavesAfter makes the leaves of the next entries, with fresh salts.
func (f *Federation) leavesAfter(ctx context.Context, tx *storage.Tx, t storage.LogTree) ([]storage.TreeLeaf, error) {
	entries, err := tx.Logs().After(ctx, f.site.Board(), t.Size, treeStep)
	if err != nil {
		return nil, err
	}
	leaves := make([]storage.TreeLeaf, len(entries))
	for i, e := range entries {
		if e.Seq != t.Size+int64(i)+1 {
			return nil, fmt.Errorf("the log has no entry %d", t.Size+int64(i)+1)
		}
		p, err := f.postOf(ctx, tx, e)
		if err != nil {
			return nil, err
		}
		l := storage.TreeLeaf{Seq: e.Seq, Entry: tree.ParseHash(f.hashEntry(t.Epoch, e, p))}
		if e.Kind == storage.LogHide {
			l.Hides = e.ObjectID
		}
		if content := f.contentOf(e, p); content != nil {
			l.Salt = make([]byte, tree.SaltSize)
			_, _ = rand.Read(l.Salt) // never fails
			l.Content = tree.Salted(l.Salt, content)
		}
		leaves[i] = l
	}
	return leaves, nil
}

// postOf returns the post that an entry of our log is about; nil when it is about something else, or the post is not stored any more.
func (f *Federation) postOf(ctx context.Context, tx *storage.Tx, e storage.LogEntry) (*protocol.StoredPost, error) {
	if !protocol.IsID(protocol.PostID, e.ObjectID) {
		return nil, nil
	}
	p, err := tx.Posts().ByID(ctx, e.ObjectID)
	return p, absent(err)
}

// typeOf is the type of the activity of an entry about a post.
var typeOf = map[storage.LogKind]string{
	storage.LogCreate: "Create", storage.LogUpdate: "Update", storage.LogDelete: "Delete", storage.LogHide: "Remove", storage.LogRestore: "Add",
}

// hashEntry is the hash of an entry of our log, also of one whose object is not shown any more; "" when its post is not stored any more.
func (f *Federation) hashEntry(epoch string, e storage.LogEntry, p *protocol.StoredPost) string {
	kind, object := "Offer", ""
	switch {
	case protocol.IsID(protocol.BidID, e.ObjectID):
		object = f.site.Bid(e.ObjectID)
	case strings.HasPrefix(e.ObjectID, storage.LogAgent):
		object = f.site.Summary(strings.TrimPrefix(e.ObjectID, storage.LogAgent))
	case isNews(e.ObjectID):
		object = f.newsURI(e.ObjectID)
	case e.Activity != nil: // as received
		var inner activity.Activity
		if fetchLimits.DecodeLoose(e.Activity, &inner) != nil {
			return ""
		}
		return activity.EntryHash(&activity.Activity{Seq: &e.Seq, Epoch: activity.Text(epoch), Published: activity.Time{Time: e.At}}, &inner)
	case p == nil:
		return ""
	default:
		return activity.HashEntry(epoch, e.Seq, e.At, typeOf[e.Kind], p.URI)
	}
	if e.Kind == storage.LogHide {
		kind, object = "Undo", activity.CreateID(object)
	}
	return activity.HashEntry(epoch, e.Seq, e.At, kind, object)
}

// contentMembers are those members of an announced object that are its content: what its author wrote. They are the same as long as the
// entry is shown, whatever becomes known of the author, and in each version of this software.
var contentMembers = []string{
	"id", "type", "attributedTo", "published", "updated", "inReplyTo", "name", "summary", "stoa:kind", "stoa:title", "stoa:tags", "stoa:summary",
}

// content is the content of an announced object: canonical JSON (RFC 8785) of an object with its contentMembers, and with its source or,
// when it has none, its content. It is nil for what is not an object.
func content(object json.RawMessage) []byte {
	members := strictjson.Members(object)
	if members == nil {
		return nil
	}
	kept := map[string]json.RawMessage{}
	for _, name := range contentMembers {
		if m, ok := members[name]; ok {
			kept[name] = m
		}
	}
	for _, name := range []string{"source", "content"} {
		if m, ok := members[name]; ok {
			kept[name] = m
			break
		}
	}
	raw, err := strictjson.CanonicalObject(kept)
	if err != nil {
		return nil
	}
	return raw
}

// contentOf is the content of an entry of our log; nil for one that has none, or whose content was deleted. Bids and news have none: their
// text ends at other times than their entries.
func (f *Federation) contentOf(e storage.LogEntry, p *protocol.StoredPost) []byte {
	switch {
	case e.Redacted || e.Kind != storage.LogCreate && e.Kind != storage.LogUpdate:
		return nil
	case e.Activity != nil:
		return content(strictjson.Members(e.Activity)["object"])
	case p == nil || p.State == protocol.Deleted:
		return nil
	}
	note, kept := f.site.Note(p, nil, ""), activity.Object{}
	for _, name := range append(contentMembers, "source") {
		if m, ok := note[name]; ok {
			kept[name] = m
		}
	}
	raw, err := kept.Bytes()
	if err != nil {
		return nil
	}
	return content(raw)
}
