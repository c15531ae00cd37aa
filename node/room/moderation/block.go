package moderation

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// AddBlock blocks a value, or the writer of a post. Bids of the author leave the feed.
func (m *Moderation) AddBlock(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewNodeBlock) (protocol.Block, error) {
	b := protocol.Block{
		ID: protocol.NewID(protocol.BlockID, tx.Now), Kind: in.Kind, Value: in.Canonical(),
		Reason: in.Reason, Note: in.Note, Actor: actor(c), CreatedAt: tx.Now,
	}
	if in.Hours > 0 {
		until := tx.Now.Add(time.Duration(in.Hours) * time.Hour)
		b.ExpiresAt = &until
	}
	if a, ok := in.Address(); ok && in.Kind == protocol.BlockNetwork {
		b.Value = m.Network(a) // the address itself is not stored
	}
	if err := m.refuseOwn(b); err != nil {
		return b, err
	}
	if in.Post != "" {
		var err error
		if b.Kind, b.Value, err = writerOf(ctx, tx, in.Post, in.Kind); err != nil {
			return b, err
		}
		b.Post = &in.Post
	}
	if err := tx.Blocks().Put(ctx, b); err != nil {
		return b, err
	}
	if err := tx.Bids().RetractOf(ctx, protocol.BoardID(m.Base), b.Kind, b.Value); err != nil {
		return b, err
	}
	if err := errors.Join(tx.FeedOrigins().RetractOf(ctx, b.Kind, b.Value), tx.RemoteAgents().DropOf(ctx, b.Kind, b.Value),
		tx.Reactions().DropOf(ctx, b.Kind, b.Value)); err != nil {
		return b, err
	}
	if err := tx.Moderation().Log(ctx, protocol.ActionBlock, string(b.Kind), publicValue(b), b.Reason); err != nil {
		return b, err
	}
	return b, tx.Audit(ctx, actor(c), "block", string(b.Kind)+" "+b.Value, b.Reason)
}

// refuseOwn refuses a block of this node itself: a block of its host would refuse its own activities,
// and a block of one of its actors would have no effect.
func (m *Moderation) refuseOwn(b protocol.Block) error {
	switch {
	case b.Kind == protocol.BlockHost && OwnHost(m.Base, b.Value):
		return protocol.Invalid(protocol.Fault{Pointer: "/value", Code: "own-host", Detail: "is this node, or a domain that it is in"})
	case b.Kind == protocol.BlockActor && strings.HasPrefix(b.Value, m.Base+"/"):
		return protocol.Invalid(protocol.Fault{Pointer: "/value", Code: "own-actor", Detail: "is an actor of this node; block its handle"})
	}
	return nil
}

// OwnHost reports whether a policy for host also applies to the node at base: host is the node's
// host, with or without the port, or a parent domain of it.
func OwnHost(base, host string) bool {
	u, err := url.Parse(base)
	return err == nil && (host == u.Host || host == u.Hostname() || strings.HasSuffix(u.Hostname(), "."+host))
}

// LiftBlock ends a block.
func (m *Moderation) LiftBlock(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NodeBlockRef) (protocol.None, error) {
	b, err := tx.Blocks().Delete(ctx, in.ID)
	if err != nil {
		return protocol.None{}, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no block with that id"))
	}
	if err := tx.Moderation().Log(ctx, protocol.ActionLift, string(b.Kind), publicValue(b), ""); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, actor(c), "block lift", string(b.Kind)+" "+b.Value, "")
}

// Blocks lists the blocks that are in force.
func (m *Moderation) Blocks(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.NodeBlockQuery) (protocol.Page[protocol.Block], error) {
	return tx.Blocks().List(ctx, in)
}

// publicValue returns a block's value as the public log shows it. Networks and keys are left out: they
// mean nothing to readers and could be matched to a person.
func publicValue(b protocol.Block) string {
	if b.Kind == protocol.BlockNetwork || b.Kind == protocol.BlockKey {
		return ""
	}
	return b.Value
}

// writerOf returns the writer of a post as a block value: of the requested kind, or of the most
// specific kind that is known.
func writerOf(ctx context.Context, tx *storage.Tx, postID string, kind protocol.BlockKind) (protocol.BlockKind, string, error) {
	p, err := find(ctx, tx, postID)
	if err != nil {
		return "", "", err
	}
	network, err := tx.Posts().Writer(ctx, postID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", "", err
	}
	local := p.Author.Node == nil
	known := []struct {
		kind  protocol.BlockKind
		value string
	}{
		{protocol.BlockAgent, agentOf(p.Author)},
		{protocol.BlockHandle, only(local, text(p.Author.Handle))},
		{protocol.BlockActor, only(!local, text(p.Author.Actor))},
		{protocol.BlockKey, text(p.Author.KeyID)},
		{protocol.BlockNetwork, network},
		{protocol.BlockHost, text(p.Author.Node)},
	}
	for _, k := range known {
		if k.value != "" && (kind == "" || kind == k.kind) {
			return k.kind, k.value, nil
		}
	}
	if kind == "" {
		return "", "", protocol.Errorf(protocol.NotFound, "nothing is stored any more about the writer of this post")
	}
	return "", "", protocol.Errorf(protocol.NotFound, "this node knows no %s of the writer of this post", kind)
}

// agentOf returns the chain identity of an author, with the owner of then.
func agentOf(a protocol.Author) string {
	if all := a.AgentBlocks(); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func only(when bool, s string) string {
	if !when {
		return ""
	}
	return s
}
