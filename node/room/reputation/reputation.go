// Package reputation issues receipts for orders, and counts the reviews of businesses from paid orders (spec §2.6): those that were
// given here, and those that were given on a chain (ERC-8004 "Reputation Registry"). protocol.ReviewCase says which count.
//
// It stores no money and makes no payment. What strangers write on a chain is bounded before it is
// stored, fetched or shown.
package reputation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
)

// A Reputation is the room of order receipts and reviews.
type Reputation struct {
	Base string              // address of the node, the issuer of its receipts
	Key  key.Pair            // signs receipts; its public half is in the node's key directory
	Ever func() []key.Public // those that signed receipts before it

	MailKey []byte // makes the names of mailboxes, as that of package order, and those of buyers

	DB      *storage.DB
	Log     *slog.Logger
	Chain   *erc8004.Reader // nil when no chain is configured
	Client  *http.Client    // of node/out/outbound, for the files of reviews and the keys of trusted nodes
	Trusted []string        // addresses of other nodes whose receipts prove an order
	Floors  protocol.ReviewFloors
	Every   time.Duration   // pause between two looks at the chain
	Pace    time.Duration   // between two files that are fetched for one business
	Pauses  []time.Duration // before the next try of a file or node that does not answer; then it is given up
	Author  func(p *storage.StoredProfile, at time.Time) protocol.Author

	// Sign adds to news of a review what the nodes that follow this one check; nil where no keys are at hand.
	Sign func(ctx context.Context, tx *storage.Tx, board string, item *protocol.FeedItem, review *protocol.NewsReview) error

	hosts   hostRates
	mu      sync.Mutex // guards foreign, and is held while it is read
	foreign map[string]foreignKeys
}

// Issue signs and stores a receipt on the word of the shop.
func (r *Reputation) Issue(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewOrderReceipt) (protocol.OrderReceipt, error) {
	p, err := r.shop(ctx, tx, c, in.Handle)
	if err != nil {
		return protocol.OrderReceipt{}, err
	}
	if protocol.IsID(protocol.OrderID, in.Order) {
		return protocol.OrderReceipt{}, protocol.Errorf(protocol.Conflict, "the node issues the receipt of this order by itself, once it is paid")
	}
	return r.issue(ctx, tx, p, in, protocol.KnownStated, false, nil)
}

// IssueFor issues the receipt of an order that was made here. buyers are the names by which its buyer is told.
func (r *Reputation) IssueFor(ctx context.Context, tx *storage.Tx, shop string, in protocol.NewOrderReceipt, known string, test bool, buyers []string,
) (string, error) {
	p, err := tx.Profiles().ForUpdate(ctx, shop)
	if err != nil {
		return "", err
	}
	if test {
		in.Client = ""
	}
	made, err := r.issue(ctx, tx, p, in, known, test, buyers)
	return made.ID, err
}

// KnownFor signs the receipt of an order that was made here again, of whose payment more is known now.
func (r *Reputation) KnownFor(ctx context.Context, tx *storage.Tx, id, known string) error {
	s, err := tx.OrderReceipts().ByID(ctx, id)
	if err != nil {
		return storage.IfMissing(err, nil)
	}
	c, _ := claimsOf(s.Token)
	c.Known = known
	if s.Token, err = r.sign(c, protocol.OrderReceiptType); err != nil {
		return err
	}
	if err := tx.OrderReceipts().Put(ctx, s); err != nil {
		return err
	}
	return r.rejudge(ctx, tx, s)
}

func (r *Reputation) sign(claims any, kind string) (string, error) {
	raw, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("encode claims: %w", err)
	}
	return r.Key.SignCompact(raw, kind)
}

// AdjustFor adds an adjustment to the receipt of an order that was made here, once.
func (r *Reputation) AdjustFor(ctx context.Context, tx *storage.Tx, id string, a protocol.Adjustment) error {
	s, err := tx.OrderReceipts().ByID(ctx, id)
	if err != nil || slices.ContainsFunc(s.Adjustments, func(old protocol.Adjustment) bool { return old.ID == a.ID }) {
		return storage.IfMissing(err, nil)
	}
	s.Adjustments = append(s.Adjustments, a)
	if err := tx.OrderReceipts().Put(ctx, s); err != nil {
		return err
	}
	return r.rejudge(ctx, tx, s)
}

