package federation

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/netx"
	"stoa/storage"
)

// tombstoneAge is how long the deletion of an unknown object is remembered, for a
// Create that arrives after its Delete.
const tombstoneAge = 30 * 24 * time.Hour

// editedAhead is how far another server's clock may be ahead of ours in the time of a change.
const editedAhead = 10 * time.Minute

// An incoming is one stored activity that is being processed.
type incoming struct {
	key    [32]byte
	raw    []byte
	act    activity.Activity
	actor  string
	host   string
	proven bool
}

// after is the effect of a job, applied in the transaction that marks the job done.
type after = func(ctx context.Context, tx *storage.Tx) error

// processArgs are the arguments of a process job.
type processArgs struct {
	Key string `json:"key"` // of the stored activity, hexadecimal
	retryState
}

// process processes one stored activity. Unknown activities are ignored; what
// cannot be decided now is retried.
func (f *Federation) process(ctx context.Context, j storage.Job) (after, error) {
	var args processArgs
	if err := j.Decode(&args); err != nil {
		return nil, err
	}
	in, err := f.incoming(ctx, args.Key)
	if err != nil || in == nil {
		return nil, err
	}
	effect, err := f.decide(ctx, in)
	if err != nil {
		return f.retry(j, &args.retryState, &args, err)
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Inbox().Empty(ctx, in.key); err != nil {
			return err
		}
		if err := f.grow(ctx, tx, storage.StockJobs); err != nil || effect == nil {
			return err
		}
		return effect(ctx, tx)
	}, nil
}

func (f *Federation) decide(ctx context.Context, in *incoming) (after, error) {
	if err := f.admits(ctx, in.host); err != nil {
		if errors.Is(err, errBlocked) {
			return nil, nil
		}
		return nil, err
	}
	switch {
	case in.act.Type.Is("Update") && in.act.ObjectID() == in.actor:
		return f.handleActor(ctx, in)
	case in.act.Type.Is("Follow"):
		return f.handleFollow(ctx, in)
	case in.act.Type.Is("Undo"):
		return f.handleUndo(in), nil
	case in.act.Type.Is("Accept", "Reject"):
		return f.handleAccept(in), nil
	case in.act.Type.Is("Create", "Update"):
		return f.handlePost(ctx, in)
	case in.act.Type.Is("Delete"):
		return f.handleDelete(in), nil
	case in.act.Type.Is("Announce") && in.act.Seq != nil && activity.HasStoa(in.act.Context):
		return f.handleAnnounce(ctx, in)
	case in.act.Type.Is("Like", "EmojiReact", "Announce"):
		return f.handleReaction(ctx, in)
	case in.act.Type.Is("Move"):
		return f.handleMove(ctx, in)
	case in.act.Type.Is("Block"):
		return f.handleBlock(in), nil
	case in.act.Type.Is("QuoteRequest"):
		return f.handleQuoteRequest(ctx, in)
	case in.act.Type.Is("Flag") && in.act.ObjectID() == f.site.Log():
		return f.handleLogReport(in), nil
	case in.act.Type.Is("Flag"):
		return f.handleFlag(in), nil
	}
	return nil, nil
}

// incoming reads a stored activity by its key; nil if it is no longer stored.
func (f *Federation) incoming(ctx context.Context, text string) (*incoming, error) {
	var key [32]byte
	if n, err := hex.Decode(key[:], []byte(text)); err != nil || n != len(key) {
		return nil, protocol.Errorf(protocol.InvalidRequest, "arguments of the job")
	}
	var kept *storage.Kept
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		kept, err = tx.Inbox().ByKey(ctx, key)
		return absent(err)
	})
	if err != nil || kept == nil || len(kept.Body) == 0 { // expired, or processed
		return nil, err
	}
	in := &incoming{key: key, raw: kept.Body, actor: kept.Actor, host: kept.Host, proven: kept.Proven}
	if err := strictjson.DecodeChecked(kept.Body, &in.act); err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "kept activity: %w", err)
	}
	return in, nil
}

