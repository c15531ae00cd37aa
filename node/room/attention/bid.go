package attention

import (
	"context"
	"errors"
	"fmt"

	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// Bid makes a bid. The board's row is locked, so that bids are decided one after another.
func (a *Attention) Bid(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewBid) (protocol.BidReceipt, error) {
	if in.CallbackURL != "" {
		if why := protocol.CallbackFault(in.CallbackURL, a.Private); why != "" {
			return protocol.BidReceipt{}, protocol.Invalid(protocol.Fault{Pointer: "/callbackUrl", Code: "callback-address", Detail: why})
		}
	}
	p, board, err := openBoard(ctx, tx, in.Handle)
	if err != nil {
		return protocol.BidReceipt{}, err
	}
	if err := a.admit(ctx, tx, c, p, board); err != nil {
		return protocol.BidReceipt{}, err
	}
	category, err := acceptable(board, in)
	if err != nil {
		return protocol.BidReceipt{}, err
	}
	if err := a.endDue(ctx, tx, board, ""); err != nil {
		return protocol.BidReceipt{}, err
	}
	view, err := tx.AttentionBoards().View(ctx, board, "")
	if err != nil {
		return protocol.BidReceipt{}, err
	}
	quote := view.Quote(category.Floor, tx.Now)
	if paise := in.Paise(); quote.Basis == protocol.BasisNone || paise < quote.Price {
		return protocol.BidReceipt{}, slotTaken(view, quote)
	}
	bidder := c.ID()
	count, err := tx.Bids().CountBidder(ctx, board.ID, bidder)
	if err != nil {
		return protocol.BidReceipt{}, err
	}
	if err := withinLimits(count); err != nil {
		return protocol.BidReceipt{}, err
	}
	if err := protocol.Price(c, protocol.SharedBids.Steps(count.Unpaid.Strangers)); err != nil {
		return protocol.BidReceipt{}, err
	}
	if err := a.makeRoom(ctx, tx, board, protocol.SharedBids.Admit(c, count.Unpaid)); err != nil {
		return protocol.BidReceipt{}, err
	}
	bid := a.newBid(tx, c, board, in, category)
	bid.Bidder, bid.Anonymous = bidder, !c.Known()
	if slot, ok := view.FreeSlot(); ok && mayReserve(bid, count, board) {
		bid.Hold, bid.Slot = protocol.HoldReserving, slot
	}
	return a.stored(ctx, tx, board, bid)
}

// Ahead returns the public reason why no bid like this can be made, nil otherwise.
func (a *Attention) Ahead(ctx context.Context, tx *storage.Tx, in protocol.NewBid) error {
	_, board, err := openBoard(ctx, tx, in.Handle)
	if err != nil {
		return err
	}
	if !board.Accepts() {
		return notAccepting(in.Handle, board)
	}
	category, err := acceptable(board, in)
	if err != nil {
		return err
	}
	view, err := tx.AttentionBoards().View(ctx, board, "")
	if err != nil {
		return err
	}
	if quote := view.Quote(category.Floor, tx.Now); quote.Basis == protocol.BasisNone || in.Paise() < quote.Price {
		return slotTaken(view, quote)
	}
	return nil
}

// admit decides whether the caller may bid on a board at all.
func (a *Attention) admit(ctx context.Context, tx *storage.Tx, c protocol.Caller, p *storage.StoredProfile, board *storage.AttentionBoard) error {
	switch {
	case !board.Accepts():
		return notAccepting(p.Draft.Handle, board)
	case c.Owns(p.Draft.Handle):
		return protocol.Errorf(protocol.Forbidden, "this is your own board")
	}
	blocked, err := tx.ContactBlocks().Match(ctx, p.Draft.Handle, c.KnownAs(c.ID()))
	if err == nil && blocked {
		return protocol.Errorf(protocol.ContactRefused, "@%s does not accept bids from you", p.Draft.Handle)
	}
	return err
}

func notAccepting(handle string, board *storage.AttentionBoard) error {
	if board.Open && protocol.Disputed(board.Disputes) {
		return protocol.Errorf(protocol.Conflict, "the board of @%s takes no bids until its owner decides about payments that %d payers dispute",
			handle, board.Disputes)
	}
	return protocol.Errorf(protocol.Conflict, "the board of @%s takes no bids now", handle)
}

// acceptable checks a bid against the board's rules and returns its category.
func acceptable(board *storage.AttentionBoard, in protocol.NewBid) (protocol.CategoryFloor, error) {
	category, err := inTerms(board.Terms, in.Paise(), in.Category)
	if err == nil && in.Paise() < category.Floor {
		e := protocol.Errorf(protocol.BelowFloor, "the floor is %s rupees", rupees(category.Floor).Amount)
		e.Slot = &protocol.SlotPrice{Price: new(rupees(category.Floor)), Basis: protocol.BasisFree}
		return category, e
	}
	return category, err
}

// slotTaken refuses a bid that can win no place now.
func slotTaken(view protocol.BoardView, quote protocol.SlotQuote) error {
	price := slotPrice(view, quote, true)
	e := protocol.Errorf(protocol.SlotTaken, "no slot can be had now")
	switch {
	case price.Price != nil:
		e.Detail = fmt.Sprintf("a slot costs at least %s rupees now", price.Price.Amount)
	case quote.SlotAt != nil:
		e.Detail = "no slot can be had now; an unpaid bid keeps the next one until " + quote.SlotAt.UTC().Format("2006-01-02T15:04:05Z")
	case quote.DisplaceAt != nil:
		e.Detail = "no slot can be had now; the first live bid may be displaced at " + quote.DisplaceAt.UTC().Format("2006-01-02T15:04:05Z")
	}
	e.Slot = &price
	return e
}

// withinLimits refuses an author with too many unpaid bids: otherwise a board could be kept full
// for nothing.
func withinLimits(n storage.BidderCount) error {
	switch {
	case n.Denied >= protocol.MaxDenied:
		return protocol.Errorf(protocol.ContactRefused, "the owner of this board denied %d payments that you reported", n.Denied)
	case n.OnBoard >= protocol.MaxOpenOnBoard:
		return protocol.Errorf(protocol.Conflict, "you, or somebody in your network, has an unpaid bid on this board; pay it, withdraw it, or wait until it lapses")
	case n.OnNode >= protocol.MaxOpenOnNode:
		return protocol.Errorf(protocol.Conflict,
			"you, or somebody in your network, has %d unpaid bids on this node; pay or withdraw one, or wait until one lapses", n.OnNode)
	}
	return nil
}

// mayReserve reports whether an unpaid bid may keep a free slot: half of the slots are for authors
// that are known, and an author whose holds lapsed keeps none for a day.
func mayReserve(bid *storage.StoredBid, n storage.BidderCount, board *storage.AttentionBoard) bool {
	if n.Lapsed >= protocol.MaxLapsed {
		return false
	}
	return !bid.Anonymous || n.Unknown < protocol.Shared{Most: board.Terms.Slots}.Strangers()
}

// makeRoom lapses as many unpaid bids that keep no slot as giveWay says, the oldest first. Money that
// still comes for one of them is treated as late.
func (a *Attention) makeRoom(ctx context.Context, tx *storage.Tx, board *storage.AttentionBoard, giveWay protocol.Waiting) error {
	for _, of := range []struct {
		anonymous bool
		n         int
	}{{true, giveWay.Strangers}, {false, giveWay.Known}} {
		if of.n == 0 {
			continue
		}
		old, err := tx.Bids().Oldest(ctx, board.ID, of.anonymous, of.n)
		if err != nil {
			return err
		}
		for i := range old {
			old[i].GaveWay = true
			err := errors.Join(a.move(ctx, tx, &old[i], protocol.BidLapsed, "gave way to newer bids: too many waited unpaid"),
				money.CancelLink(ctx, tx, paid{a, &old[i]}))
			if err != nil {
				return err
			}
		}
		if err := tx.Crowds().Add(ctx, board.Handle, storage.CrowdBidGaveWay, len(old)); err != nil {
			return err
		}
	}
	return nil
}

// maxEvidence bounds the signed request that is kept with a bid, in bytes: one that says no more than the bid has about 3,000.
const maxEvidence = 16 << 10

func (a *Attention) newBid(tx *storage.Tx, c protocol.Caller, board *storage.AttentionBoard, in protocol.NewBid,
	category protocol.CategoryFloor) *storage.StoredBid {
	terms := board.Terms
	terms.Rules, terms.Categories = "", nil // a bid keeps numbers, not texts
	bid := &storage.StoredBid{
		ID: protocol.NewID(protocol.BidID, tx.Now), Board: board.ID, State: protocol.BidHeld, Hold: protocol.HoldCompeting, Paise: in.Paise(),
		Account: board.Account, BidAt: tx.Now, HoldUntil: tx.Now.Add(protocol.HoldFor), MovedAt: tx.Now, Moves: 1,
		BidDoc: storage.BidDoc{
			Author: c.Author(a.Base, in.Name, tx.Now), Message: in.Message, URL: in.URL, Category: category.Name, Callback: in.CallbackURL,
			Handle: board.Handle, Terms: terms, Approved: terms.AutoApprove, Visitor: []byte(c.Visitor),
		},
	}
	if bid.Author.Verified {
		bid.By = c.Handle
	}
	if len(c.Evidence) <= maxEvidence && in.CallbackURL == "" { // it is public, and the callback's address is not
		bid.Evidence = c.Evidence
	}
	return bid
}

// stored stores a new bid with its tokens and the jobs that make its link and end its hold.
func (a *Attention) stored(ctx context.Context, tx *storage.Tx, board *storage.AttentionBoard, bid *storage.StoredBid) (protocol.BidReceipt, error) {
	account, err := tx.PaymentAccounts().ByID(ctx, board.Account)
	if err != nil {
		return protocol.BidReceipt{}, err
	}
	status, secret := protocol.NewReadToken(), protocol.NewReadToken()
	bid.TokenHash, bid.PayHash = protocol.SecretHash(status), protocol.SecretHash(secret)
	bid.Test = account.Test
	if err := a.LinkNow(ctx, paid{a, bid}, account, bid.BidAt); err != nil {
		return protocol.BidReceipt{}, err
	}
	if err := tx.Bids().Insert(ctx, bid); err != nil {
		return protocol.BidReceipt{}, err
	}
	err = watch(ctx, tx, bid, bid.HoldUntil)
	if err == nil && bid.Link.ID == "" {
		err = a.AskLink(ctx, tx, paid{a, bid}.Due())
	}
	if err != nil {
		return protocol.BidReceipt{}, err
	}
	view, err := a.view(ctx, tx, bid)
	return protocol.BidReceipt{
		Bid: view, PaymentURL: a.Base + "/pay/" + secret, HoldExpiresAt: bid.HoldUntil, StatusURL: a.Base + "/api/public/bids/" + bid.ID, StatusToken: status,
	}, err
}