func (r *Reputation) issue(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile, in protocol.NewOrderReceipt, known string, test bool,
	buyers []string) (protocol.OrderReceipt, error) {
	minor, fault := in.Total.Minor()
	if fault == nil {
		fault = in.CheckPaidAt(tx.Now)
	}
	var client string
	if fault == nil {
		client, fault = clientOf(in.Client, p.ERC8004)
	}
	if fault != nil {
		return protocol.OrderReceipt{}, protocol.Invalid(*fault)
	}
	s := storage.StoredReceipt{
		ID: protocol.NewID(protocol.ReceiptID, tx.Now), Handle: p.Draft.Handle, Order: in.Order, Agent: p.ERC8004, Client: client, Buyer: in.Buyer,
		Currency: in.Total.Currency, Minor: minor, PaidAt: in.PaidAt.UTC(), IssuedAt: tx.Now,
		ReceiptDoc: storage.ReceiptDoc{Lines: in.LineItems, Buyers: buyers},
	}
	same, err := tx.OrderReceipts().List(ctx, s.Handle, s.Order, 1, "")
	if err != nil {
		return protocol.OrderReceipt{}, err
	}
	if len(same.Items) == 1 && same.Items[0].RevokedAt == nil {
		if old := same.Items[0]; sameOrder(old, s) {
			return r.shown(old), nil
		}
		return protocol.OrderReceipt{}, protocol.Errorf(protocol.Conflict, "the order %s has the receipt %s, which says something else: revoke that one first",
			s.Order, same.Items[0].ID)
	}
	if s.Token, err = r.sign(protocol.OrderReceiptClaims{
		Issuer: r.Base, Order: s.Order, Agent: s.Agent, Shop: s.Handle, Client: s.Client, Amount: protocol.MoneyOf(s.Currency, s.Minor).Amount,
		Currency: s.Currency, PaidAt: s.PaidAt.Unix(), IssuedAt: s.IssuedAt.Unix(), ID: s.ID, Known: known, Test: test,
	}, protocol.OrderReceiptType); err != nil {
		return protocol.OrderReceipt{}, err
	}
	if err := tx.OrderReceipts().Insert(ctx, s, protocol.MaxOrderReceipts); err != nil {
		return protocol.OrderReceipt{}, err
	}
	return r.shown(s), tellClient(ctx, tx, s)
}

// How many profiles of its owner learn of a receipt, and of how many receipts a profile learns within a day: any business may name any account.
const (
	toldClients  = 3
	toldReceipts = 10
)

// tellClient notifies the profiles that are enrolled to identities of the account that a receipt names.
func tellClient(ctx context.Context, tx *storage.Tx, s storage.StoredReceipt) error {
	if s.Client == "" {
		return nil
	}
	told, err := tx.Enrolments().OfOwner(ctx, s.Client[strings.LastIndexByte(s.Client, ':')+1:], toldClients)
	for _, p := range told {
		if err != nil || p.Handle == s.Handle {
			continue
		}
		paid := protocol.MoneyOf(s.Currency, s.Minor)
		title := paid.Currency + " " + paid.Amount + " to @" + s.Handle
		n := protocol.Notice{Handle: p.Handle, Event: protocol.ReceiptIssued, Subject: s.ID, Title: title}
		err = tx.NotifyAtMost(ctx, n, storage.CrowdReceipts, toldReceipts)
	}
	return err
}

// shop returns the business that the caller acts as, locked in a write.
func (r *Reputation) shop(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string) (*storage.StoredProfile, error) {
	handle, err := c.ActsAs(handle)
	if err != nil {
		return nil, err
	}
	p, err := tx.Profiles().ForUpdate(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, protocol.NoAgent(handle)
	}
	if err == nil && p.Draft.Kind != protocol.Business {
		return nil, protocol.Invalid(protocol.Fault{Pointer: "/handle", Code: "not-for-kind",
			Detail: "@" + handle + " is a person; order receipts are for businesses"})
	}
	return p, err
}

