package directory

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/protocol/must"
	"stoa/protocol/netx"
)

func TestFetch_Refusals(t *testing.T) {
	t.Parallel()
	good := setOf(t, newPair(t))
	huge := `{"keys":[],"x":"` + strings.Repeat("x", MaxBody) + `"}`
	const here, elsewhere = "https://a.example" + httpsig.DirectoryPath, "https://a.example/jwks.json"
	for name, tc := range map[string]struct {
		url  string
		page http.HandlerFunc
		code httpsig.Code
	}{
		"not found":                {here, status(404), httpsig.CodeDirectoryStatus},
		"server error":             {here, status(500), httpsig.CodeDirectoryStatus},
		"no content":               {here, status(204), httpsig.CodeDirectoryStatus},
		"redirect":                 {here, http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP, httpsig.CodeDirectoryRedirect},
		"permanent redirect":       {here, http.RedirectHandler("/elsewhere", http.StatusPermanentRedirect).ServeHTTP, httpsig.CodeDirectoryRedirect},
		"json at well-known":       {here, answer("application/json", good), httpsig.CodeDirectoryMediaType},
		"jwk set at well-known":    {here, answer("application/jwk-set+json", good), httpsig.CodeDirectoryMediaType},
		"the same with a query":    {here + "?x", answer("application/jwk-set+json", good), httpsig.CodeDirectoryMediaType},
		"html":                     {elsewhere, answer("text/html", good), httpsig.CodeDirectoryMediaType},
		"text":                     {elsewhere, answer("text/plain", good), httpsig.CodeDirectoryMediaType},
		"media type unreadable":    {elsewhere, answer(";", good), httpsig.CodeDirectoryMediaType},
		"compressed without asked": {elsewhere, answer(jsonMedia, "x", "Content-Encoding", "gzip"), httpsig.CodeDirectoryMediaType},
		"too large, announced":     {elsewhere, answer(jsonMedia, huge, "Content-Length", fmt.Sprint(len(huge))), httpsig.CodeDirectoryTooLarge},
		"too large, streamed":      {elsewhere, stream(huge), httpsig.CodeDirectoryTooLarge},
		"cut short":                {elsewhere, answer(jsonMedia, good[:20], "Content-Length", "1000"), httpsig.CodeDirectoryUnreachable},
		"not JSON":                 {elsewhere, answer(jsonMedia, "<html>"), httpsig.CodeDirectoryMalformed},
		"empty":                    {elsewhere, answer(jsonMedia, ""), httpsig.CodeDirectoryMalformed},
		"no keys":                  {elsewhere, answer(jsonMedia, "{}"), httpsig.CodeDirectoryMalformed},
		"keys null":                {elsewhere, answer(jsonMedia, `{"keys":null}`), httpsig.CodeDirectoryMalformed},
		"keys twice":               {elsewhere, answer(jsonMedia, `{"keys":[],"keys":[]}`), httpsig.CodeDirectoryMalformed},
		"something behind":         {elsewhere, answer(jsonMedia, good+good), httpsig.CodeDirectoryMalformed},
		"deep": {elsewhere, answer(jsonMedia, `{"keys":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`),
			httpsig.CodeDirectoryMalformed},
		"slow header": {elsewhere, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, httpsig.CodeDirectoryUnreachable},
		"slow body":   {elsewhere, drip, httpsig.CodeDirectoryUnreachable},
		"broken off":  {elsewhere, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, httpsig.CodeDirectoryUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, p := newWeb(t), newPair(t)
				w.put(tc.url, tc.page)
				w.put("https://a.example/elsewhere", answer(directoryMedia, setOf(t, p)))
				c := run(t, Config{Client: w.client(t)})
				unknown(t, c, jwks(tc.url), p, httpsig.CodeKeyUnknown, fetchSoon)
				begin := time.Now()
				for c.busy() {
					time.Sleep(time.Millisecond)
					synctest.Wait()
				}
				took := time.Since(begin)
				require.LessOrEqual(t, took, fetchTimeout+time.Millisecond)
				if strings.HasPrefix(name, "slow") {
					require.GreaterOrEqual(t, took, fetchTimeout, "the whole time is given")
				}
				pass(minRetry/2 - took%time.Second)
				e := c.entries[tc.url]
				unknown(t, c, jwks(tc.url), p, tc.code, time.Until(e.retry))
				require.Equal(t, 1, w.count(tc.url))
				require.Zero(t, w.count("https://a.example/elsewhere"), "a redirect is not followed")
			})
		})
	}
}

