package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// secrets are what no archive may hold, by what it is.
type secrets map[string]string

// board opens an attention board of asha with a bid in each of the states, and returns what is secret
// of them. A bid that was paid has its payment, and its refund where it has ended.
func (h *home) board(states ...protocol.BidState) secrets {
	h.t.Helper()
	hidden := secrets{"secrets of the account": "sealed-secrets", "webhook": "hook-of-the-account", "callback": "https://reader.example/told?key=mine",
		"network": "net:192.0.2.0/24", "link": "https://pay.example/l/1", "cookie": "hash-of-a-cookie"}
	h.write(func(ctx context.Context, tx *storage.Tx) error {
		account := &storage.PaymentAccount{Handle: "asha", Provider: protocol.PayRazorpay, Hook: hidden["webhook"], Sealed: []byte(hidden["secrets of the account"])}
		require.NoError(h.t, tx.PaymentAccounts().Put(ctx, account))
		b := &storage.AttentionBoard{Handle: "asha", Open: true, Account: account.ID}
		b.Terms, _ = protocol.AttentionDraft{Rules: "Yarn only.", Categories: []protocol.BoardCategory{{Name: "Wool", Floor: "200"}}}.Terms()
		require.NoError(h.t, tx.AttentionBoards().Put(ctx, b))
		for i, state := range states {
			bid := &storage.StoredBid{ID: protocol.NewID(protocol.BidID, tx.Now), Board: b.ID, State: state, Paise: 500_00, Bidder: hidden["network"],
				Anonymous: true, Account: account.ID, BidAt: tx.Now, MovedAt: tx.Now, Moves: 1, UTR: "412345678901"}
			bid.Paid = !state.Unpaid() && state != protocol.BidLapsed && state != protocol.BidWithdrawn && state != protocol.BidUnconfirmed
			if state == protocol.BidLive {
				bid.Slot = 1
			}
			bid.TokenHash[0], bid.TokenHash[31], bid.PayHash[0], bid.PayHash[31] = byte(i), 1, byte(i), 2
			bid.BidDoc = storage.BidDoc{Author: protocol.Author{Name: "Meera", Method: protocol.ByProof}, Message: "Yarn <b>", Handle: "asha",
				Callback: hidden["callback"], Visitor: []byte(hidden["cookie"]), Link: storage.PayLink{URL: hidden["link"], UPI: "upi://" + hidden["link"]}}
			for kind, hash := range map[string][32]byte{"status": bid.TokenHash, "payment": bid.PayHash} {
				hidden[kind+" token in hex of "+string(state)] = hex.EncodeToString(hash[:])
				hidden[kind+" token in base64 of "+string(state)] = base64.StdEncoding.EncodeToString(hash[:])
			}
			require.NoError(h.t, tx.Bids().Insert(ctx, bid))
			if bid.Paid {
				require.NoError(h.t, h.paid(ctx, tx, bid))
			}
		}
		return nil
	})
	return hidden
}

// paid stores the payment of a bid and its receipt, and its refund, which is made when the bid is.
func (h *home) paid(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) error {
	p := &storage.StoredPayment{Book: bid.Board, Subject: bid.ID, Account: bid.Account, Provider: protocol.PayRazorpay, Payee: "rzp_live_1",
		PaymentID: "pay_of_" + bid.ID, Reference: "bank-7", Paise: bid.Paise, PaidAt: tx.Now}
	if err := tx.Payments().Insert(ctx, p); err != nil {
		return err
	}
	switch bid.State {
	case protocol.BidRefundDue: // also without a row of its refund its money is under way
		return nil
	case protocol.BidRefunding, protocol.BidRefundFailed:
		return tx.Refunds().Insert(ctx, &storage.StoredRefund{Book: bid.Board, Subject: bid.ID, Payment: p.ID, Paise: 100_00, Why: "no slot", Whole: true,
			State: storage.RefundDue})
	}
	if err := tx.Payments().Place(ctx, p); err != nil {
		return err
	}
	if err := tx.Payments().AddReceipt(ctx, bid.Board, p.ID, protocol.FinancialYearOf(tx.Now), &protocol.Receipt{
		FinancialYear: protocol.FinancialYearOf(tx.Now).String(), IssuedAt: tx.Now, Payee: protocol.ReceiptPayee{Name: "Asha", Address: "1 Main St\nMysuru"},
		Payer: "Meera", Amount: protocol.MoneyOf(protocol.Rupee, bid.Paise), Provider: "razorpay", PaymentID: p.PaymentID, PaidAt: tx.Now, Board: "asha",
		Bid: bid.ID, Notice: protocol.ReceiptNotice, Untrusted: true,
	}); err != nil || bid.State != protocol.BidRefunded {
		return err
	}
	r := &storage.StoredRefund{Book: bid.Board, Subject: bid.ID, Payment: p.ID, Paise: 100_00, Why: "removed", Whole: true, State: storage.RefundOrdered}
	if err := tx.Refunds().Insert(ctx, r); err != nil {
		return err
	}
	r.State, r.Reference, r.DoneAt = storage.RefundDone, "rfnd_1", &tx.Now
	return tx.Refunds().Save(ctx, r)
}

