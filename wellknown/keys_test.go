package wellknown

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

// proofs verifies an answer as a stranger would who fetched it from authority.
func proofs(t *testing.T, rec *httptest.ResponseRecorder, authority string) []httpsig.Proof {
	t.Helper()
	require.Equal(t, http.StatusOK, rec.Code, rec.Body)
	set := must.Get(key.ParseSet(rec.Body.Bytes()))(t)
	require.Zero(t, set.Ignored)
	keys := make([]httpsig.Key, len(set.Keys))
	for i, k := range set.Keys {
		require.Equal(t, k.Thumbprint, k.ID)
		keys[i] = must.Get(httpsig.NewKey(k.Key))(t)
	}
	m := &httpsig.Message{Status: rec.Code, Header: rec.Header(), Related: asked(httpsig.NewTarget("https", authority))}
	return httpsig.VerifyDirectory(m, rec.Body.Bytes(), keys, time.Now(), false)
}

func TestNodeKeys_EachKeyProvesItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, h := node(t)
		rsa := must.Get(key.GenerateRSA(2048))(t)
		ec := must.Get(key.GenerateP256())(t)
		a.node = []key.Pair{pair(t, "node"), rsa, ec}
		rec := get(h, "/.well-known/http-message-signatures-directory")
		require.Equal(t, directoryMedia, rec.Header().Get("Content-Type"))
		got := proofs(t, rec, "n1.example")
		require.Len(t, got, 3)
		for i, p := range got {
			require.NoError(t, p.Err)
			require.Equal(t, a.node[i].Thumbprint(), p.Thumbprint)
		}
		for _, p := range proofs(t, rec, "other.example") {
			require.ErrorIs(t, p.Err, httpsig.CodeSignatureInvalid, "another host cannot relay it as its own")
		}
	})
}

func TestNodeKeys_ARotationShowsAtOnce(t *testing.T) {
	t.Parallel()
	a, h := node(t)
	before := get(h, "/.well-known/http-message-signatures-directory")
	a.node = []key.Pair{pair(t, "next")}
	after := get(h, "/.well-known/http-message-signatures-directory")
	require.NotEqual(t, before.Header().Get("ETag"), after.Header().Get("ETag"))
	require.Len(t, proofs(t, after, "n1.example"), 1)
}

func TestAgentKeys_SignedEveryTwelveHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, h := node(t)
		target := jwks(pair(t, "asha").Thumbprint())
		first := get(h, target)
		require.NoError(t, proofs(t, first, "n1.example")[0].Err)
		time.Sleep(signAgain - time.Second)
		require.Equal(t, first.Header(), get(h, target).Header())
		require.Equal(t, 1, a.opened, "the private key is opened only to sign")
		time.Sleep(time.Second)
		again := get(h, target)
		require.NotEqual(t, first.Header().Get("Signature"), again.Header().Get("Signature"))
		require.Equal(t, first.Header().Get("ETag"), again.Header().Get("ETag"), "the bytes are the same")
		require.Equal(t, 2, a.opened)

		time.Sleep(signFor - time.Minute)
		require.NoError(t, proofs(t, again, "n1.example")[0].Err, "a copy stays good for a week")
		time.Sleep(2 * time.Minute)
		require.ErrorIs(t, proofs(t, again, "n1.example")[0].Err, httpsig.CodeExpired)
	})
}

func TestAgentKeys_LostAuthority(t *testing.T) {
	t.Parallel()
	a, h := node(t)
	thumbprint := pair(t, "asha").Thumbprint()
	require.Equal(t, http.StatusOK, get(h, jwks(thumbprint)).Code)
	a.retired[thumbprint] = true
	require.Equal(t, http.StatusGone, get(h, jwks(thumbprint)).Code, "also when it is cached")
	require.Equal(t, http.StatusGone, get(h, registrationPath(thumbprint)).Code)
	require.Equal(t, http.StatusNotFound, get(h, jwks(pair(t, "unknown").Thumbprint())).Code)
	require.Equal(t, http.StatusNotFound, get(h, jwks("short")).Code)
}

// presign is what the owner of a key does at home.
func presign(t *testing.T, p key.Pair, o httpsig.SignOptions) SignedDirectory {
	t.Helper()
	body := must.Get(key.MarshalSet([]key.Public{p.Published()}))(t)
	o.Key = p.Signer()
	h := http.Header{}
	require.NoError(t, httpsig.SignResponse(h, 200, asked(httpsig.NewTarget("https", "n1.example")), body, o))
	return SignedDirectory{string(body), h.Get("Content-Digest"), h.Get("Signature-Input"), h.Get("Signature")}
}

