package node_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/passkey/passkeytest"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// subscriptionAt is the body that subscribes a browser at an endpoint.
func subscriptionAt(endpoint string) string {
	d := protocol.AddDevice.Example.(protocol.NewDevice)
	d.Of, d.Token, d.Endpoint = "", "", endpoint
	raw, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// accountForms are those of the account itself: how it signs in, tokens, name and mail.
func accountForms() []formRow {
	none := func(*formSide) map[string]string { return nil }
	const security, sessions = "/account/security", "/api/owner/sessions"
	return []formRow{
		{op: protocol.PutAccount.Operation, page: "/account/settings",
			fields: map[string][]string{"name": append([]string{"Asha"}, oneLine...), "language": {"hi", "en"}}, read: "/api/owner/account"},
		{op: protocol.PutAccountMail.Operation, page: "/account/settings", id: "put_account_mail",
			fields: map[string][]string{"mail": {"new{n}@example.org", "nobody", "a@b@c"}}, read: "/api/owner/account/mail"},
		{op: protocol.ConfirmAccountMail.Operation, page: "/account/settings", about: func(s *formSide) map[string]string {
			s.signedIn("PUT", "/api/owner/account/mail", `{"mail":"new@example.org"}`, nil)
			return nil
		}, fields: map[string][]string{"code": {strings.Repeat("x", 32), "short", ""}}, read: "/api/owner/account/mail",
			never: "the code is only in a mail"},
		{op: protocol.PutAccountMail.Operation, page: "/account/settings", about: none, read: "/api/owner/account/mail"},
		{op: protocol.CreateToken.Operation, page: "/account/tokens", read: "/api/owner/tokens?limit=1",
			fields: map[string][]string{"name": oneLine, "handle": {"", "asha"}, "scopes": {"post,inbox", "", "post"},
				"expiresInDays": {"90", "", "0", "4000", "many"}}, about: none},
		{op: protocol.RevokeToken.Operation, page: "/account/tokens", read: "/api/owner/tokens?limit=1", about: func(s *formSide) map[string]string {
			return map[string]string{"id": s.aToken()}
		}},
		{op: protocol.CreateInvitation.Operation, page: "/account/invitations", about: none, fields: map[string][]string{"note": append([]string{"For Ravi", ""},
			oneLine...)}, read: "/api/owner/invitations?limit=1"},
		{op: protocol.WithdrawInvitation.Operation, page: "/account/invitations", read: "/api/owner/invitations?limit=1", about: func(s *formSide) map[string]string {
			var made protocol.Invited
			s.signedIn("POST", "/api/owner/invitations", `{}`, &made)
			return map[string]string{"id": made.ID}
		}},
		{op: protocol.AddPasskey.Operation, page: security, read: "/api/owner/sign-in", about: func(s *formSide) map[string]string {
			var ways protocol.SignInMethods
			s.signedIn("GET", "/api/owner/sign-in", "", &ways)
			for _, k := range ways.Passkeys {
				s.signedIn("DELETE", "/api/owner/passkeys/"+k.ID, "", nil)
			}
			var o protocol.PasskeyOptions
			s.signedIn("GET", "/api/owner/passkeys/options", "", &o)
			made := passkeytest.New(s.Base, "localhost", s.account).Register(o.Challenge)
			return map[string]string{"credential": made.ID, "clientData": made.ClientData, "attestation": made.Attestation}
		}, fields: map[string][]string{"name": append([]string{"My phone"}, oneLine...)}},
		{op: protocol.RemoveWallet.Operation, page: security, read: "/api/owner/sign-in", about: func(s *formSide) map[string]string {
			require.NoError(s.T, s.DB.Write(s.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return tx.Accounts().SetWallet(ctx, s.account, "0x70997970c51812dc3a010c7d01b50e0d17dc79c8")
			}))
			return nil
		}},
		{op: protocol.DeletePasskey.Operation, page: security, read: "/api/owner/sign-in", about: func(s *formSide) map[string]string {
			var ways protocol.SignInMethods
			s.signedIn("GET", "/api/owner/sign-in", "", &ways)
			return map[string]string{"id": ways.Passkeys[0].ID}
		}},
		{op: protocol.DeleteDevice.Operation, page: "/account/notices", read: "/api/owner/account", about: func(s *formSide) map[string]string {
			var d protocol.Device
			s.signedIn("POST", "/api/owner/devices", subscriptionAt("https://push.example/a"), &d)
			return map[string]string{"id": d.ID}
		}},
		{op: protocol.RenameCredential.Operation, page: "/account/access", read: "/api/owner/tokens?limit=1", about: func(s *formSide) map[string]string {
			return map[string]string{"kind": "token", "id": s.aToken()}
		}, fields: map[string][]string{"name": append([]string{"My assistant"}, oneLine...)}},
		{op: protocol.RemoveCredential.Operation, page: "/account/access", read: "/api/owner/tokens?limit=1", about: func(s *formSide) map[string]string {
			return map[string]string{"kind": "token", "id": s.aToken()}
		}},
		{op: protocol.MakeRecoveryCodes.Operation, page: security, about: none, read: "/api/owner/sign-in"},
		{op: protocol.EndSession.Operation, page: security, read: sessions, about: func(s *formSide) map[string]string {
			s.SessionOf(s.account, 0)
			return map[string]string{"id": s.otherSession()}
		}},
		{op: protocol.EndOtherSessions.Operation, page: security, read: sessions, about: func(s *formSide) map[string]string {
			s.SessionOf(s.account, 0)
			return nil
		}},
		{op: protocol.ExportArchive.Operation, page: "/account/data", about: none,
			fields: map[string][]string{"handle": {"asha", "bazaar", "nobody"}, "passphrase": {"", "short", "a passphrase that is long"}}},
		{op: protocol.ImportArchive.Operation, page: "/account/data", about: func(s *formSide) map[string]string {
			return map[string]string{"given": s.signedIn("POST", "/api/owner/export", `{"handle":"bazaar"}`, nil).Body.String()}
		}, fields: map[string][]string{"archive": {"{given}", "no archive"}, "as": {"", "asha", "No handle"}, "replace": ticked,
			"passphrase": {"", "short"}}, read: "/api/owner/profile?handle=bazaar"},
	}
}