// over are the states of bids that are over, with their money.
var over = []protocol.BidState{protocol.BidUnconfirmed, protocol.BidLapsed, protocol.BidWithdrawn, protocol.BidOutbid, protocol.BidEnded, protocol.BidRemoved,
	protocol.BidUnanswered, protocol.BidRefunded}

// bidsIn returns the lines of bids.ndjson of an archive, by state, and all of its bytes.
func (h *home) bidsIn(raw []byte) (lines map[string]bidRecord, all string) {
	h.t.Helper()
	lines = map[string]bidRecord{}
	require.NoError(h.t, walk(bytes.NewReader(raw), OwnerLimits, skipBegin, func(r record) error {
		if r.file != bidsFile {
			return nil
		}
		b := must.JSON[bidRecord](r.raw)(h.t)
		lines[b.State] = b
		return nil
	}, h.Archive))
	zip := must.Get(gzip.NewReader(bytes.NewReader(raw)))(h.t)
	plain := must.Get(io.ReadAll(zip))(h.t)
	return lines, string(plain)
}

// TestExport_Bids: the archive has every bid of the board with its moves and its money, and nothing
// that opens a bid or tells where its bidder is.
func TestExport_Bids(t *testing.T) {
	t.Parallel()
	h := newHome(t, "https://n1.example", nil)
	h.profile("asha")
	_, all := h.bidsIn(h.export("asha"))
	require.NotContains(t, all, bidsFile, "there never was a board")
	hidden := h.board(protocol.BidStates...)
	lines, all := h.bidsIn(h.export("asha"))
	require.Len(t, lines, len(protocol.BidStates))
	for what, secret := range hidden {
		require.NotContains(t, all, secret, what)
	}
	for _, state := range protocol.BidStates {
		b := lines[string(state)]
		require.Equal(t, "Meera", b.Author.Name, state)
		require.Equal(t, "Yarn <b>", b.Message, state)
		require.Len(t, b.Moves, 1, state)
		require.Equal(t, state, b.Moves[0].State)
	}
	require.Empty(t, lines["lapsed"].Payments)
	refunded := lines["refunded"]
	require.Equal(t, int64(500_00), refunded.Payments[0].Paise)
	require.True(t, refunded.Payments[0].Placed)
	require.Equal(t, "rfnd_1", refunded.Refunds[0].Reference)
	require.Equal(t, "100.00", refunded.Receipt.Refunded.Amount)
	require.Nil(t, lines["ended"].Receipt.Refunded)
	require.Equal(t, "due", lines["refunding"].Refunds[0].State)
}

// TestExport_ManyBids: bids are read page after page.
func TestExport_ManyBids(t *testing.T) {
	t.Parallel()
	h := newHome(t, "https://n1.example", nil)
	h.profile("asha")
	states := make([]protocol.BidState, 2*protocol.MaxLimit+1)
	for i := range states {
		states[i] = protocol.BidLapsed
	}
	h.board(states...)
	_, all := h.bidsIn(h.export("asha"))
	require.Equal(t, len(states), strings.Count(all, `"state":"lapsed","paise"`))
}