// handlePost handles a reply to a post of our board, new or changed, by a stoa node or any server of the fediverse, and a post
// that mentions the board. All other posts are messages, or ignored.
func (f *Federation) handlePost(ctx context.Context, in *incoming) (after, error) {
	var n activity.Note
	if !in.act.Embedded() || strictjson.DecodeChecked(in.act.Object, &n) != nil || !n.Type.Is(activity.NoteTypes...) {
		return nil, nil
	}
	parent, err := f.storedPost(ctx, n.InReplyTo.One())
	if err != nil {
		return nil, err
	}
	begins, err := f.beginsOnBoard(ctx, in, &n)
	if err != nil {
		return nil, err
	}
	if !n.IsPublic() || !begins && (parent == nil || parent.Board != f.site.Board() || parent.State != protocol.Visible) {
		return f.handleMessage(ctx, in, &n)
	}
	if begins {
		if may, err := f.mayBegin(ctx, in); err != nil || !may {
			return nil, err
		}
	}
	var p *protocol.StoredPost
	if n.IsStoa(in.act.Context) {
		p, err = f.examine(ctx, &n, in.act.Object)
		if err == nil && p.Board != f.site.Board() {
			return nil, nil
		}
	} else {
		p, err = f.readReply(ctx, &n, parent)
	}
	if err != nil {
		return nil, f.skipRefused(in.host, err)
	}
	p.Board = f.site.Board()
	relayed := activity.Relayed(in.act.Type.String(), string(in.act.ID), p)
	if n.IsStoa(in.act.Context) {
		relayed = activity.WithContext(relayed)
	}
	raw, err := in.relayed(relayed)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		kind, err := f.take(ctx, tx, p, in.act.Type.Is("Update"))
		if err != nil || kind == "" {
			return err
		}
		if kind == storage.LogUpdate {
			if err := tx.Logs().Redact(ctx, f.site.Board(), p.ID); err != nil {
				return err
			}
		}
		return tx.Logs().Append(ctx, f.site.Board(), kind, p.ID, raw)
	}, nil
}

// handleActor handles the change of an actor by itself, if this node knows it: it is fetched from its server.
func (f *Federation) handleActor(ctx context.Context, in *incoming) (after, error) {
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Peers().ActorByID(ctx, in.actor)
		return err
	})
	if err != nil {
		return nil, absent(err)
	}
	a, err := f.lookUpActor(ctx, in.actor)
	if err != nil {
		return nil, f.skipRefused(in.host, err)
	}
	return func(ctx context.Context, tx *storage.Tx) error { return f.keepActor(ctx, tx, a) }, nil
}

// relayed is the activity that our log announces: as received if it carries the
// actor's proof, which is valid only for those bytes; otherwise read, the part of
// it that was understood.
func (in *incoming) relayed(read activity.Object) ([]byte, error) {
	if in.proven {
		return in.raw, nil
	}
	return read.Bytes()
}

func (f *Federation) storedPost(ctx context.Context, uri string) (*protocol.StoredPost, error) {
	if uri == "" {
		return nil, nil
	}
	var p *protocol.StoredPost
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		p, err = tx.Posts().ByURI(ctx, uri)
		return absent(err)
	})
	return p, err
}

// skipRefused returns nil for a refusal of content, so that an invalid post is not
// retried; other errors are retried.
func (f *Federation) skipRefused(host string, err error) error {
	if isRefused(err) {
		f.observe("kept-out", host, err)
		f.log.Warn("post kept out", "host", host, "err", err)
		return nil
	}
	return err
}

