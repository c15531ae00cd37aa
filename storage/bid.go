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
	Slot               int              `db:"slot_no,null"` // 0 for none
	Paise              int64
	Bidder             string // who made it, as limits know it; "" once that is forgotten
	Anonymous          bool
	Test               bool    // no money moves
	Denied             bool    // the owner denied a claimed payment
	Paid               bool    // it has, or had, money: never deleted
	UTR                string  `db:",null"` // the payer's reference, "" for none
	Dispute            *string // by whom the owner's silence is disputed, undecided: "" for a stranger; nil for nobody
	Account            string  // id of the payment account that it is paid to
	TokenHash, PayHash [32]byte
	BidAt              time.Time
	HoldUntil          time.Time `db:",null"` // with BidHeld and BidClaimed
	FreeAt             time.Time `db:",null"` // with BidLive: from when it may be displaced
	MovedAt            time.Time
	Moves              int // how often the state has changed
	BidDoc             `db:"doc"`
}

func (b *StoredBid) loaded() { b.Author.Complete(b.BidAt) }

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
	Link      PayLink             `json:"link"`
	Approved  bool                `json:"approved"`
	Evidence  json.RawMessage     `json:"evidence,omitempty"` // the bidder's signed request, public with the bid; nil for none
	Claims    int                 `json:"claims,omitempty"`   // how often the payer gave a reference
	LiveAt    time.Time           `json:"liveAt"`
	EndsAt    time.Time           `json:"endsAt"`
	RespondBy time.Time           `json:"respondBy"`
	Answer    string              `json:"answer,omitempty"`
	AnswerURL string              `json:"answerUrl,omitempty"`
	Reason    string              `json:"reason,omitempty"` // why it was removed
	FeedID    string              `json:"feedId,omitempty"`
	GaveWay   bool                `json:"gaveWay,omitempty"` // it lapsed before its time, for newer bids

	AnsweredAt time.Time `json:"answeredAt"`
	DisputedAt time.Time `json:"disputedAt,omitzero"` // when the payer said once more to have paid
}

// A PayLink is the payment link of a bid or an order at its provider.
type PayLink struct {
	Attempt   int       `json:"attempt"` // 1 on the first
	Ref       string    `json:"ref,omitempty"`
	At        time.Time `json:"at,omitzero"`  // when it was made
	ID        string    `json:"id,omitempty"` // at the provider, "" while there is none
	URL       string    `json:"url,omitempty"`
	UPI       string    `json:"upi,omitempty"`
	ExpiresAt time.Time `json:"expiresAt"`
	Failed    string    `json:"failed,omitempty"` // why none could be made
}

var bidTable = tableOf[StoredBid]("bid")

// A newBid is a bid with who began it (begunTables), and the profile of this node that made it.
type newBid struct {
	StoredBid
	Agent        *string
	WriterHandle string `db:",null"`
}

var newBidTable = tableOf[newBid]("bid")

// Bids reads and writes the bids on attention boards.
type Bids struct{ tx *Tx }

func (tx *Tx) Bids() Bids { return Bids{tx} }

// ListLive returns the live bids of a board, in no order; there are at most as many as slots.
func (bs Bids) ListLive(ctx context.Context, board string) ([]StoredBid, error) {
	return list[StoredBid](ctx, bs.tx, liveBids, board)
}

var liveBids = bidTable.from + `WHERE board = ? AND slot_no IS NOT NULL AND state = 'live'`

// RenumberSlots gives the bids of a board slots from 1 to slots, before the board has no more than
// that; ErrExists when more are in use.
func (bs Bids) RenumberSlots(ctx context.Context, b *AttentionBoard, slots int) error {
	if slots >= b.Terms.Slots {
		return nil
	}
	type used struct {
		ID   string
		Slot int `db:"slot_no"`
	}
	all, err := list[used](ctx, bs.tx, `SELECT id, slot_no FROM bid WHERE board = ? AND slot_no IS NOT NULL ORDER BY slot_no`, b.ID)
	if err != nil {
		return err
	}
	if len(all) > slots {
		return ErrExists
	}
	for i, u := range all { // in their order, so that the new number is never above the old one
		if u.Slot == i+1 {
			continue
		}
		if _, err := bs.tx.write(ctx, `UPDATE bid SET slot_no = ? WHERE id = ?`, i+1, u.ID); err != nil {
			return err
		}
	}
	return nil
}

// Insert stores a new bid, with its first move.
func (bs Bids) Insert(ctx context.Context, b *StoredBid) error {
	if err := newBidTable.insert(ctx, bs.tx, &newBid{*b, begunBy(b.Bidder, b.Author), b.By}); err != nil {
		return fmt.Errorf("store bid: %w", err)
	}
	if err := bs.moved(ctx, b); err != nil {
		return err
	}
	return bs.insertMove(ctx, b, "")
}

