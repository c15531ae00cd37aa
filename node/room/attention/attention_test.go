package attention_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/hall"
	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/node/out/pay/upi"
	"stoa/node/room/attention"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

var start = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

// world is a room on a database with a clock that the test moves.
type world struct {
	*attention.Attention
	t      testing.TB
	config storage.Config
	db     *storage.DB
	now    *atomic.Int64 // Unix milliseconds
	fault  fault
}

// A fault is where in a write a process dies.
type fault string

const (
	beforeCommit fault = "before the commit"
	afterCommit  fault = "after the commit, before the answer"
)

var errDied = errors.New("the process died")

func each(t *testing.T, fn func(w *world)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) { fn(open(t, c)) })
}

// anyEngine is for tables of cases, whose statements TestModel and the walks of bids run on both engines.
func anyEngine(t *testing.T, fn func(w *world)) {
	t.Parallel()
	storagetest.Any(t, func(t *testing.T, c storage.Config) { fn(open(t, c)) })
}

func open(t testing.TB, c storage.Config) *world {
	w := &world{t: t, now: new(atomic.Int64), config: c}
	w.now.Store(start.UnixMilli())
	w.config.Now = func() time.Time { return time.UnixMilli(w.now.Load()) }
	db := must.Get(storage.Open(t.Context(), w.config))(t)
	w.db = db
	t.Cleanup(func() {
		require.NoError(t, w.db.Check(context.Background()), "the invariants of the database hold")
		require.NoError(t, w.db.Close())
	})
	sealer := must.Get(key.NewSealer(make([]byte, 32)))(t)
	open := func(a money.Account) (pay.Provider, error) { return upi.New("asha@okbank", a.Name, time.Now) }
	books := &money.Money{Base: "https://n1.example", DB: db, Seal: sealer, Pay: open, Kinds: map[string]money.Kind{}}
	w.Attention = attention.New(hall.House{Base: books.Base, DB: db, Private: true}, true, books, nil, nil)
	return w
}

func (w *world) pass(d time.Duration) { w.now.Add(d.Milliseconds()) }

// another returns a second room on the same database with its own connection, as a second process has.
func (w *world) another() *world {
	w.t.Helper()
	db := must.Get(storage.Open(w.t.Context(), w.config))(w.t)
	next, room, books := *w, *w.Attention, *w.Money
	room.DB, next.db, next.Attention, room.Money, books.DB = db, db, &room, &books, db
	return &next
}

// restart replaces the process, which has died, by another one.
func (w *world) restart() {
	w.t.Helper()
	died, next := w.db, w.another()
	w.db, w.Attention = next.db, next.Attention
	require.NoError(w.t, died.Close())
}

// write writes as the process, which dies where its fault says.
func (w *world) write(fn func(ctx context.Context, tx *storage.Tx) error) error {
	err := w.db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		if err := fn(ctx, tx); err != nil || w.fault != beforeCommit {
			return err
		}
		return errDied
	})
	if err == nil && w.fault == afterCommit {
		err = errDied
	}
	return err
}

func (w *world) read(fn func(ctx context.Context, tx *storage.Tx) error) error {
	return w.db.Read(context.Background(), fn)
}

func (w *world) person(handle string, kind protocol.ProfileKind) {
	w.t.Helper()
	require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: strings.ToUpper(handle), Kind: kind}}))
	}))
}

func owner(handle string) protocol.Caller {
	return protocol.Caller{
		Standing: protocol.Session, Account: "acc_" + handle, Handle: handle, Handles: []string{handle}, Name: strings.ToUpper(handle), Network: "net-" + handle,
	}
}

func (w *world) account(handle string, in protocol.PaymentDraft) (got protocol.PaymentAccount, err error) {
	return does(w, w.PutAccount, owner(handle), in)
}

func (w *world) board(handle string, in protocol.AttentionDraft) (got protocol.OwnAttentionBoard, err error) {
	return does(w, w.PutOwn, owner(handle), in)
}

var upiDraft = protocol.PaymentDraft{Provider: protocol.PayUPI, VPA: "asha@okbank"}

// opened opens a board that takes bids.
func (w *world) opened(in protocol.AttentionDraft) protocol.OwnAttentionBoard {
	w.t.Helper()
	w.person("asha", protocol.Person)
	must.Get(w.account("asha", upiDraft))(w.t)
	return must.Get(w.board("asha", in))(w.t)
}

func (w *world) readBoard() (got protocol.AttentionBoard, err error) {
	return sees(w, w.ReadBoard, protocol.Caller{}, protocol.HandleInput{Handle: "asha"})
}

func (w *world) check(amount protocol.Decimal, category string) (got protocol.BidOutlook, err error) {
	return sees(w, w.Check, protocol.Caller{}, protocol.BidCheck{Handle: "asha", Amount: amount, Category: category})
}

