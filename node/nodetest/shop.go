package nodetest

import (
	"fmt"
	"strings"
	"testing"

	"stoa/node"
	"stoa/protocol"
)

// GoodMerchant is a merchant record that is valid.
const GoodMerchant = `{"category":"Restaurant","city":"Bangalore","address":{"street":"14 Main Road","postalCode":"560004","region":"IN-KA","country":"IN"},
 "geo":{"latitude":12.9,"longitude":77.5},"timezone":"Asia/Kolkata","hours":[{"day":"monday","opens":"07:00","closes":"11:30"}],
 "exceptionHours":[{"title":"Diwali","validFrom":"2026-11-08","validThrough":"2026-11-09"}],"phone":"+91 80 2650 0000","website":"https://rao.example",
 "items":[{"sku":"idli","name":"Idli","price":{"currency":"INR","amount":40},"unit":"plate","tags":["vegan"]},{"sku":"dosa","name":"डोसा",
 "price":{"currency":"INR","amount":"85.5"}},{"sku":"feast","name":"Feast"}]}`

// Business makes a business and returns a token of its owner.
func (h *House) Business(handle, more string) (token string) {
	h.T.Helper()
	h.PutProfile(fmt.Appendf(nil, `{"handle":%q,"name":"Rao Tiffins","kind":"business"%s}`, handle, more))
	token = h.TokenOf(handle, "test")
	return token
}

// Told lists the feed's items of types, newest first, as "type subject".
func (h *House) Told(types string) (items []string) {
	h.T.Helper()
	page := As[protocol.Page[protocol.FeedItem]](h.Ask("GET", "/api/public/feed?types="+types, ""))
	for _, i := range page.Items {
		items = append(items, string(i.Type)+" "+i.Subject.Title)
	}
	return items
}

// CatalogCSV is a catalog as spreadsheets write it, with items of every kind.
const CatalogCSV = "\ufeffSKU,Name,Price,list_price,category,categories,tags,availability,measure,reference," +
	"variant_sku,option1_name,option1_value,description\r\n" +
	"dosa,Masala dosa,85,,Breakfast,,vegan|hot,,,,,,,\"With sambar, and\r\nchutney\"\r\n" +
	"oil,Coconut oil,\"₹1,250.50\",1400,,Grocery|Hair care,,,750 ml,100 ml,,,,\r\n" +
	"kurta,Kurta,1200,,Clothing,,,,,,kurta-s,Size,S,\r\n" +
	"kurta,,1250,,,,,out_of_stock,,,,,M,\r\n"

// UCPWorld has three shops: rao, with items of every kind, chai, without returns, and one that is not
// listed.
func UCPWorld(t *testing.T, change func(*node.Config)) *House {
	t.Helper()
	h := New(t, change)
	put := func(handle, more, record string) {
		token := h.Business(handle, more)
		h.Ask("PUT", "/api/owner/merchant", record, "Authorization", "Bearer "+token).Is(200)
	}
	put("rao", `,"timezone":"Asia/Kolkata","returns":{"acceptsReturns":true,"windowDays":7,"supportAgentApprovesUpTo":"₹500"},
		"contactPolicy":{"outsideAgentsWithIdentity":true,"anonymous":true,"kinds":["question","support"]}`,
		`{"category":"Restaurant","city":"Bengaluru","address":{"street":"14 Main Road","postalCode":"560004","region":"IN-KA","country":"IN"},
		 "geo":{"latitude":12.9716,"longitude":77.5946},"hours":[{"day":"monday","opens":"00:00","closes":"24:00"},
		 {"day":"tuesday","opens":"18:00","closes":"24:00"}],
		 "exceptionHours":[{"title":"Diwali","validFrom":"2026-11-09","validThrough":"2026-11-09"}],"items":[
		 {"sku":"idli","name":"Idli","price":{"currency":"INR","amount":"40.50"},"unit":"plate","category":"Breakfast","tags":["vegan"]},
		 {"sku":"shirt","name":"Cotton shirt","description":"Hand-woven.","price":{"currency":"INR","amount":"900"},"listPrice":{"currency":"INR","amount":"1200"},
		  "category":"Clothes",
		  "options":[{"name":"Size","values":["S","M"]},{"name":"Colour","values":["Red","Blue"]}],
		  "media":[{"url":"https://rao.example/s.jpg","alt":"A shirt"}],
		  "variants":[{"sku":"s-red","options":["S","Red"]},{"sku":"m-red","options":["M","Red"],"availability":"out_of_stock","barcode":"8901234567894"},
		  {"sku":"m-blue","options":["M","Blue"],"price":{"currency":"INR","amount":"1000"}}]},
		 {"sku":"ghee","name":"Ghee","price":{"currency":"INR","amount":"375"},"category":"Groceries","availability":"preorder",
		  "unitPrice":{"measure":{"value":750,"unit":"ml"},"reference":{"value":100,"unit":"ml"}}},
		 {"sku":"feast","name":"Feast","category":"Meals"}]}`)
	put("chai", "", `{"category":"Restaurant","city":"Mysuru","geo":{"latitude":12.2958,"longitude":76.6394},"items":[
		 {"sku":"tea","name":"Masala tea","price":{"currency":"INR","amount":"20"},"category":"Drinks"},
		 {"sku":"kettle","name":"Kettle","price":{"currency":"USD","amount":"20"},"category":"Kitchen"}]}`)
	put("secret", `,"listed":false`, `{"city":"Mysuru","items":[{"sku":"x","name":"Hidden tea","price":{"currency":"INR","amount":"1"}}]}`)
	return h
}

// ARDSearch asks the search of Agentic Resource Discovery.
func (h *House) ARDSearch(body string) (found protocol.ARDFound) {
	h.T.Helper()
	a := h.Ask("POST", "/ard/search", body).Is(200)
	a.Into(&found)
	return found
}

// Handles lists the profiles that were found, in order.
func Handles(found protocol.ARDFound) []string {
	names := []string{}
	for _, r := range found.Results {
		names = append(names, r.Identifier[strings.LastIndexByte(r.Identifier, ':')+1:])
	}
	return names
}
