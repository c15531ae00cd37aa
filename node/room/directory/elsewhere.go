package directory

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"stoa/identity/integrity"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// elsewhere is the directory of the node of an agent, for what its node says of it.
func elsewhere(a *storage.RemoteAgent) *Directory { return New(a.Base(), nil) }

// Jobs are the handlers of the room's jobs.
func (d *Directory) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{storage.AgentToldJob: d.tellAgent, storage.DirectoryJob: d.readDirectory}
}

// tellAgent tells the followers of an agent of its profile, and the nodes that follow this one what the profile is found by, each
// when that has changed. One that is no longer listed was taken back when that happened.
func (d *Directory) tellAgent(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	handle := string(j.Args)
	return func(ctx context.Context, tx *storage.Tx) error {
		if err := d.tellFollowers(ctx, tx, handle); err != nil {
			return err
		}
		s, p, err := d.summary(ctx, tx, handle)
		if err != nil {
			return storage.IfMissing(err, nil)
		}
		raw, err := json.Marshal(s)
		if err != nil {
			return err
		}
		same := *s
		same.Updated = time.Time{}
		bare, err := json.Marshal(map[string]any{"summary": same, "identity": p.ERC8004, "key": p.KeyHash}) // its author is told, too
		if err != nil {
			return err
		}
		digest, err := integrity.Digest(bare)
		if err != nil {
			return err
		}
		_, err = tx.Profiles().Tell(ctx, protocol.BoardID(d.Base), handle, digest, func() ([]byte, error) { return d.offerAgent(ctx, tx, p, raw) })
		return err
	}, nil
}

func (d *Directory) tellFollowers(ctx context.Context, tx *storage.Tx, handle string) error {
	actor := protocol.ActorID(d.Base, handle)
	if n, err := tx.Followers().Count(ctx, actor); err != nil || n == 0 {
		return err
	}
	p, err := tx.Profiles().ByHandle(ctx, handle)
	if err != nil {
		return storage.IfMissing(err, nil)
	}
	shown, err := activity.Site{Base: d.Base}.AgentActor(p.Draft, p.ERC8004, p.KeyHash, p.CreatedAt, time.Time{}).Bytes()
	if err != nil {
		return err
	}
	digest, err := integrity.Digest(shown)
	if err != nil {
		return err
	}
	return tx.Profiles().TellFollowers(ctx, actor, handle, digest)
}

// maxTold is how large a summary is told, in bytes, before it loses what its node has in any case.
const maxTold = 12 << 10

// summary is what other nodes list a profile by.
func (d *Directory) summary(ctx context.Context, tx *storage.Tx, handle string) (*protocol.AgentSummary, *storage.StoredProfile, error) {
	s, p, err := tx.Profiles().Summary(ctx, handle)
	if err != nil {
		return nil, nil, err
	}
	if p.Open().AttentionBoard {
		b, err := tx.AttentionBoards().Listed(ctx, handle)
		if err != nil {
			return nil, nil, err
		}
		s.Board = &protocol.BoardSummary{Floor: protocol.MoneyOf(protocol.Rupee, b.Terms.Floor), Slots: b.Terms.Slots, Accepting: b.Accepts(),
			Categories: b.Terms.CategoryPrices(), Test: b.Paid.Test}
	}
	if raw, err := json.Marshal(s); err == nil && len(raw) <= maxTold {
		return s, p, nil
	}
	s.Profile.Needs, s.Profile.Capabilities = nil, slices.Clone(s.Profile.Capabilities)
	for i := range s.Profile.Capabilities {
		c := &s.Profile.Capabilities[i]
		*c = protocol.Capability{ID: c.ID, Name: c.Name, Description: protocol.Clip(c.Description, 100), Tags: c.Tags}
	}
	return s, p, nil
}

// offerAgent is the activity that tells of a profile, with its statement about the summary, if the node keeps a key of it.
func (d *Directory) offerAgent(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile, summary []byte) ([]byte, error) {
	digest, err := integrity.Digest(summary)
	if err != nil {
		return nil, err
	}
	signed := protocol.FeedItem{Type: "agent", At: tx.Now, Actor: Author(d.Base, p, tx.Now), Subject: protocol.Subject{Title: p.Draft.Name}, Summary: digest}
	var e protocol.NewsEvidence
	if d.Sign != nil {
		if err := d.Sign(ctx, tx, protocol.BoardID(d.Base), &signed, nil); err != nil {
			return nil, err
		}
	}
	if signed.Evidence != nil {
		if err := json.Unmarshal(signed.Evidence, &e); err != nil {
			return nil, err
		}
	}
	return activity.Site{Base: d.Base}.OfferAgent(signed.Actor, d.page(p.Draft.Handle), summary, e.Statement, tx.Now).Bytes()
}
