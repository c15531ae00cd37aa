package wellknown

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func TestWebfinger_Resources(t *testing.T) {
	t.Parallel()
	_, h := node(t)
	for _, c := range []struct {
		resource string // as in the query, percent-encoding included
		status   int
		subject  string
	}{
		{"acct:asha@n1.example", 200, "acct:asha@n1.example"},
		{"acct:Asha@N1.Example", 200, "acct:asha@n1.example"},
		{"acct%3Aasha%40n1.example", 200, "acct:asha@n1.example"},
		{"acct%3aasha%2540n1.example", 200, "acct:asha@n1.example"},
		{"acct:%2561sha@n1.example", 200, "acct:asha@n1.example"},
		{"ACCT:asha@n1.example", 200, "acct:asha@n1.example"},
		{"https://n1.example/@asha", 200, "acct:asha@n1.example"},
		{"https%3A%2F%2Fn1.example%2F%40asha", 200, "acct:asha@n1.example"},
		{"https://N1.example/ap/agents/asha", 200, "acct:asha@n1.example"},
		{"https://n1.example", 200, "https://n1.example/"},
		{"https://n1.example/", 200, "https://n1.example/"},
		{"https://n1.example/ap/node", 200, "acct:n1.example@n1.example"},
		{"https://n1.example/ap/board", 200, "acct:board@n1.example"},
		{"acct:feed@n1.example", 200, "acct:feed@n1.example"},
		{"acct:anon@n1.example", 200, "acct:anon@n1.example"},
		{"https://n1.example/ap/anon", 200, "acct:anon@n1.example"},

		{"", 400, ""},
		{"asha", 400, ""},
		{"acct:asha", 400, ""},
		{"acct:%25zz@n1.example", 400, ""},
		{"https://n1.example/%25zz", 400, ""},

		{"acct:asha@other.example", 404, ""},
		{"acct:asha@n1.example:443", 404, ""},
		{"acct:asha@n1.example@other.example", 404, ""},
		{"acct:node@n1.example", 404, ""},
		{"acct:nobody@n1.example", 404, ""},
		{"acct:@n1.example", 404, ""},
		{"acct:../../x@n1.example", 404, ""},
		{"http://n1.example/@asha", 404, ""},
		{"https://other.example/@asha", 404, ""},
		{"https://asha@n1.example/", 404, ""},
		{"https://n1.example/@asha?x=1", 404, ""},
		{"https://n1.example/@asha%23x", 404, ""},
		{"https://n1.example/ap/agents/board", 404, ""},
		{"https://n1.example/ap/agents/asha/inbox", 404, ""},
		{"https://n1.example/@asha/board", 404, ""},
		{"mailto:asha@n1.example", 404, ""},
	} {
		rec := get(h, "/.well-known/webfinger?resource="+c.resource)
		require.Equal(t, c.status, rec.Code, c.resource)
		require.Equal(t, "*", rec.Header().Get("Access-Control-Allow-Origin"))
		if c.status != http.StatusOK {
			require.Equal(t, "application/problem+json", rec.Header().Get("Content-Type"))
			continue
		}
		d := must.JSON[jrd](rec.Body.Bytes())(t)
		require.Equal(t, c.subject, d.Subject, c.resource)
		require.Equal(t, "application/jrd+json", rec.Header().Get("Content-Type"))
	}
}

func TestWebfinger_Query(t *testing.T) {
	t.Parallel()
	_, h := node(t)
	rels := func(query string) []string {
		rec := get(h, "/.well-known/webfinger?resource=acct:asha@n1.example"+query)
		require.Equal(t, http.StatusOK, rec.Code)
		d := must.JSON[jrd](rec.Body.Bytes())(t)
		require.NotNil(t, d.Links, "an empty list, not null")
		found := []string{}
		for _, l := range d.Links {
			found = append(found, l.Rel)
		}
		return found
	}
	require.Equal(t, []string{"self", pageRel}, rels(""))
	require.Equal(t, []string{"self"}, rels("&rel=self"))
	require.Equal(t, []string{"self", pageRel}, rels("&rel=self&rel="+pageRel))
	require.Empty(t, rels("&rel=avatar"))

	require.Equal(t, http.StatusBadRequest, get(h, "/.well-known/webfinger?resource=acct:asha@n1.example&resource=acct:ravi@n1.example").Code)
	require.Equal(t, http.StatusBadRequest, get(h, "/.well-known/webfinger?resource=acct:asha@n1.example;x").Code)
}

func FuzzResource(f *testing.F) {
	for _, s := range []string{"acct:asha@n1.example", "https://n1.example/@asha", "https://n1.example/ap/node", "acct:%61@n1.example", ":"} {
		f.Add(s)
	}
	u := must.Get(url.Parse(base))(f)
	a := &agents{}
	w := must.Get(New(Config{Base: u, Directory: a, Keys: a}))(f)
	f.Fuzz(func(t *testing.T, s string) {
		name, err := w.resource(s)
		require.Equal(t, err != nil, name == "")
	})
}
