package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
)

// A StoredBid is a bid with the node's own data about it.
type StoredBid struct {
	ID, Board          string // Board is the id of the attention board
	State              protocol.BidState
	Hold               protocol.BidHold // "" once it is paid
	Slot               int              // 0 for none
	Paise              int64
	Bidder             string // who made it, as limits know it; "" once that is forgotten
	Anonymous          bool
	Test               bool   // no money moves
	Denied             bool   // the owner denied a claimed payment
	Paid               bool   // it has, or had, money: never deleted
	UTR                string // the payer's reference, "" for none
	Account            string // id of the payment account that it is paid to
	TokenHash, PayHash [32]byte
	BidAt              time.Time
	HoldUntil          time.Time // with BidHeld and BidClaimed
	FreeAt             time.Time // with BidLive: from when it may be displaced
	MovedAt            time.Time
	Moves              int // how often the state has changed
	BidDoc
}

// A BidDoc is what is stored of a bid and no statement looks for.
type BidDoc struct {
	Author    protocol.Author     `json:"author"`
	Message   string              `json:"message"`
	URL       string              `json:"url,omitempty"`
	Category  string              `json:"category,omitempty"`
	Callback  string              `json:"callback,omitempty"`
	Visitor   []byte              `json:"visitor,omitempty"` // hash of the cookie of the browser that made it
	Handle    string              `json:"handle"`            // the board's owner when it was made
	By        string              `json:"by,omitempty"`      // the profile of this node that made it
	Terms     protocol.BoardTerms `json:"terms"`             // under which it was made, without texts and categories
	Link      BidLink             `json:"link"`
	Approved  bool                `json:"approved"`
	Claims    int                 `json:"claims,omitempty"` // how often the payer gave a reference
	LiveAt    time.Time           `json:"liveAt"`
	EndsAt    time.Time           `json:"endsAt"`
	RespondBy time.Time           `json:"respondBy"`
	Answer    string              `json:"answer,omitempty"`
	AnswerURL string              `json:"answerUrl,omitempty"`
	Reason    string              `json:"reason,omitempty"` // why it was removed
	FeedID    string              `json:"feedId,omitempty"`

	AnsweredAt time.Time `json:"answeredAt"`
}

// A BidLink is the payment link of a bid at its provider.
type BidLink struct {
	Attempt   int       `json:"attempt"` // 1 on the first
	Ref       string    `json:"ref,omitempty"`
	ID        string    `json:"id,omitempty"` // at the provider, "" while there is none
	URL       string    `json:"url,omitempty"`
	UPI       string    `json:"upi,omitempty"`
	ExpiresAt time.Time `json:"expiresAt"`
	Failed    string    `json:"failed,omitempty"` // why none could be made
}

const bidColumns = `id, board, state, hold, COALESCE(slot_no, 0), paise, bidder, anonymous, test, denied, paid, COALESCE(utr, ''), account, token_hash, pay_hash,
	bid_at, COALESCE(hold_until, 0), COALESCE(free_at, 0), moved_at, moves, doc`

func scanBid(s scanner) (b StoredBid, err error) {
	var token, pay, doc []byte
	var at, until, free, moved int64
	if err = s.Scan(&b.ID, &b.Board, &b.State, &b.Hold, &b.Slot, &b.Paise, &b.Bidder, &b.Anonymous, &b.Test, &b.Denied, &b.Paid, &b.UTR, &b.Account,
		&token, &pay, &at, &until, &free, &moved, &b.Moves, &doc); err != nil {
		return b, err
	}
	copy(b.TokenHash[:], token)
	copy(b.PayHash[:], pay)
	b.BidAt, b.HoldUntil, b.FreeAt, b.MovedAt = moment(at), moment(until), moment(free), moment(moved)
	if err = json.Unmarshal(doc, &b.BidDoc); err != nil {
		return b, fmt.Errorf("bid %s: %w", b.ID, err)
	}
	b.Author.Rest(b.BidAt)
	return b, nil
}

// LiveBids returns the live bids of a board, in no order; there are at most as many as slots.
func (tx *Tx) LiveBids(ctx context.Context, board string) ([]StoredBid, error) {
	rows, err := tx.query(ctx, liveBids, board)
	return collect(rows, err, scanBid)
}

const liveBids = `SELECT ` + bidColumns + ` FROM bid WHERE board = ? AND slot_no IS NOT NULL AND state = 'live'`

// RenumberSlots gives the bids of a board slots from 1 to slots, before the board has no more than
// that; ErrExists when more are in use.
func (tx *Tx) RenumberSlots(ctx context.Context, b *AttentionBoard, slots int) error {
	if slots >= b.Terms.Slots {
		return nil
	}
	rows, err := tx.query(ctx, `SELECT id, slot_no FROM bid WHERE board = ? AND slot_no IS NOT NULL ORDER BY slot_no`, b.ID)
	type used struct {
		id   string
		slot int
	}
	all, err := collect(rows, err, func(s scanner) (u used, err error) { return u, s.Scan(&u.id, &u.slot) })
	if err != nil {
		return err
	}
	if len(all) > slots {
		return ErrExists
	}
	for i, u := range all { // in their order, so that the new number is never above the old one
		if u.slot == i+1 {
			continue
		}
		if _, err := tx.write(ctx, `UPDATE bid SET slot_no = ? WHERE id = ?`, i+1, u.id); err != nil {
			return err
		}
	}
	return nil
}