func (bs Bids) moved(ctx context.Context, b *StoredBid) error {
	return bs.tx.Exchanges().thing(ctx, b.ID, b.Handle, b.Bidder, protocol.BidExchange(b.State, !b.LiveAt.IsZero()))
}

// Save stores what may change of a bid. The board's row is locked.
func (bs Bids) Save(ctx context.Context, b *StoredBid) error {
	return bidTable.update(ctx, bs.tx, b, "id", "state", "hold", "slot_no", "denied", "paid", "utr", "dispute",
		"hold_until", "free_at", "moved_at", "moves", "doc")
}

// Move stores a bid whose state has just changed, and the move.
func (bs Bids) Move(ctx context.Context, b *StoredBid, note string) error {
	b.Moves++
	b.MovedAt = bs.tx.Now
	if err := bs.Save(ctx, b); err != nil {
		return err
	}
	if err := bs.moved(ctx, b); err != nil {
		return err
	}
	return bs.insertMove(ctx, b, note)
}

// A move is a row of bid_move.
type move struct {
	Bid string
	N   int
	protocol.BidMove
}

var moveTable = tableOf[move]("bid_move")

func (bs Bids) insertMove(ctx context.Context, b *StoredBid, note string) error {
	return moveTable.insert(ctx, bs.tx, &move{b.ID, b.Moves, protocol.BidMove{State: b.State, At: bs.tx.Now, Note: note}})
}

// Moves returns the moves of a bid, oldest first.
func (bs Bids) Moves(ctx context.Context, id string) ([]protocol.BidMove, error) {
	return list[protocol.BidMove](ctx, bs.tx, `SELECT state, at, note FROM bid_move WHERE bid = ? ORDER BY n LIMIT 200`, id)
}

// MoveByNumber returns one move of a bid; ErrNotFound when there is none.
func (bs Bids) MoveByNumber(ctx context.Context, id string, n int) (protocol.BidMove, error) {
	return find[protocol.BidMove](ctx, bs.tx, `SELECT state, at, note FROM bid_move WHERE bid = ? AND n = ?`, id, n)
}

// Bids by their keys.
var (
	bidByID       = bidTable.from + `WHERE id = ?`
	bidByToken    = bidTable.from + `WHERE token_hash = ?`
	bidByPayToken = bidTable.from + `WHERE pay_hash = ?`
)

// ByID returns a bid; ErrNotFound when there is none. Who changes it locks the board first.
func (bs Bids) ByID(ctx context.Context, id string) (*StoredBid, error) {
	return pointer(find[StoredBid](ctx, bs.tx, bidByID, id))
}

// ByToken returns the bid that a status token opens, by the token's hash.
func (bs Bids) ByToken(ctx context.Context, hash [32]byte) (*StoredBid, error) {
	return pointer(find[StoredBid](ctx, bs.tx, bidByToken, hash[:]))
}

// ByPayToken returns the bid whose payment page has that secret, by its hash.
func (bs Bids) ByPayToken(ctx context.Context, hash [32]byte) (*StoredBid, error) {
	return pointer(find[StoredBid](ctx, bs.tx, bidByPayToken, hash[:]))
}

// BidReader is the name under which the holder of a bid's status token reads news.
func BidReader(id string) string { return "bid:" + id }

// ListDue returns the unpaid bids of a board whose hold, or whose wait for the owner, is over.
func (bs Bids) ListDue(ctx context.Context, board string) ([]StoredBid, error) {
	return list[StoredBid](ctx, bs.tx, dueBids, board, millis(bs.tx.Now), board, millis(bs.tx.Now))
}

var dueBids = bidTable.from + `WHERE board = ? AND state = 'held' AND hold_until <= ?
	UNION ALL ` + bidTable.from + `WHERE board = ? AND state = 'claimed' AND hold_until <= ?`

// ListOpen returns the bids of a board that are unpaid or live.
func (bs Bids) ListOpen(ctx context.Context, board string) ([]StoredBid, error) {
	return list[StoredBid](ctx, bs.tx, openBids, board, board)
}

var openBids = bidTable.from + `WHERE board = ? AND state = 'held' UNION ALL ` +
	bidTable.from + `WHERE board = ? AND slot_no IS NOT NULL AND state = 'live'`

