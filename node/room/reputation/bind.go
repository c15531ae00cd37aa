package reputation

import (
	"net/http"
	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
	"time"
)

// New makes the room; the parameters are the fields of Reputation. With quick, for development, it looks at the chain each
// second and fetches files at once.
func New(h hall.House, signer key.Pair, chain *erc8004.Reader, client *http.Client, trusted []string, floors protocol.ReviewFloors,
	author func(*storage.StoredProfile, time.Time) protocol.Author, quick bool,
) *Reputation {
	r := &Reputation{Base: h.Base, Key: signer, DB: h.DB, Log: h.Log, Chain: chain, Client: client, Trusted: trusted, Floors: floors, Author: author,
		Every: time.Minute, Pace: 30 * time.Second, Pauses: Pauses}
	if quick {
		r.Every, r.Pace = time.Second, 0
	}
	return r
}

// Bind binds the operations of the room.
func (r *Reputation) Bind(t *hall.Table) {
	hall.Bind(t, protocol.IssueOrderReceipt, r.Issue)
	hall.Bind(t, protocol.ListOrderReceipts, r.List)
	hall.Bind(t, protocol.RevokeOrderReceipt, r.Revoke)
	hall.Bind(t, protocol.AdjustOrder, r.Adjust)
	hall.Bind(t, protocol.HideReview, r.Hide)
	hall.Bind(t, protocol.RestoreReview, r.Restore)
	hall.Bind(t, protocol.ListHiddenReviews, r.ListHidden)
	hall.Bind(t, protocol.GetReceiptStatus, r.Status)
	hall.Bind(t, protocol.ListReviews, r.Reviews)
	hall.Bind(t, protocol.ReviewOrder, r.ReviewOrder)
}

// Jobs are the handlers of the room's jobs.
func (r *Reputation) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.FeedbackJob:      r.Index,
		storage.FeedbackCheckJob: r.Checks,
	}
}
