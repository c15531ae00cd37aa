package attention_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/node/out/pay/upi"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// single is a world on SQLite, for rules in which an engine makes no difference.
func single(t *testing.T) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stoa.db")
	storagetest.Migrated(t, path)
	return open(t, storage.Config{Path: path})
}

// does runs an operation in a transaction of its own.
func does[In, Out any](w *world, op func(context.Context, *storage.Tx, protocol.Caller, In) (Out, error), c protocol.Caller, in In) (out Out, err error) {
	err = w.write(func(ctx context.Context, tx *storage.Tx) error {
		out, err = op(ctx, tx, c, in)
		return err
	})
	return out, err
}

// sees runs an operation that only reads.
func sees[In, Out any](w *world, op func(context.Context, *storage.Tx, protocol.Caller, In) (Out, error), c protocol.Caller, in In) (out Out, err error) {
	err = w.read(func(ctx context.Context, tx *storage.Tx) error {
		out, err = op(ctx, tx, c, in)
		return err
	})
	return out, err
}

// byUPI has accounts of the room paid by UPI, to their own addresses.
func (w *world) byUPI() {
	w.Pay = func(a money.Account) (pay.Provider, error) {
		return upi.New(a.VPA, a.Name, func() time.Time { return time.UnixMilli(w.now.Load()) })
	}
}

func bidRef(r protocol.BidReceipt) protocol.OwnBidRef { return protocol.OwnBidRef{ID: r.Bid.ID} }

func (w *world) claimsBid(r protocol.BidReceipt, utr string) error {
	return must.Err(does(w, w.Claim, protocol.Caller{}, protocol.PaymentClaim{UTR: utr, PayToken: r.StatusToken}))
}

func (w *world) confirmsBid(c protocol.Caller, r protocol.BidReceipt, utr string) error {
	return must.Err(does(w, w.Confirm, c, protocol.PaymentConfirmation{OwnBidRef: bidRef(r), UTR: utr}))
}

// bidsOn bids on a board of any profile.
func (w *world) bidsOn(handle string, c protocol.Caller) protocol.BidReceipt {
	w.t.Helper()
	return must.Get(does(w, w.Bid, c, protocol.NewBid{Handle: handle, Amount: "700", Message: "Yarn.", Name: "Meera"}))(w.t)
}

// TestBlocked: whom the owner has blocked by any of its names may not bid, and nobody else is meant.
func TestBlocked(t *testing.T) {
	t.Parallel()
	const agent = "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7"
	who := protocol.Caller{Standing: protocol.Signed, Agent: agent, Owner: "0xa", Handle: "meera", Account: "acc_1", KeyID: "key-1", Network: "n"}
	for _, tt := range []struct {
		of, block string
		refused   bool
	}{
		{"asha", who.ID(), true}, {"asha", "agent:" + agent, true}, {"asha", "key:key-1", true}, {"asha", "handle:meera", true},
		{"asha", "account:acc_1", true}, {"asha", "agent:" + agent + "@0xa", true}, {"asha", "agent:" + agent + "@0xb", false},
		{"asha", "key:key-2", false}, {"ravi", "key:key-1", false},
	} {
		w := single(t)
		w.market(protocol.AttentionDraft{Slots: 2})
		w.person("ravi", protocol.Person)
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.ContactBlocks().Insert(ctx, &storage.ContactBlock{ID: protocol.NewID(protocol.BlockID, tx.Now), Handle: tt.of, Writer: tt.block,
				Names: []string{tt.block}})
		}))
		_, err := w.bids(who, "700")
		if !tt.refused {
			require.NoError(t, err, "%s of @%s", tt.block, tt.of)
			continue
		}
		require.Equal(t, protocol.ContactRefused, protocol.CodeOf(err), tt.block)
		require.EqualValues(t, 2, w.free(), "nothing was stored")
	}
}