// take receives a checked post, or changes the stored one of the same id if update is true. It returns what has happened to the
// post, "" for nothing, and sets its id.
func (f *Federation) take(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, update bool) (kind storage.LogKind, err error) {
	if update {
		known, err := tx.Posts().ByURI(ctx, p.URI)
		if absent(err) != nil {
			return "", err
		}
		if err == nil {
			return f.revise(ctx, tx, known, p)
		}
	}
	if fresh, err := f.receive(ctx, tx, p); err != nil || !fresh {
		return "", err
	}
	return storage.LogCreate, nil
}

// revise gives a stored post of another server the text of p, which its author wrote later. A post whose author was verified is
// changed only by what the same author signed. What says nothing new, or may not change the post, has no effect.
func (f *Federation) revise(ctx context.Context, tx *storage.Tx, known, p *protocol.StoredPost) (kind storage.LogKind, err error) {
	late := tx.Now.Add(editedAhead)
	switch {
	case known.Node == nil, known.State == protocol.Deleted, known.Board != p.Board, known.ReplyTo != p.ReplyTo,
		known.Author.Actor == nil, *known.Author.Actor != *p.Author.Actor, p.EditedAt == nil, !p.EditedAt.After(known.WrittenAt()), p.EditedAt.After(late),
		known.Revisions >= protocol.MaxRevisions:
		return "", nil
	case known.Author.Verified && !p.Author.Is(known.Author):
		f.log.Warn("change of a post kept out", "uri", p.URI, "err", "it is not signed by the author of the post")
		return "", nil
	}
	if blocked, err := blockedAuthor(ctx, tx, p.Author); err != nil || blocked {
		return "", err
	}
	if first, err := f.useSignature(ctx, tx, p); err != nil || !first {
		return "", err
	}
	p.ID = known.ID
	f.log.Info("post changed", "from", *p.Node, "verified", p.Author.Verified, "id", p.ID)
	return storage.LogUpdate, tx.Posts().Revise(ctx, known.ID, p)
}

