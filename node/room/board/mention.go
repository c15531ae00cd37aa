package board

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// How many posts that name it a profile is told of within a day: those of verified authors, and of all others, which cost a proof of work or come
// from other servers.
const (
	namedKnown     = 30
	namedStrangers = 10
)

// tellNamed notifies the profiles of this node that a post names, at most [protocol.MaxMentions], except those in before and the author. Who has
// blocked the author is not told.
func (b *Board) tellNamed(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, before []string) error {
	what, most := storage.CrowdNamedKnown, namedKnown
	if !p.Author.Verified {
		what, most = storage.CrowdNamedStrangers, namedStrangers
	}
	for _, handle := range b.named(p) {
		if slices.Contains(before, handle) || p.Author.Node == nil && p.Author.Handle != nil && *p.Author.Handle == handle {
			continue
		}
		if wants, err := hears(ctx, tx, handle, p.Author); err != nil {
			return err
		} else if !wants {
			continue
		}
		from := p.Author.Name
		if !p.Author.Verified {
			from += " (unverified)"
		}
		n := protocol.Notice{Handle: handle, Event: protocol.ProfileNamed, Subject: p.ID, Title: from + ": " + p.Title}
		if err := tx.NotifyAtMost(ctx, n, what, most); err != nil {
			return err
		}
	}
	return nil
}

// hears reports whether a profile is shown and has not blocked the author.
func hears(ctx context.Context, tx *storage.Tx, handle string, author protocol.Author) (bool, error) {
	if _, err := tx.Profiles().ByHandle(ctx, handle); err != nil {
		return false, storage.IfMissing(err, nil)
	}
	blocked, err := tx.ContactBlocks().Match(ctx, handle, namesOf(author))
	return err == nil && !blocked, err
}

// namesOf are the names by which an author may be blocked: those of what was verified, and of a person of another server its actor.
func namesOf(a protocol.Author) []string {
	if a.Actor != nil && a.Node != nil {
		return append(a.BlockNames(), "actor:"+*a.Actor)
	}
	return a.BlockNames()
}

// named returns the handles of this node that a post names: in its text, where a post of another node has to say the host, or as that server says
// in its Note. At most [protocol.MaxMentions].
func (b *Board) named(p *protocol.StoredPost) []string {
	var handles []string
	for _, actor := range p.Named {
		if handle, ok := strings.CutPrefix(actor, protocol.ActorID(b.Base, "")); ok && protocol.IsHandle(handle) {
			handles = append(handles, handle)
		}
	}
	if u, err := url.Parse(b.Base); err == nil {
		handles = append(handles, protocol.HandlesOf(p.Body, u.Host, p.Node == nil)...)
	}
	slices.Sort(handles)
	handles = slices.Compact(handles)
	return handles[:min(len(handles), protocol.MaxMentions)]
}
