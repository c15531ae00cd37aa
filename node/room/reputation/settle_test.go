package reputation

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const (
	registry = "eip155:1:0x00000000000000000000000000000000000000aa"
	agent1   = registry + ":1"
	owner1   = "0x00000000000000000000000000000000000000a1"
	wallet1  = "0x00000000000000000000000000000000000000a2"
	buyer    = "0x00000000000000000000000000000000000000b1"
)

// A desk is the room without a chain: the shop rao has agent1, and mehta none.
type desk struct {
	*Reputation
	t   *testing.T
	now time.Time
	n   uint64 // of the last feedback
}

func newDesk(t *testing.T) *desk { return openDesk(t, storagetest.Open(t)) }

func openDesk(t *testing.T, db *storage.DB) *desk {
	t.Helper()
	pair := must.Get(key.GenerateEd25519())(t)
	d := &desk{t: t, now: time.Now().Truncate(time.Second), Reputation: &Reputation{
		Base: "https://n1.example", Key: pair, DB: db, Log: slog.New(slog.DiscardHandler), Client: http.DefaultClient,
		Floors: protocol.ReviewFloors{"INR": 50_00}, MailKey: []byte("mail key"),
		Author: func(p *storage.StoredProfile, _ time.Time) protocol.Author {
			return protocol.Author{Handle: &p.Draft.Handle}
		},
	}}
	d.write(func(ctx context.Context, tx *storage.Tx) error {
		for _, handle := range []string{"rao", "mehta"} {
			draft := protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Business}
			if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: draft}); err != nil {
				return err
			}
		}
		if err := tx.Feedbacks().PutAgent(ctx, registry, storage.FeedbackAgent{Agent: agent1, Owner: owner1}, nil); err != nil {
			return err
		}
		return tx.Enrolments().Begin(ctx, "operator", storage.Enrolment{Handle: "rao", ERC8004: agent1, KeyID: "k", Owner: owner1, Wallet: wallet1, Block: 1,
			BlockHash: "0x1"}, []byte(`{}`))
	})
	return d
}

func (d *desk) write(fn func(context.Context, *storage.Tx) error) {
	d.t.Helper()
	require.NoError(d.t, d.DB.Write(d.t.Context(), fn))
}

// claims are those of a receipt for the buyer; signed makes a token of them.
func (d *desk) claims(order string) protocol.OrderReceiptClaims {
	return protocol.OrderReceiptClaims{Issuer: d.Base, Order: order, Agent: agent1, Shop: "rao", Client: "eip155:1:" + buyer, Amount: "180.00", Currency: "INR",
		PaidAt: d.now.Add(-time.Hour).Unix(), IssuedAt: d.now.Unix(), ID: protocol.NewID(protocol.ReceiptID, d.now),
		Known: protocol.KnownProvider}
}

func (d *desk) signed(c protocol.OrderReceiptClaims, pair key.Pair) string {
	d.t.Helper()
	raw := must.Get(json.Marshal(c))(d.t)
	return must.Get(pair.SignCompact(raw, protocol.OrderReceiptType))(d.t)
}

// keep stores a receipt of a shop.
func (d *desk) keep(handle string, c protocol.OrderReceiptClaims, token string, change func(*storage.StoredReceipt)) {
	d.t.Helper()
	s := storage.StoredReceipt{ID: d.storedID(c), Handle: handle, Order: c.Order, Agent: c.Agent, Client: c.Client, Currency: c.Currency, Minor: 180_00,
		PaidAt: time.Unix(c.PaidAt, 0), IssuedAt: time.Unix(c.IssuedAt, 0), Token: token}
	if c.Issuer != d.Base {
		s.Issuer = c.Issuer
	}
	if change != nil {
		change(&s)
	}
	d.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.OrderReceipts().Insert(ctx, s, protocol.MaxOrderReceipts)
	})
}

// given is new feedback of the buyer that waits.
func (d *desk) given() storage.Feedback {
	d.n++
	return storage.Feedback{ID: protocol.NewID(protocol.ReviewID, d.now), Agent: agent1, Client: buyer, Index: d.n, Block: 100,
		Place: storage.FeedbackPlace(100, d.n), At: d.now, State: storage.FeedbackWaiting, Reason: protocol.ReviewIsChecked, Rating: 90_00,
		Doc: storage.FeedbackDoc{Confirmed: true}}
}

