package order_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/pay"
	"stoa/node/out/pay/sandbox"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

const (
	agentRao  = "eip155:1:0x00000000000000000000000000000000000000aa:1"
	ownerRao  = "0x00000000000000000000000000000000000000a1"
	walletRao = "0x00000000000000000000000000000000000000a2"
)

// reported makes an order of dal that its buyer reports as paid by UPI and the shop confirms.
func (w *world) reported(c protocol.Caller, n int, change ...func(*protocol.NewOrder)) protocol.MadeOrder {
	w.t.Helper()
	in := wants(n, w.dal, 1)
	for _, f := range change {
		f(&in)
	}
	made := must.Get(does(w, w.Make, c, in))(w.t)
	must.Get(does(w, w.pays.Claim, protocol.Caller{}, protocol.PaymentClaim{PayToken: made.Token, UTR: fmt.Sprintf("4312987%05d", n)}))(w.t)
	must.Get(w.does(made.Order.ID, protocol.OrderConfirm))(w.t)
	return made
}

// provided makes an order of dal whose payment the provider reports.
func (w *world) provided(c protocol.Caller, n int, change ...func(*protocol.NewOrder)) protocol.MadeOrder {
	w.t.Helper()
	in := wants(n, w.dal, 1)
	for _, f := range change {
		f(&in)
	}
	made := must.Get(does(w, w.Make, c, in))(w.t)
	require.NoError(w.t, w.db.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		x := must.Get(tx.Orders().ByID(ctx, made.Order.ID))(w.t)
		a := must.Get(tx.PaymentAccounts().ByID(ctx, x.Account))(w.t)
		_, err := w.Apply(ctx, tx, a, pay.Event{Provider: string(a.Provider), EventID: "ev-" + x.ID, Kind: pay.Paid, Ref: pay.Ref(x.ID, 1),
			PaymentID: "pay_" + x.ID, AmountPaise: x.Paise, Currency: "INR", OccurredAt: tx.Now})
		return err
	}))
	return made
}

func (w *world) razorpay() {
	w.account(protocol.PaymentDraft{Provider: protocol.PayRazorpay, KeyID: "rzp_live_1", KeySecret: "secret-key", WebhookSecrets: []string{"whsec-one"}})
}

func (w *world) review(token string, stars int) protocol.Review {
	w.t.Helper()
	return must.Get(does(w, w.reviews.ReviewOrder, protocol.Caller{}, protocol.OrderReview{Token: token, Stars: stars, Text: "As always."}))(w.t)
}

// rated is how many reviews of a shop count: all, by the provider, as buyer and shop confirm.
func (w *world) rated(handle string) (n [3]int64) {
	w.t.Helper()
	require.NoError(w.t, w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		p := must.Get(tx.Profiles().Own(ctx, handle))(w.t)
		n = [3]int64{p.Reviews, p.ProviderReviews, p.ConfirmedReviews}
		return nil
	}))
	return n
}

func (w *world) list(handle string, uncounted bool) []protocol.Review {
	w.t.Helper()
	in := protocol.FeedbackQuery{HandleInput: protocol.HandleInput{Handle: handle}, Uncounted: uncounted}
	return must.Get(does(w, w.reviews.Reviews, protocol.Caller{}, in))(w.t).Items
}

func (w *world) write(fn func(ctx context.Context, tx *storage.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.db.Write(w.t.Context(), fn))
}

