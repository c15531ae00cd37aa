package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"stoa/protocol"
)

// An AttentionBoard is the attention board of a profile, as it is stored.
type AttentionBoard struct {
	Seq                  int64 `db:",auto"`
	ID                   string
	Handle               string `db:",null"` // "" once the profile is deleted
	Open                 bool
	Listed               bool                // open, of a listed profile; a new one is listed by Put
	Account              string              `db:",null"` // id of the payment account in use, "" for none
	Disputes             int                 `db:",auto"` // known payers with an undecided dispute; set by Bids.CountDisputes
	Terms                protocol.BoardTerms `db:"doc"`
	CreatedAt, UpdatedAt time.Time
}

// Accepts reports whether the board takes bids.
func (b *AttentionBoard) Accepts() bool {
	return b.Open && b.Terms.Accepting && b.Account != "" && !protocol.Disputed(b.Disputes)
}

var boardTable = tableOf[AttentionBoard]("attention_board")

// Attention boards by their keys.
var (
	boardByHandle = boardTable.from + `WHERE handle = ?`
	boardByID     = boardTable.from + `WHERE id = ?`
)

// AttentionBoards reads and writes the attention boards of profiles.
type AttentionBoards struct{ tx *Tx }

func (tx *Tx) AttentionBoards() AttentionBoards { return AttentionBoards{tx} }

// ByHandle returns the attention board of a profile, open or not; ErrNotFound when there is none.
// In a writing transaction the row is locked: one writer decides about a board at a time.
func (bs AttentionBoards) ByHandle(ctx context.Context, handle string) (*AttentionBoard, error) {
	return bs.where(ctx, boardByHandle, handle)
}

// ByID is ByHandle by the board's id.
func (bs AttentionBoards) ByID(ctx context.Context, id string) (*AttentionBoard, error) {
	return bs.where(ctx, boardByID, id)
}

func (bs AttentionBoards) where(ctx context.Context, query, key string) (*AttentionBoard, error) {
	return pointer(findLocked[AttentionBoard](ctx, bs.tx, query, key))
}

// Put stores a board under its handle, and shows in profile and lists whether it is open. A new
// one gets an id.
func (bs AttentionBoards) Put(ctx context.Context, b *AttentionBoard) error {
	if b.ID == "" {
		b.ID, b.CreatedAt = protocol.NewID(protocol.AttentionID, bs.tx.Now), bs.tx.Now
	}
	b.UpdatedAt = bs.tx.Now
	text, args, err := boardTable.statement(b, ` ON CONFLICT (id) DO UPDATE SET open = excluded.open, account = excluded.account, doc = excluded.doc,
		updated_at = excluded.updated_at RETURNING seq`)
	if err == nil {
		b.Seq, err = find[int64](ctx, bs.tx, text, args...)
	}
	if err != nil {
		return fmt.Errorf("store attention board: %w", err)
	}
	return bs.setOpen(ctx, b.Handle, b.Open)
}

// setOpen shows in the profile, and in the index of profiles, whether the profile's attention
// board is open, and places the board in the list.
func (bs AttentionBoards) setOpen(ctx context.Context, handle string, open bool) error {
	r, err := bs.tx.Profiles().lock(ctx, handle)
	if err != nil {
		return err
	}
	if r.Attention != open {
		if _, err := bs.tx.write(ctx, `UPDATE profile SET attention = ? WHERE seq = ?`, open, r.Seq); err != nil {
			return err
		}
		r.Attention = open
		p, err := r.profile()
		if err != nil {
			return err
		}
		m, err := bs.tx.Merchants().of(ctx, r.Seq)
		if err != nil {
			return err
		}
		if err := bs.tx.Profiles().rerank(ctx, r, p, m); err != nil {
			return err
		}
	}
	if r.Listed {
		if err := bs.tx.Profiles().EnqueueTold(ctx, handle); err != nil {
			return err
		}
	}
	return bs.relist(ctx, handle, r.Listed)
}