// with is feedback with a receipt whose signature was verified.
func (d *desk) with(c protocol.OrderReceiptClaims, token string) storage.Feedback {
	f := d.given()
	f.Doc.Receipt = token
	takeReceipt(&f, c)
	return f
}

// settles stores feedback of which all is known, and returns it as it was decided.
func (d *desk) settles(f storage.Feedback) (got storage.Feedback) {
	d.t.Helper()
	d.write(func(ctx context.Context, tx *storage.Tx) (err error) {
		if f.Doc.Payment != nil {
			err = d.settle(ctx, tx, &f)
		}
		if err == nil {
			err = d.insert(ctx, tx, f)
		}
		if err == nil {
			got, err = tx.Feedbacks().Given(ctx, f.Agent, f.Client, f.Index)
		}
		return err
	})
	return got
}

// sum is how many reviews count, and their ratings; in the feed are as many as are told of.
func (d *desk) sum() (all [3]int64) {
	d.t.Helper()
	require.NoError(d.t, d.DB.Read(d.t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		if all[0], all[1], err = tx.Feedbacks().Sum(ctx, agent1); err != nil {
			return err
		}
		page, err := tx.Feed().List(ctx, []protocol.FeedType{protocol.FeedReview}, false, 50, "")
		all[2] = int64(len(page.Items))
		return err
	}))
	return all
}