// Counts of one bidder, each up to a small number.
const (
	bidsOnBoard = `SELECT count(*) FROM bid WHERE bidder = ? AND board = ? AND state IN ('held', 'claimed') AND hold_until > ?`
	bidsOnNode  = `SELECT count(*) FROM bid WHERE bidder = ? AND state IN ('held', 'claimed') AND hold_until > ?`
	bidsLapsed  = `SELECT count(*) FROM (SELECT 1 FROM bid WHERE bidder = ? AND state = 'lapsed' AND moved_at > ? LIMIT 10) r`
	bidsDenied  = `SELECT count(*) FROM (SELECT 1 FROM bid WHERE bidder = ? AND board = ? AND denied LIMIT 10) r`
	bidsUnpaid  = `SELECT COALESCE(sum(CASE WHEN anonymous THEN 0 ELSE 1 END), 0), COALESCE(sum(CASE WHEN anonymous THEN 1 ELSE 0 END), 0) FROM bid
	WHERE board = ? AND state = 'held'`
	slotsUnknown = `SELECT count(*) FROM bid WHERE board = ? AND slot_no IS NOT NULL AND anonymous AND state IN ('held', 'claimed') AND hold_until > ?`
)

// A BidderCount is what limits a bidder.
type BidderCount struct {
	OnBoard, OnNode int              // unpaid bids
	Lapsed          int              // holds that lapsed lately
	Denied          int              // claims that the board's owner denied
	Unpaid          protocol.Waiting // unpaid bids of everybody on the board
	Unknown         int              // slots that anonymous bidders keep on the board
}

// CountBidder counts the bids that limit a bidder. A concurrent count of the same bidder waits for
// this transaction to end, so that the limits are exact over all boards and processes.
func (bs Bids) CountBidder(ctx context.Context, board, bidder string) (c BidderCount, err error) {
	if err := bs.tx.lockName(ctx, "bidder "+bidder); err != nil {
		return c, err
	}
	now := millis(bs.tx.Now)
	for _, one := range []struct {
		n    *int
		text string
		args []any
	}{
		{&c.OnBoard, bidsOnBoard, []any{bidder, board, now}}, {&c.OnNode, bidsOnNode, []any{bidder, now}},
		{&c.Lapsed, bidsLapsed, []any{bidder, millis(bs.tx.Now.Add(-protocol.LapsedWithin))}}, {&c.Denied, bidsDenied, []any{bidder, board}},
		{&c.Unknown, slotsUnknown, []any{board, now}},
	} {
		if err := bs.tx.row(ctx, one.text, one.args...).Scan(one.n); err != nil {
			return c, err
		}
	}
	return c, bs.tx.row(ctx, bidsUnpaid, board).Scan(&c.Unpaid.Known, &c.Unpaid.Strangers)
}

var oldestBids = bidTable.from + `WHERE board = ? AND state = 'held' AND hold = 'competing' AND anonymous = ? ORDER BY hold_until LIMIT ?`

// Oldest returns the unpaid bids of strangers, or of known callers, that keep no slot on a board, the
// oldest first.
func (bs Bids) Oldest(ctx context.Context, board string, anonymous bool, most int) ([]StoredBid, error) {
	return list[StoredBid](ctx, bs.tx, oldestBids, board, anonymous, most)
}

// List returns the bids of a board, newest first; state "" is every state.
func (bs Bids) List(ctx context.Context, board string, state protocol.BidState, limit int, after string) (protocol.Page[StoredBid], error) {
	text, args := bidsQuery(board, state)
	return newest[StoredBid](ctx, bs.tx, "bids-"+string(state), "id", limit, after, text, args...)
}

func bidsQuery(board string, state protocol.BidState) (text string, args []any) {
	if state == "" {
		return bidTable.from + `WHERE board = ? AND ` + onesOwn, []any{board}
	}
	return bidTable.from + `WHERE board = ? AND state = ? AND ` + onesOwnState, []any{board, string(state)}
}

// UTRClaimed reports whether another claimed bid of the board has the reference.
func (bs Bids) UTRClaimed(ctx context.Context, board, utr, except string) (bool, error) {
	id, err := find[string](ctx, bs.tx, `SELECT id FROM bid WHERE board = ? AND utr = ? AND state = 'claimed' AND utr IS NOT NULL`, board, utr)
	return err == nil && id != except, orNothing(err)
}

// unpaidBids keeps those whose payment was reported as long as the board counts them.
const unpaidBids = `SELECT id FROM bid s WHERE s.moved_at < ? AND (s.state <> 'unconfirmed' OR s.moved_at < ?) AND ` + abandoned +
	` ORDER BY s.moved_at LIMIT 500`

// Prune deletes bids that were never paid and ended before a time, at most 500 per call, and
// returns how many. One that is paid meanwhile stays.
func (bs Bids) Prune(ctx context.Context, before time.Time) (int, error) {
	ids, err := list[string](ctx, bs.tx, unpaidBids, millis(before), millis(bs.tx.Now.Add(-protocol.UnconfirmedFor)))
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return stocks[StockBids].drop(ctx, bs.tx, toAny(ids))
}
