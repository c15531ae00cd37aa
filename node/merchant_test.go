package node_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestMerchant walks spec §2.15: the owner writes a record, the public reads it.
func TestMerchant(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	token := h.Business("rao-tiffins", `,"timezone":"Asia/Kolkata","returns":{"acceptsReturns":false}`)
	require.Equal(t, []string{"merchant_joined Rao Tiffins"}, h.Told("merchant_joined,listing"))
	put := func(body string) nodetest.Answer {
		return h.Ask("PUT", "/api/owner/merchant", body, "Authorization", "Bearer "+token)
	}

	// Before there is a record, the page is there and says nothing of hours.
	var m protocol.Merchant
	a := h.Ask("GET", "/api/public/merchants/rao-tiffins", "").Is(200)
	a.Into(&m)
	require.Nil(t, m.OpenNow)
	require.Empty(t, m.Items)
	require.Nil(t, m.City)
	require.Equal(t, protocol.NoIdentity, m.Identity.Note)
	require.False(t, m.Returns.AcceptsReturns)

	put(nodetest.GoodMerchant).Is(200)
	require.ElementsMatch(t, []string{"merchant_joined Rao Tiffins", "listing Idli", "listing डोसा", "listing Feast"}, h.Told("merchant_joined,listing"))
	a = h.Ask("GET", "/api/public/merchants/rao-tiffins", "")
	var raw map[string]any
	a.Into(&m)
	a.Into(&raw)
	require.Equal(t, "Restaurant", *m.Category)
	require.Equal(t, "Bangalore", *m.City, "as the owner wrote it")
	require.NotNil(t, m.OpenNow)
	require.Len(t, m.Items, 3)
	require.Equal(t, &protocol.Money{Currency: "INR", Amount: "40.00"}, m.Items[0].Price)
	require.Equal(t, &protocol.Money{Currency: "INR", Amount: "85.50"}, m.Items[1].Price)
	require.Nil(t, m.Items[2].Price)
	require.True(t, protocol.IsID(protocol.ItemID, m.Items[0].ID))
	require.Equal(t, protocol.InStock, m.Items[0].Availability)
	require.Equal(t, true, raw["untrusted_content"])
	require.Contains(t, raw, "reputation")
	require.Nil(t, raw["reputation"])

	// What the owner reads can be put back, and nothing is told twice.
	var record struct{ Record json.RawMessage }
	h.Ask("GET", "/api/owner/merchant", "", "Authorization", "Bearer "+token).Into(&record)
	require.Equal(t, 200, put(string(record.Record)).Code)
	require.Equal(t, 200, put(strings.Replace(nodetest.GoodMerchant, `"name":"Idli"`, `"name":"Idli, two"`, 1)).Code)
	require.Len(t, h.Told("merchant_joined,listing"), 4)
	again := nodetest.As[protocol.Merchant](h.Ask("GET", "/api/public/merchants/rao-tiffins", ""))
	require.Equal(t, m.Items[0].ID, again.Items[0].ID)

	list := nodetest.As[protocol.Page[protocol.MerchantEntry]](h.Ask("GET", "/api/public/merchants?city=bengaluru&category=restaurant&q=idli", ""))
	require.Len(t, list.Items, 1)
	require.Equal(t, h.Base+"/@rao-tiffins", list.Items[0].Page)
	h.Ask("GET", "/api/public/merchants?city=pune", "").Into(&list)
	require.Empty(t, list.Items)

	// Off the lists: not found there, nor in the feed, and still at its address.
	listed := func(yes bool) {
		h.PutProfile(fmt.Appendf(nil, `{"handle":"rao-tiffins","name":"Rao Tiffins","kind":"business","listed":%t}`, yes))
	}
	listed(false)
	require.Equal(t, 200, put(strings.Replace(nodetest.GoodMerchant, `"idli"`, `"vada"`, 1)).Code)
	require.Empty(t, h.Told("merchant_joined,listing"))
	h.Ask("GET", "/api/public/merchants", "").Into(&list)
	require.Empty(t, list.Items)
	agents := nodetest.As[protocol.Page[protocol.Profile]](h.Ask("GET", "/api/public/agents?q=rao", ""))
	require.Empty(t, agents.Items)
	require.Equal(t, 200, h.Ask("GET", "/api/public/merchants/rao-tiffins", "").Code)
	require.Equal(t, 200, h.Ask("GET", "/api/public/agents/rao-tiffins", "").Code)
	listed(true)
	require.Len(t, h.Told("merchant_joined,listing"), 5, "the item that was new meanwhile is told now")

	// A catalog does not fill the feed.
	var many []string
	for n := range 30 {
		many = append(many, fmt.Sprintf(`{"sku":"m%d","name":"Many"}`, n))
	}
	require.Equal(t, 200, put(`{"items":[`+strings.Join(many, ",")+`]}`).Code)
	require.Equal(t, 20, strings.Count(strings.Join(h.Told("listing&limit=100"), "\n"), "Many"))

	// A person has no shop, and nobody writes another's.
	h.PutProfile([]byte(`{"handle":"asha","name":"Asha","kind":"person"}`))
	require.Equal(t, 404, h.Ask("GET", "/api/public/merchants/asha", "").Code)
	require.Equal(t, 404, h.Ask("GET", "/api/public/merchants/nobody", "").Code)
	require.Equal(t, 403, put(`{"handle":"asha"}`).Code)
	require.Equal(t, 401, h.Ask("PUT", "/api/owner/merchant", `{}`).Code)
	_, _, err := h.Admin().PutProfile(t.Context(), []byte(`{"handle":"rao-tiffins","name":"Rao","kind":"person"}`))
	require.Equal(t, protocol.Validation, protocol.CodeOf(err), "a kind stays")

	people := nodetest.As[protocol.Page[map[string]any]](h.Ask("GET", "/api/public/people", ""))
	require.Len(t, people.Items, 1)
	require.Equal(t, "asha", people.Items[0]["handle"])
	require.Equal(t, false, people.Items[0]["hasAttentionBoard"])
	require.Equal(t, true, people.Items[0]["untrusted_content"])

	require.NoError(t, h.Admin().DeleteProfile(t.Context(), "rao-tiffins"))
	require.Empty(t, h.Told("merchant_joined,listing"))
	require.Equal(t, 404, h.Ask("GET", "/api/public/merchants/rao-tiffins", "").Code)
}

