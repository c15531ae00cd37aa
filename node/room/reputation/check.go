package reputation

import (
	"context"
	"encoding/hex"
	"errors"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"stoa/identity/erc8004"
	"stoa/protocol"
	"stoa/protocol/rate"
	"stoa/storage"
)

// Bounds of one run of the checks.
const (
	checkAtOnce  = 24 // feedback of one run
	checkers     = 4  // of them at the same time
	fetchTimeout = 6 * time.Second
	checkTimeout = 10 * time.Second
	maxHosts     = 10_000 // whose rate is known
	keysKept     = time.Hour
)

// perHost is how often files are fetched from one host: a minute's worth at once.
var perHost = rate.Limit{Every: 15 * time.Second, Burst: 4}

// Pauses are those before the next try of a file or node that does not answer; after the last the check is
// given up.
var Pauses = []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}

// Checks does what feedback that waits needs: it fetches files, asks other nodes and the chain, and
// decides.
func (r *Reputation) Checks(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	var due []storage.Feedback
	blocked := map[string]bool{}
	if err := r.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if due, err = tx.Feedbacks().Due(ctx, checkAtOnce); err != nil {
			return err
		}
		for _, f := range due {
			if u, err := url.Parse(f.Doc.URI); err == nil && u.Host != "" && !f.Doc.Read {
				if blocked[u.Host], err = tx.Peers().Refused(ctx, u.Host); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil || len(due) == 0 {
		return nil, err
	}
	var group sync.WaitGroup
	places := make(chan struct{}, checkers)
	later := make([]time.Duration, len(due)) // zero: it is to be decided
	for i := range due {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			u, _ := url.Parse(due[i].Doc.URI)
			later[i] = r.check(ctx, &due[i], u != nil && blocked[u.Host])
		})
	}
	group.Wait()
	return func(ctx context.Context, tx *storage.Tx) error {
		for i, f := range due {
			if err := r.conclude(ctx, tx, f, later[i]); err != nil {
				return err
			}
		}
		more, err := tx.Feedbacks().Due(ctx, 1)
		if err != nil || len(more) == 0 {
			return err
		}
		return r.enqueue(ctx, tx, storage.FeedbackCheckJob, "", tx.Now)
	}, nil
}

// conclude stores the outcome of a check, unless the feedback changed meanwhile.
func (r *Reputation) conclude(ctx context.Context, tx *storage.Tx, f storage.Feedback, later time.Duration) error {
	if _, err := tx.Feedbacks().Holding(ctx, f.Agent); err != nil { // locks: another process may be deciding the same
		return err
	}
	now, err := tx.Feedbacks().Given(ctx, f.Agent, f.Client, f.Index)
	if err != nil || now.State != storage.FeedbackWaiting {
		return storage.Missing(err, nil)
	}
	f.Doc.Responses = now.Doc.Responses
	if f.State == storage.FeedbackWaiting && later > 0 {
		f.NextAt = new(tx.Now.Add(later))
		return tx.Feedbacks().Put(ctx, f)
	}
	f.NextAt = nil
	if f.State == storage.FeedbackWaiting {
		if err := r.settle(ctx, tx, &f); err != nil {
			return err
		}
	}
	return tx.Feedbacks().Put(ctx, f)
}

// settle decides feedback of which everything outside is known, and counts it. It waits while no profile is
// enrolled to the identity.
func (r *Reputation) settle(ctx context.Context, tx *storage.Tx, f *storage.Feedback) error {
	shop, err := r.shopOf(ctx, tx, f.Agent)
	if err != nil {
		return storage.IfMissing(err, nil)
	}
	h, err := tx.Feedbacks().Holding(ctx, f.Agent)
	if err != nil {
		return err
	}
	why, err := r.judge(ctx, tx, shop, h, f)
	if err != nil {
		return err
	}
	if why.Counts() {
		free, err := tx.Feedbacks().Claim(ctx, f.ID, f.Doc.Names)
		if err != nil {
			return err
		}
		if !free {
			why = protocol.ProofUsed
		}
	}
	if !why.Counts() {
		refuse(f, why)
		return nil
	}
	f.State, f.Reason, f.NextAt = storage.FeedbackCounted, why, nil
	if err := tx.Feedbacks().Add(ctx, f.Agent, why, 1, f.Rating); err != nil {
		return err
	}
	if err := tx.Feedbacks().Told(ctx, *f); err != nil {
		return err
	}
	return r.announce(ctx, tx, shop.Handle, h, f)
}