// TestBid_OnNode: one bidder has few unpaid bids on all boards together.
func TestBid_OnNode(t *testing.T) {
	t.Parallel()
	w := single(t)
	w.byUPI()
	w.opened(protocol.AttentionDraft{Slots: 2})
	var last protocol.BidReceipt
	for _, handle := range []string{"b1", "b2", "b3"}[:protocol.MaxOpenOnNode] {
		w.person(handle, protocol.Person)
		must.Get(w.account(handle, upiDraft))(t)
		must.Get(w.board(handle, protocol.AttentionDraft{Slots: 2}))(t)
		last = w.bidsOn(handle, keyed(1))
	}
	require.Equal(t, protocol.Conflict, protocol.CodeOf(must.Err(w.bids(keyed(1), "700"))))
	w.bidsOn("b1", keyed(2))
	must.Get(does(w, w.Withdraw, protocol.Caller{}, protocol.BidInput{ID: last.Bid.ID, StatusToken: last.StatusToken}))(t)
	must.Get(w.bids(keyed(1), "700"))(t)
}

func (w *world) free() int {
	w.t.Helper()
	b := must.Get(w.readBoard())(w.t)
	return b.FreeSlots
}

// TestOwners: what a board's owner does with bids and refunds, another owner and a bidder do not.
func TestOwners(t *testing.T) {
	t.Parallel()
	w := single(t)
	v := w.market(protocol.AttentionDraft{Slots: 2})
	w.person("ravi", protocol.Person)
	one := must.Get(w.bids(keyed(1), "700"))(t)
	require.Equal(t, "live", w.delivers(v.Pays(one.Bid.ID, 700_00)))
	v.Refused = pay.Fail(pay.ErrRefused, "no")
	two := must.Get(w.bids(keyed(2), "700"))(t)
	require.Equal(t, "live", w.delivers(v.Pays(two.Bid.ID, 700_00)))
	w.removed(two.Bid.ID)
	refund := w.bid(two.Bid.ID).Refunds[0]
	require.Equal(t, "failed", refund.State)
	before := []protocol.OwnBid{w.bid(one.Bid.ID), w.bid(two.Bid.ID)}
	ref := bidRef(one)
	for name, do := range map[string]func(protocol.Caller) error{
		"read": func(c protocol.Caller) error { return must.Err(does(w, w.GetBid, c, ref)) },
		"answer": func(c protocol.Caller) error {
			return must.Err(does(w, w.Answer, c, protocol.BidAnswer{OwnBidRef: ref, Answer: "Yes."}))
		},
		"approve": func(c protocol.Caller) error { return must.Err(does(w, w.Approve, c, ref)) },
		"remove": func(c protocol.Caller) error {
			return must.Err(does(w, w.Remove, c, protocol.BidRemoval{OwnBidRef: ref, Reason: "x"}))
		},
		"confirm": func(c protocol.Caller) error { return w.confirmsBid(c, one, "431298765012") },
		"deny":    func(c protocol.Caller) error { return must.Err(does(w, w.Deny, c, ref)) },
		"refund": func(c protocol.Caller) error {
			return must.Err(does(w, w.MarkRefunded, c, protocol.RefundDone{ID: refund.ID, Reference: "x"}))
		},
	} {
		for _, c := range []protocol.Caller{owner("ravi"), keyed(1), unknown(1), {}, {Standing: protocol.Session, Account: "acc_asha"}} {
			require.Equal(t, protocol.NotFound, protocol.CodeOf(do(c)), "%s by %s", name, c.ID())
		}
	}
	require.Equal(t, before, []protocol.OwnBid{w.bid(one.Bid.ID), w.bid(two.Bid.ID)})
	require.Equal(t, protocol.Conflict, protocol.CodeOf(must.Err(does(w, w.Deny, owner("asha"), ref))), "nobody reported a payment of it")
	must.Get(does(w, w.MarkRefunded, owner("asha"), protocol.RefundDone{ID: refund.ID, Reference: "x"}))(t)
	require.Equal(t, protocol.BidRefunded, w.bid(two.Bid.ID).State)
}

