package nodetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/node/room/meeting"
	"stoa/protocol"
	"stoa/storage"
)

// Doors are the ways to call one node in the equivalence test.
type Doors struct {
	T          *testing.T
	House      *House
	Published  *OpenAPI
	Token      string
	Thread     string         // one that asha began with herself
	Talk       string         // another one, which nothing closes
	Receipt    string         // one that the shop issued
	PaidAt     string         // when its order was paid
	Spam       string         // one of the shop with asha, once there is one
	Shop       string         // token of the owner of bazaar, a business
	Mine       *client.Client // with the token
	Shopkeeper *client.Client // with that of the shop
	Paid       *client.Client // with a proof of work
}

// OwnerToken makes a token of the account of a profile, which gets one where it
// has none, with everything an owner may do.
func (h *House) OwnerToken(handle string) string {
	h.T.Helper()
	_ = h.TokenOf(handle, "first")
	secret := h.AccountToken(handle, "all", append([]protocol.Scope{protocol.ScopeAccount}, protocol.OwnerScopes...)...)
	return secret
}

// Receipt has the node issue the receipt of an order that was paid an hour ago at the shop of an owner's token, of whose payment the node
// knows in that way.
func (h *House) Receipt(bearer string, in protocol.NewOrderReceipt, known string) (r protocol.OrderReceipt) {
	h.T.Helper()
	shop := As[protocol.SessionState](h.Ask("GET", "/api/public/session", "", "Authorization", bearer)).Handles[0]
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		in.PaidAt = tx.Now.Add(-time.Hour)
		_, err := h.Reputation.IssueFor(ctx, tx, shop, in, known, false, nil)
		return err
	}))
	page := As[protocol.Page[protocol.OrderReceipt]](h.Ask("GET", "/api/owner/order-receipts?order="+in.Order, "", "Authorization", bearer))
	return page.Items[0]
}

// Reopen closes asha's board, which ends what earlier calls left there, and opens it with an account
// at a provider.
func (d *Doors) Reopen(rail protocol.PayName) {
	d.T.Helper()
	account := `{"handle":"asha","provider":"sandbox"}`
	if rail == protocol.PayUPI {
		account = `{"handle":"asha","provider":"upi","vpa":"asha@okbank"}`
	}
	d.Good("PUT", "/api/owner/attention", `{"handle":"asha","floor":500,"slots":3}`, d.Token, nil)
	d.Good("POST", "/api/owner/attention/close", `{"handle":"asha"}`, d.Token, nil)
	for _, which := range []string{"state=claimed", "disputed=true"} {
		var undecided protocol.Page[protocol.OwnBid]
		d.Good("GET", "/api/owner/bids?handle=asha&limit=100&"+which, "", d.Token, &undecided)
		for _, b := range undecided.Items {
			d.Good("POST", "/api/owner/bids/"+b.ID+"/deny", `{}`, d.Token, nil)
		}
	}
	d.Good("PUT", "/api/owner/payment-account", account, d.Token, nil)
	// A refund is the whole for a day: the amount does not depend on how slow a test is.
	d.Good("PUT", "/api/owner/attention", `{"handle":"asha","floor":500,"slots":3,"fullRefundHours":24}`, d.Token, nil)
}

// NewBid bids as an author who has bid nowhere, so that no limit of an author is met.
func (d *Doors) NewBid() (made protocol.BidReceipt) {
	d.T.Helper()
	handle := fmt.Sprintf("bidder-%x", rand.Uint32())
	d.House.PutProfile(fmt.Appendf(nil, `{"handle":%q,"name":"Meera","kind":"person"}`, handle))
	token := d.House.TokenOf(handle, "bid")
	d.Good("POST", "/api/public/agents/asha/attention/bids", `{"amount":1500,"message":"Yarn from Panipat."}`, token, &made)
	return made
}

// Good sends a request that succeeds.
func (d *Doors) Good(method, path, body, token string, into any) {
	d.T.Helper()
	var headers []string
	if token != "" {
		headers = []string{"Authorization", "Bearer " + token}
	}
	a := d.House.Ask(method, path, body, headers...)
	require.Less(d.T, a.Code, 300, "%s %s: %s", method, path, a.Body)
	if into != nil {
		a.Into(into)
	}
}

// NewUTR is a reference that no bank gave before.
func NewUTR() string { return fmt.Sprintf("4%011d", rand.Int64N(1e11)) }

// NoMeetingMail is the sender of mail of a node that sends none: requests are submitted at once.
func NoMeetingMail() meeting.Mailer { return nil }

// OpenAPI is the OpenAPI description, read by an independent library.
type OpenAPI struct {
	Compiler *jsonschema.Compiler
	Doc      map[string]any
	Compiled map[string]*jsonschema.Schema
}

// Asked makes a request to asha on a node that sends no mail about meetings, so that it waits for asha.
func (d *Doors) Asked(mail string, at time.Time) (made protocol.MeetingReceipt) {
	d.T.Helper()
	a := d.House.Ask("POST", "/api/public/agents/asha/meetings", fmt.Sprintf(
		`{"requester":"Ravi <i>","email":%q,"purpose":"Yarn <b>","durationMin":30,"startsAt":%q,"timezone":"Europe/Berlin"}`, mail, at.UTC().Format(time.RFC3339)),
		"Proof-Of-Work", d.House.Proof("meeting")).Is(201)
	a.Into(&made)
	return made
}

// StoredMeeting returns a request to asha that is in a state, and its status token.
func StoredMeeting(state protocol.MeetingState, starts time.Time) (r *storage.StoredMeeting, token string) {
	token = protocol.NewReadToken()
	return &storage.StoredMeeting{
		ID: protocol.NewID(protocol.MeetingID, starts), Handle: "asha", State: state, Shown: true, StartsAt: starts, EndsAt: starts.Add(30 * time.Minute),
		Requester: "net:x", TokenHash: protocol.SecretHash(token), AskedAt: starts.Add(-200 * time.Hour), DueAt: starts,
		MeetingDoc: storage.MeetingDoc{Author: protocol.Author{Name: "Ravi", Method: protocol.ByProof}, Name: "Ravi", Mail: "ravi@example.org", Purpose: "Yarn.",
			Proposals: []protocol.MeetingTime{{StartsAt: starts, EndsAt: starts.Add(30 * time.Minute)}}, Sent: protocol.MeetingMailNone},
	}, token
}