// TestSettle: what counts and why not, of feedback of which everything outside is known.
func TestSettle(t *testing.T) {
	t.Parallel()
	type change = func(d *desk, c *protocol.OrderReceiptClaims, f *storage.Feedback)
	kept := func(change func(*storage.StoredReceipt)) func(d *desk, c protocol.OrderReceiptClaims, token string) {
		return func(d *desk, c protocol.OrderReceiptClaims, token string) { d.keep("rao", c, token, change) }
	}
	moved := func(d *desk, place int64, at time.Time) {
		d.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Feedbacks().Moved(ctx, agent1, owner1, place, at)
		})
	}
	paid := func(d *desk, f *storage.Feedback) {
		f.Doc.Order, f.Doc.Receipt, f.Doc.Names = nil, "", []string{"payment eip155:1 0x1"}
		f.Doc.Payment, f.Doc.PaidPlace = &protocol.ReviewPayment{}, storage.FeedbackPlace(90, 0)
	}
	far := func(d *desk, c *protocol.OrderReceiptClaims, _ *storage.Feedback) {
		c.Issuer, d.Trusted = "https://n2.example", []string{"https://n2.example"}
	}
	known := func(by string, test bool) change {
		return func(_ *desk, c *protocol.OrderReceiptClaims, _ *storage.Feedback) { c.Known, c.Test = by, test }
	}
	for name, tt := range map[string]struct {
		claims change // before the feedback is made of them
		keep   func(d *desk, c protocol.OrderReceiptClaims, token string)
		change change // of the feedback, or of what was before
		want   protocol.ReviewReason
	}{
		"a receipt of the shop": {keep: kept(nil), want: protocol.ByProvider},
		"a payment":             {change: func(d *desk, _ *protocol.OrderReceiptClaims, f *storage.Feedback) { paid(d, f) }, want: protocol.ByPayment},
		"by who owns the shop by now": {keep: kept(nil), want: protocol.SelfReview,
			change: func(_ *desk, _ *protocol.OrderReceiptClaims, f *storage.Feedback) { f.Client = owner1 }},
		"by who is paid for the shop by now": {keep: kept(nil), want: protocol.SelfReview,
			change: func(_ *desk, _ *protocol.OrderReceiptClaims, f *storage.Feedback) { f.Client = wallet1 }},
		"from before the owner got the identity": {keep: kept(nil), want: protocol.FormerOwner,
			change: func(d *desk, _ *protocol.OrderReceiptClaims, f *storage.Feedback) { moved(d, f.Place+1, d.now) }},
		"given after it, paid before": {want: protocol.FormerOwner, change: func(d *desk, _ *protocol.OrderReceiptClaims, f *storage.Feedback) {
			paid(d, f)
			moved(d, f.Doc.PaidPlace+1, d.now)
		}},
		"a receipt that nobody stored": {want: protocol.ReceiptUnknown},
		"a receipt of the shop that had it": {want: protocol.ReceiptShop,
			keep: func(d *desk, c protocol.OrderReceiptClaims, token string) { d.keep("mehta", c, token, nil) }},
		"a revoked receipt": {keep: kept(func(s *storage.StoredReceipt) { s.RevokedAt = new(time.Now()) }), want: protocol.ReceiptRevoked},
		"an order that was refunded": {want: protocol.OrderRefunded, keep: kept(func(s *storage.StoredReceipt) {
			s.Adjustments = []protocol.Adjustment{{ID: "1", Type: "refund", Status: "completed", Totals: []protocol.OrderTotal{{Type: "total", Amount: -180_00}}}}
		})},
		"an order below the floor": {keep: kept(func(s *storage.StoredReceipt) { s.Minor = 49_99 }), want: protocol.OrderTooSmall,
			claims: func(_ *desk, c *protocol.OrderReceiptClaims, _ *storage.Feedback) { c.Amount = "49.99" }},
		"an order in another currency": {keep: kept(nil), want: protocol.OrderCurrency,
			claims: func(_ *desk, c *protocol.OrderReceiptClaims, _ *storage.Feedback) { c.Currency = "USD" }},
		"a receipt of another node":                       {claims: far, want: protocol.ByProvider},
		"a receipt of another node that the shop brought": {claims: far, keep: kept(nil), want: protocol.ByProvider},
		"one of a node that is not trusted": {want: protocol.ReceiptIssuer, keep: kept(nil),
			claims: func(_ *desk, c *protocol.OrderReceiptClaims, _ *storage.Feedback) { c.Issuer = "https://n3.example" }},
		"a payment that buyer and shop confirm": {keep: kept(nil), want: protocol.ByConfirmed, claims: known(protocol.KnownConfirmed, false)},
		"a payment that the shop states":        {keep: kept(nil), want: protocol.ReceiptStated, claims: known(protocol.KnownStated, false)},
		"a receipt that does not say":           {keep: kept(nil), want: protocol.ReceiptStated, claims: known("", false)},
		"an order of the sandbox":               {keep: kept(nil), want: protocol.TestOrder, claims: known(protocol.KnownProvider, true)},
		"an order that was refunded to below the floor": {want: protocol.OrderTooSmall, keep: kept(func(s *storage.StoredReceipt) {
			s.Adjustments = []protocol.Adjustment{{ID: "1", Type: "refund", Status: "completed", Totals: []protocol.OrderTotal{{Type: "total", Amount: -130_01}}}}
		})},
		"an order whose refund leaves the floor": {want: protocol.ByProvider, keep: kept(func(s *storage.StoredReceipt) {
			s.Adjustments = []protocol.Adjustment{{ID: "1", Type: "refund", Status: "completed", Totals: []protocol.OrderTotal{{Type: "total", Amount: -130_00}}}}
		})},
		"a revoked one that it brought": {claims: far, want: protocol.ReceiptRevoked,
			keep: kept(func(s *storage.StoredReceipt) { s.RevokedAt = new(time.Now()) })},
		"a receipt of another node for the former owner": {claims: far, want: protocol.FormerOwner,
			change: func(d *desk, _ *protocol.OrderReceiptClaims, f *storage.Feedback) {
				moved(d, f.Place-1, d.now.Add(time.Second))
			}},
		"one more than a node counts": {keep: kept(nil), want: protocol.TooManyReviews, change: func(d *desk, _ *protocol.OrderReceiptClaims, _ *storage.Feedback) {
			d.write(func(ctx context.Context, tx *storage.Tx) error {
				return tx.Feedbacks().Add(ctx, agent1, protocol.ByPayment, protocol.MaxCountedReviews, 0)
			})
		}},
		"the last that a node counts": {keep: kept(nil), want: protocol.ByProvider, change: func(d *desk, _ *protocol.OrderReceiptClaims, _ *storage.Feedback) {
			d.write(func(ctx context.Context, tx *storage.Tx) error {
				return tx.Feedbacks().Add(ctx, agent1, protocol.ByPayment, protocol.MaxCountedReviews-1, 0)
			})
		}},
		"an order that another review has used": {keep: kept(nil), want: protocol.ProofUsed,
			change: func(d *desk, c *protocol.OrderReceiptClaims, f *storage.Feedback) {
				other := d.with(*c, f.Doc.Receipt)
				other.Client = wallet1[:len(wallet1)-1] + "9"
				require.Equal(d.t, protocol.ByProvider, d.settles(other).Reason)
			}},
		"a second review of the account within the month": {keep: kept(nil), want: protocol.TooSoon,
			change: func(d *desk, _ *protocol.OrderReceiptClaims, f *storage.Feedback) {
				c := d.claims("before")
				token := d.signed(c, d.Key)
				d.keep("rao", c, token, nil)
				other := d.with(c, token)
				other.At = f.At.Add(time.Second - protocol.ReviewsApart)
				require.Equal(d.t, protocol.ByProvider, d.settles(other).Reason)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			c := d.claims("R-1")
			if tt.claims != nil {
				tt.claims(d, &c, nil)
			}
			token := d.signed(c, d.Key)
			if tt.keep != nil {
				tt.keep(d, c, token)
			}
			f := d.with(c, token)
			if tt.change != nil {
				tt.change(d, &c, &f)
			}
			before := d.sum()
			got := d.settles(f)
			require.Equal(t, tt.want, got.Reason)
			require.Equal(t, tt.want.Counts(), got.State == storage.FeedbackCounted)
			if after := before; got.State == storage.FeedbackCounted {
				after = [3]int64{before[0] + 1, before[1] + 90_00, before[2] + 1}
				require.Equal(t, after, d.sum())
			} else {
				require.Equal(t, before, d.sum())
			}
		})
	}
}

