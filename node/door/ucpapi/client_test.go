package ucpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/node/out/pay/sandbox"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestClient_Buys: a released client of UCP searches and begins a checkout; a person takes it over in a browser and pays, by the sandbox and then
// by a provider's stand-in; the client reads that it is completed; the receipt verifies; the review of the order that was paid counts.
func TestClient_Buys(t *testing.T) {
	t.Parallel()
	runtime, program := os.Getenv("STOA_TEST_FEDIFY"), os.Getenv("STOA_TEST_UCP")
	if runtime == "" || program == "" {
		t.Skip("the client of UCP is not here; make test installs it")
	}
	h := nodetest.Served(t)
	api := h.Razorpay()
	h.Work()
	bearer := "Bearer " + h.Business("rao", "")
	item := nodetest.As[protocol.OwnItem](h.Ask("PUT", "/api/owner/merchant/items/dal",
		`{"handle":"rao","name":"Toor dal","price":{"currency":"INR","amount":"120"}}`, "Authorization", bearer))
	h.Ask("PUT", "/api/owner/payment-account", `{"provider":"sandbox"}`, "Authorization", bearer).Is(200)
	h.Ask("PUT", "/api/owner/till", `{"open":true,"pickup":true}`, "Authorization", bearer).Is(200)
	h.Ask("PUT", "/api/owner/stock", `{"stock":[{"id":"`+item.VariantIDs[0]+`","pieces":4}]}`, "Authorization", bearer).Is(204)

	home := t.TempDir()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=60")
		profile, err := os.ReadFile(filepath.Join(home, "profiles", "tests", "profile.json")) // once the client has made it
		if err != nil {
			t.Error(err)
		}
		w.Write(profile)
	}))
	t.Cleanup(site.Close)
	run := func(args ...string) (out []byte) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, runtime, append([]string{program}, args...)...)
		c.Env = []string{"HOME=" + home, "UCP_HOME=" + home, "UCP_TEST_ALLOW_INSECURE_LOCALHOST=true", "UCP_ON_ESCALATION=true", "PATH=" + os.Getenv("PATH")}
		var said strings.Builder
		c.Stderr = &said
		out, err := c.Output()
		require.NoError(t, err, "%v\n%s\n%s", args, out, said.String())
		return out
	}
	ask := func(args ...string) (got sold) {
		t.Helper()
		out := run(append(args, "--business", h.Base, "--format", "json")...)
		var answer struct{ Result json.RawMessage }
		require.NoError(t, json.Unmarshal(out, &answer), "%s", out)
		require.NoError(t, json.Unmarshal(answer.Result, &got), "%s", out)
		got.raw = string(out)
		return got
	}
	run("profile", "init", "--name", "tests", "--profile-url", site.URL+"/agent.json", "--activate")
	require.Contains(t, ask("catalog", "search", "--set", "/query=toor dal").raw, item.VariantIDs[0])
	cart := ask("cart", "create", "--set", "/line_items/0/item/id="+item.VariantIDs[0], "--set", "/line_items/0/quantity=2")
	require.EqualValues(t, 24000, cart.total(), cart.raw)
	c := ask("checkout", "create", "--input", `{"cart_id":"`+cart.ID+`","line_items":[]}`)
	require.Equal(t, "incomplete", c.Status, c.raw)
	c = ask("checkout", "update", c.ID, "--input", wanting("meera@example.org", item.VariantIDs[0], 2))
	require.Equal(t, "requires_escalation", c.Status, c.raw)

	b := nodetest.OpenBrowser(t, h.Base)
	b.Screen(390, 844)
	require.Equal(t, 200, b.Open(strings.TrimPrefix(c.Continue, h.Base)))
	require.Contains(t, b.Text("main"), "₹240")
	b.Picture("checkout")
	require.Equal(t, 200, b.Send("#order"), b.Text("main"))
	require.Equal(t, "requires_escalation", ask("checkout", "get", c.ID).Status)
	require.Equal(t, 200, b.Open(strings.TrimPrefix(c.Continue, h.Base)), "the same link leads to the order, in the same browser")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS("a.button"))))
	require.Contains(t, b.Text("main"), "TEST: no money moves")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`[name=button][value="`+string(sandbox.Pay)+`"]`))))
	require.Eventually(t, func() bool {
		c = ask("checkout", "get", c.ID)
		return c.Status == "completed"
	}, 2*time.Minute, 100*time.Millisecond)
	require.Contains(t, c.Order.Label, "TEST")
	require.Equal(t, c.ID, ask("checkout", "complete", c.ID, "--input", `{"payment":{"instruments":[]}}`).ID)

	receipt := func() (claims protocol.OrderReceiptClaims) {
		t.Helper()
		require.Equal(t, 200, b.Open(strings.TrimPrefix(c.Order.Permalink, h.Base)))
		text := nodetest.Look[string](b, `[...document.querySelectorAll("details code")].map(c => c.textContent).find(s => s.startsWith("ey"))`)
		set := must.Get(key.ParseSet(h.Ask("GET", "/.well-known/http-message-signatures-directory", "").Is(200).Body.Bytes()))(t)
		raw, _, err := set.VerifyCompact(text, protocol.OrderReceiptType, protocol.MaxReceiptToken, time.Now())
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &claims))
		require.Equal(t, c.Order.ID, claims.Order)
		return claims
	}
	require.True(t, receipt().Test)
	reputed := func() *protocol.Reputation {
		return nodetest.As[protocol.Profile](h.Ask("GET", "/api/public/agents/rao", "")).Reputation
	}
	require.Equal(t, 200, b.Send("#review_order", "stars", "5"), b.Text("main"))
	require.Nil(t, reputed(), "a TEST never counts")

	pays := h.PaidByRazorpay(api, "rao", bearer)
	c = ask("checkout", "create", "--input", wanting("meera@example.org", item.VariantIDs[0], 1))
	require.Equal(t, "requires_escalation", c.Status, c.raw)
	require.Equal(t, 200, b.Open(strings.TrimPrefix(c.Continue, h.Base)))
	require.Equal(t, 200, b.Send("#order"), b.Text("main"))
	waiting := nodetest.As[protocol.Page[protocol.ShopOrder]](h.Ask("GET", "/api/owner/orders?state=awaiting_payment", "", "Authorization", bearer)).Items[0]
	pays(waiting.ID, 120_00)
	require.Eventually(t, func() bool {
		c = ask("checkout", "get", c.ID)
		return c.Status == "completed"
	}, 2*time.Minute, 100*time.Millisecond)
	got := receipt()
	require.False(t, got.Test)
	require.Equal(t, protocol.KnownProvider, got.Known)
	require.Equal(t, 200, b.Send("#review_order", "stars", "4"), b.Text("main"))
	require.Equal(t, []protocol.PaidReviews{{Known: protocol.KnownProvider, Reviews: 1, Average: 4}}, reputed().Paid)
}