// A shop is who is reviewed.
type shop struct {
	storage.FeedbackAgent // Agent is the identity that it has now, "" for none
}

// shopOf returns the shop of reviews; ErrNotFound when there is none now.
func (r *Reputation) shopOf(ctx context.Context, tx *storage.Tx, agent string) (s shop, err error) {
	handle, here := storage.Feedback{Agent: agent}.Here()
	if !here {
		s.FeedbackAgent, err = tx.Feedbacks().Agent(ctx, agent)
		return s, err
	}
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return s, err
	}
	if p.ERC8004 != "" {
		s.FeedbackAgent, err = tx.Feedbacks().Agent(ctx, p.ERC8004)
	}
	s.Handle = handle
	return s, storage.IfMissing(err, nil)
}

// judge collects what decides about feedback, and notes in it what is known of its order and its buyer.
func (r *Reputation) judge(ctx context.Context, tx *storage.Tx, shop shop, h storage.Holding, f *storage.Feedback) (why protocol.ReviewReason, err error) {
	c := protocol.ReviewCase{Payment: f.Doc.Payment != nil, Floors: r.Floors}
	if _, here := f.Here(); !here {
		f.Doc.Buyers = []string{walletName(f.Client)}
	}
	if c.Against, err = r.against(ctx, tx, shop, h, f); err != nil {
		return "", err
	}
	if f.Doc.Order != nil {
		c.Order = *f.Doc.Order
	}
	n, _, err := tx.Feedbacks().Sum(ctx, f.Agent)
	if err != nil {
		return "", err
	}
	c.Full = n >= protocol.MaxCountedReviews && f.State != storage.FeedbackCounted
	if c.Used, err = tx.Feedbacks().Used(ctx, f.ID, f.Doc.Names); err != nil {
		return "", err
	}
	if c.Near, err = tx.Feedbacks().Near(ctx, shop.Agent, shop.Handle, *f); err != nil {
		return "", err
	}
	return c.Judge(), nil
}

// against returns what is wrong with the giver or the receipt of feedback, "" for nothing.
func (r *Reputation) against(ctx context.Context, tx *storage.Tx, shop shop, h storage.Holding, f *storage.Feedback) (protocol.ReviewReason, error) {
	switch {
	case f.Client == shop.Owner || f.Client == shop.Wallet:
		return protocol.SelfReview, nil
	case f.Place < h.Since, f.Doc.Payment != nil && f.Doc.PaidPlace < h.Since:
		return protocol.FormerOwner, nil
	}
	if f.Doc.Order != nil {
		if why, err := r.againstOrder(ctx, tx, shop, h, f); err != nil || why != "" {
			return why, err
		}
	}
	self, err := r.same(ctx, tx, shop, f.Doc.Buyers)
	if err != nil || self {
		return protocol.SelfReview, err
	}
	return "", nil
}

// againstOrder returns why the receipt of feedback proves no order of the shop, and notes what it says of the payment.
func (r *Reputation) againstOrder(ctx context.Context, tx *storage.Tx, shop shop, h storage.Holding, f *storage.Feedback) (protocol.ReviewReason, error) {
	c, ok := claimsOf(f.Doc.Receipt)
	if !ok {
		return protocol.ReceiptInvalid, nil
	}
	if err := tx.OrderReceipts().Lock(ctx, r.storedID(c)); err != nil { // its shop may revoke it meanwhile
		return "", err
	}
	receipt, held, err := r.held(ctx, tx, f.Doc.Receipt, c, shop.Handle)
	switch {
	case err != nil:
		return "", err
	case !held && c.Issuer == r.Base:
		return protocol.ReceiptUnknown, nil
	case c.Issuer == r.Base && receipt.Handle != shop.Handle:
		return protocol.ReceiptShop, nil
	case !held && c.IssuedAt < h.SinceAt.Unix(): // of a trusted node, where the shop has another profile
		return protocol.FormerOwner, nil
	}
	o := f.Doc.Order
	o.Known, o.Test, o.Left, o.Floor = c.Known, c.Test, o.Total, r.Floors.Of(o.Total.Currency)
	if held {
		if now, ok := claimsOf(receipt.Token); ok {
			o.Known = now.Known // signed again when more was known of the payment
		}
		o.Left = protocol.MoneyOf(receipt.Currency, receipt.Left())
		for _, name := range receipt.Buyers {
			if !slices.Contains(f.Doc.Buyers, name) {
				f.Doc.Buyers = append(f.Doc.Buyers, name)
			}
		}
	}
	if o.Known == "" {
		o.Known = protocol.KnownStated
	}
	switch {
	case held && receipt.RevokedAt != nil:
		return protocol.ReceiptRevoked, nil
	case c.Issuer != r.Base && !slices.Contains(r.Trusted, c.Issuer) && o.Known != protocol.KnownStated:
		return protocol.ReceiptIssuer, nil // brought with an archive: what a payment is known by, only a trusted node says
	}
	return "", nil
}