// TestReview_Order: a buyer without a chain reviews an order that its provider reported as paid, changes the review, and takes it back; the
// shop answers.
func TestReview_Order(t *testing.T) {
	each(t, func(w *world) {
		w.razorpay()
		unpaid := must.Get(does(w, w.Make, stranger(5), wants(5, w.dal, 1)))(w.t)
		_, err := does(w, w.reviews.ReviewOrder, protocol.Caller{}, protocol.OrderReview{Token: unpaid.Token, Stars: 5})
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(err), "%v", err)
		_, err = does(w, w.reviews.ReviewOrder, protocol.Caller{}, protocol.OrderReview{Token: "stoa_read_x", Stars: 5})
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(err))
		require.Equal(w.t, protocol.Unauthorized, protocol.CodeOf(must.Err(does(w, w.reviews.ReviewOrder, stranger(5), protocol.OrderReview{Stars: 5}))))

		made := w.provided(stranger(1), 1)
		_, err = does(w, w.reviews.ReviewOrder, protocol.Caller{}, protocol.OrderReview{Token: made.Token, Withdraw: true})
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(err))
		r := w.review(made.Token, 4)
		require.Equal(w.t, protocol.ByProvider, r.Reason, r.Why)
		require.Equal(w.t, "node", r.Via)
		require.Equal(w.t, 4.0, *r.Stars)
		require.Regexp(w.t, `^buyer:[0-9a-f]{16}$`, r.Client)
		require.Equal(w.t, [3]int64{1, 1, 0}, w.rated("rao"))
		require.Equal(w.t, r, *w.order(made.Token).Review)
		require.Equal(w.t, []protocol.Review{r}, w.list("rao", false))
		for n := range 2 { // changed: the same review
			require.Equal(w.t, r.ID, w.review(made.Token, 2+n).ID)
			require.Equal(w.t, [3]int64{1, 1, 0}, w.rated("rao"))
		}
		feed := must.Get(does(w, func(ctx context.Context, tx *storage.Tx, _ protocol.Caller, _ struct{}) (protocol.Page[protocol.FeedItem], error) {
			return tx.Feed().List(ctx, []protocol.FeedType{protocol.FeedReview}, false, 20, "")
		}, protocol.Caller{}, struct{}{}))(w.t)
		require.Len(w.t, feed.Items, 1)
		require.Equal(w.t, "Rao Foods has a review of 3 of 5, from a paid order, by the payment provider's report.", feed.Items[0].Summary)

		require.Equal(w.t, protocol.Validation, protocol.CodeOf(must.Err(w.does(made.Order.ID, protocol.OrderAnswer))))
		must.Get(does(w, w.Update, owner("rao"), protocol.OrderUpdate{ID: made.Order.ID, Do: protocol.OrderAnswer, Note: "Thank you."}))(w.t)
		require.Equal(w.t, "Thank you.", w.list("rao", false)[0].Replies[0].Text)

		got := must.Get(does(w, w.reviews.ReviewOrder, protocol.Caller{}, protocol.OrderReview{Token: made.Token, Withdraw: true}))(w.t)
		require.Equal(w.t, protocol.ReviewWithdrawn, got.Reason)
		require.Empty(w.t, got.Text)
		require.Nil(w.t, got.Stars)
		require.Equal(w.t, [3]int64{}, w.rated("rao"))
		_, err = does(w, w.Update, owner("rao"), protocol.OrderUpdate{ID: made.Order.ID, Do: protocol.OrderAnswer, Note: "But why?"})
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(err))
		for range protocol.MaxReviewChanges - 3 {
			w.review(made.Token, 5)
		}
		require.ErrorContains(w.t, must.Err(does(w, w.reviews.ReviewOrder, protocol.Caller{}, protocol.OrderReview{Token: made.Token, Stars: 1})), "10 times")
		w.pass(protocol.ReviewWithin + time.Hour)
		_, err = does(w, w.reviews.ReviewOrder, protocol.Caller{}, protocol.OrderReview{Token: made.Token, Withdraw: true})
		require.ErrorContains(w.t, err, "180 days")

		// With the shop, its reviews are deleted.
		must.Get(w.does(made.Order.ID, protocol.OrderDelivered))(w.t)
		w.jobs()
		w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "rao") })
		_, err = does(w, w.reviews.ReviewOrder, protocol.Caller{}, protocol.OrderReview{Token: made.Token, Stars: 5})
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(err))
	})
}

