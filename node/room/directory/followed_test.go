package directory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

// A catalogServer serves entries as ai-catalog.json with an ETag, and as the list of a registry, two a page.
type catalogServer struct {
	*httptest.Server
	mu      sync.Mutex
	entries []string
	raw     string // instead of the catalog
	status  int    // instead of any answer; 0: none
	asked   map[string]int
}

func newCatalogServer(t *testing.T, entries ...string) *catalogServer {
	c := &catalogServer{entries: entries, asked: map[string]int{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *catalogServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tag := fmt.Sprintf(`"%x"`, len(strings.Join(c.entries, ",")+c.raw))
	switch {
	case c.status != 0:
		w.WriteHeader(c.status)
	case r.URL.Path == "/registry/agents":
		from, _ := strconv.Atoi(r.URL.Query().Get("pageToken"))
		end, token := min(from+2, len(c.entries)), ""
		if end < len(c.entries) {
			token = strconv.Itoa(end)
		}
		fmt.Fprintf(w, `{"items":[%s],"total":%d,"pageToken":%q}`, strings.Join(c.entries[from:end], ","), len(c.entries), token)
	case r.URL.Path != "/.well-known/ai-catalog.json":
		http.NotFound(w, r)
	case r.Header.Get("If-None-Match") == tag:
		w.WriteHeader(http.StatusNotModified)
		c.asked["same"]++
	case c.raw != "":
		fmt.Fprint(w, c.raw)
	default:
		w.Header().Set("ETag", tag)
		fmt.Fprintf(w, `{"specVersion":"1.0","host":{"displayName":"A catalog"},"entries":[%s]}`, strings.Join(c.entries, ","))
		c.asked["whole"]++
	}
}

func (c *catalogServer) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *catalogServer) count(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[what]
}

func claimedEntry(publisher, name, more string) string {
	return fmt.Sprintf(`{"identifier":"urn:air:%s:%s","displayName":"Zinnia %s","type":"application/mcp-server-card+json","url":"https://%s/card"%s}`,
		publisher, name, name, publisher, more)
}

func directories(h *nodetest.House) (out []protocol.ARDDirectory) {
	h.T.Helper()
	var all protocol.ARDDirectories
	h.Operator().Do(200, "GET", "/api/operator/directories", nil, &all)
	return all.Items
}

// readsDirectory waits until a directory was read, or tried, after a time.
func readsDirectory(h *nodetest.House, since time.Time) (d protocol.ARDDirectory) {
	h.T.Helper()
	require.Eventually(h.T, func() bool {
		all := directories(h)
		require.Len(h.T, all, 1)
		d = all[0]
		return d.CheckedAt != nil && !d.CheckedAt.Before(since.Truncate(time.Millisecond))
	}, time.Minute, 50*time.Millisecond)
	return d
}

// due makes the next reading of a directory due.
func due(h *nodetest.House, address string) (since time.Time) {
	h.T.Helper()
	nodetest.Tick()
	name := "directory " + address
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		since = tx.Now
		if _, err := tx.Jobs().DropNamed(ctx, storage.DirectoryJob, name); err != nil {
			return err
		}
		return tx.Enqueue(ctx, storage.Job{Kind: storage.DirectoryJob, Lane: name, Dedupe: name, Args: []byte(address)})
	}))
	return since
}

