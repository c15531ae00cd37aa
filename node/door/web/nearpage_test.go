package web_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
)

func nearShop(h *nodetest.House) {
	token := h.Business("rao-tiffins", "")
	h.Ask("PUT", "/api/owner/merchant", `{"address":{"street":"5th Block, Koramangala","postalCode":"560034"},"geo":{"latitude":12.934,"longitude":77.612}}`,
		"Authorization", "Bearer "+token).Is(200)
}

// TestMerchants_Place: the page takes a place by its name without a script, offers a choice of several, and says what it does not know. It
// alone may ask for the position, also when it is kept.
func TestMerchants_Place(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	nearShop(h)
	for range 2 {
		a := h.Ask("GET", "/merchants", "", "Accept", nodetest.Accept).Is(200)
		require.Equal(t, "camera=(), microphone=(), geolocation=(self)", a.Header().Get("Permissions-Policy"))
	}
	for _, path := range []string{"/", "/people", "/@rao-tiffins"} {
		a := h.Ask("GET", path, "", "Accept", nodetest.Accept).Is(200)
		require.Equal(t, "camera=(), microphone=(), geolocation=()", a.Header().Get("Permissions-Policy"), path)
	}
	require.Contains(t, open(h, "/merchants?near=Koramangala", 200).Text(), "0 m away")
	d := open(h, "/merchants?near=Hyderabad&radius=10000", 422)
	require.Contains(t, d.Text(), "Several places have this name: choose one.")
	var links []string
	for _, a := range d.All("a") {
		if nodetest.Attr(a, "rel") == "nofollow" {
			links = append(links, nodetest.Attr(a, "href"))
		}
	}
	require.Equal(t, []string{"/merchants?near=17.384%2C78.456&radius=10000", "/merchants?near=25.392%2C68.374&radius=10000"}, links)
	open(h, links[0], 200)
	require.Contains(t, open(h, "/merchants?near=Atlantis", 422).Text(), "No place of that name is known here")
	hindi := h.Ask("GET", "/merchants?near=Atlantis", "", "Accept", nodetest.Accept, "Accept-Language", "hi").Is(422)
	require.Contains(t, hindi.Body.String(), "इस नाम की कोई जगह")
}

// TestMerchants_Price: a card has the prices of what the shop sells, after its distance.
func TestMerchants_Price(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	nearShop(h)
	require.NotContains(t, open(h, "/merchants?near=Koramangala", 200).Text(), "₹")
	put := func(items string) {
		h.Ask("PUT", "/api/owner/merchant", `{"geo":{"latitude":12.934,"longitude":77.612},"items":[`+items+`]}`, "Authorization",
			"Bearer "+h.OwnerToken("rao-tiffins")).Is(200)
	}
	put(`{"sku":"a","name":"Idli","price":{"amount":"40","currency":"INR"}}`)
	require.Regexp(t, `0 m away\s+₹40\s+@rao-tiffins`, open(h, "/merchants?near=12.934,77.612", 200).Text())
	put(`{"sku":"a","name":"Idli","price":{"amount":"40","currency":"INR"}},{"sku":"b","name":"Feast","price":{"amount":"150000","currency":"INR"}}`)
	require.Contains(t, open(h, "/merchants", 200).Text(), "₹40–₹1,50,000")
	require.Contains(t, h.Ask("GET", "/api/public/merchants", "").Is(200).Body.String(),
		`"priceRange":{"min":{"currency":"INR","amount":"40.00"},"max":{"currency":"INR","amount":"150000.00"}}`)
}

// TestBrowser_Near presses the button for the browser's position: it is refused, then allowed.
func TestBrowser_Near(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	nearShop(h)
	b := nodetest.OpenBrowser(t, h.Base)
	permit := func(setting browser.PermissionSetting) {
		do(b, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			at, err := cdp.Call(ctx, t, target.GetTargetInfo, target.GetTargetInfoParams{})
			if err != nil {
				return err
			}
			_, err = cdp.Call(ctx, t, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "geolocation"},
				Setting: setting, Origin: h.Base, BrowserContextID: at.TargetInfo.BrowserContextID})
			return err
		}))
	}
	const press = `(() => { document.querySelector("details").open = true; document.querySelector("#f-near + button").click(); return true })()`
	permit(browser.PermissionSettingDenied)
	require.Equal(t, 200, b.Open("/merchants"))
	nodetest.Look[bool](b, press)
	shows(b, `document.querySelector("[role=status]")?.textContent.includes("gave no position")`)
	require.Empty(t, value(b, "#f-near"))

	permit(browser.PermissionSettingGranted)
	do(b, devCall(emulation.SetGeolocationOverride, emulation.SetGeolocationOverrideParams{Latitude: new(12.9352), Longitude: new(77.6146), Accuracy: new(10.0)}))
	require.Equal(t, 200, b.Open("/merchants"))
	nodetest.Look[bool](b, press)
	shows(b, `location.search.includes("near=") && document.readyState == "complete"`)
	require.Equal(t, "12.935,77.615", value(b, "#f-near"))
	require.Contains(t, b.Text("main"), "m away")
	require.Zero(t, nodetest.Look[int](b, `localStorage.length + sessionStorage.length`))
}