// busy reports whether anything is queued or being fetched.
func (c *Cache) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.hosts) > 0
}

func stream(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonMedia)
		w.(http.Flusher).Flush()
		w.Write([]byte(body))
	}
}

// drip sends a byte a second, for ever.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", jsonMedia)
	for r.Context().Err() == nil {
		w.Write([]byte(" "))
		w.(http.Flusher).Flush()
		time.Sleep(time.Second)
	}
}

func TestFetch_ExactlyTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		body := setOf(t, p)
		body += strings.Repeat(" ", MaxBody-len(body))
		w.put("https://a.example/jwks", stream(body))
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, jwks("https://a.example/jwks"), p)
	})
}

func TestFetch_NamesWhatTheClientRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		refused := errors.New("private address")
		c := run(t, Config{
			Client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, refused })},
			Classify: func(err error) httpsig.Code {
				if errors.Is(err, refused) {
					return httpsig.CodeDirectoryAddressRefused
				}
				return ""
			},
		})
		p := newPair(t)
		unknown(t, c, origin("a.example"), p, httpsig.CodeKeyUnknown, fetchSoon)
		synctest.Wait()
		unknown(t, c, origin("a.example"), p, httpsig.CodeDirectoryAddressRefused, minRetry)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFetch_Card(t *testing.T) {
	t.Parallel()
	const me, set = "https://a.example/me", "https://keys.example/jwks"
	p := newPair(t)
	inline := `{"client_id":"` + me + `","client_name":"A","jwks":` + setOf(t, p) + `,"web_bot_auth":{"trigger":"fetcher"}}`
	by := func(uri string) string { return `{"client_id":"` + me + `","jwks_uri":"` + uri + `","jwks":null}` }
	for name, tc := range map[string]struct {
		media, card string
		page        http.HandlerFunc // at set
		code        httpsig.Code     // "": the key is found
		hops        int
	}{
		"inline":            {jsonMedia, inline, nil, "", 0},
		"own kind of JSON":  {"application/cimd+json", inline, nil, "", 0},
		"by URI":            {jsonMedia, by(set), answer(jwkSetMedia, setOf(t, p)), "", 1},
		"no keys":           {jsonMedia, `{"client_id":"` + me + `"}`, nil, httpsig.CodeKeyUnknown, 0},
		"not JSON":          {"text/html", inline, nil, httpsig.CodeDirectoryMediaType, 0},
		"other client":      {jsonMedia, strings.Replace(inline, me, me+"/", 1), nil, httpsig.CodeDirectoryMalformed, 0},
		"no client":         {jsonMedia, `{"jwks":` + setOf(t, p) + `}`, nil, httpsig.CodeDirectoryMalformed, 0},
		"both":              {jsonMedia, strings.Replace(inline, `"jwks":`, `"jwks_uri":"`+set+`","jwks":`, 1), nil, httpsig.CodeDirectoryMalformed, 0},
		"client twice":      {jsonMedia, strings.Replace(inline, `{"client_id"`, `{"client_id":"x","client_id"`, 1), nil, httpsig.CodeDirectoryMalformed, 0},
		"jwks no set":       {jsonMedia, `{"client_id":"` + me + `","jwks":[]}`, nil, httpsig.CodeDirectoryMalformed, 0},
		"URI empty":         {jsonMedia, by(""), nil, httpsig.CodeDirectoryMalformed, 0},
		"URI relative":      {jsonMedia, by("/jwks"), nil, httpsig.CodeDirectoryMalformed, 0},
		"URI plain":         {jsonMedia, by("http://keys.example/jwks"), nil, httpsig.CodeDirectoryMalformed, 0},
		"URI long":          {jsonMedia, by(set + "?" + strings.Repeat("x", 512)), nil, httpsig.CodeDirectoryMalformed, 0},
		"URI to an address": {jsonMedia, by("https://169.254.169.254/latest"), nil, httpsig.CodeDirectoryAddressRefused, 0},
		"set redirects":     {jsonMedia, by(set), http.RedirectHandler("/x", http.StatusFound).ServeHTTP, httpsig.CodeDirectoryRedirect, 1},
		"set is a card":     {jsonMedia, by(set), answer(jsonMedia, inline), httpsig.CodeDirectoryMalformed, 1},
		"set is gone":       {jsonMedia, by(set), status(410), httpsig.CodeKeyUnknown, 1},
		"set is missing":    {jsonMedia, by(set), status(404), httpsig.CodeDirectoryStatus, 1},
		"too slow together": {jsonMedia, by(set), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, httpsig.CodeDirectoryUnreachable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWeb(t)
				w.put(me, func(rw http.ResponseWriter, r *http.Request) {
					time.Sleep(time.Second)
					answer(tc.media, tc.card)(rw, r)
				})
				if tc.page != nil {
					w.put(set, tc.page)
				}
				c := run(t, Config{Client: w.client(t)})
				unknown(t, c, cimd(me), p, httpsig.CodeKeyUnknown, fetchSoon)
				pass(fetchTimeout + time.Millisecond)
				require.False(t, c.busy(), "three seconds for both documents")
				require.Equal(t, tc.hops, w.count(set))
				if tc.code == "" {
					known(t, c, cimd(me), p)
					unknown(t, c, jwks(me), p, httpsig.CodeKeyUnknown, fetchSoon) // a card is no set
					return
				}
				require.ErrorIs(t, must.Err(c.Lookup(cimd(me), p.Thumbprint(), time.Now())), tc.code)
			})
		})
	}
}

