package order_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// platform is the n-th platform of a site, whose signature was checked.
func platform(site string, n int) protocol.Caller {
	return *protocol.PlatformCaller(fmt.Sprintf("https://%d.%s/ucp", n, site))
}

func filled(n int, variant string, pieces int) protocol.CheckoutDraft {
	return protocol.CheckoutDraft{Items: []protocol.BasketItem{{ID: variant, Quantity: pieces}}, Release: protocol.UCPVersions[0],
		Buyer: protocol.CheckoutBuyer{First: "Ravi", Mail: fmt.Sprintf("ravi%d@example.org", n)}}
}

func (w *world) checkout(c protocol.Caller, id string) protocol.Checkout {
	w.t.Helper()
	return must.Get(does(w, w.Checkout, c, protocol.CheckoutDraft{Session: id}))(w.t)
}

// TestCheckout_Budget: platforms of one site have room of their own; all others share what the node has, and do not use up what is theirs.
func TestCheckout_Budget(t *testing.T) {
	each(t, func(w *world) {
		made := func(c protocol.Caller, n int) error {
			_, err := does(w, w.MakeCheckout, c, filled(n, w.dal, 1))
			return err
		}
		for n := range protocol.FreeCheckouts {
			require.NoError(w.t, made(platform("a.example", n), n))
		}
		for n := range protocol.UnprovedCheckouts {
			c := stranger(n)
			if n%2 == 0 {
				c = platform("a.example", n) // it has no more room of its own
			}
			require.NoError(w.t, made(c, 1000+n))
		}
		require.Equal(w.t, protocol.RateLimited, protocol.CodeOf(made(stranger(1), 1)))
		require.Equal(w.t, protocol.RateLimited, protocol.CodeOf(made(platform("a.example", 1), 1)))
		require.NoError(w.t, made(platform("b.example", 1), 2), "another site has its own")
		read := filled(3, w.dal, 1)
		read.Profile = "https://c.example/ucp"
		must.Get(does(w, w.MakeCheckout, stranger(1), read))(w.t)
		w.pass(time.Hour)
		require.NoError(w.t, made(stranger(1), 4))
	})
}

// TestCheckout_Holds: a checkout holds its pieces for 20 minutes, all of them or none, and strangers' together half of a variant; the
// oldest gives way to another maker's, to its own maker's none; an order takes over what its checkout holds.
func TestCheckout_Holds(t *testing.T) {
	each(t, func(w *world) {
		w.stock(w.last, 4)
		made := func(c protocol.Caller, n, pieces int) protocol.Checkout {
			w.pass(time.Second)
			return must.Get(does(w, w.MakeCheckout, c, filled(n, w.last, pieces)))(w.t)
		}
		a, b := platform("a.example", 1), platform("b.example", 1)
		require.Equal(w.t, protocol.CheckoutIncomplete, made(a, 1, 3).Status, "more than half")
		require.Zero(w.t, w.left(w.last).Held)
		first := made(a, 2, 2)
		require.Equal(w.t, protocol.CheckoutEscalates, first.Status)
		require.Equal(w.t, protocol.CheckoutIncomplete, made(a, 3, 1).Status, "it has what it may hold")
		require.Equal(w.t, protocol.CheckoutEscalates, w.checkout(a, first.ID).Status)
		second := made(b, 4, 1)
		require.Equal(w.t, protocol.CheckoutEscalates, second.Status)
		require.Equal(w.t, protocol.CheckoutIncomplete, w.checkout(a, first.ID).Status, "the oldest gave way, whole")
		require.Equal(w.t, storage.Stocked{Pieces: 4, Held: 1, Strangers: 1}, w.left(w.last))

		// A newer one for the same mailbox ends the older one.
		third := made(b, 4, 2)
		require.Equal(w.t, protocol.CheckoutEscalates, third.Status)
		require.Equal(w.t, protocol.CheckoutCanceled, w.checkout(b, second.ID).Status)
		require.Equal(w.t, 2, w.left(w.last).Held)

		// The person orders: the pieces go over to the order, which others cannot take.
		in := wants(4, w.last, 1)
		in.Checkout = third.Token
		order := must.Get(does(w, w.Make, stranger(9), in))(w.t)
		require.EqualValues(w.t, 2, order.Order.Lines[0].Quantity.Total, "what the checkout has is ordered")
		require.Equal(w.t, storage.Stocked{Pieces: 4, Held: 2, Strangers: 2}, w.left(w.last))
		require.Equal(w.t, protocol.CheckoutIncomplete, made(a, 5, 1).Status, "a checkout takes nothing from an order")
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(must.Err(does(w, w.Make, stranger(9), in))), "one order a checkout")
		got := w.checkout(b, third.ID)
		require.Equal(w.t, protocol.CheckoutEscalates, got.Status)
		require.NotEmpty(w.t, got.Order)
		require.Empty(w.t, got.Buyer)
		w.pass(protocol.HoldFor)
		require.Equal(w.t, protocol.CheckoutCanceled, w.checkout(b, third.ID).Status)
		w.jobs()
		require.Zero(w.t, w.left(w.last).Held)

		// Its hold ends after 20 minutes, the checkout after an hour.
		fourth := made(a, 6, 2)
		require.Equal(w.t, 2, w.left(w.last).Held)
		w.pass(protocol.HoldFor)
		w.jobs()
		require.Zero(w.t, w.left(w.last).Held)
		require.Equal(w.t, protocol.CheckoutEscalates, w.checkout(a, fourth.ID).Status, "nobody else took them")
		w.pass(protocol.CheckoutFor)
		require.Equal(w.t, protocol.CheckoutCanceled, w.checkout(a, fourth.ID).Status)
		in.Checkout = fourth.Token
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(must.Err(does(w, w.Make, stranger(9), in))))

		// A buyer takes the last pieces of a shop from checkouts, where it has too few.
		made(a, 7, 2)
		must.Get(does(w, w.Make, known(1), wants(11, w.last, 4)))(w.t)
		require.Equal(w.t, storage.Stocked{Pieces: 4, Held: 4}, w.left(w.last))
	})
}

