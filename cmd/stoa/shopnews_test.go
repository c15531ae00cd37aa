package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"

	"github.com/stretchr/testify/require"
)

// TestShopNews opens a shop on the first of three nodes: the others have it and its items in their feeds, with its node,
// within two seconds, and no longer when it closes.
func TestShopNews(t *testing.T) {
	t.Parallel()
	port := freePorts(t, 3)
	nodes := []*server{newServerProcess(t, port), newServerProcess(t, port+10), newServerProcess(t, port+20)}
	admin := func(s *server, stdin string, args ...string) string {
		t.Helper()
		out, errs, code := stoa(t, stdin, append(append([]string{"admin"}, args...), "--data", s.data)...)
		require.Equal(t, 0, code, errs)
		return out
	}
	first := nodes[0]
	admin(first, `{"handle":"bazaar","name":"Bazaar","kind":"business","headline":"Cloth of all kinds.","listed":false}`, "profile", "put")
	token := strings.TrimSpace(admin(first, "", "token", "create", "bazaar", "--ttl", "24h"))
	for _, s := range nodes[1:] {
		admin(s, "", "peer", "follow", first.url)
		require.Eventually(t, func() bool { return strings.Contains(admin(s, "", "peer", "list"), "accepted") }, time.Minute, 100*time.Millisecond, "%s", &s.log)
	}
	admin(nodes[2], "", "peer", "follow", nodes[1].url)
	put := func(path string, v any) {
		t.Helper()
		body := must.Get(json.Marshal(v))(t)
		r := must.Get(http.NewRequest(http.MethodPut, first.url+path, strings.NewReader(string(body))))(t)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		res := must.Get(http.DefaultClient.Do(r))(t)
		require.NoError(t, res.Body.Close())
		require.Equal(t, 200, res.StatusCode)
	}
	open := func(listed bool) {
		t.Helper()
		put("/api/owner/profile", map[string]any{"handle": "bazaar", "name": "Bazaar", "kind": "business", "headline": "Cloth of all kinds.", "listed": listed})
	}
	feed := func(s *server, query string) (all []string) {
		page, status := get[protocol.Page[protocol.FeedItem]](t, s.url+"/api/public/feed?types=merchant_joined,listing"+query)
		require.Equal(t, 200, status)
		for _, i := range page.Items {
			if s != first {
				require.Equal(t, strings.TrimPrefix(first.url, "http://"), *i.Node)
				require.True(t, strings.HasPrefix(i.Subject.URL, first.url+"/@bazaar"), i.Subject.URL)
			}
			for _, color := range []string{"Blue", "Red", "Green"} { // they have one time, and no order
				i.Summary = strings.Replace(i.Summary, color, "Some", 1)
			}
			all = append(all, i.Summary)
		}
		slices.Sort(all)
		return all
	}
	shows := func(want ...string) {
		t.Helper()
		began := time.Now()
		for _, s := range nodes[1:] {
			require.Eventually(t, func() bool { return strings.Join(feed(s, ""), "|") == strings.Join(want, "|") }, time.Minute, 10*time.Millisecond,
				"%v\n%s", feed(s, ""), &s.log)
		}
		t.Logf("%d items everywhere after %v", len(want), time.Since(began).Round(time.Millisecond))
	}
	put("/api/owner/merchant", map[string]any{"handle": "bazaar", "items": []map[string]any{
		{"sku": "a", "name": "Blue cloth"}, {"sku": "b", "name": "Red cloth"}, {"sku": "c", "name": "Green cloth"}}})
	require.Empty(t, feed(first, ""), "it is not open")
	open(true)
	all := []string{"Bazaar joined. Cloth of all kinds.", "Bazaar offers Some cloth. And 2 more within a day."}
	shows(all...)
	require.Len(t, feed(first, "&local=true"), 4)
	for _, s := range nodes[1:] {
		require.Empty(t, feed(s, "&local=true"))
		res := must.Get(http.Get(s.url + "/feed.atom?types=listing"))(t)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, errors.Join(err, res.Body.Close()))
		require.Contains(t, string(text), " cloth. And 2 more within a day.")
		require.Contains(t, string(text), first.url+"/@bazaar")
	}
	shops := func(s *server, query string) []protocol.MerchantEntry {
		page, status := get[protocol.Page[protocol.MerchantEntry]](t, s.url+"/api/public/merchants"+query)
		require.Equal(t, 200, status)
		return page.Items
	}
	lists := func(n int) {
		t.Helper()
		for _, s := range nodes[1:] {
			require.Eventually(t, func() bool { return len(shops(s, "?q=red")) == n }, time.Minute, 50*time.Millisecond, "%s", &s.log)
		}
	}
	lists(1)
	found := shops(nodes[2], "?q=red")[0]
	require.Equal(t, []any{"bazaar", strings.TrimPrefix(first.url, "http://"), first.url + "/@bazaar", first.url + "/api/public/agents/bazaar"},
		[]any{found.Handle, *found.Node, found.Page, found.Profile})
	require.Empty(t, shops(nodes[2], "?q=red&local=true"))
	require.Nil(t, shops(first, "?q=red")[0].Node)
	open(false)
	shows()
	lists(0)
	open(true)
	shows(all...)
	lists(1)
}
