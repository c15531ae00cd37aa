package directory

import (
	"context"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// TurnedAway returns what a profile had no room for within a day.
func (d *Directory) TurnedAway(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.TurnedAway, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.TurnedAway{}, err
	}
	out := protocol.TurnedAway{Handle: p.Draft.Handle}
	for what, n := range map[storage.Crowd]*int{
		storage.CrowdBidGaveWay: &out.BidsGaveWay, storage.CrowdMeetingGaveWay: &out.MeetingsGaveWay, storage.CrowdMeetingRefused: &out.MeetingsRefused,
	} {
		if *n, err = tx.Crowds().Since(ctx, out.Handle, what, storage.CrowdFor); err != nil {
			return out, err
		}
	}
	return out, nil
}