// TestDirectory_Followed: what a catalog has is found with its source, follows its changes, and goes with it.
func TestDirectory_Followed(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Start(t, change)
		h.PutProfile([]byte(`{"handle":"asha","name":"Asha","kind":"person","headline":"Grows zinnia flowers"}`))
		trust := `{"identity":"did:web:rain.example","identityType":"did","signature":"x..y","attestations":[{"type":"SOC2-Type2","uri":"https://rain.example/a"}]}`
		c := newCatalogServer(t,
			claimedEntry("rain.example", "rain", `,"tags":["weather"],"metadata":{"hasIdentity":true,"erc8004":"eip155:1:0xaa:1"},"trustManifest":`+trust),
			claimedEntry("hail.example", "hail", `,"source":"https://other.example/ard"`),
			claimedEntry("agent.localhost", "asha", ""), `{"identifier":"nonsense"}`)
		address := c.URL + protocol.ARDCatalogPath
		start := time.Now().Add(-time.Second)
		h.Operator().Do(204, "POST", "/api/operator/directories/follow", map[string]any{"url": c.URL}, nil)
		d := readsDirectory(h, start)
		require.Equal(t, []any{address, "catalog", "current", 2, 2, "", 0}, []any{d.URL, d.Kind, d.State, d.Entries, d.Refused, d.LastError, d.Attempts})
		require.NotEmpty(t, d.Tag)
		require.Greater(t, time.Until(d.NextAt), 20*time.Hour)

		found := h.ARDSearch(`{"query":{"text":"zinnia"}}`)
		require.Equal(t, []string{"asha", "rain", "hail"}, nodetest.Handles(found), "after this node's own")
		require.Empty(t, found.Results[0].Via)
		rain, err := json.Marshal(found.Results[1])
		require.NoError(t, err)
		require.JSONEq(t, `{"identifier":"urn:air:rain.example:rain","displayName":"Zinnia rain","type":"application/mcp-server-card+json",
			"url":"https://rain.example/card","tags":["weather"],"trustManifest":`+trust+`,"untrusted_content":true,"score":100,
			"source":"`+address+`","via":"`+address+`"}`, string(rain), "its trust manifest as it is, nothing that this node verifies")
		require.Equal(t, []string{"https://other.example/ard", address}, []string{found.Results[2].Source, found.Results[2].Via})
		for body, want := range map[string][]string{
			`"federation":"none"`:                             {"asha"},
			`"federation":"referrals"`:                        {"asha"},
			`"federation":"auto","pageSize":1`:                {"asha"},
			`"federation":"auto"`:                             {"asha", "rain", "hail"},
			`"query":{"text":"weather"}`:                      {"rain"},
			`"query":{"text":"zinnia","filter":{"tags":"x"}}`: {},
			`"query":{"text":"zinnia","filter":{"type":"application/mcp-server-card"}}`:                                 {"rain", "hail"},
			`"query":{"text":"zinnia","filter":{"publisher":"hail.example","type":"application/mcp-server-card+json"}}`: {"hail"},
			`"query":{"text":"zinnia","filter":{"metadata.hasIdentity":true}}`:                                          {},
			`"query":{"text":"zinnia","filter":{"metadata.hasIdentity":false}}`:                                         {"asha"},
		} {
			if !strings.Contains(body, "query") {
				body = `"query":{"text":"zinnia"},` + body
			}
			require.Equal(t, want, nodetest.Handles(h.ARDSearch("{"+body+"}")), body)
		}
		var walked []string
		for token, n := "", 0; n < 9; n++ {
			page := h.ARDSearch(fmt.Sprintf(`{"query":{"text":"zinnia"},"pageSize":1,"pageToken":%q}`, token))
			walked = append(walked, nodetest.Handles(page)...)
			if token = page.PageToken; token == "" {
				break
			}
		}
		require.Equal(t, []string{"asha", "rain", "hail"}, walked)
		require.Empty(t, found.Referrals, "a catalog is not a registry")

		require.Equal(t, 1, c.count("whole"))
		d = readsDirectory(h, due(h, address))
		require.Equal(t, []int{1, 1}, []int{c.count("whole"), c.count("same")})
		require.Equal(t, []any{"current", 2, 2}, []any{d.State, d.Entries, d.Refused})
		c.set(func() {
			c.entries = []string{claimedEntry("hail.example", "hail", `,"description":"now with thunder"`)}
		})
		d = readsDirectory(h, due(h, address))
		require.Equal(t, []int{2, 1, 1, 0}, []int{c.count("whole"), c.count("same"), d.Entries, d.Refused})
		require.Equal(t, []string{"asha", "hail"}, nodetest.Handles(h.ARDSearch(`{"query":{"text":"zinnia"}}`)))
		require.Equal(t, []string{"hail"}, nodetest.Handles(h.ARDSearch(`{"query":{"text":"thunder"}}`)))

		c.set(func() { c.status = 503 })
		d = readsDirectory(h, due(h, address))
		require.Equal(t, []any{"failing", 1, 1, "it answered 503"}, []any{d.State, d.Attempts, d.Entries, d.LastError})
		require.Less(t, time.Until(d.NextAt), time.Hour)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			s, err := tx.ARDSources().ByURL(ctx, address)
			require.NoError(t, err)
			s.OKAt = tx.Now.Add(-8 * 24 * time.Hour)
			return tx.ARDSources().Put(ctx, s)
		}))
		require.Equal(t, "gone", directories(h)[0].State)
		require.NotNil(t, h.ARDSearch(`{"query":{"text":"thunder"}}`).Results[0].GoneSince)

		h.Operator().Do(204, "PUT", "/api/operator/peers/policy", map[string]any{"host": "hail.example", "policy": "silence"}, nil)
		require.Empty(t, nodetest.Handles(h.ARDSearch(`{"query":{"text":"thunder"}}`)), "what the operator silences is not found")
		c.set(func() { c.status = 0 })
		nodetest.Tick()
		start = time.Now()
		h.Operator().Do(204, "POST", "/api/operator/directories/follow", map[string]any{"url": address}, nil)
		d = readsDirectory(h, start)
		require.Equal(t, []any{"current", 0, 1}, []any{d.State, d.Entries, d.Refused})
		h.Operator().Do(204, "PUT", "/api/operator/peers/policy", map[string]any{"host": "hail.example", "policy": "none"}, nil)
		nodetest.Tick()
		start = time.Now()
		h.Operator().Do(204, "POST", "/api/operator/directories/follow", map[string]any{"url": address}, nil)
		readsDirectory(h, start)
		require.Equal(t, []string{"hail"}, nodetest.Handles(h.ARDSearch(`{"query":{"text":"thunder"}}`)))

		h.Operator().Do(204, "POST", "/api/operator/directories/unfollow", map[string]any{"url": address}, nil)
		require.Empty(t, nodetest.Handles(h.ARDSearch(`{"query":{"text":"thunder"}}`)))
		require.Empty(t, directories(h))
		h.Operator().Do(404, "POST", "/api/operator/directories/unfollow", map[string]any{"url": address}, nil)
	})
}