// TestCheckReceipt: whose word a receipt is.
func TestCheckReceipt(t *testing.T) {
	t.Parallel()
	theirs := must.Get(key.GenerateEd25519())(t)
	status := `{"id":%q,"status":"valid"}`
	for name, tt := range map[string]struct {
		status   string // what the other node says of the receipt, by its id
		own      bool   // it names this node
		distrust bool
		forged   bool
		keep     func(d *desk, c protocol.OrderReceiptClaims, token string)
		want     protocol.ReviewReason
	}{
		"this node's":                          {own: true},
		"signed by another in this one's name": {own: true, forged: true, want: protocol.ReceiptInvalid},
		"a trusted node's":                     {status: status},
		"a trusted node's, revoked":            {status: `{"id":%q,"status":"revoked"}`, want: protocol.ReceiptRevoked},
		"a trusted node's, refunded":           {status: `{"id":%q,"status":"refunded"}`, want: protocol.OrderRefunded},
		"a trusted node speaks of another one": {status: strings.Replace(status, "%q", `"rcpt_%.0s"`, 1), want: protocol.ReceiptUnknown},
		"a trusted node does not know it":      {want: protocol.ReceiptUnknown},
		"a trusted node's answer is no JSON":   {status: "valid%.0s", want: protocol.ReceiptUnknown},
		"not signed by the trusted node":       {status: status, forged: true, want: protocol.ReceiptInvalid},
		"of a node that is not trusted":        {status: status, distrust: true, want: protocol.ReceiptIssuer},
		"the same, which the shop brought":     {distrust: true, keep: func(d *desk, c protocol.OrderReceiptClaims, token string) { d.keep("rao", c, token, nil) }},
		"the shop brought another one with its id": {distrust: true, want: protocol.ReceiptIssuer,
			keep: func(d *desk, c protocol.OrderReceiptClaims, token string) { d.keep("rao", c, token+"x", nil) }},
		"another shop brought it": {distrust: true, want: protocol.ReceiptIssuer,
			keep: func(d *desk, c protocol.OrderReceiptClaims, token string) { d.keep("mehta", c, token, nil) }},
		"brought as another node's": {distrust: true, want: protocol.ReceiptIssuer, keep: func(d *desk, c protocol.OrderReceiptClaims, token string) {
			d.keep("rao", c, token, func(s *storage.StoredReceipt) { s.Issuer = "https://n3.example" })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			c := d.claims("R-1")
			far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/.well-known/http-message-signatures-directory":
					set := must.Get(key.MarshalSet([]key.Public{theirs.Published()}))(t)
					w.Write(set)
				case r.URL.Path == "/api/public/order-receipts/"+c.ID && tt.status != "":
					fmt.Fprintf(w, tt.status, c.ID)
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(far.Close)
			d.Trusted = []string{"https://n9.example"}
			if !tt.distrust {
				d.Trusted = append(d.Trusted, far.URL)
			}
			pair := d.Key
			if !tt.own {
				c.Issuer, pair = far.URL, theirs
			}
			if tt.forged { // by the other of both
				pair = map[bool]key.Pair{true: theirs, false: d.Key}[tt.own]
			}
			f := d.given()
			f.Doc.Receipt = d.signed(c, pair)
			if tt.keep != nil {
				tt.keep(d, c, f.Doc.Receipt)
			}
			require.Zero(t, d.checkReceipt(t.Context(), &f))
			if tt.want != "" {
				require.Equal(t, tt.want, f.Reason)
				require.Equal(t, storage.FeedbackUncounted, f.State)
				return
			}
			require.Equal(t, storage.FeedbackWaiting, f.State, f.Reason)
			require.Equal(t, c.ID, f.Doc.Order.Receipt)
		})
	}
}

