package reputation

import (
	"context"
	"errors"
	"fmt"

	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// Reviews lists the reviews of a business: those that were given here, and those of the chain identity that it is enrolled to now.
func (r *Reputation) Reviews(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.FeedbackQuery) (protocol.Page[protocol.Review], error) {
	page := protocol.Page[protocol.Review]{Items: []protocol.Review{}}
	p, err := tx.Profiles().ByHandle(ctx, in.Handle)
	if errors.Is(err, storage.ErrNotFound) || err == nil && p.Draft.Kind != protocol.Business {
		return page, protocol.Errorf(protocol.NotFound, "there is no business @%s on this node", in.Handle)
	}
	if err != nil {
		return page, err
	}
	state := storage.FeedbackCounted
	if in.Uncounted {
		state = storage.FeedbackUncounted
	}
	found, err := tx.Feedbacks().List(ctx, p.ERC8004, in.Handle, state, in.Size(), in.After)
	for _, f := range found.Items {
		page.Items = append(page.Items, r.shownReview(f))
	}
	page.Next = found.Next
	return page, err
}

// Review returns one review of a business whose reviews the caller may list.
func (r *Reputation) Review(ctx context.Context, tx *storage.Tx, handle, id string) (protocol.Review, error) {
	p, err := tx.Profiles().ByHandle(ctx, handle)
	if err == nil {
		var f storage.Feedback
		if f, err = tx.Feedbacks().ByID(ctx, id); err == nil && (f.Agent == p.ERC8004 || f.Agent == storage.ReviewsOf(handle)) {
			return r.shownReview(f), nil
		}
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return protocol.Review{}, err
	}
	return protocol.Review{}, protocol.Errorf(protocol.NotFound, "@%s has no review with that id", handle)
}

// shownReview is a review as everybody sees it.
func (r *Reputation) shownReview(f storage.Feedback) protocol.Review {
	x := review(f, r.registryOf(f.Agent))
	if f.HiddenAt != nil {
		x.Hidden, x.Text, x.Evidence.URI, x.Replies = true, "", "", []protocol.ReviewReply{}
	}
	return x
}

// registryOf is the reputation registry of an identity, "" when the node reads none.
func (r *Reputation) registryOf(agent string) string {
	if r.Chain == nil || !strings.Contains(agent, ":") {
		return ""
	}
	return r.Chain.Reputations()[agent[:strings.LastIndexByte(agent, ':')]]
}

// Source says how the reviews of a business with that identity, "" for none, are confirmed.
func (r *Reputation) Source(agent string) string {
	const orders = "Reviews from paid orders: their payment is reported by the payment provider, or by the buyer and confirmed by the shop"
	if registry := r.registryOf(agent); registry != "" {
		return fmt.Sprintf("%s, or confirmed on the chain network: ERC-8004 reputation registry %s, tag starred. "+
			"Average of 0 to 5.", orders, registry)
	}
	return orders + ". Average of 0 to 5."
}

func review(f storage.Feedback, registry string) protocol.Review {
	_, here := f.Here()
	out := protocol.Review{
		ID: f.ID, Via: "chain", Agent: f.Agent, Client: f.Client, At: f.At, Text: f.Doc.Text, Counts: f.State == storage.FeedbackCounted,
		Reason: f.Reason, Why: f.Reason.Text(),
		Replies: f.Doc.Responses, Untrusted: true,
		Evidence: protocol.ReviewEvidence{Registry: registry, Transaction: f.Doc.Tx, Block: f.Block, LogIndex: f.Doc.LogIndex,
			Index: f.Index, URI: f.Doc.URI, Hash: f.Doc.Hash},
	}
	if f.Rating >= 0 {
		out.Rating, out.Stars = new(float64(f.Rating)/100), new(round1(f.Rating, 2000))
	}
	if out.Counts || here {
		out.Order, out.Payment = f.Doc.Order, f.Doc.Payment
	}
	if here {
		out.Via, out.Agent, out.Client, out.Evidence = "node", "", f.Doc.Buyer, protocol.ReviewEvidence{Signed: f.Doc.Signed}
	}
	if out.Replies == nil {
		out.Replies = []protocol.ReviewReply{}
	}
	return out
}

// round1 is a/b rounded to one decimal.
func round1(a, b int64) float64 { return float64((a*20+b)/(2*b)) / 10 }

// Of returns the reputation of a profile; nil for persons, and for a business that no review counts of and that has no identity in a
// registry whose reviews the node reads (spec §2.6).
func (r *Reputation) Of(p *storage.StoredProfile) *protocol.Reputation {
	if p.Draft.Kind != protocol.Business || p.Reviews == 0 && r.registryOf(p.ERC8004) == "" {
		return nil
	}
	out := &protocol.Reputation{Reviews: int(p.Reviews), Source: r.Source(p.ERC8004)}
	if p.Reviews > 0 {
		out.Average = new(round1(p.Stars, 2000*p.Reviews))
	}
	for _, k := range []struct {
		known    string
		n, stars int64
	}{
		{protocol.KnownProvider, p.ProviderReviews, p.ProviderStars}, {protocol.KnownConfirmed, p.ConfirmedReviews, p.ConfirmedStars},
		{"chain", p.Reviews - p.ProviderReviews - p.ConfirmedReviews, p.Stars - p.ProviderStars - p.ConfirmedStars},
	} {
		if k.n > 0 {
			out.Paid = append(out.Paid, protocol.PaidReviews{Known: k.known, Reviews: int(k.n), Average: round1(k.stars, 2000*k.n)})
		}
	}
	return out
}