// TestDirectory_Registry: the list of a registry is read page by page, and the registry is referred to. One without a list is
// read by the catalog of its host.
func TestDirectory_Registry(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t)
	c := newCatalogServer(t)
	for i := range 5 {
		c.entries = append(c.entries, claimedEntry("rain.example", fmt.Sprint("rain-", i), ""))
	}
	follow := func(base string) protocol.ARDDirectory {
		start := time.Now()
		h.Operator().Do(204, "POST", "/api/operator/directories/follow", map[string]any{"url": base}, nil)
		return readsDirectory(h, start.Add(-time.Second))
	}
	d := follow(c.URL + "/registry/search")
	require.Equal(t, []any{c.URL + "/registry", "registry", "current", 5}, []any{d.URL, d.Kind, d.State, d.Entries})
	want := []protocol.ARDReferral{{Identifier: "urn:air:agent.localhost:registry:ard", DisplayName: strings.TrimPrefix(c.URL, "http://"),
		Type: protocol.ARDRegistry, URL: c.URL + "/registry/search"}}
	require.Equal(t, want, h.ARDSearch(`{"query":{"text":"zinnia"},"federation":"referrals"}`).Referrals)
	require.Equal(t, want, h.ARDSearch(`{"query":{"text":"zinnia"}}`).Referrals)
	require.Empty(t, h.ARDSearch(`{"query":{"text":"zinnia"},"federation":"none"}`).Referrals)
	require.Len(t, h.ARDSearch(`{"query":{"text":"zinnia"}}`).Results, 5)
	h.Operator().Do(204, "POST", "/api/operator/directories/unfollow", map[string]any{"url": c.URL + "/registry"}, nil)
	d = follow(c.URL + "/ard")
	require.Equal(t, []any{c.URL + "/ard", "registry", "current", 5}, []any{d.URL, d.Kind, d.State, d.Entries})
}