// TestReview_Receipt: who signed, and is whom the receipt is for, reviews with the receipt alone.
func TestReview_Receipt(t *testing.T) {
	each(t, func(w *world) {
		w.razorpay()
		signer := protocol.Caller{Standing: protocol.Signed, Agent: "eip155:1:0x00000000000000000000000000000000000000aa:7", KeyID: "k",
			Owner: "0x00000000000000000000000000000000000000b1", Network: "n"}
		made := w.provided(signer, 1)
		receipt := *w.order(made.Token).Receipt
		give := func(c protocol.Caller, receipt string) error {
			_, err := does(w, w.reviews.ReviewOrder, c, protocol.OrderReview{Receipt: receipt, Stars: 5})
			return err
		}
		require.Equal(w.t, protocol.Unauthorized, protocol.CodeOf(give(stranger(1), receipt)))
		require.Equal(w.t, protocol.Forbidden, protocol.CodeOf(give(known(2), receipt)))
		sold := signer
		sold.Owner = ownerRao
		require.Equal(w.t, protocol.Forbidden, protocol.CodeOf(func() error { sold.Agent += "1"; return give(sold, receipt) }()))
		require.Equal(w.t, protocol.Validation, protocol.CodeOf(give(signer, receipt[:len(receipt)-4]+"AAAA")))
		require.NoError(w.t, give(signer, receipt))
		require.Equal(w.t, [3]int64{1, 1, 0}, w.rated("rao"))

		wallet := w.provided(stranger(2), 2, func(in *protocol.NewOrder) { in.Client = "0x00000000000000000000000000000000000000b2" })
		signer.Agent, signer.Owner, signer.Wallet = signer.Agent+"2", ownerRao, "0x00000000000000000000000000000000000000b2"
		require.NoError(w.t, give(signer, *w.order(wallet.Token).Receipt))
	})
}

// confirmMail opens the link of the last letter.
func (w *world) confirmMail(token string) protocol.ShopOrder {
	w.t.Helper()
	w.jobs()
	found := regexp.MustCompile(`/order/` + token + `\?mail=(\S+)`).FindStringSubmatch(w.sent[len(w.sent)-1])
	require.NotNil(w.t, found, w.sent[len(w.sent)-1])
	_, err := does(w, w.ConfirmMail, protocol.Caller{}, protocol.OrderMail{OrderInput: protocol.OrderInput{Token: token}, Ticket: found[1][:22] + "AA"})
	require.Equal(w.t, protocol.Gone, protocol.CodeOf(err))
	return must.Get(does(w, w.ConfirmMail, protocol.Caller{}, protocol.OrderMail{OrderInput: protocol.OrderInput{Token: token}, Ticket: found[1]}))(w.t)
}

// TestReview_Mailbox: a payment that a stranger reported is the shop's word, until the buyer opens the link of a letter; then the receipt
// says so, and the review counts.
func TestReview_Mailbox(t *testing.T) {
	each(t, func(w *world) {
		made := w.reported(stranger(1), 1)
		require.Equal(w.t, protocol.KnownStated, *w.order(made.Token).Known)
		before := *w.order(made.Token).Receipt
		require.Equal(w.t, protocol.ReceiptStated, w.review(made.Token, 5).Reason)
		require.Equal(w.t, [3]int64{}, w.rated("rao"))
		got := w.confirmMail(made.Token)
		require.Equal(w.t, protocol.KnownConfirmed, *got.Known)
		require.NotEqual(w.t, before, *got.Receipt)
		require.Equal(w.t, protocol.ByConfirmed, got.Review.Reason)
		require.Equal(w.t, [3]int64{1, 0, 1}, w.rated("rao"))

		w.pass(protocol.ReviewsApart)
		key := protocol.Caller{Standing: protocol.Signed, KeyID: "abc", Network: "n"}
		require.Equal(w.t, protocol.KnownStated, *w.order(w.reported(key, 2).Token).Known, "a key proves that it is the same again, and no more")
		require.Equal(w.t, protocol.KnownConfirmed, *w.order(w.reported(known(3), 3).Token).Known)

		// What the shop alone reported stays its word.
		alone := must.Get(does(w, w.Make, known(4), wants(4, w.dal, 1)))(w.t)
		must.Get(does(w, w.Update, owner("rao"), protocol.OrderUpdate{ID: alone.Order.ID, Do: protocol.OrderConfirm, UTR: "431298760099"}))(w.t)
		require.Equal(w.t, protocol.ReceiptStated, w.review(alone.Token, 5).Reason)
	})
}