// TestReaders: who reads a bid as its bidder, and may withdraw it.
func TestReaders(t *testing.T) {
	t.Parallel()
	w := single(t)
	w.market(protocol.AttentionDraft{Slots: 3})
	one := must.Get(w.bids(keyed(1), "700"))(t)
	two := must.Get(w.bids(keyed(2), "700"))(t)
	pay := one.PaymentURL[strings.LastIndexByte(one.PaymentURL, '/')+1:]
	for _, tt := range []struct {
		name  string
		token string
		c     protocol.Caller
		ok    bool
	}{
		{"its token", one.StatusToken, protocol.Caller{}, true},
		{"its token as a bearer", "", protocol.Caller{ReadToken: one.StatusToken}, true},
		{"its key", "", keyed(1), true},
		{"another bid's token", two.StatusToken, protocol.Caller{}, false},
		{"another bid's token as a bearer", "", protocol.Caller{ReadToken: two.StatusToken}, false},
		{"another bid's token, with its key", two.StatusToken, keyed(1), false},
		{"the secret of its payment page", pay, protocol.Caller{}, false},
		{"any token", protocol.NewReadToken(), protocol.Caller{}, false},
		{"another key", "", keyed(2), false},
		{"its key on a request that is not signed as a whole", "", protocol.Caller{Standing: protocol.Signed, KeyID: "key-1", Partial: true}, false},
		{"its key with a token for something else", "",
			protocol.Caller{Standing: protocol.Session, KeyID: "key-1", Scopes: []protocol.Scope{protocol.ScopeInbox}}, false},
		{"nobody", "", protocol.Caller{}, false},
		{"the owner of the board", "", owner("asha"), false},
	} {
		in := protocol.BidInput{ID: one.Bid.ID, StatusToken: tt.token}
		_, err := does(w, w.Get, tt.c, in)
		if tt.ok {
			require.NoError(t, err, tt.name)
			continue
		}
		require.Equal(t, protocol.NotFound, protocol.CodeOf(err), tt.name)
		require.Equal(t, protocol.NotFound, protocol.CodeOf(must.Err(does(w, w.Withdraw, tt.c, in))), tt.name)
	}
	require.Equal(t, protocol.BidHeld, w.bid(one.Bid.ID).State)

	// A name that nobody checked is nobody's, whatever profile has it.
	stored := w.stored(one.Bid.ID)
	stored.ID, stored.By, stored.Slot, stored.Hold, stored.HoldUntil = protocol.NewID(protocol.BidID, start), "meera", 0, "", time.Time{}
	stored.State = protocol.BidWithdrawn
	stored.Author = protocol.Author{Name: "Meera", Handle: new("meera"), Method: protocol.ByProof}
	stored.TokenHash, stored.PayHash = protocol.SecretHash("a"), protocol.SecretHash("b")
	require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Bids().Insert(ctx, stored) }))
	require.Equal(t, protocol.NotFound, protocol.CodeOf(must.Err(does(w, w.Get, owner("meera"), protocol.BidInput{ID: stored.ID}))))
}

// TestApply_Account: an event pays a bid of its own payment account, and no other.
func TestApply_Account(t *testing.T) {
	t.Parallel()
	w := single(t)
	v := w.market(protocol.AttentionDraft{Slots: 1})
	w.person("ravi", protocol.Person)
	draft := protocol.PaymentDraft{Provider: protocol.PayRazorpay, KeyID: "rzp_test_2", KeySecret: "secret-key", WebhookSecrets: []string{"whsec-two"}}
	must.Get(w.account("ravi", draft))(t)
	one := must.Get(w.bids(keyed(1), "700"))(t)
	ev := v.Pays(one.Bid.ID, 700_00)
	require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		require.Equal(t, "unknown reference", must.Get(w.Apply(ctx, tx, &must.Get(tx.PaymentAccounts().OfProfile(ctx, "ravi"))(t)[0], ev))(t))
		return nil
	}))
	require.Equal(t, protocol.BidHeld, w.bid(one.Bid.ID).State)
	require.Zero(t, w.kept())
	require.Equal(t, "live", w.delivers(ev))
}

// TestHook_None: a provider that sends no events has no webhook.
func TestHook_None(t *testing.T) {
	t.Parallel()
	w := single(t)
	v := w.market(protocol.AttentionDraft{Slots: 1})
	var hook string
	require.NoError(t, w.read(func(ctx context.Context, tx *storage.Tx) error {
		all, err := tx.PaymentAccounts().OfProfile(ctx, "asha")
		hook = all[0].Hook
		return err
	}))
	require.Equal(t, protocol.Unauthorized, protocol.CodeOf(w.Hook(t.Context(), "razorpay", hook, http.Header{}, []byte("{}"))))
	require.Equal(t, protocol.NotFound, protocol.CodeOf(w.Hook(t.Context(), "razorpay", hook+"x", http.Header{}, []byte("{}"))))
	w.Pay = func(money.Account) (pay.Provider, error) { return silent{v}, nil }
	require.Equal(t, protocol.NotFound, protocol.CodeOf(w.Hook(t.Context(), "razorpay", hook, http.Header{}, []byte("{}"))))
}

