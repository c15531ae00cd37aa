package storage

import (
	"context"
	"fmt"

	"stoa/protocol"
)

// SetState shows a profile ("") or hides it, with the reason. What the node lists, announces and asks of it follows; feed items do not. A job hides its
// posts, or shows them again. ErrNotFound when there is no such profile.
func (ps Profiles) SetState(ctx context.Context, handle string, state protocol.ProfileState, reason string) (*StoredProfile, error) {
	r, err := ps.lock(ctx, handle)
	if err != nil {
		return nil, err
	}
	p, err := r.profile()
	if err != nil {
		return nil, err
	}
	m, err := ps.tx.Merchants().of(ctx, r.Seq)
	if err != nil {
		return nil, err
	}
	r.State, r.StateReason, r.StateAt = string(state), reason, millis(ps.tx.Now)
	if err := ps.store(ctx, r, p, m, false); err != nil {
		return nil, err
	}
	return p, ps.EnqueueConceal(ctx, ConcealArgs{Handle: handle, Hide: state != ""})
}

const listOfState = "hidden profiles"

// Hidden returns a page of the profiles of a state, those that have it longest first.
func (ps Profiles) Hidden(ctx context.Context, state protocol.ProfileState, in protocol.Paging) (out protocol.Page[StoredProfile], err error) {
	at, err := protocol.ParseCursor(listOfState, in.After)
	if err != nil {
		return out, err
	}
	var after placed
	if at != "" {
		if _, err := fmt.Sscanf(at, "o%d.%d", &after.place, &after.pos); err != nil {
			return out, protocol.Errorf(protocol.InvalidCursor, "after is not a next value of this list; leave it out to start from the beginning")
		}
	}
	rows, err := list[profileRow](ctx, ps.tx, profileTable.from+hiddenIn, string(state), after.place, after.pos, in.Size()+1)
	if err != nil {
		return out, err
	}
	p := page(rows, in.Size(), listOfState, func(r profileRow) string { return placed{r.StateAt, r.Seq}.String() })
	out.Next = p.Next
	out.Items = make([]StoredProfile, 0, len(p.Items))
	for i := range p.Items {
		s, err := p.Items[i].profile()
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, *s)
	}
	return out, nil
}

const hiddenIn = `WHERE state = ? AND state <> '' AND (state_at, seq) > (?, ?) ORDER BY state_at, seq LIMIT ?`

// CountHidden is how many profiles have a state.
func (ps Profiles) CountHidden(ctx context.Context, state protocol.ProfileState) (int, error) {
	return find[int](ctx, ps.tx, `SELECT count(*) FROM profile WHERE state = ? AND state <> ''`, string(state))
}
