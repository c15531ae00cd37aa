package node

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/protocol"
)

// again sends the bytes of a request once more.
func (h *house) again(r *http.Request, body string) answer {
	h.t.Helper()
	copied := httptest.NewRequest(r.Method, h.Base+r.RequestURI, strings.NewReader(body))
	copied.RequestURI, copied.Header = r.RequestURI, r.Header.Clone()
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, copied)
	return answer{w, h.t}
}

// The same signed bytes open no kept answer: anyone who read a request on the way
// does not get the read token in it. Its sender signs again and does.
func TestSigned_RepeatedUnderIdempotencyKey(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, change func(*Config)) {
		h := newHouse(t, change)
		pair := hostedAgent(t, h.Node, "asha")
		var sent *http.Request
		post := func() answer {
			return h.signed(pair, goodPost, func(r *http.Request, _ *httpsig.SignOptions) {
				r.Header.Set("Idempotency-Key", "once")
				sent = r
			})
		}
		first := post()
		require.Equal(t, 201, first.Code, "%s", first.Body)
		captured := sent

		replayed := h.again(captured, goodPost)
		require.Equal(t, 401, replayed.Code)
		require.Equal(t, protocol.SignatureReplayed, replayed.problem().Code)
		require.NotEmpty(t, replayed.Header().Get("Signature-Error"))

		repeated := post()
		require.Equal(t, 201, repeated.Code, "%s", repeated.Body)
		require.Equal(t, "true", repeated.Header().Get("Idempotency-Replayed"))
		require.Equal(t, first.Body.String(), repeated.Body.String())
		require.Equal(t, protocol.SignatureReplayed, h.again(sent, goodPost).problem().Code)

		var page protocol.Page[protocol.Post]
		h.ask("GET", "/api/public/board", "").into(&page)
		require.Len(t, page.Items, 1)
	})
}

// A signature over @authority alone names its caller and opens nothing: it can be
// sent to any path for a day.
func TestSigned_PartialSignatureOpensNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	pair := hostedAgent(t, h.Node, "asha")
	var p protocol.Post
	h.signed(pair, goodPost, nil).into(&p)
	require.NoError(t, h.Admin().Operate(context.Background(), protocol.HidePost.Operation, protocol.Decision{ID: p.ID, Reason: "x"}, nil))

	target, err := httpsig.ParseTarget(h.Base)
	require.NoError(t, err)
	read := func(path string, o httpsig.SignOptions) answer {
		r := httptest.NewRequest("GET", h.Base+path, nil)
		r.RequestURI = path
		o.Key = pair.Signer()
		require.NoError(t, httpsig.SignRequest(r, target, nil, o))
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		return answer{w, t}
	}
	hidden := "/api/public/board/" + p.ID
	full := []string{"@method", "@authority", "@path"}
	for name, o := range map[string]httpsig.SignOptions{
		"@authority alone": {Components: []string{"@authority"}, Nonce: "-", TTL: 24 * time.Hour},
		"without the path": {Components: []string{"@method", "@authority"}},
		"for a day":        {Components: full, TTL: 23 * time.Hour},
		"without nonce":    {Components: full, Nonce: "-"},
	} {
		require.Equal(t, 200, read("/api/public/feed", o).Code, "%s: a read is open", name)
		a := read(hidden, o)
		require.Equal(t, 410, a.Code, "%s: %s", name, a.Body)
	}
	require.Equal(t, 200, read(hidden, httpsig.SignOptions{Components: full}).Code, "the author sees why it is hidden")
}

// What Accept-Signature asks for is accepted (RFC 9421 §5), for each method and
// with each field that must be covered when it is there; required_input asks for
// the same.
func TestSigned_AsAsked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	pair := hostedAgent(t, h.Node, "asha")
	target, err := httpsig.ParseTarget(h.Base)
	require.NoError(t, err)
	var p protocol.Post
	h.signed(pair, goodPost, nil).into(&p)
	nonces := map[string]bool{}
	for name, tt := range map[string]struct {
		method, path, body, field string
		want                      []string
	}{
		"write":         {"POST", "/api/public/board", goodPost, "", []string{"@method", "@authority", "@path", "content-type", "content-digest"}},
		"with a query":  {"GET", "/api/public/since?limit=5", "", "", []string{"@method", "@authority", "@path", "@query"}},
		"without one":   {"GET", "/api/public/since", "", "", []string{"@method", "@authority", "@path"}},
		"without body":  {"DELETE", "/api/public/board/" + p.ID, "", "", []string{"@method", "@authority", "@path"}},
		"another field": {"GET", "/api/owner/profile", "", "Signature-Agent", []string{"@method", "@authority", "@path", "signature-agent"}},
	} {
		make := func() *http.Request {
			r := httptest.NewRequest(tt.method, h.Base+tt.path, strings.NewReader(tt.body))
			if tt.body == "" {
				r = httptest.NewRequest(tt.method, h.Base+tt.path, nil)
			} else {
				r.Header.Set("Content-Type", "application/json")
			}
			if tt.field != "" {
				r.Header.Set(tt.field, `"https://asha.example"`)
			}
			r.RequestURI = tt.path
			return r
		}
		serve := func(r *http.Request) answer {
			w := httptest.NewRecorder()
			h.Handler().ServeHTTP(w, r)
			return answer{w, t}
		}
		asked := serve(make())
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
		nonces[nonce.(string)] = true

		// One component short: required_input names all, and the answer asks again.
		short := make()
		require.NoError(t, httpsig.SignRequest(short, target, []byte(tt.body), httpsig.SignOptions{
			Key: pair.Signer(), Components: components[:len(components)-1], Tag: tag.(string)}))
		refused := serve(short)
		require.Equal(t, protocol.SignatureInvalid, refused.problem().Code, name)
		require.Equal(t, `error=invalid_input, required_input=("`+strings.Join(tt.want, `" "`)+`")`, refused.Header().Get("Signature-Error"), name)

		good := make()
		require.NoError(t, httpsig.SignRequest(good, target, []byte(tt.body), httpsig.SignOptions{
			Key: pair.Signer(), Components: components, Nonce: nonce.(string), Tag: tag.(string)}))
		a := serve(good)
		require.Less(t, a.Code, 300, "%s: %s", name, a.Body)
	}
}

// A signature that does not fit is told what this node received, so that its
// sender finds the component that differs.
func TestSigned_OtherBaseIsTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	pair := hostedAgent(t, h.Node, "asha")
	target, err := httpsig.ParseTarget(h.Base)
	require.NoError(t, err)
	r := httptest.NewRequest("POST", h.Base+"/api/public/board?from=here", strings.NewReader(goodPost))
	r.RequestURI = "/api/public/board?from=here"
	r.Header.Set("Content-Type", "application/json")
	require.NoError(t, httpsig.SignRequest(r, target, []byte(goodPost), httpsig.SignOptions{
		Key: pair.Signer(), Components: []string{"@method", "@authority", "@path", "@query", "content-type", "content-digest"}}))
	r.RequestURI = "/api/public/board"
	var p struct{ Detail string }
	h.again(r, goodPost).into(&p)
	require.Contains(t, p.Detail, `"@method": POST "@authority": `+target.Authority+` "@path": /api/public/board "@query": ?`)
	require.NotContains(t, p.Detail, "from=here")
	require.NotContains(t, p.Detail, "content-digest")
}
