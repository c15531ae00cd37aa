package attention

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// The links of notices to an owner, which do what a bid waits for. A ticket is the id of the bid and
// a MAC of the bid, how often its state has changed, and the address that the notice went to, of mail
// or of a webhook. So it needs no row: it ends when it was used, since that changes the bid, when
// something else changes the bid, and when the owner has another address.

// waitsFor returns what a bid waits for that a link can do.
func waitsFor(state protocol.BidState, bid *storage.StoredBid) []protocol.BidLinkDo {
	switch {
	case state == protocol.BidClaimed, bid.Dispute != nil:
		return []protocol.BidLinkDo{protocol.LinkConfirm, protocol.LinkDeny}
	case state == protocol.BidLive && !bid.Approved:
		return []protocol.BidLinkDo{protocol.LinkApprove}
	}
	return nil
}

// ticket returns the ticket of a notice to an address about a bid as it is now.
func (a *Attention) ticket(bid *storage.StoredBid, handle, to string) string {
	mac := hmac.New(sha256.New, a.LinkKey)
	mac.Write([]byte(strings.Join([]string{"bid link", bid.ID, strconv.Itoa(bid.Moves), handle, to}, "\x00")))
	return protocol.ReadTokenPrefix + strings.TrimPrefix(bid.ID, protocol.BidID+"_") + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// LinkFor returns the link by which the reader of a notice to an address does what a bid waits for;
// nil when it waits for nothing.
func (a *Attention) LinkFor(ctx context.Context, tx *storage.Tx, id, handle, to string) (*protocol.NoticeLink, error) {
	bid, err := tx.Bids().ByID(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil || waitsFor(a.stateNow(tx, bid), bid) == nil {
		return nil, err
	}
	ticket := a.ticket(bid, handle, to)
	link := &protocol.NoticeLink{URL: a.Base + "/bid-link?ticket=" + ticket, API: a.Base + protocol.UseBidLink.HTTP.Path, Ticket: ticket}
	for _, do := range waitsFor(a.stateNow(tx, bid), bid) {
		link.Do = append(link.Do, string(do))
	}
	return link, nil
}

var errLink = protocol.Errorf(protocol.Gone, "this link was used before, or the bid has changed since; sign in to see it")

// ofTicket returns the bid of a ticket and its board.
func (a *Attention) ofTicket(ctx context.Context, tx *storage.Tx, c protocol.Caller, ticket string) (*storage.StoredBid, *storage.AttentionBoard, error) {
	const idLength = 26 // of a ULID
	ticket = cmp.Or(ticket, c.ReadToken)
	if ticket == "" {
		return nil, nil, protocol.Errorf(protocol.Unauthorized, "send the ticket of the link as Authorization: Bearer")
	}
	rest, ok := strings.CutPrefix(ticket, protocol.ReadTokenPrefix)
	if !ok || len(rest) < idLength {
		return nil, nil, errLink
	}
	bid, board, err := locked(ctx, tx, protocol.BidID+"_"+rest[:idLength])
	if err != nil {
		return nil, nil, storage.IfMissing(err, errLink)
	}
	to, err := tx.Profiles().NotifySettings(ctx, board.Handle)
	if err != nil {
		return nil, nil, err
	}
	sent := func(address string) bool {
		return address != "" && subtle.ConstantTimeCompare([]byte(ticket), []byte(a.ticket(bid, board.Handle, address))) == 1
	}
	valid := to.Links && (to.Confirmed && sent(to.Mail) || sent(to.Webhook))
	if !valid || board.Handle == "" || waitsFor(a.stateNow(tx, bid), bid) == nil {
		return nil, nil, errLink
	}
	return bid, board, nil
}

// ReadLink returns what a link would do.
func (a *Attention) ReadLink(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.BidLinkInput) (protocol.BidLink, error) {
	bid, _, err := a.ofTicket(ctx, tx, c, in.Ticket)
	if err != nil {
		return protocol.BidLink{}, err
	}
	view, err := a.ownView(ctx, tx, bid.ID)
	return protocol.BidLink{Do: waitsFor(view.State, bid), Bid: view, Untrusted: true}, err
}

// UseLink does what a link is for, as the owner of the board.
func (a *Attention) UseLink(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.BidLinkUse) (protocol.OwnBid, error) {
	bid, board, err := a.ofTicket(ctx, tx, c, in.Ticket)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	if can := waitsFor(a.stateNow(tx, bid), bid); !slices.Contains(can, in.Do) {
		return protocol.OwnBid{}, protocol.Errorf(protocol.Conflict, "the bid is %s; this link cannot %s it", bid.State, in.Do)
	}
	owner := protocol.Caller{Standing: protocol.Session, Handle: board.Handle, Handles: []string{board.Handle}, Network: c.Network}
	ref := protocol.OwnBidRef{ID: bid.ID}
	switch in.Do {
	case protocol.LinkConfirm:
		return a.Confirm(ctx, tx, owner, protocol.PaymentConfirmation{OwnBidRef: ref})
	case protocol.LinkDeny:
		return a.Deny(ctx, tx, owner, ref)
	}
	return a.Approve(ctx, tx, owner, ref)
}
