package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// TestCrash_Postgres crashes PostgreSQL, and in turn one of four processes of a node
// on it, at random points under load. Every write is repeated under its idempotency
// key until it is acknowledged. In the end each is there exactly once; the numbers of
// the log have no gap and meant the same each time they were read; and who followed
// the log, the stream and the news with a cursor, at whichever process answered, has
// missed nothing. A crash ends the connections of every test of the server, so it
// runs where STOA_TEST_POSTGRES_CRASH says that the server is for it alone.
func TestCrash_Postgres(t *testing.T) {
	if os.Getenv("STOA_TEST_POSTGRES_CRASH") == "" {
		return // make soak sets it
	}
	random, rounds := rand.New(rand.NewPCG(storagetest.Seed(t), 3)), storagetest.Rounds(t, 8)
	database := storagetest.PostgresURL(t)
	u := must.Get(url.Parse(database))(t)
	plain := must.Get(sql.Open("pgx", database))(t)
	defer plain.Close()
	must.Get(plain.Exec(`ALTER DATABASE ` + strings.TrimPrefix(u.Path, "/") + ` SET synchronous_commit = on`))(t)

	const processes = 4
	port := freePorts(t, processes)
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	nodes := []*server{newServerProcess(t, port, "--database", database)}
	for i := 1; i < processes; i++ {
		nodes = append(nodes, newServerProcess(t, port+10*i, "--database", database, "--base-url", base, "--data", nodes[0].data))
	}
	of := []string{"--data", nodes[0].data, "--database", database}
	admin := func(stdin string, args ...string) string {
		t.Helper()
		out, errs, code := stoa(t, stdin, append(append([]string{"admin"}, args...), of...)...)
		require.Equal(t, 0, code, errs)
		return out
	}
	var lives sync.Mutex // guards alive
	alive := []int{0, 1, 2, 3}
	// Each request goes to any process that is up, under the address of the node.
	anywhere := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			lives.Lock()
			i := alive[rand.IntN(len(alive))]
			lives.Unlock()
			return new(net.Dialer).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port+10*i))
		}}}
	as := func(handle string) client.Options {
		file := filepath.Join(t.TempDir(), handle)
		admin(fmt.Sprintf(`{"handle":%q,"name":"Load","kind":"person"}`, handle), "profile", "put")
		_, errs, code := stoa(t, "", "keygen", file)
		require.Equal(t, 0, code, errs)
		admin("", "key", "add", handle, file)
		return client.Options{Key: readPair(t, file), HTTP: anywhere}
	}
	writer := as("load")
	asker := must.Get(client.New(base, as("asker")))(t)
	question := post(t, asker, protocol.NewPost{Kind: protocol.Offer, Title: "Asked before the cut", Body: "Who answers?"})

	var mu sync.Mutex // guards the maps
	acknowledged, streamed, told := map[string]bool{}, map[string]bool{}, map[string]bool{}
	logged := map[int64]string{} // number → post, "" for one that is erased
	complete := func(of map[string]bool) bool {
		mu.Lock()
		defer mu.Unlock()
		for id := range acknowledged {
			if !of[id] {
				return false
			}
		}
		return true
	}
	life, end := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	reader := func(read func() error) {
		readers.Go(func() {
			for life.Err() == nil {
				if read() != nil {
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
	ask := func(path string, header ...string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(life, "GET", base+path, nil)
		if err != nil {
			return nil, err
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := anywhere.Do(req)
		if err == nil && res.StatusCode != 200 {
			res.Body.Close()
			err = fmt.Errorf("%s: %s", path, res.Status)
		}
		return res, err
	}
	place := ""
	reader(func() error {
		res, err := ask("/api/public/feed/stream", "Last-Event-ID", place)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				place = id
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var item protocol.FeedItem
				if err := json.Unmarshal([]byte(data), &item); err != nil {
					return err
				}
				mu.Lock()
				streamed[item.Subject.ID] = true
				mu.Unlock()
			}
		}
		return nil
	})
	cursor := ""
	reader(func() error {
		args := map[string]any{}
		if cursor != "" {
			args["after"] = cursor
		}
		res, err := asker.Do(life, client.Call{Operation: "whats_new", Args: args})
		if err != nil {
			return err
		}
		var d protocol.Digest
		if err := json.Unmarshal(res.Body, &d); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, p := range d.Replies {
			if told[p.ID] {
				t.Errorf("told of %s again", p.ID)
			}
			told[p.ID] = true
		}
		cursor = d.Next
		return nil
	})
	after := int64(0)
	reader(func() error {
		from := after
		if rand.IntN(2) == 0 {
			from -= rand.Int64N(after+1) / 2 // what was read before
		}
		res, err := ask(fmt.Sprintf("/ap/board/log?after=%d", from))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		var page struct {
			Items []struct {
				Seq    int64 `json:"stoa:seq"`
				Object struct {
					Object struct{ ID string }
				}
			} `json:"orderedItems"`
		}
		if err := json.NewDecoder(res.Body).Decode(&page); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i, e := range page.Items {
			if e.Seq != from+int64(i)+1 {
				t.Errorf("entry %d after %d is number %d", i, from, e.Seq)
			}
			if known, ok := logged[e.Seq]; ok && known != e.Object.Object.ID {
				t.Errorf("number %d was %s and is %s", e.Seq, known, e.Object.Object.ID)
			}
			logged[e.Seq] = e.Object.Object.ID
			after = max(after, e.Seq)
		}
		return nil
	})
	require.Eventually(t, func() bool { // a stream without a place begins with what comes next
		post(t, asker, protocol.NewPost{Kind: protocol.Offer, Title: "Is the stream open?", Body: "It is."})
		mu.Lock()
		defer mu.Unlock()
		return len(streamed) > 0
	}, time.Minute, 100*time.Millisecond)

	const writers = 8
	each := 25 * rounds
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			writeAll(t, base, writer, fmt.Sprintf("crash-%d", i), question.ID, each, func(p protocol.Post) {
				mu.Lock()
				defer mu.Unlock()
				acknowledged[p.ID] = true
			})
		})
	}
	for round := range 2 * rounds {
		time.Sleep(time.Duration(50+random.IntN(350)) * time.Millisecond)
		if round%2 == 0 {
			crashPostgres(t, plain)
			continue
		}
		victim := random.IntN(processes)
		lives.Lock()
		alive = slices.DeleteFunc(alive, func(n int) bool { return n == victim })
		lives.Unlock()
		nodes[victim].kill()
		nodes[victim].start()
		lives.Lock()
		alive = append(alive, victim)
		lives.Unlock()
	}
	group.Wait()
	require.Len(t, acknowledged, writers*each)
	inLog := func() map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		ids := map[string]bool{}
		for _, uri := range logged {
			ids[uri[strings.LastIndexByte(uri, '/')+1:]] = true
		}
		return ids
	}
	for name, of := range map[string]func() map[string]bool{
		"stream": func() map[string]bool { return streamed }, "news": func() map[string]bool { return told }, "log": inLog,
	} {
		require.Eventually(t, func() bool { return complete(of()) }, time.Minute, 50*time.Millisecond, "the %s misses some", name)
	}
	end()
	readers.Wait()
	want := map[string]int{}
	for i := range writers * each {
		want[fmt.Sprintf("crash-%d-%d", i/each, i%each)] = 1
	}
	for _, s := range nodes {
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Equal(c, want, countTitles(t, s.url)) }, time.Minute, 100*time.Millisecond, "%s", &s.log)
	}
	require.Len(t, inLog(), len(logged), "each post has one number")
	for _, s := range nodes {
		s.kill()
	}
	require.Equal(t, "ok\n", admin("", "check"))
}

// crashPostgres kills a process of the server: it ends all others, recovers from its
// log and continues. It returns when the server answers.
func crashPostgres(t *testing.T, admin *sql.DB) {
	var pid int
	require.NoError(t, admin.QueryRow(`SELECT pg_backend_pid()`).Scan(&pid))
	p := must.Get(os.FindProcess(pid))(t)
	require.NoError(t, p.Kill())
	require.Eventually(t, func() bool {
		var now int
		return admin.QueryRow(`SELECT pg_backend_pid()`).Scan(&now) == nil && now != pid
	}, time.Minute, 10*time.Millisecond)
}