// clientOf returns the client's account in the form of the claim: on the chain of the shop's identity,
// or as an address alone for a shop without identity.
func clientOf(client, agent string) (string, *protocol.Fault) {
	if client == "" {
		return "", nil
	}
	chain, address := "", client
	if n := strings.LastIndexByte(client, ':'); n >= 0 {
		chain, address = client[:n+1], client[n+1:]
	}
	account, err := erc8004.ParseAddress(address)
	if err != nil {
		return "", &protocol.Fault{Pointer: "/client", Code: "wrong-shape", Detail: err.Error()}
	}
	if agent == "" {
		return chain + strings.ToLower(account.Hex()), nil
	}
	own := agent[:strings.IndexByte(agent[len("eip155:"):], ':')+len("eip155:")+1]
	if chain != "" && chain != own {
		return "", &protocol.Fault{Pointer: "/client", Code: "wrong-chain",
			Detail: "the identity of the business is on the chain " + strings.TrimSuffix(own, ":") + ": only an account there can review it"}
	}
	return own + strings.ToLower(account.Hex()), nil
}

// sameOrder reports whether two receipts say the same of an order.
func sameOrder(a, b storage.StoredReceipt) bool {
	return a.Agent == b.Agent && a.Client == b.Client && a.Buyer == b.Buyer && a.Currency == b.Currency && a.Minor == b.Minor &&
		a.PaidAt.Equal(b.PaidAt) && (len(a.Lines)+len(b.Lines) == 0 || reflect.DeepEqual(a.Lines, b.Lines))
}

func (r *Reputation) shown(s storage.StoredReceipt) protocol.OrderReceipt {
	out := protocol.OrderReceipt{
		ID: s.ID, Issuer: cmp.Or(s.Issuer, r.Base), Handle: s.Handle, Order: s.Order, Agent: protocol.OrNil(s.Agent), Client: protocol.OrNil(s.Client),
		Buyer: s.Buyer,
		Total: protocol.MoneyOf(s.Currency, s.Minor), PaidAt: s.PaidAt, IssuedAt: s.IssuedAt, RevokedAt: s.RevokedAt, Reason: protocol.OrNil(s.Reason),
		Reviewable: s.Agent != "" && s.Client != "" && s.RevokedAt == nil, LineItems: s.Lines, Adjustments: s.Adjustments, Receipt: s.Token, Untrusted: true,
	}
	if out.LineItems == nil {
		out.LineItems = []protocol.OrderLine{}
	}
	if out.Adjustments == nil {
		out.Adjustments = []protocol.Adjustment{}
	}
	return out
}

// List returns a page of the receipts of a shop.
func (r *Reputation) List(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OrderReceiptQuery) (protocol.Page[protocol.OrderReceipt], error) {
	page := protocol.Page[protocol.OrderReceipt]{Items: []protocol.OrderReceipt{}}
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return page, err
	}
	found, err := tx.OrderReceipts().List(ctx, handle, in.Order, in.Size(), in.After)
	for _, s := range found.Items {
		page.Items = append(page.Items, r.shown(s))
	}
	page.Next = found.Next
	return page, err
}