// TestMerchant_Limits puts each limit of a record at its edge and one past it.
func TestMerchant_Limits(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	admin := h.Admin()
	_, _, err := admin.PutProfile(t.Context(), []byte(`{"handle":"limits","name":"L","kind":"business","timezone":"Asia/Kolkata"}`))
	require.NoError(t, err)
	s := func(n int) string { return `"` + strings.Repeat("क", n) + `"` }
	item := func(field string) string { return `"items":[{"sku":"a","name":"n",` + field + `}]` }
	price := func(amount string) string { return item(`"price":{"currency":"INR","amount":` + amount + `}`) }
	list := func(n int, one string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(one, "#", fmt.Sprint(i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	shift := func(opens, closes string) string {
		return fmt.Sprintf(`"hours":[{"day":"monday","opens":%q,"closes":%q}]`, opens, closes)
	}
	exception := func(from, through, more string) string {
		return fmt.Sprintf(`{"validFrom":%q,"validThrough":%q%s}`, from, through, more)
	}
	for _, tt := range []struct{ name, at, past, pointer string }{
		{"category", `"category":` + s(60), `"category":` + s(61), "/category"},
		{"category in one line", `"category":"a b"`, `"category":"a\nb"`, "/category"},
		{"city", `"city":` + s(80), `"city":` + s(81), "/city"},
		{"street", `"address":{"street":` + s(200) + `}`, `"address":{"street":` + s(201) + `}`, "/address/street"},
		{"postal code", `"address":{"postalCode":` + s(20) + `}`, `"address":{"postalCode":` + s(21) + `}`, "/address/postalCode"},
		{"region", `"address":{"region":"IN-KA"}`, `"address":{"region":"IN-ZZ"}`, "/address/region"},
		{"country", `"address":{"country":"IN"}`, `"address":{"country":"UK"}`, "/address/country"},
		{"latitude", `"geo":{"latitude":-90,"longitude":180}`, `"geo":{"latitude":-90.1,"longitude":0}`, "/geo/latitude"},
		{"longitude", `"geo":{"latitude":90,"longitude":-180}`, `"geo":{"latitude":0,"longitude":180.1}`, "/geo/longitude"},
		{"time zone", `"timezone":"Europe/Berlin"`, `"timezone":"Local"`, "/timezone"},
		{"day", shift("09:00", "18:00"), `"hours":[{"day":"Monday","opens":"09:00","closes":"18:00"}]`, "/hours/0/day"},
		{"opens", shift("23:59", "00:00"), shift("24:00", "01:00"), "/hours/0/opens"},
		{"closes", shift("00:00", "24:00"), shift("00:00", "24:01"), "/hours/0/closes"},
		{"a shift", shift("09:00", "08:59"), shift("09:00", "09:00"), "/hours/0/closes"},
		{"shifts", `"hours":` + list(42, `{"day":"monday","opens":"09:00","closes":"18:00"}`), `"hours":` +
			list(43, `{"day":"monday","opens":"09:00","closes":"18:00"}`), "/hours"},
		{"exceptions", `"exceptionHours":` + list(60, exception("2026-01-01", "2026-01-01", `,"opens":"09:00","closes":"10:00"`)), `"exceptionHours":` +
			list(61, exception("2026-01-01", "2026-01-01", `,"opens":"09:00","closes":"10:00"`)), "/exceptionHours"},
		{"a date", `"exceptionHours":[` + exception("2028-02-29", "2028-02-29", "") + `]`, `"exceptionHours":[` +
			exception("2026-02-29", "2026-03-01", "") + `]`, "/exceptionHours/0/validFrom"},
		{"dates in order", `"exceptionHours":[` + exception("2026-03-01", "2027-03-02", "") + `]`, `"exceptionHours":[` +
			exception("2026-03-02", "2026-03-01", "") + `]`, "/exceptionHours/0/validThrough"},
		{"a year of dates", `"exceptionHours":[` + exception("2026-03-01", "2027-03-02", "") + `]`, `"exceptionHours":[` +
			exception("2026-03-01", "2027-03-03", "") + `]`, "/exceptionHours/0/validThrough"},
		{"half an exception", `"exceptionHours":[` + exception("2026-03-01", "2026-03-01", `,"opens":"09:00","closes":"10:00"`) + `]`,
			`"exceptionHours":[` + exception("2026-03-01", "2026-03-01", `,"opens":"09:00"`) + `]`, "/exceptionHours/0"},
		{"exceptions apart", `"exceptionHours":[` + exception("2026-03-01", "2026-03-02", "") + "," + exception("2026-03-03", "2026-03-03", "") + `]`,
			`"exceptionHours":[` + exception("2026-03-01", "2026-03-02", "") + "," + exception("2026-03-02", "2026-03-03", "") + `]`, "/exceptionHours/1/validFrom"},
		{"closed and open", `"exceptionHours":` + list(2, exception("2026-03-01", "2026-03-01", `,"opens":"0#:00","closes":"0#:30"`)),
			`"exceptionHours":[` + exception("2026-03-01", "2026-03-01", "") + "," +
				exception("2026-03-01", "2026-03-01", `,"opens":"09:00","closes":"10:00"`) + `]`, "/exceptionHours/1"},
		{"phone", `"phone":"+91 80 (2650) 0000-1"`, `"phone":"call me"`, "/phone"},
		{"phone of digits", `"phone":"112"`, `"phone":"( - )"`, "/phone"},
		{"website of somebody", `"website":"https://a.example:8443/x"`, `"website":"https://"`, "/website"},
		{"website without a password", `"website":"https://a.example"`, `"website":"https://me:secret@a.example"`, "/website"},
		{"image of somewhere", item(`"image":"https://a.example"`), item(`"image":"https:///x.jpg"`), "/items/0/image"},
		{"item's page of somewhere", item(`"url":"https://a.example"`), item(`"url":"https://:443/"`), "/items/0/url"},
		{"website", `"website":"https://a.example"`, `"website":"http://a.example"`, "/website"},
		{"items", `"items":` + list(100, `{"sku":"s#","name":"n"}`), `"items":` + list(101, `{"sku":"s#","name":"n"}`), "/items"},
		{"sku", `"items":[{"sku":"` + strings.Repeat("s", 64) + `","name":"n"}]`, `"items":[{"sku":"` + strings.Repeat("s", 65) + `","name":"n"}]`, "/items/0/sku"},
		{"a sku once", `"items":` + list(2, `{"sku":"s#","name":"n"}`), `"items":` + list(2, `{"sku":"s","name":"n"}`), "/items/1/sku"},
		{"item name", `"items":[{"sku":"a","name":` + s(120) + `}]`, `"items":[{"sku":"a","name":` + s(121) + `}]`, "/items/0/name"},
		{"item without a name", `"items":[{"sku":"a","name":"n"}]`, `"items":[{"sku":"a"}]`, "/items/0/name"},
		{"item description", item(`"description":` + s(1000)), item(`"description":` + s(1001)), "/items/0/description"},
		{"unit", item(`"unit":` + s(40)), item(`"unit":` + s(41)), "/items/0/unit"},
		{"item category", item(`"category":` + s(60)), item(`"category":` + s(61)), "/items/0/category"},
		{"item tags", item(`"tags":` + list(8, `"t#"`)), item(`"tags":` + list(9, `"t#"`)), "/items/0/tags"},
		{"availability", item(`"availability":"discontinued"`), item(`"availability":"sold"`), "/items/0/availability"},
		{"image", item(`"image":"https://a.example/x.jpg"`), item(`"image":"data:image/png;base64,AA"`), "/items/0/image"},
		{"price as text", price(`"120.50"`), price(`"120.505"`), "/items/0/price/amount"},
		{"price as a number", price(`120.5`), price(`-1`), "/items/0/price/amount"},
		{"price of digits", price(`0`), price(`"ten"`), "/items/0/price/amount"},
		{"price of any kind", price(`1`), price(`true`), "/items/0/price/amount"},
		{"the largest price", price(`"10000000000"`), price(`"10000000000.01"`), "/items/0/price/amount"},
		{"currency", item(`"price":{"currency":"JPY","amount":5}`), item(`"price":{"currency":"XXY","amount":5}`), "/items/0/price/currency"},
		{"text", `"city":"x"`, `"city":"x\u202e"`, "/city"},
		{"members", `"city":"x"`, `"colour":"x"`, "/colour"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := admin.PutMerchant(t.Context(), "limits", []byte(`{`+tt.at+`}`))
			require.NoError(t, err, "%+v", protocol.AsError(err))
			_, err = admin.PutMerchant(t.Context(), "limits", []byte(`{`+tt.past+`}`))
			require.Equal(t, protocol.Validation, protocol.CodeOf(err))
			require.Contains(t, nodetest.Pointers(protocol.AsError(err).Faults), tt.pointer)
		})
	}
}

// Faults of q and filters, over the door.
func TestDirectory_Faults(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for _, tt := range []struct{ path, pointer string }{
		{"agents?q=%22open", "/q"}, {"agents?q=-", "/q"}, {"agents?q=kind:robot", "/q"}, {"agents?q=tag:", "/q"},
		{"agents?region=UK", "/region"}, {"agents?region=in", "/region"},
		{"people?q=%22open", "/q"}, {"people?kind=person", "/kind"}, {"merchants?q=%22open", "/q"}, {"merchants?openNow=yes", "/openNow"},
		{"merchants?radius=100", "/near"}, {"merchants?near=91,0", "/near"}, {"merchants?near=0,-180.5", "/near"}, {"merchants?near=Atlantis", "/near"},
		{"merchants?near=1,x", "/near"}, {"merchants?near=Hyderabad", "/near"},
		{"merchants?near=1,2&radius=0", "/radius"}, {"merchants?near=1,2&radius=3.5", "/radius"}, {"merchants?minPrice=2&maxPrice=1.99", "/maxPrice"},
		{"merchants?minPrice=1.999", "/minPrice"}, {"merchants?minPrice=1&currency=XXY", "/currency"}, {"merchants?acceptsReturns=perhaps", "/acceptsReturns"},
	} {
		a := h.Ask("GET", "/api/public/"+tt.path, "")
		require.Equal(t, 422, a.Code, "%s: %s", tt.path, a.Body)
		require.Contains(t, nodetest.Pointers(a.Problem().Errors), tt.pointer, tt.path)
	}
}

// TestMerchants_Near asks for shops near a place by its name.
func TestMerchants_Near(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		token := h.Business("rao-tiffins", "")
		h.Ask("PUT", "/api/owner/merchant", `{"city":"Bangalore","address":{"street":"5th Block, Koramangala","postalCode":"560034"},
			"geo":{"latitude":12.934,"longitude":77.612}}`, "Authorization", "Bearer "+token).Is(200)
		for _, near := range []string{"Koramangala", "koramangala,%20bengaluru", "560%20034", "Bengaluru", "12.93,%2077.61",
			"%E0%A4%AC%E0%A4%82%E0%A4%97%E0%A4%B2%E0%A5%8C%E0%A4%B0"} {
			found := nodetest.As[protocol.Page[protocol.MerchantEntry]](h.Ask("GET", "/api/public/merchants?near="+near, "").Is(200))
			require.Len(t, found.Items, 1, near)
			require.Less(t, *found.Items[0].Distance, 1000, near)
		}
		none := nodetest.As[protocol.Page[protocol.MerchantEntry]](h.Ask("GET", "/api/public/merchants?near=Jaipur", "").Is(200))
		require.Empty(t, none.Items)
		var problem struct{ Errors []protocol.Fault }
		h.Ask("GET", "/api/public/merchants?near=Hyderabad", "").Is(422).Into(&problem)
		require.Equal(t, []protocol.Fault{{Pointer: "/near", Code: "ambiguous", Detail: "several places have that name; write the coordinates of one: " +
			"Hyderabad, Telangana, India 17.384,78.456; Hyderabad, Sindh, Pakistan 25.392,68.374"}}, problem.Errors)
		h.Ask("GET", "/api/public/merchants?near=Atlantis", "").Is(422).Into(&problem)
		require.Equal(t, "unknown-place", problem.Errors[0].Code)
	})
}