// aToken returns the id of a new token.
func (s *formSide) aToken() string {
	var made protocol.MadeToken
	s.signedIn("POST", "/api/owner/tokens", `{"name":"x","scopes":["post"]}`, &made)
	return made.Token.ID
}

// otherSession returns the id of a session of the account that is not this one's.
func (s *formSide) otherSession() string {
	var page protocol.Page[protocol.SignedIn]
	s.signedIn("GET", "/api/owner/sessions", "", &page)
	i := slices.IndexFunc(page.Items, func(x protocol.SignedIn) bool { return !x.Current })
	require.GreaterOrEqual(s.T, i, 0)
	return page.Items[i].ID
}

// codes are what names of places and languages mean.
func codes(text string) any {
	list := listOf(text)
	for i, name := range list {
		list[i] = oneCode(name).(string)
	}
	return list
}

func oneCode(name string) any {
	if c := map[string]string{"Karnataka": "IN-KA", "India": "IN", "English": "en", "Hindi": "hi"}[name]; c != "" {
		return c
	}
	return name
}

// stocked gives the shop two items.
func (s *formSide) stocked() {
	s.signedIn("PUT", "/api/owner/merchant", `{"handle":"bazaar","timezone":"Asia/Kolkata","items":[{"sku":"tea","name":"Tea","tags":["hot"]},
		{"sku":"cup","name":"A cup"}],"exceptionHours":[{"validFrom":"2030-11-08","validThrough":"2030-11-08","title":"Diwali"}]}`, nil)
}