// relist adds the board of a profile to the list or removes it: it is listed while it is open and
// its profile is listed.
func (bs AttentionBoards) relist(ctx context.Context, handle string, listed bool) error {
	b, err := find[AttentionBoard](ctx, bs.tx, boardByHandle, handle)
	if err == ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	listed = listed && b.Open
	if _, err := bs.tx.write(ctx, `UPDATE attention_board SET listed = ? WHERE seq = ?`, listed, b.Seq); err != nil {
		return err
	}
	if _, err := bs.tx.write(ctx, `DELETE FROM attention_category WHERE seq = ?`, b.Seq); err != nil || !listed {
		return err
	}
	for _, c := range b.Terms.Categories {
		if _, err := bs.tx.write(ctx, `INSERT INTO attention_category (category, seq) VALUES (?, ?) ON CONFLICT DO NOTHING`,
			foldCategory(c.Name), b.Seq); err != nil {
			return err
		}
	}
	return nil
}

// ErrOwing is returned when a board has bids that are unpaid or live, or refunds that are not done.
var ErrOwing = errors.New("the attention board has bids that are not over, or refunds that are not made")

const owing = `SELECT 1 FROM bid WHERE board = ? AND state IN ('held', 'claimed', 'live', 'refund_due')
	UNION ALL SELECT 1 FROM refund WHERE board = ? AND state <> 'done' LIMIT 1`

// owes reports whether a board has bids that are not over, or refunds that are not made.
func (bs AttentionBoards) owes(ctx context.Context, id string) (bool, error) {
	return bs.tx.exists(ctx, owing, id, id)
}

// drop separates the board of a profile that is deleted from its handle. What was paid stays on
// record; the next owner of the handle does not get it. The secrets of accounts go, except those by
// which a payment that a bank reports days after the hold is sent back. ErrOwing while money is under way.
func (bs AttentionBoards) drop(ctx context.Context, handle string) error {
	b, err := bs.ByHandle(ctx, handle)
	switch err {
	case nil:
		if owes, err := bs.owes(ctx, b.ID); err != nil {
			return err
		} else if owes {
			return ErrOwing
		}
		b.Terms.Rules, b.Terms.Categories = "", nil
		terms, err := json.Marshal(b.Terms)
		if err != nil {
			return err
		}
		if _, err := bs.tx.write(ctx, `UPDATE attention_board SET handle = NULL, open = FALSE, listed = FALSE, account = NULL, doc = ? WHERE seq = ?`,
			string(terms), b.Seq); err != nil {
			return err
		}
		if _, err := bs.tx.write(ctx, `DELETE FROM attention_category WHERE seq = ?`, b.Seq); err != nil {
			return err
		}
	case ErrNotFound:
	default:
		return err
	}
	return bs.tx.PaymentAccounts().disown(ctx, handle)
}

