package nodetest

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stoa/identity/eip4361"
	"stoa/identity/httpsig"
)

// SignByAccount signs a request as clients of ERC-8128 do, in its revision of August 2026, or with old as npm @slicekit/erc8128 0.2.0. More
// components of the header are covered too. wallet signs a digest: r, s and v.
func SignByAccount(
	t testing.TB, r *http.Request, body []byte, wallet func(digest []byte) ([]byte, error), account httpsig.Account, old bool, more ...string,
) {
	t.Helper()
	host, path, query := r.Host, r.URL.EscapedPath(), "?"+r.URL.RawQuery
	values := map[string]string{"@scheme": "http", "@authority": host, "@method": r.Method, "@path": path, "@query": query}
	components := []string{"@scheme", "@authority", "@method", "@path", "@query"}
	keyid, tag := account.String(), `;tag="erc8128"`
	if old {
		if components = []string{"@authority", "@method", "@path"}; query != "?" {
			components = append(components, "@query")
		}
		keyid, tag = strings.Replace(keyid, "eip155:", "erc8128:", 1), ""
	}
	if len(body) > 0 {
		r.Header.Set("Content-Digest", httpsig.ContentDigest(body))
		components = append(components, "content-digest")
		if !old {
			components = append(components, "content-type")
		}
	}
	var base strings.Builder
	var list []string
	for _, name := range append(components, more...) {
		value, derived := values[name]
		if !derived {
			value = r.Header.Get(name)
		}
		fmt.Fprintf(&base, "%q: %s\n", name, value)
		list = append(list, fmt.Sprintf("%q", name))
	}
	nonce := make([]byte, 16)
	rand.Read(nonce)
	now := time.Now().Unix()
	params := fmt.Sprintf(`(%s);created=%d;expires=%d;nonce="%s";keyid="%s"%s`, strings.Join(list, " "), now, now+60,
		base64.RawURLEncoding.EncodeToString(nonce), keyid, tag)
	base.WriteString(`"@signature-params": ` + params)
	digest := eip4361.Digest(base.String())
	sig, err := wallet(digest[:])
	if err != nil {
		t.Fatal(err)
	}
	sig[64] += 27
	r.Header.Set("Signature-Input", "eth="+params)
	r.Header.Set("Signature", "eth=:"+base64.StdEncoding.EncodeToString(sig)+":")
}