// silent is a vendor without webhooks.
type silent struct{ *paytest.Vendor }

func (silent) Caps() pay.Caps { return pay.Caps{MinPaise: 100, Refunds: true} }

// TestUTR: a reference pays one bid: of a board, and of every board that is paid to the same address.
func TestUTR(t *testing.T) {
	t.Parallel()
	const utr = "431298765012"
	w := single(t)
	w.byUPI()
	w.opened(protocol.AttentionDraft{Slots: 3})
	w.person("ravi", protocol.Person)
	must.Get(w.account("ravi", protocol.PaymentDraft{Provider: protocol.PayUPI, VPA: "Asha@OKBANK"}))(t)
	must.Get(w.board("ravi", protocol.AttentionDraft{Slots: 3}))(t)
	one, two, his := w.bidsOn("asha", keyed(1)), w.bidsOn("asha", keyed(2)), w.bidsOn("ravi", keyed(3))
	require.NoError(t, w.claimsBid(one, utr))
	require.NoError(t, w.claimsBid(one, utr), "a repeat")
	require.Equal(t, protocol.Conflict, protocol.CodeOf(w.claimsBid(two, utr)), "reported for another bid")
	require.NoError(t, w.confirmsBid(owner("asha"), one, ""))
	require.Equal(t, protocol.Conflict, protocol.CodeOf(w.claimsBid(two, utr)))
	require.Equal(t, protocol.Conflict, protocol.CodeOf(w.confirmsBid(owner("asha"), two, utr)), "seen at the bank for another bid")
	require.Equal(t, protocol.Conflict, protocol.CodeOf(w.claimsBid(his, utr)), "the same address, written otherwise")
	require.Equal(t, protocol.Conflict, protocol.CodeOf(w.confirmsBid(owner("ravi"), his, utr)))
	require.Equal(t, protocol.BidHeld, w.bid(two.Bid.ID).State)
	require.EqualValues(t, 700_00, w.kept())
}

// TestClaims: a payer reports three references of a bid at most, and none when the bid is too old.
func TestClaims(t *testing.T) {
	t.Parallel()
	w := single(t)
	w.byUPI()
	w.opened(protocol.AttentionDraft{Slots: 3})
	one, last, old := w.bidsOn("asha", keyed(1)), w.bidsOn("asha", keyed(2)), w.bidsOn("asha", keyed(3))
	for n := range protocol.MaxClaims {
		require.NoError(t, w.claimsBid(one, "43129876501"+string(rune('0'+n))))
		must.Get(does(w, w.Deny, owner("asha"), bidRef(one)))(t)
	}
	err := w.claimsBid(one, "431298765019")
	require.Equal(t, protocol.Conflict, protocol.CodeOf(err))
	require.ErrorContains(t, err, "which is the most")
	w.pass(protocol.HoldFor + protocol.LateFor)
	w.runJobs(nil)
	require.NoError(t, w.claimsBid(last, "431298765018"))
	w.pass(time.Millisecond)
	err = w.claimsBid(old, "431298765017")
	require.Equal(t, protocol.Conflict, protocol.CodeOf(err))
	require.ErrorContains(t, err, "too old")
}

// TestPaid_Grace: a payment that the provider dates up to two minutes after the hold is in time.
func TestPaid_Grace(t *testing.T) {
	t.Parallel()
	for late, want := range map[time.Duration][]protocol.BidState{
		0:                                     {protocol.BidHeld, protocol.BidLive},
		protocol.HoldGrace:                    {protocol.BidHeld, protocol.BidLive},
		protocol.HoldGrace + time.Millisecond: {protocol.BidHeld, protocol.BidLapsed, protocol.BidLive},
	} {
		w := single(t)
		v := w.market(protocol.AttentionDraft{Slots: 1})
		one := must.Get(w.bids(keyed(1), "700"))(t)
		w.pass(protocol.HoldFor + late)
		require.Equal(t, "live", w.delivers(v.Pays(one.Bid.ID, 700_00)))
		require.Equal(t, want, states(w.bid(one.Bid.ID)), late)
	}
}