func foldCategory(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// A ListedBoard is a board in the list of boards.
type ListedBoard struct {
	AttentionBoard
	Draft protocol.ProfileDraft
	Used  int               `db:"-"` // slots that are not free
	Paid  PaymentAccountDoc // its payment account
}

const listBoards = "attention"

// List returns the open boards of listed profiles, newest first.
func (bs AttentionBoards) List(ctx context.Context, category string, limit int, after string) (protocol.Page[ListedBoard], error) {
	limit = bounded(limit)
	listing := listBoards
	if category = foldCategory(category); category != "" {
		listing += "-" + category
	}
	before, err := position(listing, after, 1<<62)
	if err != nil {
		return protocol.Page[ListedBoard]{}, err
	}
	text, args := boardsQuery(category, before, limit+1)
	found, err := list[ListedBoard](ctx, bs.tx, text, args...)
	if err != nil {
		return protocol.Page[ListedBoard]{}, err
	}
	p := page(found, limit, listing, func(l ListedBoard) string { return number(l.Seq) })
	return p, bs.countUsed(ctx, p.Items)
}

// listedBoard are the columns of a ListedBoard.
func listedBoard() string {
	return boardTable.columnsOf("b.") + `, p.draft, COALESCE((SELECT a.doc FROM payment_account a WHERE a.id = b.account), '{}') AS paid`
}

// Listed returns the board of a profile as the list has it, without what is used of it; ErrNotFound when it is not listed.
func (bs AttentionBoards) Listed(ctx context.Context, handle string) (ListedBoard, error) {
	return find[ListedBoard](ctx, bs.tx, `SELECT `+listedBoard()+` FROM attention_board b JOIN profile p ON p.handle = b.handle
		WHERE b.listed AND b.handle = ?`, handle)
}

func boardsQuery(category string, before int64, limit int) (string, []any) {
	columns := listedBoard()
	if category == "" {
		return `SELECT ` + columns + ` FROM attention_board b JOIN profile p ON p.handle = b.handle WHERE b.listed AND b.seq < ? ORDER BY b.seq DESC LIMIT ?`,
			[]any{before, limit}
	}
	return `SELECT ` + columns + ` FROM attention_category c JOIN attention_board b ON b.seq = c.seq JOIN profile p ON p.handle = b.handle
		WHERE c.category = ? AND c.seq < ? ORDER BY c.seq DESC LIMIT ?`, []any{category, before, limit}
}

// countUsed counts the slots of boards that are not free now.
func (bs AttentionBoards) countUsed(ctx context.Context, boards []ListedBoard) error {
	if len(boards) == 0 {
		return nil
	}
	args := make([]any, 0, len(boards)+1)
	for i := range boards {
		args = append(args, boards[i].ID)
	}
	type used struct {
		Board string
		N     int
	}
	counts, err := list[used](ctx, bs.tx, usedQuery(len(boards)), append(args, millis(bs.tx.Now))...)
	if err != nil {
		return err
	}
	by := map[string]int{}
	for _, u := range counts {
		by[u.Board] = u.N
	}
	for i := range boards {
		boards[i].Used = by[boards[i].ID]
	}
	return nil
}

func usedQuery(boards int) string {
	return `SELECT board, count(*) AS n FROM bid WHERE board IN (` + marks(boards) + `)
		AND slot_no IS NOT NULL AND (state = 'live' OR hold_until > ?) GROUP BY board`
}

// boardView reads what has a slot on a board.
const boardSlots = `SELECT id, state, slot_no, paise, bid_at, free_at, hold_until FROM bid WHERE board = ? AND slot_no IS NOT NULL`

// contested counts unpaid bids without a slot, up to the most that a board can have.
const contested = `SELECT count(*) FROM bid WHERE board = ? AND state = 'held' AND hold_until > ? AND slot_no IS NULL`

// View returns what decides about bids on a board now: holds that are over keep nothing, even if
// no job has ended them yet. The slot that the bid except keeps is left out.
func (bs AttentionBoards) View(ctx context.Context, b *AttentionBoard, except string) (protocol.BoardView, error) {
	v := protocol.BoardView{Terms: b.Terms}
	type slot struct {
		protocol.PlacedBid
		SlotNo    int
		State     protocol.BidState
		HoldUntil time.Time
	}
	found, err := list[slot](ctx, bs.tx, boardSlots, b.ID)
	if err != nil {
		return v, err
	}
	for _, x := range found {
		x.Slot = x.SlotNo
		switch {
		case x.State == protocol.BidLive:
			v.Live = append(v.Live, x.PlacedBid)
		case x.ID != except && x.HoldUntil.After(bs.tx.Now):
			v.Kept = append(v.Kept, protocol.KeptSlot{Slot: x.Slot, Until: x.HoldUntil})
		}
	}
	err = bs.tx.row(ctx, contested, b.ID, millis(bs.tx.Now)).Scan(&v.Contested)
	return v, err
}
