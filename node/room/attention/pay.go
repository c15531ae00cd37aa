package attention

import (
	"cmp"
	"context"
	"errors"
	"time"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/protocol"
	"stoa/storage"
)

func paymentNotFound() error {
	return protocol.Errorf(protocol.NotFound, "there is no such payment; send the last part of paymentUrl")
}

// byPayToken returns the bid that the secret of a payment page, or a status token, opens; or what else is paid there.
func (a *Attention) byPayToken(ctx context.Context, tx *storage.Tx, c protocol.Caller, token string) (*storage.StoredBid, money.Payable, error) {
	token = cmp.Or(token, c.ReadToken)
	if token == "" {
		return nil, nil, protocol.Errorf(protocol.Unauthorized, "send the last part of paymentUrl as Authorization: Bearer")
	}
	hash := protocol.SecretHash(token)
	bid, err := tx.Bids().ByPayToken(ctx, hash)
	if errors.Is(err, storage.ErrNotFound) {
		bid, err = tx.Bids().ByToken(ctx, hash)
	}
	if errors.Is(err, storage.ErrNotFound) {
		other, err := a.ByPayToken(ctx, tx, hash)
		return nil, other, storage.IfMissing(err, paymentNotFound())
	}
	return bid, nil, err
}

// GetPayment returns what a payer needs to know.
func (a *Attention) GetPayment(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PaymentInput) (protocol.Payment, error) {
	bid, other, err := a.byPayToken(ctx, tx, c, in.PayToken)
	if err != nil {
		return protocol.Payment{}, err
	}
	if other != nil {
		return a.paymentOf(ctx, tx, other)
	}
	return a.payment(ctx, tx, bid)
}

// paymentOf is payment for what is no bid.
func (a *Attention) paymentOf(ctx context.Context, tx *storage.Tx, of money.Payable) (protocol.Payment, error) {
	account, err := tx.PaymentAccounts().ByID(ctx, of.Due().Account)
	if err != nil {
		return protocol.Payment{}, storage.IfMissing(err, paymentNotFound())
	}
	out := of.Payment(tx)
	a.ShowLink(&out, of, account, tx.Now)
	if !out.Claimed {
		out.ClaimsLeft = 0
	}
	return out, nil
}

func (a *Attention) payment(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) (protocol.Payment, error) {
	account, err := tx.PaymentAccounts().ByID(ctx, bid.Account)
	if err != nil {
		return protocol.Payment{}, err
	}
	out := protocol.Payment{
		BidID: bid.ID, Handle: bid.Handle, Payee: firstOf(account.PayeeName, account.LegalName, "@"+bid.Handle), Bidder: bid.Author.Given(), Message: bid.Message,
		Amount: rupees(bid.Paise), State: a.stateNow(tx, bid), Test: bid.Test, UTR: protocol.OrNil(bid.UTR),
	}
	if out.State.Unpaid() {
		out.Hold, out.HoldExpiresAt = &bid.Hold, &bid.HoldUntil
	}
	if account.Provider == protocol.PayUPI && mayClaim(out.State) && account.Handle != "" && bid.DisputedAt.IsZero() {
		out.ClaimsLeft = max(0, protocol.MaxClaims-bid.Claims)
	}
	a.ShowLink(&out, paid{a, bid}, account, tx.Now)
	return out, nil
}

// Press does what a payer may do with a TEST.
func (a *Attention) Press(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.SandboxPress) (protocol.Payment, error) {
	bid, other, err := a.byPayToken(ctx, tx, c, in.PayToken)
	if err != nil {
		return protocol.Payment{}, err
	}
	if other != nil {
		account, err := tx.PaymentAccounts().ByID(ctx, other.Due().Account)
		if err == nil {
			err = a.Money.Press(ctx, tx, account, other.Link().ID, in.Button)
		}
		if err != nil {
			return protocol.Payment{}, storage.IfMissing(err, paymentNotFound())
		}
		return a.paymentOf(ctx, tx, other)
	}
	account, err := tx.PaymentAccounts().ByID(ctx, bid.Account)
	if err != nil {
		return protocol.Payment{}, err
	}
	if err := a.Money.Press(ctx, tx, account, bid.Link.ID, in.Button); err != nil {
		return protocol.Payment{}, err
	}
	return a.payment(ctx, tx, bid)
}

// mayClaim reports whether a payer may report a payment in a state: also when the bid has lapsed,
// since the money may have left in time.
func mayClaim(s protocol.BidState) bool { return s.May(protocol.BidClaimed) }