// itemForms are those of a shop's items.
func itemForms() []formRow {
	const page, read = "/account/items?handle=bazaar", "/api/owner/merchant/items?handle=bazaar"
	cup := func(s *formSide) map[string]string {
		s.stocked()
		return map[string]string{"handle": "bazaar", "sku": "cup"}
	}
	prices := func(_ *formSide, _ map[string]string, args map[string]any) {
		for _, name := range []string{"price", "listPrice"} {
			if price, ok := args[name].(map[string]any); ok {
				price["currency"] = "INR"
			}
		}
	}
	to := map[string]string{"amount": "price.amount", "listAmount": "listPrice.amount"}
	as := map[string]func(string) any{"media": func(text string) any {
		var list []any
		for _, address := range strings.Fields(text) {
			list = append(list, map[string]any{"url": address})
		}
		return list
	}}
	money := []string{"120", "", "12.345", "much", "-4"}
	item := map[string][]string{"name": oneLine, "amount": money, "listAmount": {"", "150", "much"}, "unit": {"", "plate", strings.Repeat("x", 41)},
		"description": longTexts, "availability": {"in_stock", "out_of_stock"}, "category": {"", "Meals", strings.Repeat("x", 61)}, "tags": someTags,
		"media": addresses, "url": addresses, "barcode": {"", "8901234567890", "no code"}}
	const source, reading = "/account/items/address?handle=bazaar", "/api/owner/merchant/address?handle=bazaar"
	bazaar := func(*formSide) map[string]string { return map[string]string{"handle": "bazaar"} }
	addressed := func(s *formSide) map[string]string {
		s.signedIn("PUT", "/api/owner/merchant/address", `{"handle":"bazaar","url":"https://127.0.0.1:1/items.csv"}`, nil)
		return bazaar(s)
	}
	const picture = "/account/picture?handle=bazaar"
	red, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
	if err != nil {
		panic(err)
	}
	pictured := func(s *formSide) map[string]string {
		require.NoError(s.T, s.DB.Write(s.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Pictures().Put(ctx, "bazaar", "", &storage.PictureFile{Picture: storage.Picture{Hash: strings.Repeat("a", 64), Width: 1, Height: 1},
				Sizes: [3][]byte{{1}, {2}, {3}}})
		}))
		return bazaar(s)
	}
	gone := formRow{op: protocol.RemoveItem.Operation, page: page + "&item=cup", part: "remove", about: cup, read: read}
	return []formRow{
		{op: protocol.PutItem.Operation, part: "item", page: page + "&item=cup", about: cup, fields: item, to: to, as: as, args: prices, read: read},
		{op: protocol.PutItem.Operation, part: "item", page: page + "&new=1", fields: item, to: to, as: as, read: read,
			about: func(s *formSide) map[string]string {
				s.stocked()
				return map[string]string{"handle": "bazaar"}
			}, args: func(s *formSide, typed map[string]string, args map[string]any) {
				args["sku"] = "item"
				if sku := map[string]string{"Good cloth": "good-cloth", "<b>bold</b>": "b-bold-b"}[typed["name"]]; sku != "" {
					args["sku"] = sku
				} else if strings.HasPrefix(typed["name"], "xx") {
					args["sku"] = typed["name"][:40]
				}
				prices(s, typed, args)
			}},
		{op: protocol.PutItem.Operation, part: "quick", page: page, about: cup, read: read, to: to,
			fields: map[string][]string{"amount": money, "availability": {"in_stock", "out_of_stock"}},
			args: func(s *formSide, typed map[string]string, args map[string]any) {
				args["name"] = "A cup"
				prices(s, typed, args)
			}},
		gone,
		{op: protocol.PutItem.Operation, part: "restore", page: page, about: cup, read: read,
			show: func(s *formSide, about map[string]string) *nodetest.Page { return gone.press(s, about) },
			args: func(_ *formSide, _ map[string]string, args map[string]any) { args["name"] = "A cup" }},
		{op: protocol.ImportItems.Operation, page: "/account/items/import?handle=bazaar", about: cup, read: read,
			fields: map[string][]string{"file": {"sku,name\nplate,A plate\n", "sku,name\ncup,Another cup\n"}, "mode": {"merge", "replace"}}},
		{op: protocol.PutCatalogAddress.Operation, page: source, about: bazaar, read: reading,
			fields: map[string][]string{"url": {"https://127.0.0.1:1/items.csv", "", "http://shop.example/", "no address"}, "own": {"keep", "overwrite"},
				"mode": {"replace", "merge"}}},
		{op: protocol.ReadCatalogAddress.Operation, page: source, about: addressed, read: reading},
		{op: protocol.RemoveCatalogAddress.Operation, page: source, about: addressed, read: reading},
		{op: protocol.PutPicture.Operation, page: picture, about: bazaar, read: "/api/public/agents/bazaar", fields: map[string][]string{
			"file": {string(red), "no picture"}, "alt": {"The door", "", strings.Repeat("x", 201)}}},
		{op: protocol.RemovePicture.Operation, page: picture, about: pictured, read: "/api/public/agents/bazaar"},
	}
}