// TestRevoked: a review that its client takes back is taken out of the sum if it was in it.
func TestRevoked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.claims("R-1")
	token := d.signed(c, d.Key)
	d.keep("rao", c, token, nil)
	counted, used := d.settles(d.with(c, token)), d.settles(d.with(c, token))
	require.Equal(t, protocol.ProofUsed, used.Reason)
	require.Equal(t, [3]int64{1, 90_00, 1}, d.sum())
	revoke := func(f storage.Feedback, client string) {
		d.write(func(ctx context.Context, tx *storage.Tx) error {
			return d.apply(ctx, tx, storage.FeedbackAgent{Agent: agent1}, erc8004.Feedback{Kind: erc8004.FeedbackRevoked, Client: client, Index: f.Index}, nil)
		})
	}
	revoke(used, buyer)
	require.Equal(t, [3]int64{1, 90_00, 1}, d.sum(), "it was not in the sum")
	revoke(counted, owner1)
	require.Equal(t, [3]int64{1, 90_00, 1}, d.sum(), "another's has that number")
	for range 2 {
		revoke(counted, buyer)
		require.Equal(t, [3]int64{0, 0, 0}, d.sum(), "once")
	}
}

// TestReplies: an answer to a review is the shop's when its owner or its wallet gave it.
func TestReplies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.settles(d.given())
	for i, by := range []string{buyer, "", owner1, wallet1} {
		d.write(func(ctx context.Context, tx *storage.Tx) error {
			shop := must.Get(tx.Feedbacks().Agent(ctx, agent1))(t)
			e := erc8004.Feedback{Kind: erc8004.FeedbackResponded, Client: buyer, Index: f.Index, Responder: by, URI: "data:,Thanks", Tx: by}
			require.NoError(t, d.apply(ctx, tx, shop, e, nil))
			got, err := tx.Feedbacks().Given(ctx, agent1, buyer, f.Index)
			require.Len(t, got.Doc.Responses, max(0, i-1), by)
			return err
		})
	}
}

// TestAnnounce: of an unlisted shop nothing is told, nor of what was read while not all was.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(ctx context.Context, tx *storage.Tx) error{
		"unlisted": func(ctx context.Context, tx *storage.Tx) error {
			p, err := tx.Profiles().ForUpdate(ctx, "rao")
			if err == nil {
				p.Unlisted = true
				_, err = tx.Profiles().Put(ctx, p)
			}
			return err
		},
		"behind": func(ctx context.Context, tx *storage.Tx) error {
			return tx.Feedbacks().PutAgent(ctx, registry, storage.FeedbackAgent{Agent: agent1}, new(int64(5)))
		},
	} {
		d := newDesk(t)
		d.write(arrange)
		c := d.claims("R-1")
		token := d.signed(c, d.Key)
		d.keep("rao", c, token, nil)
		require.Equal(t, protocol.ByProvider, d.settles(d.with(c, token)).Reason, name)
		require.Equal(t, [3]int64{1, 90_00, 0}, d.sum(), name)
	}
}