// Claim stores that a payer says to have paid. It ends the hold; the bid keeps its slot and waits
// for the owner.
func (a *Attention) Claim(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PaymentClaim) (protocol.Payment, error) {
	found, other, err := a.byPayToken(ctx, tx, c, in.PayToken)
	if err != nil {
		return protocol.Payment{}, err
	}
	if other != nil {
		if err := other.Claim(ctx, tx, c, in.UTR); err != nil {
			return protocol.Payment{}, err
		}
		again, err := a.ByPayToken(ctx, tx, protocol.SecretHash(cmp.Or(in.PayToken, c.ReadToken)))
		if err != nil {
			return protocol.Payment{}, err
		}
		return a.paymentOf(ctx, tx, again)
	}
	bid, board, err := locked(ctx, tx, found.ID)
	if err != nil {
		return protocol.Payment{}, err
	}
	account, err := tx.PaymentAccounts().ByID(ctx, bid.Account)
	if err != nil {
		return protocol.Payment{}, err
	}
	if bid.State == protocol.BidClaimed && bid.UTR == in.UTR {
		return a.payment(ctx, tx, bid)
	}
	if board.Handle == "" { // nobody could confirm it
		return protocol.Payment{}, hasLeft(bid)
	}
	if err := a.claimable(ctx, tx, bid, account, in.UTR); err != nil {
		return protocol.Payment{}, err
	}
	if a.stateNow(tx, bid) != bid.State {
		if err := a.endHold(ctx, tx, bid); err != nil {
			return protocol.Payment{}, err
		}
	}
	if bid.State != protocol.BidHeld {
		bid.Hold = protocol.HoldCompeting
	}
	bid.UTR = in.UTR
	bid.Claims++
	bid.HoldUntil = tx.Now.Add(time.Duration(bid.Terms.ClaimHours) * time.Hour)
	if err := a.move(ctx, tx, bid, protocol.BidClaimed, "the payer reports the payment"); err != nil {
		return protocol.Payment{}, err
	}
	if err := watch(ctx, tx, bid, bid.HoldUntil); err != nil {
		return protocol.Payment{}, err
	}
	if err := notify(ctx, tx, board, protocol.BidIsClaimed, bid, noticeTitle("A payment to confirm: bid", bid)); err != nil {
		return protocol.Payment{}, err
	}
	return a.payment(ctx, tx, bid)
}

func hasLeft(bid *storage.StoredBid) error {
	return protocol.Errorf(protocol.Conflict, "@%s has left this node; if you have paid, ask the payee for the money", bid.Handle)
}

func (a *Attention) claimable(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, account *storage.PaymentAccount, utr string) error {
	switch {
	case account.Provider != protocol.PayUPI:
		return protocol.Errorf(protocol.Conflict, "payments to this board are reported by their provider")
	case !mayClaim(a.stateNow(tx, bid)):
		return protocol.Errorf(protocol.Conflict, "the bid is %s; its payment need not be reported", a.stateNow(tx, bid))
	case !bid.DisputedAt.IsZero():
		return errDisputed
	case bid.Claims >= protocol.MaxClaims:
		return protocol.Errorf(protocol.Conflict, "%d references were reported for this bid, which is the most; ask the owner of the board", bid.Claims)
	case tx.Now.After(bid.BidAt.Add(protocol.HoldFor + protocol.LateFor)):
		return protocol.Errorf(protocol.Conflict, "the bid is too old; ask the owner of the board")
	}
	return a.unusedUTR(ctx, tx, bid, utr)
}

// unusedUTR refuses a reference that was reported for another bid, or has confirmed one.
func (a *Attention) unusedUTR(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, utr string) error {
	account, err := tx.PaymentAccounts().ByID(ctx, bid.Account)
	if err != nil {
		return err
	}
	used, err := tx.Payments().Exists(ctx, account.Provider, money.PayeeOf(account), "utr:"+utr)
	if err == nil && !used {
		used, err = tx.Bids().UTRClaimed(ctx, bid.Board, utr, bid.ID)
	}
	if err == nil && used {
		return protocol.Errorf(protocol.Conflict, "this reference was reported for another bid; one payment pays one bid")
	}
	return err
}

// Confirm says that the money of a bid has arrived: the owner has seen it at the bank.
func (a *Attention) Confirm(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PaymentConfirmation) (protocol.OwnBid, error) {
	bid, _, err := ownBid(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	account, err := tx.PaymentAccounts().ByID(ctx, bid.Account)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	provider, err := a.Provider(account)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	confirmer, ok := provider.(pay.Confirmer)
	utr := firstOf(in.UTR, bid.UTR)
	paise := bid.Paise
	if in.Amount != "" {
		paise, _ = in.Amount.Paise()
	}
	switch {
	case !ok:
		return protocol.OwnBid{}, protocol.Errorf(protocol.Conflict, "payments by this provider are not confirmed by hand")
	case utr == "":
		return protocol.OwnBid{}, protocol.Invalid(protocol.Fault{
			Pointer: "/utr", Code: "required", Detail: "the payer reported no reference; give that of your bank",
		})
	}
	used, err := tx.Payments().Exists(ctx, account.Provider, money.PayeeOf(account), "utr:"+utr)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	if used {
		return protocol.OwnBid{}, protocol.Errorf(protocol.Conflict, "this reference has confirmed a payment before; one payment pays one bid")
	}
	ev, err := confirmer.Confirm(pay.Ref(bid.ID, max(1, bid.Link.Attempt)), utr, paise, tx.Now)
	if err != nil {
		return protocol.OwnBid{}, protocol.Errorf(protocol.Conflict, "%s", err.Error())
	}
	if _, err := a.Apply(ctx, tx, account, ev); err != nil {
		return protocol.OwnBid{}, err
	}
	if err := tx.Audit(ctx, c.Actor(), "bid confirm", bid.ID, "utr:"+utr); err != nil {
		return protocol.OwnBid{}, err
	}
	return a.ownView(ctx, tx, bid.ID)
}

// Deny says that a payment that was reported has not arrived.
func (a *Attention) Deny(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnBidRef) (protocol.OwnBid, error) {
	bid, _, err := ownBid(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	const note = "the owner says that the payment has not arrived"
	switch {
	case bid.State == protocol.BidClaimed:
		bid.Denied = true
		err = a.move(ctx, tx, bid, protocol.BidUnconfirmed, note)
	case bid.Dispute != nil:
		bid.Denied = true
		err = errors.Join(a.decided(ctx, tx, bid), a.remark(ctx, tx, bid, note))
	default:
		err = protocol.Errorf(protocol.Conflict, "the bid is %s; only a claimed payment can be denied", bid.State)
	}
	if err != nil {
		return protocol.OwnBid{}, err
	}
	return a.ownView(ctx, tx, bid.ID)
}