// TestRead_Bids: another node counts bids and stores none of them, also those whose money is under way: the
// archive and the report say that they stay with their node.
func TestRead_Bids(t *testing.T) {
	t.Parallel()
	one := newHome(t, "https://n1.example", nil)
	one.profile("asha")
	one.board(over...)
	raw := one.export("asha")
	_, plain := one.bidsIn(raw)
	require.NotContains(t, plain, "are not over")
	two := newHome(t, "https://n2.example", map[string]key.Set{one.Base: keysOf(one)})
	for _, dry := range []bool{true, false, false} {
		report := must.Get(two.imports(raw, Order{By: operator, ImportRequest: protocol.ImportRequest{DryRun: dry}}))(t)
		require.Equal(t, protocol.ImportCount{LeftOut: len(over)}, report.Bids)
		require.Contains(t, strings.Join(report.Notes, "\n"), "stay on the books of n1.example")
	}
	two.write(func(ctx context.Context, tx *storage.Tx) error {
		b, err := tx.AttentionBoards().ByHandle(ctx, "asha")
		require.False(t, b.Open, "the owner opens it")
		require.Empty(t, b.Account)
		page, none := tx.Bids().List(ctx, b.ID, "", protocol.MaxLimit, "")
		require.Empty(t, page.Items)
		return errors.Join(err, none)
	})
	report := must.Get(one.imports(raw, Order{By: operator}))(t)
	require.Equal(t, protocol.ImportCount{Same: len(over)}, report.Bids)

	for _, state := range []protocol.BidState{
		protocol.BidHeld, protocol.BidClaimed, protocol.BidLive, protocol.BidRefundDue, protocol.BidRefunding, protocol.BidRefundFailed,
	} {
		from := newHome(t, "https://n1.example", nil)
		from.profile("asha")
		from.board(append([]protocol.BidState{state}, over...)...)
		raw := from.export("asha")
		to := newHome(t, "https://n2.example", map[string]key.Set{from.Base: keysOf(from)})
		_, all := from.bidsIn(raw)
		require.Contains(t, all, "1 of the bids in bids.ndjson are not over", state)
		report, err := to.imports(raw, Order{By: operator})
		require.NoError(t, err, state)
		require.Equal(t, "created", report.Profile)
		require.Equal(t, protocol.ImportCount{LeftOut: 1 + len(over)}, report.Bids, state)
		require.Contains(t, strings.Join(report.Notes, "\n"), "n1.example goes on with them", state)
		require.Equal(t, 1, report.Posts.New, "the rest is taken")
		require.NoError(t, must.Err(from.imports(raw, Order{By: operator})), state)

		// The other node is gone for good: what its owner has to send back is told, and nothing stored.
		report, err = to.imports(raw, Order{By: operator, Vouch: true})
		require.NoError(t, err, state)
		require.Equal(t, protocol.ImportCount{LeftOut: 1 + len(over)}, report.Bids)
		owed := " was paid for it and not sent back; settle that with its payer, whom payment bank-7 names"
		require.Equal(t, !state.Unpaid(), strings.Contains(strings.Join(report.Notes, "\n"), owed), state)
	}
}

// TestRead_BidForm: a bid that is not of the form is refused, whatever node the archive names.
func TestRead_BidForm(t *testing.T) {
	t.Parallel()
	h := newHome(t, "https://n2.example", nil)
	profile := part{name: profileFile, body: `{"draft":{"handle":"asha","name":"Asha","kind":"person","headline":"","description":""},"unlisted":false,` +
		`"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}`}
	good := must.Get(json.Marshal(bidRecord{ID: protocol.NewID(protocol.BidID, time.Now()), State: "ended", Paise: 1, Message: "Yarn",
		Author: authorRecord{Name: "Meera", Method: "pow"}, Moves: []protocol.BidMove{},
		MoneyRecord: MoneyRecord{Payments: []paymentRecord{}, Refunds: []refundRecord{}}}))(t)
	for _, tt := range []struct{ name, old, with string }{
		{"good", "", ""}, {"another state", `"ended"`, `"gone"`}, {"no money", `"paise":1`, `"paise":0`}, {"another id", `"bid_`, `"bad_`},
		{"an unknown member", `"test"`, `"token":"x","test"`}, {"a long message", "Yarn", strings.Repeat("x", 501)}, {"a direction override", "Yarn", "Y\u202e"},
	} {
		body := string(good) + "\n"
		if tt.old != "" {
			body = strings.Replace(body, tt.old, tt.with, 1)
		}
		report, err := h.imports(packed(t, []part{profile, {name: bidsFile, body: body}}, nil),
			Order{By: operator, ImportRequest: protocol.ImportRequest{DryRun: true}})
		if tt.old == "" {
			require.NoError(t, err)
			require.Equal(t, protocol.ImportCount{LeftOut: 1}, report.Bids)
			continue
		}
		require.Equal(t, protocol.InvalidRequest, protocol.CodeOf(err), tt.name)
	}
}
