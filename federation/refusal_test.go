package federation

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
)

// refusals drives each fault of the table in FEDERATION.md, by its text there.
var refusals = map[string]func(w *world) *http.Request{
	"there is no such inbox": func(w *world) *http.Request {
		r := w.request(alice, schemeCavage, view(alice, 1))
		r.URL.Path = "/ap/nobody/inbox"
		return r
	},
	"another media type, or a `Content-Encoding`": func(w *world) *http.Request {
		r := w.request(alice, schemeCavage, view(alice, 1))
		r.Header.Set("Content-Type", "application/json")
		return r
	},
	"larger than its limit": func(w *world) *http.Request {
		return w.request(alice, schemeCavage, []byte(strings.Repeat(" ", activity.MaxBody+1)))
	},
	"the body does not arrive whole": func(w *world) *http.Request {
		r := w.request(alice, schemeCavage, view(alice, 1))
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"id":`), iotest.ErrReader(io.ErrUnexpectedEOF)))
		return r
	},
	"no JSON, a limit of its shape, no id, not one actor": func(w *world) *http.Request { return w.request(alice, schemeCavage, []byte(`[{"id":"x"}]`)) },
	"no signature": func(w *world) *http.Request {
		r := w.request(alice, schemeCavage, view(alice, 1))
		r.Header.Del("Signature")
		return r
	},
	"the signature, its time or the digest is not valid": func(w *world) *http.Request {
		r := w.request(alice, schemeCavage, view(alice, 1))
		r.Header.Set("Date", "Fri, 20 Nov 2026 10:00:01 GMT")
		return r
	},
	"there is no such key at its address": func(w *world) *http.Request {
		w.served[bob] = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotFound) }
		return w.request(bob, schemeCavage, view(bob, 1))
	},
	"the host of the key does not answer, or with 429 or 5xx; too many keys are being fetched": func(w *world) *http.Request {
		w.served[bob] = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTooManyRequests) }
		return w.request(bob, schemeCavage, view(bob, 1))
	},
	"the signer is not the actor, and there is no proof by the actor": func(w *world) *http.Request {
		return w.request(mallory, schemeCavage, view(alice, 1))
	},
	"an id of another origin, another author, or an actor of this node": func(w *world) *http.Request {
		return w.request(alice, schemeCavage, []byte(`{"id":"https://evil.example/v/1","type":"View","actor":"`+alice+`","object":"x"}`))
	},
	"the host or actor is blocked": func(w *world) *http.Request {
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Blocks().Put(ctx, nodeBlock(protocol.BlockActor, mallory))
		}))
		return w.request(mallory, schemeCavage, view(mallory, 1))
	},
	"over the rate of the domain": func(w *world) *http.Request {
		require.True(w.t, w.f.limits.take("evil.example", 500, w.tick.now()))
		return w.request(mallory, schemeCavage, view(mallory, 1))
	},
	"too much waits to be processed": func(w *world) *http.Request {
		w.f.backlog.at, w.f.backlog.bytes = w.tick.now(), maxBacklog
		return w.request(alice, schemeCavage, view(alice, 1))
	},
	"a duplicate, an unknown type, what a rule ignores": func(w *world) *http.Request {
		require.Equal(w.t, http.StatusAccepted, w.deliver(alice, view(alice, 1)))
		return w.request(alice, schemeCavage, view(alice, 1))
	},
}

// FEDERATION.md says which status each fault has, and whether the sender shall repeat the delivery. A status that says "later" is never that of
// a fault that stays, and the other way round: Mastodon repeats after 401, 408, 429 and 5xx.
func TestRefusals(t *testing.T) {
	t.Parallel()
	doc := must.Get(os.ReadFile("../FEDERATION.md"))(t)
	_, text, found := strings.Cut(string(doc), "| fault | status |")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n\n")
	rows := regexp.MustCompile(`(?m)^\| (.+) \| (\d+) \| (.+) \|$`).FindAllStringSubmatch(text, -1)
	require.Len(t, rows, len(refusals))
	for _, row := range rows {
		fault, kind := row[1], row[3]
		status := must.Get(strconv.Atoi(row[2]))(t)
		t.Run(fault, func(t *testing.T) {
			require.Contains(t, refusals, fault)
			w := newWorld(t)
			r, res := refusals[fault](w), httptest.NewRecorder()
			r.Host, r.RequestURI = r.URL.Host, r.URL.RequestURI()
			w.net.hosts["u.example"].ServeHTTP(res, r)
			require.Equal(t, status, res.Code, res.Body)
			require.Equal(t, status == 401, res.Header().Get("Accept-Signature") != "")
			require.Equal(t, status == 429 || status == 503, res.Header().Get("Retry-After") != "")
			later := status == 408 || status == 429 || status >= 500
			require.Equal(t, later, kind == "temporary", kind)
			if !later && status != 401 && status != 202 {
				require.Equal(t, "final", kind)
			}
		})
	}
}
