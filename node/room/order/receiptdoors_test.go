package order_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// keySet is the node's published key set, as anyone reads it.
func keySet(h *nodetest.House) key.Set {
	h.T.Helper()
	a := h.Ask("GET", "/.well-known/http-message-signatures-directory", "").Is(200)
	set, err := key.ParseSet(a.Body.Bytes())
	require.NoError(h.T, err)
	return set
}

func claimsOf(t *testing.T, set key.Set, token string) (c protocol.OrderReceiptClaims) {
	t.Helper()
	payload, _, err := set.VerifyCompact(token, protocol.OrderReceiptType, protocol.MaxReceiptToken, time.Now())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(payload, &c))
	return c
}

// TestOrderReceipt walks a receipt from its order to its end, over HTTP and MCP.
func TestOrderReceipt(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		token := "Bearer " + h.Business("rao", "")
		other := "Bearer " + h.Business("mehta", "")
		paid := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
		const client = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
		order := func(more string) string {
			return fmt.Sprintf(`{"order":"R-1042","client":%q,"buyer":"C-7","total":{"currency":"INR","amount":"180"},"paidAt":%q%s}`,
				client, paid.Format(time.RFC3339), more)
		}
		issue := func(auth, body string) nodetest.Answer {
			return h.Ask("POST", "/api/owner/order-receipts", body, "Authorization", auth)
		}
		line := `,"lineItems":[{"id":"1","item":{"id":"thali","title":"Thali","price":9000},"quantity":{"total":2,"fulfilled":2},"totals":[],"status":"fulfilled"}]`
		var r protocol.OrderReceipt
		a := issue(token, order(line)).Is(201)
		a.Into(&r)
		require.Equal(t, protocol.OrderReceiptClaims{Issuer: h.Base, Order: "R-1042", Shop: "rao", Client: strings.ToLower(client), Amount: "180.00", Currency: "INR",
			PaidAt: paid.Unix(), IssuedAt: r.IssuedAt.Unix(), ID: r.ID, Known: protocol.KnownStated}, claimsOf(t, keySet(h), r.Receipt))
		require.False(t, r.Reviewable, "the shop has no identity")
		require.Equal(t, "Thali", r.LineItems[0].Item.Title)
		var header struct{ Alg, Typ, Kid string }
		raw, err := base64.RawURLEncoding.DecodeString(strings.Split(r.Receipt, ".")[0])
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &header))
		require.Equal(t, "EdDSA order-receipt+jwt", header.Alg+" "+header.Typ)

		// The same order again is the same receipt; other facts are not.
		again := nodetest.As[protocol.OrderReceipt](issue(token, order(line)))
		require.Equal(t, r.Receipt, again.Receipt)
		require.Equal(t, 409, issue(token, strings.Replace(order(line), "180", "181", 1)).Code)
		require.Equal(t, 201, issue(other, order("")).Code, "another shop's numbers are its own")

		for body, pointer := range map[string]string{
			strings.Replace(order(""), `"180"`, `"0"`, 1):                                         "/total/amount",
			strings.Replace(order(""), "0x70997970C", "0x70997970c", 1):                           "/client",
			strings.Replace(order(""), "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x7099", 1): "/client",
			strings.Replace(order(""), paid.Format(time.RFC3339), "2036-01-01T00:00:00Z", 1):      "/paidAt",
			strings.Replace(order(""), `"R-1042"`, `" "`, 1):                                      "/order",
			order(strings.Replace(line, `"fulfilled":2`, `"fulfilled":3`, 1)):                     "/lineItems/0/quantity/fulfilled",
		} {
			bad := issue(token, body)
			require.Equal(t, 422, bad.Code, "%s: %s", body, bad.Body)
			require.Contains(t, bad.Body.String(), `"pointer":"`+pointer+`"`)
		}
		h.Admin().PutProfile(t.Context(), []byte(`{"handle":"asha","name":"Asha","kind":"person"}`))
		person := h.TokenOf("asha", "x")
		require.Equal(t, 422, issue("Bearer "+person, order("")).Code)
		require.Equal(t, 401, h.Ask("POST", "/api/owner/order-receipts", order("")).Code)

		// Adjustments are added, never changed.
		adjust := func(auth, amount string) nodetest.Answer {
			return h.Ask("POST", "/api/owner/order-receipts/"+r.ID+"/adjustments", fmt.Sprintf(`{"adjustment":{"id":"a1","type":"refund","occurred_at":%q,`+
				`"status":"completed","totals":[{"type":"total","amount":%s}]}}`, paid.Format(time.RFC3339), amount), "Authorization", auth)
		}
		require.Equal(t, 200, adjust(token, "-9000").Code)
		require.Equal(t, 200, adjust(token, "-9000").Code)
		require.Equal(t, 409, adjust(token, "-1").Code)
		require.Equal(t, 404, adjust(other, "-9000").Code, "of another shop")

		// Anyone may ask whether it is revoked, and learns nothing else.
		status := func() string {
			return strings.TrimSpace(h.Ask("GET", "/api/public/order-receipts/"+r.ID, "").Body.String())
		}
		require.JSONEq(t, `{"id":"`+r.ID+`","status":"valid","revokedAt":null}`, status())
		revoke := "/api/owner/order-receipts/" + r.ID + "/revoke"
		require.Equal(t, 404, h.Ask("POST", revoke, `{}`, "Authorization", other).Code)
		require.Equal(t, 200, h.Ask("POST", revoke, `{"reason":"typed wrongly"}`, "Authorization", token).Code)
		require.Contains(t, status(), `"revoked"`)
		require.NotContains(t, status(), "typed")
		require.Equal(t, 404, h.Ask("GET", "/api/public/order-receipts/"+protocol.NewID(protocol.ReceiptID, time.Now()), "").Code)
		issue(token, strings.Replace(order(""), "180", "181", 1)).Into(&again)
		require.NotEqual(t, r.ID, again.ID, "after the revocation the order gets another")

		page := nodetest.As[protocol.Page[protocol.OrderReceipt]](h.Ask("GET", "/api/owner/order-receipts?limit=1", "", "Authorization", token))
		require.Equal(t, again.ID, page.Items[0].ID)
		h.Ask("GET", "/api/owner/order-receipts?limit=1&after="+*page.Next, "", "Authorization", token).Into(&page)
		require.Equal(t, r.ID, page.Items[0].ID)
		require.Len(t, page.Items[0].Adjustments, 1)
		require.Nil(t, page.Next)
		h.Ask("GET", "/api/owner/order-receipts?order=nothing", "", "Authorization", token).Into(&page)
		require.Empty(t, page.Items)
	})
}
