package federation

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/integrity"
	"stoa/protocol"
	"stoa/protocol/activity"
)

// isRefused reports whether an error is a final decision about content: it was
// tampered with, breaks the rules of a post, or its host is blocked.
func isRefused(err error) bool {
	return errors.Is(err, integrity.ErrTampered) || errors.Is(err, activity.ErrShape) ||
		errors.Is(err, integrity.ErrProof) || errors.Is(err, errBlocked) || errors.Is(err, errIdentity)
}

// Limits of what is stored as received, because a proof is checked over its bytes.
const (
	maxStoaNote = 128 << 10 // a Note by a stoa node, with the author's signed request
	maxProven   = 32 << 10  // any other activity with a proof
)

// examine reads a Note of a stoa node and verifies its author independently. The
// caller has checked that the node published it.
func (f *Federation) examine(ctx context.Context, n *activity.Note, raw json.RawMessage) (*protocol.StoredPost, error) {
	if err := n.Check(); err != nil {
		return nil, err
	}
	if len(raw) > maxStoaNote {
		return nil, fmt.Errorf("%w: a post of %d bytes, at most %d", activity.ErrShape, len(raw), maxStoaNote)
	}
	p, err := n.Post(raw)
	if err != nil {
		return nil, err
	}
	if len(n.AttributedTo) != 1 || !f.sameOrigin(p.URI, n.AttributedTo[0]) {
		return nil, fmt.Errorf("%w: post of another origin than its author", errIdentity)
	}
	if !n.IsPublic() {
		return nil, fmt.Errorf("%w: the post is not public", errIdentity)
	}
	if err := f.admits(ctx, *p.Node); err != nil {
		return nil, err
	}
	claim := integrity.Claim{
		ID: p.URI, Kind: string(p.Kind), Title: p.Title, Body: p.Body, Tags: p.Tags, ReplyTo: p.ReplyTo,
		Name: string(n.Author.Name), ERC8004: strings.ToLower(string(n.Author.ERC8004)), Actor: n.AttributedTo[0], Board: p.Board,
		Published: p.WrittenAt(), Digest: string(n.Digest), Evidence: present(n.Evidence), Statement: present(n.Statement),
	}
	if p.Author.Handle != nil {
		claim.Handle = *p.Author.Handle
	}
	if f.c.Listed != nil {
		claim.Listed = func(ctx context.Context, ref httpsig.AgentRef, keyid string) (crypto.PublicKey, error) {
			return f.c.Listed(ctx, *p.Node, ref, keyid)
		}
	}
	v, err := integrity.Judge(ctx, claim, f.c.Authority)
	if err != nil {
		return nil, fmt.Errorf("author of %s: %w", p.URI, err)
	}
	judged(&p.Author, v)
	if v.Reason != "" {
		f.log.Debug("author not verified", "uri", p.URI, "reason", v.Reason)
	}
	return p, nil
}

// judged says in an author of another node what this node found out.
func judged(a *protocol.Author, v integrity.Verdict) {
	a.Verified, a.Method, a.Proof = v.Verified, v.Method, v.Proof()
	if v.ERC8004 != "" {
		a.ERC8004 = &v.ERC8004
	}
	if v.KeyID != "" {
		a.KeyID = &v.KeyID
	}
}

// present returns nil for JSON null.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// readReply reads a Note of the fediverse as a reply to a post stored here, or with parent nil as the first post of a thread.
func (f *Federation) readReply(ctx context.Context, n *activity.Note, parent *protocol.StoredPost) (*protocol.StoredPost, error) {
	if err := n.Check(); err != nil {
		return nil, err
	}
	if len(n.AttributedTo) != 1 || !f.sameOrigin(string(n.ID), n.AttributedTo[0]) {
		return nil, fmt.Errorf("%w: post of another origin than its author", errIdentity)
	}
	a, err := f.actorOf(ctx, n.AttributedTo[0], actorAge)
	if err != nil {
		return nil, err
	}
	title := ""
	if parent != nil {
		title = parent.Title
	}
	return n.Reply(plainText(n.Text()), title, string(a.Username), string(a.Name))
}

// fetchNote fetches a post from its own origin, where its bytes need no proof.
func (f *Federation) fetchNote(ctx context.Context, uri string) (*activity.Note, json.RawMessage, error) {
	raw, err := f.fetch(ctx, uri, "")
	if err != nil {
		return nil, nil, err
	}
	var n activity.Note
	if err := fetchLimits.DecodeLoose(raw, &n); err != nil {
		return nil, nil, err
	}
	if string(n.ID) != uri || !n.Type.Is(activity.NoteTypes...) {
		return nil, nil, fmt.Errorf("%w: %s is another document", errIdentity, uri)
	}
	return &n, raw, nil
}

// sameNode reports whether two ids have the same host.
func sameNode(a, b string) bool { return hostOf(a) != "" && hostOf(a) == hostOf(b) }