// shopForms are those of a shop's record, which all write a part of it, and of its receipts.
func shopForms() []formRow {
	const read = "/api/owner/merchant?handle=bazaar"
	row := func(page, part string, f formRow) formRow {
		f.op, f.page, f.part, f.read = protocol.PutMerchant.Operation, "/account/"+page, part, read
		change := f.args
		f.args = func(s *formSide, typed map[string]string, args map[string]any) {
			var record protocol.MerchantRecord
			s.signedIn("GET", read, "", &record)
			raw, err := json.Marshal(record.Record)
			require.NoError(s.T, err)
			whole := map[string]any{}
			require.NoError(s.T, json.Unmarshal(raw, &whole))
			for name, value := range args {
				whole[name] = value
			}
			clear(args)
			for name, value := range whole {
				args[name] = value
			}
			args["handle"] = "bazaar"
			if change != nil {
				change(s, typed, args)
			}
		}
		return f
	}
	stocked := func(s *formSide) map[string]string {
		s.stocked()
		return map[string]string{"sku": "cup"}
	}
	items := func(args map[string]any) []any { list, _ := args["items"].([]any); return list }
	own := map[string]string{} // fields that are for args alone
	hours := map[string][]string{"timezone": {"Asia/Kolkata", "", "Mars/Base"}}
	for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
		hours["hours-"+day] = []string{"09:00-13:00, 16:00-21:00", "", "noon", "21:00-09:00", "10:00"}
		own["hours-"+day] = ""
	}
	shop := map[string][]string{"category": {"restaurant", "", strings.Repeat("x", 61)}, "phone": {"+918055501234", "", "call me"}, "website": addresses,
		"street": {"12 MG Road", "", strings.Repeat("x", 201)}, "city": {"Bengaluru", "", strings.Repeat("x", 81)}, "postalCode": {"", "560001", "x\u202ey"},
		"region": {"Karnataka", "", "Nowhere"}, "country": {"India", "", "Nowhere"}, "geo": {"12.9716, 77.5946", "", "100, 200"}}
	return []formRow{
		row("items?handle=bazaar", "move", formRow{about: stocked, args: func(_ *formSide, _ map[string]string, args map[string]any) {
			if list := items(args); word(list[1].(map[string]any)["sku"]) == "cup" {
				slices.Reverse(list)
			}
		}}),
		row("hours?handle=bazaar", "hours", formRow{about: stocked, fields: hours, to: own, at: [][2]string{{"/hours/.*", "hours-*"}},
			args: func(_ *formSide, typed map[string]string, args map[string]any) {
				args["hours"] = []any{}
				for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
					for _, part := range listOf(typed["hours-"+day]) {
						opens, closes, _ := strings.Cut(part, "-")
						args["hours"] = append(args["hours"].([]any), map[string]any{"day": day, "opens": opens, "closes": closes})
					}
				}
				if typed["timezone"] == "" {
					delete(args, "timezone")
				}
			}}),
		row("hours?handle=bazaar", "close", formRow{about: stocked, to: map[string]string{"from": "", "to": "", "why": "", "hours": ""},
			fields: map[string][]string{"from": {"2030-12-25", "", "soon", "2030-13-40"}, "to": {"", "2030-12-26", "2030-01-01"}, "why": {"Holiday", "",
				strings.Repeat("x", 81)},
				"hours": {"", "10:00-12:00", "noon"}},
			at: [][2]string{{`/exceptionHours/\d+/validThrough`, "to"}, {`/exceptionHours/\d+/title`, "why"}, {`/exceptionHours/\d+/(opens|closes)`, "hours"},
				{`/exceptionHours.*`, "from"}},
			args: func(_ *formSide, typed map[string]string, args map[string]any) {
				e := map[string]any{"validFrom": typed["from"], "validThrough": typed["to"], "title": typed["why"]}
				if typed["to"] == "" {
					e["validThrough"] = typed["from"]
				}
				if typed["hours"] != "" {
					e["opens"], e["closes"], _ = strings.Cut(typed["hours"], "-")
				}
				list := append(args["exceptionHours"].([]any), e)
				slices.SortStableFunc(list, func(a, b any) int {
					return strings.Compare(word(a.(map[string]any)["validFrom"]), word(b.(map[string]any)["validFrom"]))
				})
				args["exceptionHours"] = list
			}}),
		row("hours?handle=bazaar", "reopen", formRow{about: stocked, args: func(_ *formSide, _ map[string]string, args map[string]any) {
			args["exceptionHours"] = []any{}
		}}),
		row("shop?handle=bazaar", "shop", formRow{about: stocked, fields: shop,
			to: map[string]string{"street": "address.street", "postalCode": "address.postalCode", "region": "address.region", "country": "address.country"},
			as: map[string]func(string) any{"region": oneCode, "country": oneCode, "geo": func(text string) any {
				var g protocol.Geo
				if n, _ := fmt.Sscanf(text, "%g, %g", &g.Latitude, &g.Longitude); n != 2 {
					return text
				}
				return g
			}},
			args: func(_ *formSide, typed map[string]string, args map[string]any) {
				for name, text := range typed {
					if text == "" {
						delete(args, name)
					}
				}
			}}),
		{op: protocol.IssueOrderReceipt.Operation, page: "/account/orders", read: "/api/owner/order-receipts?handle=bazaar&limit=2",
			about: func(*formSide) map[string]string { return map[string]string{"handle": "bazaar"} }, to: map[string]string{"amount": "total.amount"},
			at: [][2]string{{"/total.*", "amount"}},
			fields: map[string][]string{"order": {"R-{n}", "", "two words", strings.Repeat("R", 81)}, "amount": {"180", "", "much", "-4", "1.234"},
				"paidAt": {"2026-11-20", "", "soon", "2090-01-01"}, "client": {"", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", "0x1"}, "buyer": {"", "Meera",
					strings.Repeat("x", 81)}},
			as: map[string]func(string) any{"paidAt": func(text string) any {
				if t, err := time.Parse(time.DateOnly, text); err == nil {
					return t.Add(12 * time.Hour).Format(time.RFC3339)
				}
				return text
			}},
			args: func(_ *formSide, typed map[string]string, args map[string]any) {
				if total, ok := args["total"].(map[string]any); ok {
					total["currency"] = "INR"
				}
			}},
		{op: protocol.RevokeOrderReceipt.Operation, page: "/account/orders", read: "/api/owner/order-receipts?handle=bazaar&limit=2",
			about: func(s *formSide) map[string]string {
				var r protocol.OrderReceipt
				s.strangers++
				s.d.Good("POST", "/api/owner/order-receipts", fmt.Sprintf(
					`{"order":"S-%d","total":{"currency":"INR","amount":"90"},"paidAt":"2026-11-20T09:30:00Z"}`, s.strangers),
					s.d.Shop, &r)
				return map[string]string{"id": r.ID, "handle": "bazaar"}
			}},
	}
}