// receipt returns a receipt of the caller's shop.
func (r *Reputation) receipt(ctx context.Context, tx *storage.Tx, c protocol.Caller, ref protocol.OrderReceiptRef) (s storage.StoredReceipt, err error) {
	p, err := r.shop(ctx, tx, c, ref.Handle)
	if err != nil {
		return s, err
	}
	s, err = tx.OrderReceipts().ByID(ctx, ref.ID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && s.Handle != p.Draft.Handle {
		return s, protocol.Errorf(protocol.NotFound, "@%s has no receipt %s", p.Draft.Handle, ref.ID)
	}
	return s, err
}

// Revoke ends a receipt. The review that counts with it does so no longer: the receipt is the shop's word, which it
// takes back; the review stays listed, with its rating and that reason.
func (r *Reputation) Revoke(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ReceiptRevocation) (protocol.OrderReceipt, error) {
	s, err := r.receipt(ctx, tx, c, in.OrderReceiptRef)
	if err != nil || s.RevokedAt != nil {
		return r.shown(s), err
	}
	s.RevokedAt, s.Reason = &tx.Now, in.Reason
	if err := tx.OrderReceipts().Put(ctx, s); err != nil {
		return protocol.OrderReceipt{}, err
	}
	return r.shown(s), r.rejudge(ctx, tx, s)
}

// rejudge looks again at the reviews with a receipt that was revoked, adjusted, or of whose payment more is known.
func (r *Reputation) rejudge(ctx context.Context, tx *storage.Tx, s storage.StoredReceipt) error {
	c, ok := claimsOf(s.Token)
	if !ok {
		return nil
	}
	for _, agent := range []string{c.Agent, storage.ReviewsOf(s.Handle)} { // locks them
		if _, err := tx.Feedbacks().Holding(ctx, agent); err != nil {
			return err
		}
	}
	f, err := tx.Feedbacks().ByProof(ctx, receiptName(c))
	if errors.Is(err, storage.ErrNotFound) {
		f, err = tx.Feedbacks().Given(ctx, storage.ReviewsOf(s.Handle), s.ID, 0)
	}
	if err == nil && f.Reason != protocol.ReviewWithdrawn {
		err = r.again(ctx, tx, f)
	}
	if err = storage.IfMissing(err, nil); err != nil || c.Known == protocol.KnownStated {
		return err
	}
	if err := tx.Feedbacks().Again(ctx, orderName(c), f.ID, protocol.ReceiptStated); err != nil {
		return err
	}
	return r.enqueue(ctx, tx, storage.FeedbackCheckJob, "", tx.Now)
}

// again decides about a review anew, and stores it.
func (r *Reputation) again(ctx context.Context, tx *storage.Tx, f storage.Feedback) error {
	shop, err := r.shopOf(ctx, tx, f.Agent)
	var why protocol.ReviewReason
	if err == nil {
		var h storage.Holding
		if h, err = tx.Feedbacks().Holding(ctx, f.Agent); err == nil {
			why, err = r.judge(ctx, tx, shop, h, &f)
		}
	}
	if err = storage.IfMissing(err, nil); err != nil {
		return err
	}
	if why != f.Reason {
		if err := r.uncount(ctx, tx, f); err != nil {
			return err
		}
		f.State, f.Reason = storage.FeedbackWaiting, protocol.ReviewIsChecked
		if err := r.settle(ctx, tx, &f); err != nil {
			return err
		}
	}
	return tx.Feedbacks().Put(ctx, f)
}

// Adjust adds an adjustment to the order of a receipt.
func (r *Reputation) Adjust(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewAdjustment) (protocol.OrderReceipt, error) {
	s, err := r.receipt(ctx, tx, c, in.OrderReceiptRef)
	if err != nil {
		return protocol.OrderReceipt{}, err
	}
	a := in.Adjustment
	a.OccurredAt = a.OccurredAt.UTC()
	for _, old := range s.Adjustments {
		if old.ID == a.ID {
			if reflect.DeepEqual(old, a) {
				return r.shown(s), nil
			}
			return protocol.OrderReceipt{}, protocol.Errorf(protocol.Conflict,
				"the order has an adjustment %s that says something else; adjustments are only added", a.ID)
		}
	}
	if len(s.Adjustments) >= protocol.MaxAdjustments {
		return protocol.OrderReceipt{}, protocol.Errorf(protocol.Conflict, "an order has at most %d adjustments", protocol.MaxAdjustments)
	}
	s.Adjustments = append(s.Adjustments, a)
	if err := tx.OrderReceipts().Put(ctx, s); err != nil {
		return r.shown(s), err
	}
	return r.shown(s), r.rejudge(ctx, tx, s)
}

// Status says whether a receipt is revoked or its order refunded in full, and nothing else.
func (r *Reputation) Status(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.ReceiptRef) (protocol.ReceiptStatus, error) {
	s, err := tx.OrderReceipts().ByID(ctx, in.ID)
	if err != nil || s.Issuer != "" {
		return protocol.ReceiptStatus{}, storage.Missing(err,
			protocol.Errorf(protocol.NotFound, "this node has issued no receipt %s, or does not keep it any more", in.ID))
	}
	status := protocol.ReceiptStatus{ID: s.ID, Status: "valid", RevokedAt: s.RevokedAt}
	switch {
	case s.RevokedAt != nil:
		status.Status = "revoked"
	case s.Refunded():
		status.Status = "refunded"
	}
	return status, nil
}