// TestBoard: what an owner writes is what bidders read; it takes bids once there is an account to
// pay to.
func TestBoard(t *testing.T) {
	each(t, func(w *world) {
		w.person("asha", protocol.Person)
		w.person("shop", protocol.Business)
		require.Equal(w.t, protocol.Forbidden, protocol.CodeOf(must.Err(w.board("shop", protocol.AttentionDraft{}))), "only persons")
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.readBoard())))

		own := must.Get(w.board("asha", protocol.AttentionDraft{
			Rules: "Offers of yarn.", Floor: "500", Slots: 3, Categories: []protocol.BoardCategory{{Name: "Yarn", Floor: "700"}},
		}))(w.t)
		require.True(w.t, own.Open)
		require.True(w.t, own.Wanted)
		require.False(w.t, own.Accepting, "there is no account to pay to")
		require.Nil(w.t, own.Price)
		require.False(w.t, must.Get(w.check("900", ""))(w.t).WouldGetSlot)

		must.Get(w.account("asha", upiDraft))(w.t)
		b := must.Get(w.readBoard())(w.t)
		require.True(w.t, b.Accepting)
		require.Equal(w.t, "upi", *b.Paid)
		require.False(w.t, b.Test)
		require.Equal(w.t, protocol.Money{Currency: "INR", Amount: "500.00"}, *b.Price)
		require.Equal(w.t, protocol.BasisFree, b.Basis)
		require.Equal(w.t, 3, b.FreeSlots)
		require.Equal(w.t, []protocol.CategoryPrice{{Name: "Yarn", Floor: protocol.Money{Currency: "INR", Amount: "700.00"}}}, b.Categories)
		require.Empty(w.t, b.Bids)

		for _, tt := range []struct {
			amount   protocol.Decimal
			category string
			place    *int // also whether it would get a slot
			code     protocol.Code
		}{
			{"500", "", new(1), ""}, {"499.99", "", nil, ""}, {"699.99", "yarn", nil, ""}, {"700", "YARN", new(1), ""},
			{"500", "ink", nil, protocol.Validation}, {"100000.01", "", nil, protocol.Validation},
		} {
			out, err := w.check(tt.amount, tt.category)
			require.Equal(w.t, tt.code, protocol.CodeOf(err), tt.amount)
			require.Equal(w.t, tt.place != nil, out.WouldGetSlot, tt.amount)
			require.Equal(w.t, tt.place, out.Place, tt.amount)
		}
		require.NoError(w.t, w.read(func(ctx context.Context, tx *storage.Tx) error {
			page := must.Get(w.List(ctx, tx, protocol.Caller{}, protocol.AttentionQuery{}))(w.t)
			require.Len(w.t, page.Items, 1)
			require.Equal(w.t, 3, *page.Items[0].FreeSlots)
			require.Equal(w.t, "500.00", page.Items[0].Floor.Amount)
			require.True(w.t, page.Items[0].Accepting)
			return nil
		}))
		own = must.Get(w.board("asha", protocol.AttentionDraft{Accepting: new(false)}))(w.t)
		require.False(w.t, own.Accepting)
		require.Equal(w.t, "100.00", own.Floor.Amount, "what is left out gets its default")
		must.Get(does(w, w.DeleteAccount, owner("asha"), protocol.OwnInput{}))(w.t)
		own = must.Get(w.board("asha", protocol.AttentionDraft{}))(w.t)
		require.False(w.t, own.Accepting)
	})
}

// TestAccount: secrets are stored encrypted, stay when they are left out, and are never shown.
func TestAccount(t *testing.T) {
	each(t, func(w *world) {
		w.person("asha", protocol.Person)
		_, err := w.account("asha", protocol.PaymentDraft{Provider: protocol.PayRazorpay, KeyID: "rzp_test_1"})
		require.Equal(w.t, protocol.Validation, protocol.CodeOf(err))
		got := must.Get(w.account("asha", protocol.PaymentDraft{
			Provider: protocol.PayRazorpay, KeyID: "rzp_test_1", KeySecret: "s3cr3t-key", WebhookSecrets: []string{"whsec-one", "whsec-two"},
		}))(w.t)
		require.True(w.t, got.HasKeySecret)
		require.Equal(w.t, 2, got.WebhookSecrets)
		require.True(w.t, strings.HasPrefix(*got.WebhookURL, "https://n1.example/hooks/pay/razorpay/"))
		again := must.Get(w.account("asha", protocol.PaymentDraft{Provider: protocol.PayRazorpay, KeyID: "rzp_test_1", LegalName: "Asha Rao"}))(w.t)
		require.Equal(w.t, 2, again.WebhookSecrets)
		require.Equal(w.t, got.WebhookURL, again.WebhookURL)
		require.Nil(w.t, must.Get(w.account("asha", upiDraft))(w.t).WebhookURL)
		require.NoError(w.t, w.read(func(ctx context.Context, tx *storage.Tx) error {
			all := must.Get(tx.PaymentAccounts().OfProfile(ctx, "asha"))(w.t)
			require.Len(w.t, all, 2)
			for _, a := range all {
				require.NotContains(w.t, string(a.Sealed), "s3cr3t")
				if a.Provider == protocol.PayRazorpay {
					require.NotNil(w.t, a.RetiredAt)
					require.Nil(w.t, a.Sealed, "no bid needs it")
				}
			}
			return nil
		}))
		w.Sandbox = false
		_, err = w.account("asha", protocol.PaymentDraft{Provider: protocol.PaySandbox})
		require.Equal(w.t, protocol.Validation, protocol.CodeOf(err), "only where the operator allows it")
	})
}
