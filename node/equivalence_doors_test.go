package node_test

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
	"stoa/node"
	"stoa/node/door/httpapi"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

// outcome is what a caller learns from one call, whatever the door: a result,
// or a code with the pointers of its faults.
type outcome struct {
	Code   protocol.Code
	Faults []string // pointers, sorted
	JSON   string   // of a result
}

func newDoors(t *testing.T) *nodetest.Doors {
	d := &nodetest.Doors{T: t, House: nodetest.Start(t, func(c *node.Config) { c.OwnerInvitations, c.NoProbes = 10_000, true }), Published: newOpenAPI(t)}
	d.House.Meeting.Mail = nodetest.NoMeetingMail
	d.House.Hosted("asha")
	d.House.TakeBids("asha")
	d.Token = d.House.OwnerToken("asha")
	d.Thread = thread(d.House, d.Token).ThreadID
	d.Talk = thread(d.House, d.Token).ThreadID
	d.House.PutProfile([]byte(`{"handle":"bazaar","name":"Bazaar","kind":"business"}`))
	d.Shop = d.House.OwnerToken("bazaar")
	d.Shopkeeper = must.Get(client.New(d.House.URL, client.Options{Token: d.Shop}))(t)
	d.PaidAt = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	a := d.House.Ask("POST", "/api/owner/order-receipts", `{"order":"R-7","total":{"currency":"INR","amount":"90"},"paidAt":"`+d.PaidAt+`"}`,
		"Authorization", "Bearer "+d.Shop).Is(201)
	receipt := nodetest.As[protocol.OrderReceipt](a)
	d.Receipt = receipt.ID
	d.Mine = must.Get(client.New(d.House.URL, client.Options{Token: d.Token}))(t)
	d.Paid = must.Get(client.New(d.House.URL, client.Options{Workers: 1}))(t)
	return d
}

// A call is one operation with its arguments and who makes it.
type call struct {
	op    *protocol.Operation
	args  map[string]any
	token bool // as an owner; else with a proof of work where one is taken
}

// overHTTP sends a call to its route. ok is false for what no request to that
// route can say: a path without one of its parameters.
func overHTTP(d *nodetest.Doors, c call) (o outcome, ok bool) {
	d.T.Helper()
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
	bare := c.op.ReadOnly || c.op.HTTP.Method == "DELETE" // without a body
	if rest[c.op.Secret] != nil && bare {                 // a secret is in no URL, and a request has one Authorization
		if c.token || !strings.HasPrefix(secret, protocol.ReadTokenPrefix) || len(secret) > 100 {
			return o, false
		}
		delete(rest, c.op.Secret)
	}
	var body io.Reader
	if c.op.HTTP.Method == "POST" || c.op.HTTP.Method == "PUT" {
		raw := must.Get(json.Marshal(rest))(d.T)
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
	r := must.Get(http.NewRequestWithContext(d.T.Context(), c.op.HTTP.Method, d.House.URL+path, body))(d.T)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	identify(d, r.Header, c)
	if secret != "" && bare {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	res := must.Get(http.DefaultClient.Do(r))(d.T)
	defer res.Body.Close()
	raw := must.Get(io.ReadAll(res.Body))(d.T)
	if res.StatusCode < 300 {
		require.Equal(d.T, c.op.HTTP.Status, res.StatusCode)
		return outcome{JSON: string(raw)}, true
	}
	var p httpapi.Problem
	require.NoError(d.T, json.Unmarshal(raw, &p), "%s %s: %s", c.op.HTTP.Method, path, raw)
	return refusal(p.Code, p.Errors), true
}

func identify(d *nodetest.Doors, head http.Header, c call) {
	if c.token {
		head.Set("Authorization", "Bearer "+d.Token)
	} else if c.op.Access&protocol.Proof != 0 {
		head.Set("Proof-Of-Work", d.House.Proof(c.op.Purpose))
	}
}

// overMCP makes the same call as a tool call, with the proof among its arguments.
func overMCP(d *nodetest.Doors, c call) outcome {
	d.T.Helper()
	args := maps.Clone(c.args)
	var headers []string
	if c.token {
		headers = []string{"Authorization", "Bearer " + d.Token}
	} else if c.op.Access&protocol.Proof != 0 {
		s := must.Get(pow.Parse([]byte(d.House.Proof(c.op.Purpose))))(d.T)
		args["pow"] = s
	}
	raw := must.Get(json.Marshal(args))(d.T)
	a := d.House.Tool(c.op.Name, string(raw), headers...)
	switch {
	case a.IsError:
		return refusal(a.Refused.Code, a.Refused.Errors)
	case c.op.Media != "":
		require.Empty(d.T, a.Structured)
		return outcome{JSON: a.Content[0].Text}
	}
	require.JSONEq(d.T, a.Content[0].Text, string(a.Structured))
	return outcome{JSON: string(a.Structured)}
}

// overCall makes the same call as stoa call does.
func overCall(d *nodetest.Doors, c call) outcome {
	d.T.Helper()
	caller := d.Paid
	if c.token {
		caller = d.Mine
	}
	res, err := caller.Call(d.T.Context(), c.op.Name, c.args)
	if err == nil {
		return outcome{JSON: string(res.Body)}
	}
	e, ok := errors.AsType[*protocol.Error](err)
	require.True(d.T, ok, "%v", err)
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