// TestFetch_CardName: what a card calls itself comes with its keys, as one line, and is kept with
// them over a restart.
func TestFetch_CardName(t *testing.T) {
	t.Parallel()
	const me = "https://a.example/me"
	for name, tc := range map[string]struct{ raw, want string }{
		"a name":    {`"Asha  Menon"`, "Asha Menon"},
		"two lines": {`"Asha\nMenon"`, "Asha Menon"},
		"no text":   {`7`, ""},
		"none":      {`null`, ""},
		"too long":  {`"` + strings.Repeat("a", maxName+1) + `"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, p, store := newWeb(t), newPair(t), &memory{}
				w.put(me, answer(jsonMedia, `{"client_id":"`+me+`","client_name":`+tc.raw+`,"jwks":`+setOf(t, p)+`}`))
				for range 2 {
					c := must.Get(New(Config{Client: w.client(t), Store: store}))(t)
					stop := runFor(t, c)
					synctest.Wait()
					_, got, err := c.Await(t.Context(), "n", cimd(me), p.Thumbprint(), time.Now())
					require.NoError(t, err)
					require.Equal(t, tc.want, got)
					pass(time.Second)
					stop()
				}
				require.Equal(t, 1, w.count(me))
			})
		})
	}
}

func TestLifetime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fields []string
		want   time.Duration
	}{
		{nil, 5 * time.Minute},
		{[]string{"public, max-age=600"}, 10 * time.Minute},
		{[]string{"public", `MAX-AGE="600"`}, 10 * time.Minute},
		{[]string{"max-age=600, max-age=120"}, 2 * time.Minute},
		{[]string{"max-age=1"}, time.Minute},
		{[]string{"max-age=86400"}, time.Hour},
		{[]string{"max-age=99999999999999999999"}, time.Hour},
		{[]string{"max-age=-5"}, time.Minute},
		{[]string{"max-age=soon"}, time.Minute},
		{[]string{"max-age=600, no-cache"}, time.Minute},
		{[]string{"no-store"}, time.Minute},
		{[]string{"immutable"}, 5 * time.Minute},
	} {
		require.Equal(t, tc.want, lifetime(http.Header{"Cache-Control": tc.fields}), tc.fields)
	}
	require.Equal(t, 400*time.Second, lifetime(http.Header{"Cache-Control": {"max-age=600"}, "Age": {"200"}}))
	require.Equal(t, time.Minute, lifetime(http.Header{"Cache-Control": {"max-age=600"}, "Age": {"900"}}))
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for i, want := range []int{30, 60, 120, 240, 300, 300, 300} {
		require.Equal(t, time.Duration(want)*time.Second, netx.Backoff(minRetry, maxRetry, i+1))
	}
	require.Equal(t, maxRetry, netx.Backoff(minRetry, maxRetry, 1<<30))
}
