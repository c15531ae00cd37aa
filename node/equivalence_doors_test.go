package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/node/door/httpapi"
	"stoa/protocol"
	"stoa/protocol/pow"
)

// outcome is what a caller learns from one call, whatever the door: a result,
// or a code with the pointers of its faults.
type outcome struct {
	Code   protocol.Code
	Faults []string // pointers, sorted
	JSON   string   // of a result
}

// doors are the ways to call one node in the equivalence test.
type doors struct {
	t          *testing.T
	house      *house
	published  *openAPI
	token      string
	thread     string         // one that asha began with herself
	talk       string         // another one, which nothing closes
	receipt    string         // one that the shop issued
	paidAt     string         // when its order was paid
	spam       string         // one of the shop with asha, once there is one
	shop       string         // token of the owner of bazaar, a business
	mine       *client.Client // with the token
	shopkeeper *client.Client // with that of the shop
	paid       *client.Client // with a proof of work
}

func newDoors(t *testing.T) *doors {
	d := &doors{t: t, house: startNode(t), published: newOpenAPI(t)}
	d.house.meeting.Mail = noMeetingMail
	d.house.hosted("asha")
	var err error
	d.house.takeBids("asha")
	d.token = d.house.ownerToken("asha")
	d.thread = d.house.thread(d.token).ThreadID
	d.talk = d.house.thread(d.token).ThreadID
	_, _, err = d.house.Admin().PutProfile(t.Context(), []byte(`{"handle":"bazaar","name":"Bazaar","kind":"business"}`))
	require.NoError(t, err)
	d.shop = d.house.ownerToken("bazaar")
	d.shopkeeper, err = client.New(d.house.URL, client.Options{Token: d.shop})
	require.NoError(t, err)
	d.paidAt = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	a := d.house.ask("POST", "/api/owner/order-receipts", `{"order":"R-7","total":{"currency":"INR","amount":"90"},"paidAt":"`+d.paidAt+`"}`,
		"Authorization", "Bearer "+d.shop)
	require.Equal(t, 201, a.Code, "%s", a.Body)
	var receipt protocol.OrderReceipt
	a.into(&receipt)
	d.receipt = receipt.ID
	d.mine, err = client.New(d.house.URL, client.Options{Token: d.token})
	require.NoError(t, err)
	d.paid, err = client.New(d.house.URL, client.Options{Workers: 1})
	require.NoError(t, err)
	return d
}

// ownerToken makes a token of the account of a profile, which gets one where it
// has none, with everything an owner may do.
func (h *house) ownerToken(handle string) string {
	h.t.Helper()
	_, _, err := h.Admin().CreateToken(h.t.Context(), handle, "first", 0)
	require.NoError(h.t, err)
	secret, _, err := h.Admin().CreateAccountToken(h.t.Context(), handle, "all", 0, append([]protocol.Scope{protocol.ScopeAccount}, protocol.OwnerScopes...)...)
	require.NoError(h.t, err)
	return secret
}

// A call is one operation with its arguments and who makes it.
type call struct {
	op    *protocol.Operation
	args  map[string]any
	token bool // as an owner; else with a proof of work where one is taken
}

// overHTTP sends a call to its route. ok is false for what no request to that
// route can say: a path without one of its parameters.
func (d *doors) overHTTP(c call) (o outcome, ok bool) {
	d.t.Helper()
	rest := maps.Clone(c.args)
	path := c.op.HTTP.Path
	for _, name := range httpapi.PathParams(path) {
		s, isText := rest[name].(string)
		if !isText || s == "" || s == "." || s == ".." {
			return o, false
		}
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(s), 1)
		delete(rest, name)
	}
	secret, _ := rest[c.op.Secret].(string)
	if rest[c.op.Secret] != nil && c.op.ReadOnly { // a secret is in no URL, and a request has one Authorization
		if c.token || !strings.HasPrefix(secret, protocol.ReadTokenPrefix) || len(secret) > 100 {
			return o, false
		}
		delete(rest, c.op.Secret)
	}
	var body io.Reader
	if c.op.HTTP.Method == "POST" || c.op.HTTP.Method == "PUT" {
		raw, err := json.Marshal(rest)
		require.NoError(d.t, err)
		body = bytes.NewReader(raw)
	} else {
		query := url.Values{}
		for name, v := range rest {
			if list, isList := v.([]any); isList {
				var parts []string
				for _, e := range list {
					parts = append(parts, fmt.Sprint(e))
				}
				v = strings.Join(parts, ",")
			}
			query.Set(name, fmt.Sprint(v))
		}
		path += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(d.t.Context(), c.op.HTTP.Method, d.house.URL+path, body)
	require.NoError(d.t, err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	d.identify(r.Header, c)
	if secret != "" && c.op.ReadOnly {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(d.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(d.t, err)
	if res.StatusCode < 300 {
		require.Equal(d.t, c.op.HTTP.Status, res.StatusCode)
		return outcome{JSON: string(raw)}, true
	}
	var p httpapi.Problem
	require.NoError(d.t, json.Unmarshal(raw, &p), "%s %s: %s", c.op.HTTP.Method, path, raw)
	return refusal(p.Code, p.Errors), true
}

func (d *doors) identify(head http.Header, c call) {
	if c.token {
		head.Set("Authorization", "Bearer "+d.token)
	} else if c.op.Access&protocol.Proof != 0 {
		head.Set("Proof-Of-Work", d.house.proof(c.op.Purpose))
	}
}

// overMCP makes the same call as a tool call, with the proof among its arguments.
func (d *doors) overMCP(c call) outcome {
	d.t.Helper()
	args := maps.Clone(c.args)
	var headers []string
	if c.token {
		headers = []string{"Authorization", "Bearer " + d.token}
	} else if c.op.Access&protocol.Proof != 0 {
		s, err := pow.Parse([]byte(d.house.proof(c.op.Purpose)))
		require.NoError(d.t, err)
		args["pow"] = s
	}
	raw, err := json.Marshal(args)
	require.NoError(d.t, err)
	a := d.house.tool(c.op.Name, string(raw), headers...)
	switch {
	case a.IsError:
		return refusal(a.Refused.Code, a.Refused.Errors)
	case c.op.Media != "":
		require.Empty(d.t, a.Structured)
		return outcome{JSON: a.Content[0].Text}
	}
	require.JSONEq(d.t, a.Content[0].Text, string(a.Structured))
	return outcome{JSON: string(a.Structured)}
}

// overCall makes the same call as stoa call does.
func (d *doors) overCall(c call) outcome {
	d.t.Helper()
	caller := d.paid
	if c.token {
		caller = d.mine
	}
	res, err := caller.Call(d.t.Context(), c.op.Name, c.args)
	if err == nil {
		return outcome{JSON: string(res.Body)}
	}
	e, ok := errors.AsType[*protocol.Error](err)
	require.True(d.t, ok, "%v", err)
	return refusal(e.Code, e.Faults)
}

func refusal(code protocol.Code, faults []protocol.Fault) outcome {
	o := outcome{Code: code}
	for _, f := range faults {
		o.Faults = append(o.Faults, f.Pointer)
	}
	slices.Sort(o.Faults)
	return o
}
