package directory

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

func TestLookup_FetchesInTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		var asked http.Header
		w.put(wellKnownOf("a.example"), func(rw http.ResponseWriter, r *http.Request) {
			asked = r.Header.Clone()
			answer(directoryMedia+"; charset=utf-8", setOf(t, p))(rw, r)
		})
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, origin("a.example"), p)
		require.True(t, strings.HasPrefix(asked.Get("Accept"), directoryMedia+", "), asked)
		require.Equal(t, "identity", asked.Get("Accept-Encoding"))
		known(t, c, origin("A.Example:443/"), p)
		known(t, c, jwks(wellKnownOf("a.example")), p)
		require.Equal(t, 1, w.count(wellKnownOf("a.example")), "one directory under three spellings")
	})
}

func TestLookup_ThousandAtOnceFetchOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		const url = "https://a.example/jwks.json"
		w.put(url, func(rw http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			answer(jwkSetMedia, setOf(t, p))(rw, r)
		})
		c := run(t, Config{Client: w.client(t)})
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { unknown(t, c, jwks(url), p, httpsig.CodeKeyUnknown, fetchSoon) })
		}
		all.Wait()
		time.Sleep(2 * time.Second)
		known(t, c, jwks(url), p)
		require.Equal(t, 1, w.count(url))
	})
}

func TestLookup_KeyBelongsToItsDirectory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, a, b := newWeb(t), newPair(t), newPair(t)
		w.put(wellKnownOf("a.example"), answer(directoryMedia, setOf(t, a)))
		w.put(wellKnownOf("b.example"), answer(directoryMedia, setOf(t, b)))
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, origin("a.example"), a)
		fetched(t, c, origin("b.example"), b)
		unknown(t, c, origin("b.example"), a, httpsig.CodeKeyUnknown, refetchEvery)
		unknown(t, c, origin("a.example"), b, httpsig.CodeKeyUnknown, refetchEvery)
		known(t, c, origin("a.example"), a)
	})
}

func TestLookup_RefusesWithoutFetching(t *testing.T) {
	t.Parallel()
	c := must.Get(New(Config{Client: http.DefaultClient}))(t)
	thumb := newPair(t).Thumbprint()
	for name, tc := range map[string]struct {
		ref   httpsig.AgentRef
		keyid string
		code  httpsig.Code
	}{
		"no agent":         {httpsig.AgentRef{}, thumb, httpsig.CodeAgentMissing},
		"keyid a name":     {origin("a.example"), "test-key-ed25519", httpsig.CodeKeyUnknown},
		"keyid not base64": {origin("a.example"), strings.Repeat("/", 43), httpsig.CodeKeyUnknown},
		"plain http":       {jwks("http://a.example/jwks.json"), thumb, httpsig.CodeAgentMalformed},
		"plain loopback":   {jwks("http://127.0.0.1/jwks.json"), thumb, httpsig.CodeAgentMalformed},
		"other scheme":     {jwks("data:application/json,{}"), thumb, httpsig.CodeAgentMalformed},
		"userinfo":         {jwks("https://user@a.example/"), thumb, httpsig.CodeAgentMalformed},
		"fragment":         {jwks("https://a.example/#x"), thumb, httpsig.CodeAgentMalformed},
		"blank":            {jwks("https://a.example/a b"), thumb, httpsig.CodeAgentMalformed},
		"no host":          {jwks("https:///jwks"), thumb, httpsig.CodeAgentMalformed},
		"long":             {jwks("https://a.example/" + strings.Repeat("x", 600)), thumb, httpsig.CodeAgentMalformed},
		"IPv4":             {origin("192.0.2.1"), thumb, httpsig.CodeDirectoryAddressRefused},
		"IPv4 in short":    {origin("127.1"), thumb, httpsig.CodeDirectoryAddressRefused},
		"IPv4 as number":   {origin("2130706433"), thumb, httpsig.CodeDirectoryAddressRefused},
		"IPv4 in hex":      {origin("0x7f.0x1"), thumb, httpsig.CodeDirectoryAddressRefused},
		"IPv6":             {origin("[::1]"), thumb, httpsig.CodeDirectoryAddressRefused},
	} {
		_, err := c.Lookup(tc.ref, tc.keyid, time.Now())
		require.ErrorIs(t, err, tc.code, name)
		require.Equal(t, protocol.KeyUnknown, protocol.CodeOf(err), name)
		require.Zero(t, protocol.AsError(err).RetryAfter, name)
	}
	require.Empty(t, c.entries)
}

func TestNewSource_Spelling(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"HTTPS://A.Example:443/Path?Q=1": "https://a.example/Path?Q=1",
		"https://a.example:8443":         "https://a.example:8443",
		"https://a.example?x=/y":         "https://a.example?x=/y",
		"https://a.example/%7e/../b":     "https://a.example/%7e/../b",
		"http://127.0.0.1:8080/jwks":     "http://127.0.0.1:8080/jwks",
		"http://[::1]:80/jwks":           "http://[::1]/jwks",
		"http://n1.localhost:80/":        "http://n1.localhost/",
	} {
		s, f := newSource(raw, false, true)
		require.Nil(t, f, raw)
		require.Equal(t, want, s.url)
		again, f := sourceOfName(s.name, true)
		require.Nil(t, f)
		require.Equal(t, s, again)
	}
	s, f := newSource("https://a.example/me", true, false)
	require.Nil(t, f)
	require.Equal(t, "cimd:https://a.example/me", s.name)
}

func TestLookup_BoundsOfTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWeb(t)
		now := time.Now().Truncate(time.Second)
		bounded := func(from, until time.Duration) (key.Pair, key.Public) {
			p := newPair(t)
			pub := p.Published()
			pub.NotBefore, pub.Expires = now.Add(from), now.Add(until)
			return p, pub
		}
		current, pub1 := bounded(-time.Hour, time.Minute)
		expired, pub2 := bounded(-time.Hour, 0)
		future, pub3 := bounded(45*time.Second, time.Hour)
		set := must.Get(key.MarshalSet([]key.Public{pub1, pub2, pub3}))(t)
		w.put(wellKnownOf("a.example"), answer(directoryMedia, string(set), "Cache-Control", "max-age=3600"))
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, origin("a.example"), current)
		require.Equal(t, "error=invalid_key", unknown(t, c, origin("a.example"), expired, httpsig.CodeKeyExpired, refetchEvery).Signature)
		unknown(t, c, origin("a.example"), future, httpsig.CodeKeyNotYetValid, refetchEvery)
		time.Sleep(15 * time.Second)
		known(t, c, origin("a.example"), future) // within the skew of clocks
		time.Sleep(44 * time.Second)
		known(t, c, origin("a.example"), current)
		pass(time.Second)
		unknown(t, c, origin("a.example"), current, httpsig.CodeKeyUnknown, fetchSoon)
		synctest.Wait()
		unknown(t, c, origin("a.example"), current, httpsig.CodeKeyExpired, refetchEvery)
	})
}