// storedID is the id under which this node has a receipt, if it has it.
func (r *Reputation) storedID(c protocol.OrderReceiptClaims) string {
	if c.Issuer == r.Base {
		return c.ID
	}
	return protocol.ForeignReceiptID(c.Issuer, c.ID, time.Unix(c.PaidAt, 0))
}

// held returns the receipt with those claims if this node has it: one that it issued, or one of
// another node that the shop brought with an archive, whose signature was verified then.
func (r *Reputation) held(ctx context.Context, tx *storage.Tx, token string, c protocol.OrderReceiptClaims,
	shop string) (s storage.StoredReceipt, ok bool, err error) {
	s, err = tx.OrderReceipts().ByID(ctx, r.storedID(c))
	if errors.Is(err, storage.ErrNotFound) {
		return s, false, nil
	}
	own := c.Issuer == r.Base
	return s, err == nil && (own && s.Issuer == "" || !own && s.Issuer == c.Issuer && s.Handle == shop && s.Token == token), err
}

// announce tells of a counted review in the feed, once. What is read while not all events of the identity were
// is no news, and may be a former owner's.
func (r *Reputation) announce(ctx context.Context, tx *storage.Tx, handle string, h storage.Holding, f *storage.Feedback) error {
	p, err := tx.Profiles().ByHandle(ctx, handle)
	if err != nil || !p.Shown() {
		return storage.Missing(err, nil)
	}
	board := r.boardOf(f)
	if f.FeedID != "" {
		return tx.Feed().Restore(ctx, board, f.FeedID)
	}
	if h.Behind {
		return nil
	}
	f.FeedID = protocol.NewID(protocol.FeedID, tx.Now)
	review := protocol.NewsReview{Agent: f.Agent, Client: f.Client, Index: f.Index, Tx: f.Doc.Tx, Rating: f.Rating, Receipt: f.Doc.Order != nil}
	if f.Doc.Order != nil {
		review.Known = f.Doc.Order.Known
	}
	item := protocol.FeedItem{
		ID: f.FeedID, Type: protocol.FeedReview, At: tx.Now, Actor: r.Author(p, tx.Now),
		Subject: protocol.Subject{Kind: "review", ID: f.ID, URL: r.Base + "/@" + handle + "/reviews", Title: p.Draft.Name},
		Summary: review.Summary(p.Draft.Name), Untrusted: true,
	}
	switch {
	case board == "":
		err = tx.Feed().Append(ctx, item)
	case r.Sign != nil:
		err = r.Sign(ctx, tx, board, &item, &review)
	}
	if err == nil && board != "" {
		err = tx.Feed().Publish(ctx, board, item)
	}
	if err != nil {
		return err
	}
	return tx.Notify(ctx, protocol.Notice{Handle: handle, Event: protocol.ReviewCounted, Subject: f.ID, Title: item.Summary})
}

// boardOf is the board by whose log other nodes learn of a review; "" for one that was given here, which no other node could check.
func (r *Reputation) boardOf(f *storage.Feedback) string {
	if _, here := f.Here(); here {
		return ""
	}
	return protocol.BoardID(r.Base)
}