// TestConclude_TwoProcesses: what two processes decide at the same moment is decided once, and the sum is that of the reviews.
func TestConclude_TwoProcesses(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		d := openDesk(t, storagetest.OpenConfig(t, c))
		other := storagetest.OpenConfig(t, c) // the second process
		const reviews = 20
		var all []storage.Feedback
		for n := range reviews {
			f := d.given()
			f.Client = fmt.Sprintf("0x%040x", n+1)
			f.Doc.Payment, f.Doc.Names = &protocol.ReviewPayment{}, []string{fmt.Sprint("payment ", n)}
			d.write(func(ctx context.Context, tx *storage.Tx) error { return d.insert(ctx, tx, f) })
			all = append(all, f)
		}
		for _, f := range all {
			var both sync.WaitGroup
			for _, db := range []*storage.DB{d.DB, other} {
				both.Go(func() {
					if err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return d.conclude(ctx, tx, f, 0) }); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
		}
		for _, f := range all {
			d.write(func(ctx context.Context, tx *storage.Tx) error {
				got, err := tx.Feedbacks().Given(ctx, f.Agent, f.Client, f.Index)
				require.Equal(t, storage.FeedbackCounted, got.State, got.Reason)
				return err
			})
		}
		sum := d.sum()
		require.Equal(t, []int64{reviews, reviews * 90_00}, sum[:2])
	})
}

// notices are those that wait.
func (d *desk) notices() (told []protocol.Notice) {
	d.t.Helper()
	jobs, _, err := d.DB.ClaimJobs(d.t.Context(), "test", 50, time.Minute)
	require.NoError(d.t, err)
	for _, j := range jobs {
		d.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, j.ID) })
		if j.Kind == storage.NoticeJob {
			n := must.JSON[protocol.Notice](j.Args)(d.t)
			n.At = time.Time{}
			told = append(told, n)
		}
	}
	return told
}

// TestNotices: a business is told of a review that counts, once, and of none that does not; the profiles of the owner of the account that a
// receipt names, of the receipt, and no more of them a day than are bearable.
func TestNotices(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		d := openDesk(t, db)
		d.write(func(ctx context.Context, tx *storage.Tx) error {
			for _, handle := range []string{"rao", "mehta"} {
				if err := tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: handle, Webhook: "https://hook.example/n"}); err != nil {
					return err
				}
			}
			if err := tx.Accounts().Insert(ctx, storage.Account{ID: "acc_1", Role: protocol.RoleOwner}); err != nil {
				return err
			}
			if err := tx.Accounts().LinkProfile(ctx, "acc_1", "mehta"); err != nil {
				return err
			}
			return tx.Enrolments().Begin(ctx, "operator", storage.Enrolment{Handle: "mehta", ERC8004: registry + ":2", KeyID: "k2", Owner: buyer, Wallet: buyer,
				Block: 1, BlockHash: "0x1"}, []byte(`{}`))
		})
		c := d.claims("R-1")
		token := d.signed(c, d.Key)
		d.keep("rao", c, token, nil)
		f := d.settles(d.with(c, token))
		require.Equal(t, storage.FeedbackCounted, f.State)
		told := d.notices()
		require.Len(t, told, 1)
		require.Equal(t, protocol.Notice{Handle: "rao", Event: protocol.ReviewCounted, Subject: f.ID, Title: told[0].Title}, told[0])
		require.NotEqual(t, storage.FeedbackCounted, d.settles(d.with(c, token)).State, "the same receipt again")
		require.Empty(t, d.notices())

		issue := func(order, client string) (out protocol.OrderReceipt) {
			d.write(func(ctx context.Context, tx *storage.Tx) (err error) {
				shop := protocol.Caller{Standing: protocol.Session, Handle: "rao", Handles: []string{"rao"}}
				out, err = d.Issue(ctx, tx, shop, protocol.NewOrderReceipt{Order: order, Client: client, PaidAt: d.now,
					Total: protocol.MoneyDraft{Currency: "INR", Amount: "180"}})
				return err
			})
			return out
		}
		issue("R-2", "")
		issue("R-3", owner1)
		require.Empty(t, d.notices(), "no client, and the shop itself")
		r := issue("R-4", buyer)
		require.Equal(t, []protocol.Notice{{Handle: "mehta", Event: protocol.ReceiptIssued, Subject: r.ID, Title: "INR 180.00 to @rao"}}, d.notices())
		issue("R-4", buyer)
		require.Empty(t, d.notices(), "the receipt that it has")
		n := 1
		for i := range 2 * toldReceipts {
			issue(fmt.Sprint("S-", i), buyer)
			n += len(d.notices())
		}
		require.Equal(t, toldReceipts, n)
	})
}
