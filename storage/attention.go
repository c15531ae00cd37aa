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
	Seq                  int64
	ID, Handle           string // Handle is "" once the profile is deleted
	Open                 bool
	Account              string // id of the payment account in use, "" for none
	Disputes             int    // known payers with an undecided dispute
	Terms                protocol.BoardTerms
	CreatedAt, UpdatedAt time.Time
}

// Accepts reports whether the board takes bids.
func (b *AttentionBoard) Accepts() bool {
	return b.Open && b.Terms.Accepting && b.Account != "" && !protocol.Disputed(b.Disputes)
}

const boardColumns = `seq, id, COALESCE(handle, ''), open, COALESCE(account, ''), disputes, doc, created_at, updated_at`

func scanBoard(s scanner) (b AttentionBoard, err error) {
	var doc []byte
	var created, updated int64
	if err = s.Scan(&b.Seq, &b.ID, &b.Handle, &b.Open, &b.Account, &b.Disputes, &doc, &created, &updated); err != nil {
		return b, err
	}
	b.CreatedAt, b.UpdatedAt = moment(created), moment(updated)
	if err = json.Unmarshal(doc, &b.Terms); err != nil {
		return b, fmt.Errorf("attention board %s: %w", b.ID, err)
	}
	return b, nil
}

// Attention boards by their keys.
const (
	boardByHandle = `SELECT ` + boardColumns + ` FROM attention_board WHERE handle = ?`
	boardByID     = `SELECT ` + boardColumns + ` FROM attention_board WHERE id = ?`
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
	if bs.tx.writes() {
		if err := bs.tx.dirty(); err != nil {
			return nil, err
		}
		query += bs.tx.db.engine.ForUpdate()
	}
	b, err := scanBoard(bs.tx.row(ctx, query, key))
	return &b, err
}

// Put stores a board under its handle, and shows in profile and lists whether it is open. A new
// one gets an id.
func (bs AttentionBoards) Put(ctx context.Context, b *AttentionBoard) error {
	if b.ID == "" {
		b.ID, b.CreatedAt = protocol.NewID(protocol.AttentionID, bs.tx.Now), bs.tx.Now
	}
	doc, err := json.Marshal(b.Terms)
	if err != nil {
		return fmt.Errorf("encode attention board: %w", err)
	}
	b.UpdatedAt = bs.tx.Now
	if err := bs.tx.row(ctx, `INSERT INTO attention_board (id, handle, open, listed, account, doc, created_at, updated_at)
		VALUES (?, ?, ?, FALSE, NULLIF(?, ''), ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET open = excluded.open, account = excluded.account, doc = excluded.doc, updated_at = excluded.updated_at RETURNING seq`,
		b.ID, b.Handle, b.Open, b.Account, string(doc), millis(b.CreatedAt), millis(b.UpdatedAt)).Scan(&b.Seq); err != nil {
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
	return bs.relist(ctx, handle, r.Listed)
}

// relist adds the board of a profile to the list or removes it: it is listed while it is open and
// its profile is listed.
func (bs AttentionBoards) relist(ctx context.Context, handle string, listed bool) error {
	b, err := scanBoard(bs.tx.row(ctx, boardByHandle, handle))
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
	var one int
	err := bs.tx.row(ctx, owing, id, id).Scan(&one)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil, err
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
		if _, err := bs.tx.write(ctx, `UPDATE attention_board SET handle = NULL, open = FALSE, listed = FALSE, account = NULL WHERE seq = ?`, b.Seq); err != nil {
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
	Used  int               // slots that are not free
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
	rows, err := bs.tx.query(ctx, text, args...)
	found, err := collect(rows, err, func(s scanner) (l ListedBoard, err error) {
		var doc, draft, account []byte
		var created, updated int64
		if err = s.Scan(&l.Seq, &l.ID, &l.Handle, &l.Open, &l.Account, &l.Disputes, &doc, &created, &updated, &draft, &account); err != nil {
			return l, err
		}
		l.CreatedAt, l.UpdatedAt = moment(created), moment(updated)
		if err = json.Unmarshal(doc, &l.Terms); err == nil {
			err = json.Unmarshal(draft, &l.Draft)
		}
		if err == nil {
			err = json.Unmarshal(account, &l.Paid)
		}
		return l, err
	})
	if err != nil {
		return protocol.Page[ListedBoard]{}, err
	}
	p := page(found, limit, listing, func(l ListedBoard) string { return number(l.Seq) })
	return p, bs.countUsed(ctx, p.Items)
}

func boardsQuery(category string, before int64, limit int) (string, []any) {
	const columns = `b.seq, b.id, COALESCE(b.handle, ''), b.open, COALESCE(b.account, ''), b.disputes, b.doc, b.created_at, b.updated_at, p.draft,
		COALESCE((SELECT a.doc FROM payment_account a WHERE a.id = b.account), '{}')`
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
		board string
		n     int
	}
	rows, err := bs.tx.query(ctx, usedQuery(len(boards)), append(args, millis(bs.tx.Now))...)
	counts, err := collect(rows, err, func(s scanner) (u used, err error) { return u, s.Scan(&u.board, &u.n) })
	if err != nil {
		return err
	}
	by := map[string]int{}
	for _, u := range counts {
		by[u.board] = u.n
	}
	for i := range boards {
		boards[i].Used = by[boards[i].ID]
	}
	return nil
}

func usedQuery(boards int) string {
	return `SELECT board, count(*) FROM bid WHERE board IN (` + marks(boards) + `) AND slot_no IS NOT NULL AND (state = 'live' OR hold_until > ?) GROUP BY board`
}

// boardView reads what has a slot on a board.
const boardSlots = `SELECT id, state, slot_no, paise, bid_at, COALESCE(free_at, 0), COALESCE(hold_until, 0) FROM bid WHERE board = ? AND slot_no IS NOT NULL`

// contested counts unpaid bids without a slot, up to the most that a board can have.
const contested = `SELECT count(*) FROM bid WHERE board = ? AND state = 'held' AND hold_until > ? AND slot_no IS NULL`

// View returns what decides about bids on a board now: holds that are over keep nothing, even if
// no job has ended them yet. The slot that the bid except keeps is left out.
func (bs AttentionBoards) View(ctx context.Context, b *AttentionBoard, except string) (protocol.BoardView, error) {
	v := protocol.BoardView{Terms: b.Terms}
	type slot struct {
		protocol.PlacedBid
		state protocol.BidState
		until time.Time
	}
	rows, err := bs.tx.query(ctx, boardSlots, b.ID)
	found, err := collect(rows, err, func(s scanner) (x slot, err error) {
		var at, free, until int64
		err = s.Scan(&x.ID, &x.state, &x.Slot, &x.Paise, &at, &free, &until)
		x.BidAt, x.FreeAt, x.until = moment(at), moment(free), moment(until)
		return x, err
	})
	if err != nil {
		return v, err
	}
	for _, x := range found {
		switch {
		case x.state == protocol.BidLive:
			v.Live = append(v.Live, x.PlacedBid)
		case x.ID != except && x.until.After(bs.tx.Now):
			v.Kept = append(v.Kept, protocol.KeptSlot{Slot: x.Slot, Until: x.until})
		}
	}
	err = bs.tx.row(ctx, contested, b.ID, millis(bs.tx.Now)).Scan(&v.Contested)
	return v, err
}
