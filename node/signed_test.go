package node_test

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// again sends the bytes of a request once more.
func again(h *nodetest.House, r *http.Request, body string) nodetest.Answer {
	h.T.Helper()
	copied := h.Request(r.Method, r.RequestURI, body)
	copied.Header = r.Header.Clone()
	return h.Serve(copied)
}

// The same signed bytes open no kept answer: anyone who read a request on the way
// does not get the read token in it. Its sender signs again and does.
func TestSigned_RepeatedUnderIdempotencyKey(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		pair := h.Hosted("asha")
		var sent *http.Request
		post := func() nodetest.Answer {
			return h.Signed(pair, nodetest.GoodPost, func(r *http.Request, _ *httpsig.SignOptions) {
				r.Header.Set("Idempotency-Key", "once")
				sent = r
			})
		}
		first := post().Is(201)
		captured := sent

		replayed := again(h, captured, nodetest.GoodPost).Is(401)
		require.Equal(t, protocol.SignatureReplayed, replayed.Problem().Code)
		require.NotEmpty(t, replayed.Header().Get("Signature-Error"))

		repeated := post().Is(201)
		require.Equal(t, "true", repeated.Header().Get("Idempotency-Replayed"))
		require.Equal(t, first.Body.String(), repeated.Body.String())
		require.Equal(t, protocol.SignatureReplayed, again(h, sent, nodetest.GoodPost).Problem().Code)

		page := nodetest.As[protocol.Page[protocol.Post]](h.Ask("GET", "/api/public/board", ""))
		require.Len(t, page.Items, 1)
	})
}

// What Accept-Signature asks for is accepted (RFC 9421 §5), for each method and
// with each field that must be covered when it is there; required_input asks for
// the same.
func TestSigned_AsAsked(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	pair := h.Hosted("asha")
	p := nodetest.As[protocol.Post](h.Signed(pair, nodetest.GoodPost, nil))
	nonces := map[string]bool{}
	for name, tt := range map[string]struct {
		method, path, body, field string
		want                      []string
	}{
		"write": {"POST", "/api/public/board", nodetest.GoodPost, "",
			[]string{"@method", "@authority", "@path", "content-type", "content-digest", "signature-agent"}},
		"with a query":  {"GET", "/api/public/since?limit=5", "", "", []string{"@method", "@authority", "@path", "@query", "signature-agent"}},
		"without one":   {"GET", "/api/public/since", "", "", []string{"@method", "@authority", "@path", "signature-agent"}},
		"without body":  {"DELETE", "/api/public/board/" + p.ID, "", "", []string{"@method", "@authority", "@path", "signature-agent"}},
		"another field": {"GET", "/api/owner/profile", "", "Signature-Agent", []string{"@method", "@authority", "@path", "signature-agent"}},
	} {
		field := tt.field
		make := func() *http.Request {
			r := h.Request(tt.method, tt.path, tt.body)
			if field != "" {
				r.Header.Set(field, `"https://asha.example"`)
			}
			return r
		}
		asked := h.Serve(make())
		require.Equal(t, 401, asked.Code, "%s: %s", name, asked.Body)
		dict, err := httpsfv.UnmarshalDictionary(asked.Header().Values("Accept-Signature"))
		require.NoError(t, err, name)
		member, ok := dict.Get("sig1")
		require.True(t, ok, name)
		list := member.(httpsfv.InnerList)
		var components []string
		for _, item := range list.Items {
			components = append(components, item.Value.(string))
		}
		require.Equal(t, tt.want, components, name)
		nonce, _ := list.Params.Get("nonce")
		tag, _ := list.Params.Get("tag")
		require.False(t, nonces[nonce.(string)], "a fresh one each time")
		field = "Signature-Agent" // a signer who follows it says where its key is
		nonces[nonce.(string)] = true

		// One component short: required_input names all, and the answer asks again.
		refused := h.Serve(h.Sign(make(), tt.body, pair, httpsig.SignOptions{Components: components[:len(components)-1], Tag: tag.(string)}))
		require.Equal(t, protocol.SignatureInvalid, refused.Problem().Code, name)
		require.Equal(t, `error=invalid_input, required_input=("`+strings.Join(tt.want, `" "`)+`")`, refused.Header().Get("Signature-Error"), name)

		a := h.Serve(h.Sign(make(), tt.body, pair, httpsig.SignOptions{Components: components, Nonce: nonce.(string), Tag: tag.(string)}))
		require.Less(t, a.Code, 300, "%s: %s", name, a.Body)
	}
}