// useSignature reports whether the author's signature of p is of no other post.
func (f *Federation) useSignature(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (first bool, err error) {
	key, signed := usedSignature(p)
	if !signed {
		return true, nil
	}
	first, err = tx.Requests().UseSignature(ctx, key, tx.Now.Add(usedSignatureAge))
	if err == nil && !first {
		f.log.Warn("post kept out", "uri", p.URI, "err", "its author's signature is that of another post already")
	}
	return first, err
}

// receive passes a checked post to the board unless it is known or was deleted
// before it arrived. It reports whether the post is new, and sets its id.
func (f *Federation) receive(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (fresh bool, err error) {
	uris := []string{p.URI}
	if p.Author.Actor != nil {
		uris = append(uris, *p.Author.Actor)
	}
	if gone, err := tx.Inbox().Tombstoned(ctx, uris...); err != nil || gone {
		return false, err
	}
	if known, err := tx.Posts().Has(ctx, p.URI); err != nil || known {
		return false, err
	}
	if blocked, err := blockedAuthor(ctx, tx, p.Author); err != nil || blocked {
		return false, err
	}
	if first, err := f.useSignature(ctx, tx, p); err != nil || !first {
		return false, err
	}
	copied := *p // a transaction may run twice
	copied.CreatedAt = protocol.ShownAt(p.CreatedAt, tx.Now)
	copied.ID = protocol.RemoteID(protocol.PostID, copied.CreatedAt, p.URI)
	id, err := f.c.Receiver.ReceivePost(ctx, tx, &copied)
	if err != nil {
		return false, fmt.Errorf("receive %s: %w", p.URI, err)
	}
	p.ID = id
	f.log.Info("post received", "from", *p.Node, "kind", p.Kind, "verified", p.Author.Verified, "id", id)
	if recheckable(p) {
		if err := f.enqueueRecheck(ctx, tx, id, 0); err != nil {
			return false, err
		}
	}
	policy, err := policyOf(ctx, tx, *p.Node)
	if err != nil || policy != storage.PolicySilence {
		return true, err
	}
	return true, tx.Posts().SetState(ctx, id, protocol.Hidden, storage.HeldByPolicy) // until the operator shows it, or admits its host
}

// handleDelete handles the deletion of a post by its author. For a post of our
// board it adds an entry to the log and removes the text from the log.
func (f *Federation) handleDelete(in *incoming) after {
	uri := in.act.ObjectID()
	if uri == in.actor {
		return f.handleActorDelete(in)
	}
	if uri == "" || !f.sameOrigin(uri, in.actor) {
		return nil
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.Reactions().Withdraw(ctx, in.actor, uri); err != nil { // it may be a post that quotes
			return err
		}
		if known, err := f.withdrawMessage(ctx, tx, uri, in.actor); err != nil || known {
			return err
		}
		p, err := f.erase(ctx, tx, uri, in.actor)
		if err != nil || p == nil || p.Board != f.site.Board() {
			return err
		}
		raw, err := in.relayed(activity.RelayedDelete(string(in.act.ID), in.actor, uri))
		if err != nil {
			return err
		}
		return f.logDeletion(ctx, tx, p, raw)
	}
}

// logDeletion removes a deleted post's text from our log and appends its deletion;
// raw is the author's Delete.
func (f *Federation) logDeletion(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, raw []byte) error {
	if err := tx.Logs().Redact(ctx, p.Board, p.ID); err != nil {
		return err
	}
	return tx.Logs().Append(ctx, p.Board, storage.LogDelete, p.ID, raw)
}

// erase deletes a post of another node for its author, and remembers the deletion
// of a post that is not stored. It returns the deleted post, nil if there was none.
func (f *Federation) erase(ctx context.Context, tx *storage.Tx, uri, actor string) (*protocol.StoredPost, error) {
	p, err := tx.Posts().ByURI(ctx, uri)
	if absent(err) != nil {
		return nil, err
	}
	if err == nil && p != nil {
		if p.Node == nil || p.Author.Actor == nil || *p.Author.Actor != actor || p.State == protocol.Deleted {
			return nil, nil // not the actor's post
		}
		if err := f.c.Receiver.DeletePost(ctx, tx, uri); err != nil {
			return nil, err
		}
	} else {
		p = nil
	}
	if p != nil {
		return p, nil // its row refuses a late Create
	}
	if err := f.grow(ctx, tx, storage.StockTombstones); err != nil {
		return nil, err
	}
	return nil, tx.Inbox().PutTombstone(ctx, uri, hostOf(uri), tx.Now.Add(tombstoneAge))
}

// handleFlag handles a report by another server: it goes to the operator's queue,
// and counts as one report if the node is trusted. Reports of throw-away hosts must
// not hide anything.
func (f *Federation) handleFlag(in *incoming) after {
	reason := string(in.act.Content)
	if reason == "" {
		reason = string(in.act.Summary)
	}
	if len(reason) > 500 {
		reason = reason[:500]
	}
	reason = protocol.CleanText(reason)
	return func(ctx context.Context, tx *storage.Tx) error {
		policy, err := policyOf(ctx, tx, in.host)
		if err != nil {
			return err
		}
		for i, uri := range in.act.ObjectRefs() {
			if i >= 20 {
				break
			}
			p, err := tx.Posts().ByURI(ctx, uri)
			if absent(err) != nil {
				return err
			}
			if err != nil || p == nil {
				continue
			}
			if err := f.grow(ctx, tx, storage.StockTold); err != nil {
				return err
			}
			if err := tx.Audit(ctx, in.actor, "flag", p.ID, reason); err != nil {
				return err
			}
			r, ok := f.c.Receiver.(Reporter)
			switch {
			case !ok:
			case policy == storage.PolicyTrusted:
				err = r.ReportFrom(ctx, tx, p.ID, "node:"+in.host, reason)
			default:
				err = r.FlagFrom(ctx, tx, p.ID, netx.Registrable(in.host), reason)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func hostOf(id string) string {
	u, err := url.Parse(id)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}