// TestDisplaced_WholeRefund: who is displaced within the hours that the board promised gets everything back.
func TestDisplaced_WholeRefund(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]int64{24*time.Hour - time.Millisecond: 700_00, 24 * time.Hour: 0} {
		w := single(t)
		v := w.market(protocol.AttentionDraft{Slots: 1, SlotDays: 7, ProtectHours: new(0), FullRefundHours: 24})
		one := must.Get(w.bids(keyed(1), "700"))(t)
		require.Equal(t, "live", w.delivers(v.Pays(one.Bid.ID, 700_00)))
		if want == 0 {
			want = protocol.UnusedRefund(700_00, start, start.Add(7*24*time.Hour), start.Add(after), 24)
			require.Less(t, want, int64(700_00))
		}
		w.pass(after)
		require.Equal(t, "live", w.delivers(v.Pays(must.Get(w.bids(keyed(2), "900"))(t).Bid.ID, 900_00)))
		require.Equal(t, protocol.MoneyOf("INR", want).Amount, w.bid(one.Bid.ID).Refunds[0].Amount.Amount, after)
	}
}

// TestLink_Addresses: the link of a notice decides for who reads the address that the owner has, if it is confirmed
// and links are on.
func TestLink_Addresses(t *testing.T) {
	t.Parallel()
	const mail, hook = "asha@example.org", "https://agent.example/notices"
	for _, tt := range []struct {
		name, sent string
		to         storage.NotifySettings
		ok         bool
	}{
		{"mail", mail, storage.NotifySettings{Mail: mail, Confirmed: true, Links: true}, true},
		{"a webhook", hook, storage.NotifySettings{Webhook: hook, Links: true}, true},
		{"mail that nobody confirmed", mail, storage.NotifySettings{Mail: mail, Links: true}, false},
		{"no links", mail, storage.NotifySettings{Mail: mail, Confirmed: true}, false},
		{"no links to a webhook", hook, storage.NotifySettings{Webhook: hook}, false},
		{"the former mail", mail, storage.NotifySettings{Mail: "new@example.org", Confirmed: true, Links: true}, false},
		{"the former webhook", hook, storage.NotifySettings{Webhook: hook + "/2", Links: true}, false},
		{"no address", mail, storage.NotifySettings{Confirmed: true, Links: true}, false},
	} {
		w := single(t)
		w.byUPI()
		w.opened(protocol.AttentionDraft{Slots: 1})
		one := w.bidsOn("asha", keyed(1))
		require.NoError(t, w.claimsBid(one, "431298765012"))
		var ticket string
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			link := must.Get(w.LinkFor(ctx, tx, one.Bid.ID, "asha", tt.sent))(t)
			ticket, tt.to.Handle = link.Ticket, "asha"
			return tx.Profiles().PutNotifySettings(ctx, tt.to)
		}))
		in := protocol.BidLinkInput{Ticket: ticket}
		_, read := does(w, w.ReadLink, protocol.Caller{}, in)
		_, used := does(w, w.UseLink, protocol.Caller{}, protocol.BidLinkUse{BidLinkInput: in, Do: protocol.LinkConfirm})
		if tt.ok {
			require.NoError(t, read, tt.name)
			require.NoError(t, used, tt.name)
			_, again := does(w, w.UseLink, protocol.Caller{}, protocol.BidLinkUse{BidLinkInput: in, Do: protocol.LinkConfirm})
			require.Equal(t, protocol.Gone, protocol.CodeOf(again), tt.name)
			continue
		}
		require.Equal(t, protocol.Gone, protocol.CodeOf(read), tt.name)
		require.Equal(t, protocol.Gone, protocol.CodeOf(used), tt.name)
		require.Equal(t, protocol.BidClaimed, w.bid(one.Bid.ID).State, tt.name)
	}
}