// A signature that does not fit is told what this node received, so that its
// sender finds the component that differs.
func TestSigned_OtherBaseIsTold(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	pair := h.Hosted("asha")
	r := h.Sign(h.Request("POST", "/api/public/board?from=here", nodetest.GoodPost), nodetest.GoodPost, pair,
		httpsig.SignOptions{Components: []string{"@method", "@authority", "@path", "@query", "content-type", "content-digest"}})
	r.RequestURI = "/api/public/board"
	var p struct{ Detail string }
	again(h, r, nodetest.GoodPost).Into(&p)
	require.Contains(t, p.Detail, `"@method": POST "@authority": `+strings.TrimPrefix(h.Base, "http://")+` "@path": /api/public/board "@query": ?`)
	require.NotContains(t, p.Detail, "from=here")
	require.NotContains(t, p.Detail, "content-digest")
}

// TestSigned_OpenReads: every open read is answered, also when its request has a signature that is not
// for this node, and then says which signature would be (contract §2). A forged one is refused, and
// so is each of them on a write.
func TestSigned_OpenReads(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	asha, stranger := h.Hosted("asha"), nodetest.NewPair(t)
	send := func(method, path, body, accept string, pair key.Pair, o httpsig.SignOptions, agent string, change func(*http.Request)) nodetest.Answer {
		r := h.Request(method, path, body, "Accept", accept)
		if agent != "" {
			r.Header.Set("Signature-Agent", agent)
		}
		if h.Sign(r, body, pair, o); change != nil {
			change(r)
		}
		return h.Serve(r)
	}
	noTag := func(r *http.Request) {
		in := r.Header.Get("Signature-Input")
		r.Header.Set("Signature-Input", regexp.MustCompile(`;tag="[^"]*"`).ReplaceAllString(in, ""))
	}
	wallet := func(r *http.Request) { // as @slicekit/erc8128 0.2.0
		noTag(r)
		in := regexp.MustCompile(`;keyid="[^"]*"`).ReplaceAllString(r.Header.Get("Signature-Input"),
			`;keyid="erc8128:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"`)
		r.Header.Set("Signature-Input", in)
	}
	type kind struct {
		o      httpsig.SignOptions
		agent  string
		change func(*http.Request)
	}
	kinds := map[string]kind{
		"no tag":              {change: noTag},
		"TAP":                 {o: httpsig.SignOptions{Tag: "agent-payer-auth"}},
		"ERC-8128":            {change: wallet},
		"ERC-8128 of 2026-08": {o: httpsig.SignOptions{Tag: "erc8128"}},
		"unknown key":         {},
		"unknown directory":   {agent: `"https://bot.invalid"`},
	}
	paths := map[string]string{"/api/public/board": "application/json", "/api/public/feed": "application/json", "/board": "text/html", "/@asha": "text/html",
		"/SKILL.md": "*/*", "/openapi.json": "*/*", "/a2a/asha/agent-card.json": "*/*", "/.well-known/agent-card.json": "*/*", "/feed.atom": "*/*"}
	for path, accept := range paths {
		open := h.Ask("GET", path, "", "Accept", accept)
		require.Equal(t, 200, open.Code, path)
		for name, k := range kinds {
			a := send("GET", path, "", accept, stranger, k.o, k.agent, k.change)
			require.Equal(t, 200, a.Code, "%s %s: %s", path, name, a.Body)
			require.Equal(t, open.Body.String(), a.Body.String(), "%s %s", path, name)
			require.Contains(t, a.Header().Get("Accept-Signature"), `tag="web-bot-auth"`, "%s %s", path, name)
		}
	}
	forge := func(r *http.Request) {
		r.Header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(make([]byte, 64))+":")
	}
	for _, path := range []string{"/api/public/board", "/api/public/feed", "/board", "/@asha"} {
		for _, tag := range []string{httpsig.TagWebBotAuth, httpsig.TagStoa} {
			a := send("GET", path, "", paths[path], asha, httpsig.SignOptions{Tag: tag}, "", forge)
			require.Equal(t, 401, a.Code, "a forged signature of %s at %s", tag, path)
			own := send("GET", path, "", paths[path], asha, httpsig.SignOptions{Tag: tag}, "", nil)
			require.Equal(t, 200, own.Code, path)
			require.Empty(t, own.Header().Get("Accept-Signature"), "%s: it is signed as it is wanted", path)
		}
		stripped := send("GET", path, "", paths[path], stranger, httpsig.SignOptions{}, "", func(r *http.Request) { r.Header.Del("Signature-Input") })
		require.Equal(t, 401, stripped.Code, "a signature of which a part is missing at %s", path)
	}
	for name, k := range kinds {
		a := send("POST", "/api/public/board", nodetest.GoodPost, "*/*", stranger, k.o, k.agent, k.change)
		require.Equal(t, 401, a.Code, "%s on a write", name)
		require.Equal(t, 401, send("GET", "/api/public/since", "", "*/*", stranger, k.o, k.agent, k.change).Code, "%s where a caller is needed", name)
	}
}