// uncount takes back what counted feedback changed, and has those looked at again that did not count because of it.
func (r *Reputation) uncount(ctx context.Context, tx *storage.Tx, f storage.Feedback) error {
	if f.FeedID != "" {
		if err := tx.Feed().Retract(ctx, r.boardOf(&f), f.FeedID); err != nil {
			return err
		}
	}
	if f.State != storage.FeedbackCounted {
		return tx.Feedbacks().Release(ctx, f)
	}
	if err := tx.Feedbacks().Add(ctx, f.Agent, f.Reason, -1, -f.Rating); err != nil {
		return err
	}
	agents := []string{f.Agent}
	shop, err := r.shopOf(ctx, tx, f.Agent)
	switch _, here := f.Here(); {
	case err != nil:
		err = storage.IfMissing(err, nil)
	case !here:
		agents = append(agents, storage.ReviewsOf(shop.Handle))
	case shop.Agent != "":
		agents = append(agents, shop.Agent)
	}
	if err != nil {
		return err
	}
	if err := tx.Feedbacks().Release(ctx, f, agents...); err != nil {
		return err
	}
	return r.enqueue(ctx, tx, storage.FeedbackCheckJob, "", tx.Now)
}

// check finds out what is missing of feedback. It returns how long to wait for the next try, or zero when
// it is to be decided.
func (r *Reputation) check(ctx context.Context, f *storage.Feedback, blocked bool) (later time.Duration) {
	if _, here := f.Here(); here {
		return 0
	}
	if r.Chain == nil {
		return time.Hour
	}
	id, err := erc8004.ParseID(f.Agent)
	if err != nil {
		refuse(f, protocol.MalformedFile)
		return 0
	}
	if !f.Doc.Read {
		if blocked {
			refuse(f, protocol.Unreachable)
			return 0
		}
		if later := r.fetch(ctx, f); later > 0 || f.State != storage.FeedbackWaiting {
			return later
		}
	}
	if f.Doc.Receipt != "" && f.Doc.Order == nil {
		if later := r.checkReceipt(ctx, f); later > 0 || f.State != storage.FeedbackWaiting {
			return later
		}
	}
	if f.Doc.PaidTx != "" && (f.Doc.Payment == nil || f.Doc.PaidPlace == 0) {
		now := ""
		if err := r.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			shop, err := tx.Feedbacks().Agent(ctx, f.Agent)
			if now = shop.Wallet; errors.Is(err, storage.ErrNotFound) {
				err = nil
			}
			return err
		}); err != nil {
			return time.Minute
		}
		p, err := r.Chain.Payment(ctx, id, f.Doc.PaidTx, f.Client, now)
		if err != nil {
			return time.Minute // our own endpoints do not answer: no fault of the review
		}
		if readPayment(f, p, id.ChainID) {
			return r.later(f, protocol.PaymentUnknown)
		}
	}
	if f.State != storage.FeedbackWaiting || f.Doc.Confirmed {
		return 0
	}
	e, err := eventOf(f, id)
	if err != nil {
		refuse(f, protocol.MalformedFile)
		return 0
	}
	seen, err := r.Chain.Confirm(ctx, erc8004.ID{ChainID: id.ChainID, Registry: id.Registry, AgentID: id.AgentID}, []erc8004.Feedback{e})
	if err != nil {
		return time.Minute
	}
	if f.Doc.Confirmed = seen[0]; !seen[0] {
		return r.later(f, protocol.ReviewNotSeen)
	}
	return 0
}

// eventOf is the event that feedback was made of, as far as it is stored.
func eventOf(f *storage.Feedback, id erc8004.ID) (e erc8004.Feedback, err error) {
	value, ok := new(big.Int).SetString(f.Doc.Value, 10)
	if !ok {
		return e, errors.New("value")
	}
	e = erc8004.Feedback{Kind: erc8004.FeedbackGiven, Agent: id, Client: f.Client, Index: f.Index, Value: value, Decimals: f.Doc.Decimals, Tag1: erc8004.Starred,
		Block: f.Block, LogIndex: f.Doc.LogIndex, Tx: f.Doc.Tx, Source: f.Doc.Source}
	_, err = hex.Decode(e.Hash[:], []byte(strings.TrimPrefix(f.Doc.Hash, "0x")))
	e.URI = f.Doc.URI
	return e, err
}

// later returns the pause before the next try, or ends the check with a reason after the last one.
func (r *Reputation) later(f *storage.Feedback, why protocol.ReviewReason) time.Duration {
	if f.Tries >= len(r.Pauses) {
		refuse(f, why)
		return 0
	}
	f.Tries++
	f.Reason = protocol.ReviewIsChecked
	return r.Pauses[f.Tries-1]
}