// TestReview_Abuse: the ways to reviews that nobody paid for.
func TestReview_Abuse(t *testing.T) {
	t.Parallel()
	for name, abuse := range map[string]func(w *world){
		"six reviews by one wallet over ₹0.01 that the shop states": func(w *world) {
			for n := range 6 {
				in := protocol.NewOrderReceipt{Order: fmt.Sprint("X-", n), Client: ownerRao[:41] + "9", PaidAt: start,
					Total: protocol.MoneyDraft{Currency: "INR", Amount: "0.01"}}
				r := must.Get(does(w, w.reviews.Issue, owner("rao"), in))(w.t)
				signer := protocol.Caller{Standing: protocol.Signed, Agent: agentRao + "9", Owner: ownerRao[:41] + "9", KeyID: "k", Network: "n"}
				got := must.Get(does(w, w.reviews.ReviewOrder, signer, protocol.OrderReview{Receipt: r.Receipt, Stars: 5}))(w.t)
				require.Equal(w.t, protocol.ReceiptStated, got.Reason)
			}
			require.Len(w.t, w.list("rao", true), 6)
		},
		"orders of ₹0.01 by the provider": func(w *world) {
			w.razorpay()
			w.write(func(ctx context.Context, tx *storage.Tx) error {
				_, err := tx.Items().Put(ctx, "rao", protocol.ItemDraft{SKU: "cheap", Name: "Toothpick", Price: &protocol.MoneyDraft{Currency: "INR", Amount: "0.01"}})
				i := must.Get(tx.Items().BySKU(ctx, "rao", "cheap"))(w.t)
				w.dal = i.Variants()[0].ID
				return err
			})
			for n := range 6 {
				made := w.provided(stranger(n), n, func(in *protocol.NewOrder) { in.Client = ownerRao[:41] + "9" })
				require.Equal(w.t, protocol.OrderTooSmall, w.review(made.Token, 5).Reason)
			}
		},
		"a refund": func(w *world) {
			made := w.reported(known(1), 1)
			w.review(made.Token, 5)
			require.Equal(w.t, [3]int64{1, 0, 1}, w.rated("rao"))
			part := func(amount protocol.Decimal) {
				got := must.Get(does(w, w.Update, owner("rao"), protocol.OrderUpdate{ID: made.Order.ID, Do: protocol.OrderRefund, Amount: amount}))(w.t)
				id := got.Refunds[len(got.Refunds)-1].ID
				must.Get(does(w, w.pays.MarkRefunded, owner("rao"), protocol.RefundDone{ID: id, Reference: fmt.Sprint("4312987650", len(got.Refunds), "0")}))(w.t)
				w.pass(time.Second)
			}
			part("70")
			require.Equal(w.t, [3]int64{1, 0, 1}, w.rated("rao"), "₹50 are left")
			require.Equal(w.t, "50.00", w.list("rao", false)[0].Order.Left.Amount)
			part("0.01")
			require.Equal(w.t, protocol.OrderTooSmall, w.order(made.Token).Review.Reason)
			require.Equal(w.t, [3]int64{}, w.rated("rao"))
			part("49.99")
			require.Equal(w.t, protocol.OrderRefunded, w.order(made.Token).Review.Reason)
		},
		"a revocation": func(w *world) {
			made := w.reported(known(1), 1)
			r := w.review(made.Token, 5)
			must.Get(does(w, w.reviews.Revoke, owner("rao"), protocol.ReceiptRevocation{OrderReceiptRef: protocol.OrderReceiptRef{ID: r.Order.Receipt}}))(w.t)
			require.Equal(w.t, protocol.ReceiptRevoked, w.order(made.Token).Review.Reason)
		},
		"the shop's account, in another browser": func(w *world) {
			w.owns("acc_rao", "rao", "rao@example.org", "")
			self := w.reported(stranger(1), 1, func(in *protocol.NewOrder) { in.Mail = "Rao+buyer@Example.org" })
			require.Equal(w.t, protocol.KnownConfirmed, *w.confirmMail(self.Token).Known)
			require.Equal(w.t, protocol.SelfReview, w.review(self.Token, 5).Reason)
			mine := w.reported(protocol.Caller{Standing: protocol.Session, Account: "acc_rao", Network: "n"}, 2)
			require.Equal(w.t, protocol.SelfReview, w.review(mine.Token, 5).Reason)
		},
		"a second profile of its account": func(w *world) {
			w.owns("acc_rao", "rao", "", "")
			w.owns("acc_rao", "sita", "", "")
			made := w.reported(protocol.Caller{Standing: protocol.Signed, Handle: "sita", KeyID: "k", Network: "n"}, 1)
			require.Equal(w.t, protocol.SelfReview, w.review(made.Token, 5).Reason)
		},
		"its wallets and its identity": func(w *world) {
			w.owns("acc_rao", "rao", "", "0x00000000000000000000000000000000000000a3")
			w.enrol("rao", ownerRao)
			for n, address := range []string{ownerRao, walletRao, "0x00000000000000000000000000000000000000a3"} {
				made := w.reported(known(n), n, func(in *protocol.NewOrder) { in.Client = address })
				require.Equal(w.t, protocol.SelfReview, w.review(made.Token, 5).Reason, address)
			}
			made := w.reported(protocol.Caller{Standing: protocol.Signed, Agent: agentRao, Owner: "0x00000000000000000000000000000000000000b7", KeyID: "k"}, 8)
			require.Equal(w.t, protocol.SelfReview, w.review(made.Token, 5).Reason, "its identity")
		},
		"who is paid by the same account": func(w *world) {
			w.owns("acc_sita", "sita", "", "")
			must.Get(does(w, w.pays.PutAccount, owner("sita"), protocol.PaymentDraft{Provider: protocol.PayUPI, VPA: "Rao@okbank"}))(w.t)
			made := w.reported(protocol.Caller{Standing: protocol.Session, Account: "acc_sita", Network: "n"}, 1)
			require.Equal(w.t, protocol.SelfReview, w.review(made.Token, 5).Reason)
		},
		"one mailbox, spelled in two ways": func(w *world) {
			w.razorpay()
			for n, mail := range []string{"Meera+a@Example.org", "meera@example.org"} {
				made := w.provided(stranger(n), n, func(in *protocol.NewOrder) { in.Mail = mail })
				require.Equal(w.t, []protocol.ReviewReason{protocol.ByProvider, protocol.TooSoon}[n], w.review(made.Token, 5).Reason)
				w.pass(protocol.ReviewsApart - time.Hour)
			}
			w.pass(2 * time.Hour)
			again := w.provided(stranger(3), 3, func(in *protocol.NewOrder) { in.Mail = "meera@example.org" })
			require.Equal(w.t, protocol.ByProvider, w.review(again.Token, 5).Reason)
			require.Equal(w.t, [3]int64{2, 2, 0}, w.rated("rao"))
		},
		"one wallet with two mailboxes; the second counts once the first is withdrawn": func(w *world) {
			w.razorpay()
			var tokens []string
			for n := range 2 {
				made := w.provided(stranger(n), n, func(in *protocol.NewOrder) { in.Client = ownerRao[:41] + "9" })
				w.review(made.Token, 5-n)
				tokens = append(tokens, made.Token)
			}
			require.Equal(w.t, protocol.TooSoon, w.order(tokens[1]).Review.Reason)
			must.Get(does(w, w.reviews.ReviewOrder, protocol.Caller{}, protocol.OrderReview{Token: tokens[0], Withdraw: true}))(w.t)
			w.jobs()
			require.Equal(w.t, protocol.ByProvider, w.order(tokens[1]).Review.Reason)
			require.Equal(w.t, [3]int64{1, 1, 0}, w.rated("rao"))
		},
		"a sold identity, and a new enrolment": func(w *world) {
			w.razorpay()
			w.owns("acc_sita", "sita", "", "")
			w.enrol("rao", ownerRao)
			made := w.provided(stranger(1), 1)
			w.review(made.Token, 5)
			require.Equal(w.t, [3]int64{1, 1, 0}, w.rated("rao"))
			w.write(func(ctx context.Context, tx *storage.Tx) error {
				e := must.Get(tx.Enrolments().ByIdentity(ctx, agentRao))(w.t)
				return tx.Enrolments().End(ctx, "node", e, protocol.EndedByOwner)
			})
			w.enrol("sita", "0x00000000000000000000000000000000000000c1")
			require.Equal(w.t, [3]int64{}, w.rated("sita"), "what buyers of rao said stays with rao")
			require.Equal(w.t, [3]int64{1, 1, 0}, w.rated("rao"))
			require.Empty(w.t, w.list("sita", false))
		},
		"an order of the sandbox": func(w *world) {
			w.account(protocol.PaymentDraft{Provider: protocol.PaySandbox})
			made := must.Get(does(w, w.Make, stranger(1), wants(1, w.dal, 1)))(w.t)
			must.Get(does(w, w.pays.Press, protocol.Caller{}, protocol.SandboxPress{PayToken: made.Token, Button: string(sandbox.Pay)}))(w.t)
			w.jobs()
			got := w.review(made.Token, 5)
			require.Equal(w.t, protocol.TestOrder, got.Reason)
			require.True(w.t, got.Order.Test)
			require.Equal(w.t, []protocol.Review{got}, w.list("rao", true))
		},
		"what is paid in hand": func(w *world) {
			made := must.Get(does(w, w.Make, known(1), func() protocol.NewOrder {
				in := wants(1, w.dal, 1)
				in.Way, in.Pay, in.Street, in.PIN = protocol.ByDelivery, protocol.PayLater, "4 Gandhi Bazaar", "560004"
				return in
			}()))(w.t)
			must.Get(w.does(made.Order.ID, protocol.OrderDelivered))(w.t)
			must.Get(w.does(made.Order.ID, protocol.OrderConfirm))(w.t)
			require.Equal(w.t, protocol.ReceiptStated, w.review(made.Token, 5).Reason)
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(w *world) {
				abuse(w)
				if name[:3] != "one" && name[:6] != "a sold" {
					require.Equal(w.t, [3]int64{}, w.rated("rao"))
				}
			})
		})
	}
}

// owns makes a profile of an account.
func (w *world) owns(account, handle, mail, wallet string) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.Accounts().ByID(ctx, account); err != nil {
			if err := tx.Accounts().Insert(ctx, storage.Account{ID: account, Role: protocol.RoleOwner, Mail: mail, Wallet: wallet}); err != nil {
				return err
			}
		}
		if _, err := tx.Profiles().Own(ctx, handle); err != nil {
			p := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Business}}
			if _, err := tx.Profiles().Put(ctx, p); err != nil {
				return err
			}
		}
		return tx.Accounts().LinkProfile(ctx, account, handle)
	})
}

// enrol enrols a shop to the identity.
func (w *world) enrol(handle, owner string) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Feedbacks().PutAgent(ctx, agentRao[:len(agentRao)-2], storage.FeedbackAgent{Agent: agentRao, Owner: owner}, nil); err != nil {
			return err
		}
		return tx.Enrolments().Begin(ctx, "operator", storage.Enrolment{Handle: handle, ERC8004: agentRao, KeyID: "k-" + handle, Owner: owner, Wallet: walletRao,
			Block: 1, BlockHash: "0x1"}, []byte(`{}`))
	})
}