// TestCheckout_Walk: whatever platforms and persons do with checkouts at random, no more is held than there is, strangers hold half at
// most, and when all is over nothing is held.
func TestCheckout_Walk(t *testing.T) {
	each(t, func(w *world) {
		r := rand.New(rand.NewPCG(3, 5))
		w.stock(w.last, 5)
		var all []protocol.Checkout
		mine := map[string]protocol.Caller{}
		any := func() protocol.Checkout { return all[r.IntN(len(all))] }
		for i := range 300 {
			w.pass(time.Duration(r.IntN(120)) * time.Second)
			c := []protocol.Caller{platform("a.example", 1), platform("b.example", 1), stranger(1), stranger(2)}[r.IntN(4)]
			switch n := r.IntN(8); {
			case n < 3 || len(all) == 0:
				if made := must.Get(does(w, w.MakeCheckout, c, filled(r.IntN(9), w.last, 1+r.IntN(3))))(w.t); made.Refused == nil {
					mine[made.ID] = c
					all = append(all, made)
				}
			case n < 4:
				x := any()
				in := filled(r.IntN(9), w.last, 1+r.IntN(3))
				in.Session = x.ID
				must.Get(does(w, w.PutCheckout, mine[x.ID], in))(w.t)
			case n < 5:
				x := any()
				must.Get(does(w, w.CancelCheckout, mine[x.ID], protocol.CheckoutDraft{Session: x.ID}))(w.t)
			case n < 7:
				in := wants(r.IntN(9), w.last, 1)
				in.Checkout = any().Token
				if r.IntN(3) == 0 {
					in.Checkout = ""
				}
				_, err := does(w, w.Make, stranger(i), in)
				require.NotEqual(w.t, protocol.Internal, protocol.CodeOf(err), "%v", err)
			default:
				w.jobs()
			}
			s := w.left(w.last)
			require.LessOrEqual(w.t, s.Held, s.Pieces)
			require.LessOrEqual(w.t, s.Strangers, 3, "half of five")
		}
		w.pass(2 * protocol.OrderClaimFor)
		w.jobs()
		require.Zero(w.t, w.left(w.last).Held)
		require.NoError(w.t, w.db.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for {
				if n, err := tx.PruneExpired(ctx); n == 0 || err != nil {
					return err
				}
			}
		}))
		for _, x := range all {
			if got, err := does(w, w.Checkout, mine[x.ID], protocol.CheckoutDraft{Session: x.ID}); err == nil {
				require.NotEmpty(w.t, got.Order, "only what became an order is kept longer")
			} else {
				require.Equal(w.t, protocol.NotFound, protocol.CodeOf(err))
			}
		}
	})
}
