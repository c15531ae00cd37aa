package reputation

import (
	"cmp"
	"context"
	"errors"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// Hide hides the text of a review by an operator's decision. What it counts does not change.
func (r *Reputation) Hide(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ReviewDecision) (protocol.ReviewStanding, error) {
	return r.decide(ctx, tx, c, in, &tx.Now)
}

// Restore shows a hidden text again.
func (r *Reputation) Restore(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ReviewDecision) (protocol.ReviewStanding, error) {
	return r.decide(ctx, tx, c, in, nil)
}

func (r *Reputation) decide(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ReviewDecision, hidden *time.Time) (
	protocol.ReviewStanding, error,
) {
	f, err := tx.Feedbacks().ByID(ctx, in.ID)
	if errors.Is(err, storage.ErrNotFound) {
		err = protocol.Errorf(protocol.NotFound, "there is no review with that id")
	}
	if err == nil && hidden == nil && f.HiddenAt == nil {
		err = protocol.Errorf(protocol.Conflict, "the text of the review is not hidden")
	}
	if err != nil {
		return protocol.ReviewStanding{}, err
	}
	f.HiddenAt, f.HiddenWhy = hidden, ""
	action := protocol.ActionRestore
	if hidden != nil {
		f.HiddenWhy, action = in.Reason, protocol.ActionHide
	}
	if err := tx.Feedbacks().Hide(ctx, f.ID, f.HiddenAt, f.HiddenWhy); err != nil {
		return protocol.ReviewStanding{}, err
	}
	if err := tx.Moderation().Log(ctx, action, "review", f.ID, in.Reason); err != nil {
		return protocol.ReviewStanding{}, err
	}
	if err := tx.Audit(ctx, cmp.Or(c.Account, "operator"), "review "+string(action), f.ID, in.Reason); err != nil {
		return protocol.ReviewStanding{}, err
	}
	return standing(ctx, tx, f)
}

// ListHidden lists the reviews whose text is hidden.
func (r *Reputation) ListHidden(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.Paging) (protocol.Page[protocol.HiddenReview], error) {
	out := protocol.Page[protocol.HiddenReview]{Items: []protocol.HiddenReview{}}
	found, err := tx.Feedbacks().ListHidden(ctx, in.Size(), in.After)
	if err != nil {
		return out, err
	}
	out.Next = found.Next
	for _, f := range found.Items {
		s, err := standing(ctx, tx, f)
		if err != nil {
			return out, err
		}
		x := protocol.HiddenReview{ReviewStanding: s, Review: review(f, r.registryOf(f.Agent)), Untrusted: true}
		x.Review.Hidden = true
		out.Items = append(out.Items, x)
	}
	return out, nil
}

func standing(ctx context.Context, tx *storage.Tx, f storage.Feedback) (protocol.ReviewStanding, error) {
	handle, here := f.Here()
	var err error
	if !here {
		var shop storage.FeedbackAgent
		shop, err = tx.Feedbacks().Agent(ctx, f.Agent)
		handle, err = shop.Handle, storage.IfMissing(err, nil)
	}
	return protocol.ReviewStanding{ID: f.ID, Handle: protocol.OrNil(handle), Hidden: f.HiddenAt != nil, HiddenAt: f.HiddenAt, Reason: f.HiddenWhy}, err
}
