package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestCrash_Orders kills processes while many order and pay at a shop, every second one by a checkout of UCP that is handed over to
// its page. Every request is sent again until it is answered. In the end each order that was answered is there once, with its money,
// and no other; its pieces are sold, and no piece is held, neither by an order nor by a checkout.
func TestCrash_Orders(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		a := newAuction(t, c.URL)
		s := a.shop(1000)
		random, rounds := rand.New(rand.NewPCG(storagetest.Seed(t), 6)), storagetest.Rounds(t, 12)
		const buyers = 24
		var mu sync.Mutex // guards pages
		pages := map[string]int64{}
		var group sync.WaitGroup
		for i := range buyers {
			group.Go(func() {
				for n := range rounds {
					mail, network, token := fmt.Sprintf("buyer%d-%d@example.org", i, n), fmt.Sprintf("2a00:%x:%x::1", i+1, n+1), ""
					if i%2 > 0 {
						token = s.checkout(mail, network)
					}
					page := s.order(mail, network, token)
					how := presses[(i+n)%len(presses)]
					for _, button := range how.buttons {
						var payment protocol.Payment
						if code := a.ask("POST", "/api/public/payment/sandbox", fmt.Sprintf(`{"button":%q}`, button), bearer(page), &payment); code != "" {
							t.Errorf("%s was refused: %s", button, code)
						}
					}
					mu.Lock()
					pages[page] = how.halves
					mu.Unlock()
				}
			})
		}
		done := make(chan struct{})
		go func() { group.Wait(); close(done) }()
		for over := false; !over; {
			select {
			case <-done:
				over = true
			case <-time.After(time.Duration(300+random.IntN(500)) * time.Millisecond):
				a.crash(random.IntN(len(a.nodes)))
			}
		}
		require.Len(t, pages, buyers*rounds, "each buyer has a page of its own for each order")
		for page, halves := range pages {
			s.settles(page, halves)
		}
		all, stock := s.books()
		require.Len(t, all, len(pages))
		require.Equal(t, storage.Stocked{Pieces: 1000 - len(pages)}, stock)
		t.Logf("%d orders", len(all))
		for _, p := range a.nodes {
			p.kill()
		}
		out, errs, code := stoa(t, "", append([]string{"admin", "check"}, a.of...)...)
		require.Equal(t, 0, code, errs)
		require.Equal(t, "ok\n", out)
	})
}

// A counter is a shop of the node that sells one variant, by the provider on which no money moves.
type counter struct {
	*auction
	variant string
}

// shop opens a shop with so many pieces.
func (a *auction) shop(pieces int) counter {
	a.t.Helper()
	must.Get(putProfile(a.t.Context(), a.admin, []byte(`{"handle":"rao","name":"Rao Foods","kind":"business"}`)))(a.t)
	made := must.Get(node.Do(a.t.Context(), a.admin, protocol.GrantToken, protocol.TokenGrant{NewToken: protocol.NewToken{Handle: "rao", Name: "test",
		Scopes: protocol.OwnerScopes}}))(a.t)
	require.NoError(a.t, openRooms(a.t.Context(), a.base, devAgent{OwnerToken: made.Secret}, seeded{Orders: map[string]any{"open": true, "pickup": true}}))
	var item protocol.OwnItem
	owner := bearer(made.Secret)
	require.Empty(a.t, a.ask("PUT", "/api/owner/merchant/items/dal", `{"name":"Toor dal","price":{"currency":"INR","amount":"120"}}`, owner, &item))
	stock := fmt.Sprintf(`{"stock":[{"id":%q,"pieces":%d}]}`, item.VariantIDs[0], pieces)
	require.Empty(a.t, a.ask("PUT", "/api/owner/stock", stock, owner, new(any)))
	return counter{a, item.VariantIDs[0]}
}

// checkout makes a checkout of UCP, and returns the secret of its page.
func (s counter) checkout(mail, network string) string {
	var made struct {
		Continue string `json:"continue_url"`
	}
	body := fmt.Sprintf(`{"line_items":[{"item":{"id":%q},"quantity":1}],"buyer":{"email":%q}}`, s.variant, mail)
	code := s.ask("POST", protocol.UCPPath+"/checkout-sessions", body, func(r *http.Request, _ []byte) {
		r.Header.Set("Idempotency-Key", mail)
		r.Header.Set("X-Forwarded-For", network)
	}, &made)
	_, token, ok := strings.Cut(made.Continue, protocol.CheckoutPath)
	if !ok {
		s.t.Errorf("a checkout is not made: %s %s", code, made.Continue)
	}
	return token
}

// order sends the form of the shop's page, or of a checkout's, until it is answered, and returns the path of the order's page.
func (s counter) order(mail, network, checkout string) string {
	form := url.Values{"items": {s.variant + ":1"}, "name": {"Ravi"}, "mail": {mail}, "way": {protocol.ByPickup}, "pay": {protocol.PayNow}, "once": {mail},
		"checkout": {checkout}}
	client := *s.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	var last any
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		r := must.Get(http.NewRequest("POST", s.base+"/order/new", strings.NewReader(form.Encode())))(s.t)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Forwarded-For", network)
		res, err := client.Do(r)
		if last = err; err != nil {
			continue
		}
		raw, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode == http.StatusSeeOther {
			return res.Header.Get("Location")
		}
		if last = res.Status + string(raw); res.StatusCode < 500 {
			break
		}
	}
	s.t.Errorf("an order is not answered: %v", last)
	return mail
}

// settles waits until an order is paid, and what was paid beyond its sum is back.
func (s counter) settles(page string, halves int64) {
	s.t.Helper()
	hash := protocol.SecretHash(page[strings.LastIndexByte(page, '/')+1:])
	var state protocol.OrderState
	var refunds []storage.StoredRefund
	require.Eventually(s.t, func() bool {
		require.NoError(s.t, s.admin.DB.Read(s.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			x, err := tx.Orders().ByToken(ctx, hash)
			if err == nil {
				state = x.State
				refunds, err = tx.Refunds().Of(ctx, x.ID)
			}
			return err
		}))
		rest := 120_00 * (halves - 2) / 2
		for _, r := range refunds {
			rest -= r.Paise
		}
		return state == protocol.OrderPaid && rest == 0 && !slices.ContainsFunc(refunds, func(r storage.StoredRefund) bool { return r.State != storage.RefundDone })
	}, time.Minute, 50*time.Millisecond, "%s %s %+v", page, state, refunds)
}

// books returns every order of the shop, and what is left of its variant.
func (s counter) books() (all []storage.StoredOrder, left storage.Stocked) {
	s.t.Helper()
	require.NoError(s.t, s.admin.DB.Read(s.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		till, err := tx.Tills().ByHandle(ctx, "rao")
		if err != nil {
			return err
		}
		for after, more := "", true; more; {
			page, err := tx.Orders().List(ctx, till.ID, "", protocol.MaxLimit, after)
			if err != nil {
				return err
			}
			all = append(all, page.Items...)
			if more = page.Next != nil; more {
				after = *page.Next
			}
		}
		left, err = tx.Tills().Stock(ctx, till.ID, s.variant)
		return err
	}))
	return all, left
}