// TestDirectory_Hostile: a document that is none, or too large, changes nothing; an entry that breaks a rule is not taken.
func TestDirectory_Hostile(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t)
	c := newCatalogServer(t, claimedEntry("rain.example", "rain", ""))
	address := c.URL + protocol.ARDCatalogPath
	start := time.Now().Add(-time.Second)
	h.Operator().Do(204, "POST", "/api/operator/directories/follow", map[string]any{"url": address}, nil)
	readsDirectory(h, start)
	many := make([]string, 2001)
	for i := range many {
		many[i] = claimedEntry("many.example", fmt.Sprint("n", i), "")
	}
	catalog := func(entries string) string { return `{"specVersion":"1.0","entries":[` + entries + `]}` }
	good := claimedEntry("rain.example", "rain", "")
	for _, b := range []struct {
		name, raw, state string
		entries, refused int
	}{
		{"no JSON", `<html>`, "failing", 1, 0},
		{"another document", `{"hello":"world"}`, "failing", 1, 0},
		{"entries that are no list", `{"specVersion":"1.0","entries":{}}`, "failing", 1, 0},
		{"a member twice", `{"specVersion":"1.0","specVersion":"1.0","entries":[]}`, "failing", 1, 0},
		{"deep", catalog(strings.Repeat("[", 100) + strings.Repeat("]", 100)), "failing", 1, 0},
		{"more than 4 MiB", catalog(`{"x":"` + strings.Repeat("x", 5<<20) + `"}`), "failing", 1, 0},
		{"twice", catalog(good + "," + good), "current", 1, 1},
		{"an entry that is no object", catalog(good + `,7,null,"x",[]`), "current", 1, 4},
		{"a large entry", catalog(good + "," + claimedEntry("x.example", "x", `,"metadata":{"x":"`+strings.Repeat("x", 17<<10)+`"}`)), "current", 1, 1},
		{"no identifier", catalog(good + `,{"displayName":"Zinnia","type":"x","url":"https://x.example"}`), "current", 1, 1},
		{"another address", catalog(good + "," + strings.Replace(claimedEntry("x.example", "x", ""), "https:", "javascript:", 1)), "current", 1, 1},
		{"a private address", catalog(good + "," + strings.Replace(claimedEntry("x.example", "x", ""), "x.example/card", "10.0.0.1/", 1)), "current", 1, 1},
		{"both url and data", catalog(good + "," + claimedEntry("x.example", "x", `,"data":{"a":1}`)), "current", 1, 1},
		{"a direction mark", catalog(good + "," + claimedEntry("x.example", "x", `,"description":"a\u202eb"`)), "current", 1, 1},
		{"a direction mark within", catalog(good + "," + claimedEntry("x.example", "x", `,"metadata":{"a":"a\u202eb"}`)), "current", 1, 1},
		{"a manifest of nobody", catalog(good + "," + claimedEntry("x.example", "x", `,"trustManifest":{}`)), "current", 1, 1},
		{"this node's", catalog(good + "," + claimedEntry("agent.localhost", "agent:asha", "")), "current", 1, 1},
		{"this node's, in capitals", catalog(good + "," + claimedEntry("Agent.LocalHost", "agent:asha", "")), "current", 1, 1},
		{"a document with more than 2000", catalog(strings.Join(many, ",")), "current", 2000, 1},
		{"none", catalog(""), "current", 0, 0},
	} {
		c.set(func() { c.raw = b.raw })
		d := readsDirectory(h, due(h, address))
		require.Equal(t, []any{b.state, b.entries}, []any{d.State, d.Entries}, "%s: %s", b.name, d.LastError)
		if b.state == "current" {
			require.Equal(t, b.refused, d.Refused, b.name)
		} else {
			require.NotEmpty(t, d.LastError)
		}
	}
}

// TestDirectory_Private: no address that is not public is taken, nor dialled.
func TestDirectory_Private(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t, func(c *node.Config) { c.Dev, c.AllowPrivatePeers = false, false })
	o := h.Operator()
	for _, address := range []string{"http://127.0.0.1:8080/ai-catalog.json", "https://127.0.0.1/ai-catalog.json", "https://10.0.0.1/ard", "https://[::1]/",
		"https://localhost/ard", "https://169.254.169.254/latest.json", "https://a.example:8443/ard", "https://u:p@a.example/ard", "ftp://a.example/x.json", "ard"} {
		o.Do(400, "POST", "/api/operator/directories/follow", map[string]any{"url": address}, nil)
	}
	require.Empty(t, directories(h))
	c := newCatalogServer(t, claimedEntry("rain.example", "rain", ""))
	address := c.URL + protocol.ARDCatalogPath
	require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.ARDSources().Add(ctx, storage.ARDSource{URL: address, Host: strings.TrimPrefix(c.URL, "http://")})
	}))
	d := readsDirectory(h, due(h, address))
	require.Equal(t, []any{"failing", 0, 0}, []any{d.State, d.Entries, c.count("whole")})
	require.Contains(t, d.LastError, "want https")
}