func TestAgentKeys_HeldByTheOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, h := node(t)
		ravi := pair(t, "ravi")
		raw := must.Get(json.Marshal(presign(t, ravi, httpsig.SignOptions{TTL: 48 * time.Hour})))(t)
		a.keys[ravi.Thumbprint()] = AgentKey{Handle: "ravi", Public: ravi.Published(), Signed: raw}

		rec := get(h, jwks(ravi.Thumbprint()))
		require.NoError(t, proofs(t, rec, "n1.example")[0].Err)
		require.Zero(t, a.opened)
		time.Sleep(49 * time.Hour)
		rec = get(h, jwks(ravi.Thumbprint()))
		require.Equal(t, http.StatusServiceUnavailable, rec.Code)
		require.Equal(t, "3600", rec.Header().Get("Retry-After"))
		require.Contains(t, rec.Body.String(), `"code":"directory-expired"`)
		require.Equal(t, http.StatusOK, get(h, registrationPath(ravi.Thumbprint())).Code, "the registration file needs no signature")

		a.keys[ravi.Thumbprint()] = AgentKey{Handle: "ravi", Public: ravi.Published()}
		require.Equal(t, http.StatusServiceUnavailable, get(h, jwks(ravi.Thumbprint())).Code, "nothing signed yet")
		a.keys[ravi.Thumbprint()] = AgentKey{Handle: "ravi", Public: ravi.Published(), Signed: []byte("{}")}
		require.Equal(t, http.StatusInternalServerError, get(h, jwks(ravi.Thumbprint())).Code)
		a.keys[ravi.Thumbprint()] = AgentKey{Handle: "ravi", Public: ravi.Published()}
		a.hosted[ravi.Thumbprint()] = pair(t, "asha")
		require.Equal(t, http.StatusInternalServerError, get(h, jwks(ravi.Thumbprint())).Code, "another key is never served under this hash")
	})
}

func TestSignedDirectory_Check(t *testing.T) {
	t.Parallel()
	ravi := pair(t, "ravi")
	now := time.Now()
	good := presign(t, ravi, httpsig.SignOptions{})
	two := must.Get(key.MarshalSet([]key.Public{ravi.Published(), pair(t, "asha").Published()}))(t)
	for _, c := range []struct {
		name   string
		target string
		at     time.Time
		change func(*SignedDirectory)
		code   protocol.Code
	}{
		{name: "good"},
		{name: "expired", at: now.Add(8 * 24 * time.Hour), code: protocol.SignatureExpired},
		{name: "not yet", at: now.Add(-time.Hour), code: protocol.SignatureInvalid},
		{name: "other node", target: "n2.example", code: protocol.SignatureInvalid},
		{name: "too long", change: func(d *SignedDirectory) { *d = presign(t, ravi, httpsig.SignOptions{TTL: 30 * 24 * time.Hour}) },
			code: protocol.SignatureInvalid},
		{name: "other tag", change: func(d *SignedDirectory) { *d = presign(t, ravi, httpsig.SignOptions{Tag: "web-bot-auth"}) }, code: protocol.SignatureInvalid},
		{name: "body not covered", change: func(d *SignedDirectory) {
			*d = presign(t, ravi, httpsig.SignOptions{Components: []string{"@authority;req"}})
		}, code: protocol.SignatureInvalid},
		{name: "body changed", change: func(d *SignedDirectory) { d.Body += " " }, code: protocol.SignatureInvalid},
		{name: "two keys", change: func(d *SignedDirectory) { d.Body = string(two) }, code: protocol.SignatureInvalid},
		{name: "another key", change: func(d *SignedDirectory) { *d = presign(t, pair(t, "asha"), httpsig.SignOptions{}) }, code: protocol.SignatureInvalid},
		{name: "empty", change: func(d *SignedDirectory) { *d = SignedDirectory{} }, code: protocol.SignatureInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, at, target := good, now, "n1.example"
			if c.change != nil {
				c.change(&d)
			}
			if !c.at.IsZero() {
				at = c.at
			}
			if c.target != "" {
				target = c.target
			}
			err := d.Check(httpsig.NewTarget("https", target), ravi.Thumbprint(), at)
			require.Equal(t, c.code, protocol.CodeOf(err), "%v", err)
		})
	}
}
