package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// server is one `stoa serve` process that is killed and started again.
type server struct {
	t       testing.TB
	program string
	url     string
	data    string
	args    []string
	mu      sync.Mutex // guards command
	command *exec.Cmd
	log     tail
}

func newServerProcess(t testing.TB, port int, more ...string) *server {
	t.Helper()
	return newServerProcessOf(t, filepath.Join(bin(t), "stoa"), port, more...)
}

func newServerProcessOf(t testing.TB, program string, port int, more ...string) *server {
	t.Helper()
	s := &server{t: t, program: program, url: fmt.Sprintf("http://127.0.0.1:%d", port), data: t.TempDir()}
	s.args = []string{"serve", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--operator-listen=", "--data", s.data,
		"--allow-private-peers", "--write-rate", "100000", "--identity-rate", "100000", "--read-rate", "100000"}
	s.args = append(s.args, more...)
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.command = exec.Command(s.program, s.args...)
	s.command.Stderr = &s.log
	require.NoError(s.t, s.command.Start())
	require.Eventually(s.t, func() bool {
		res, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == 200
	}, time.Minute, 10*time.Millisecond, "%s", &s.log)
}

// kill ends the process as a power cut would: no signal that it could handle.
func (s *server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.command.Process.Kill()
	s.command.Wait()
}

// TestCrash kills both nodes at random points under load and starts them again.
// Every write is repeated under its idempotency key until it is acknowledged.
// In the end each one is exactly once on the node it was made on and once
// on the node that follows it: nothing acknowledged is lost, nothing doubled.
func TestCrash(t *testing.T) {
	t.Parallel()
	port := freePorts(t, 2)
	a, b := newServerProcess(t, port), newServerProcess(t, port+10)
	t.Run("served once", func(t *testing.T) {
		_, errs, code := stoa(t, "", "serve", "--data", a.data, "--listen", fmt.Sprintf("127.0.0.1:%d", port+1), "--operator-listen=")
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, "a node runs on the data directory "+a.data)
	})
	handle, file := "load", filepath.Join(t.TempDir(), "load.jwk")
	_, errs, code := stoa(t, `{"handle":"load","name":"Load","kind":"person"}`, "admin", "profile", "put", "--data", a.data)
	require.Equal(t, 0, code, errs)
	_, errs, code = stoa(t, "", "keygen", file)
	require.Equal(t, 0, code, errs)
	_, errs, code = stoa(t, "", "admin", "key", "add", handle, file, "--data", a.data)
	require.Equal(t, 0, code, errs)
	_, errs, code = stoa(t, "", "admin", "peer", "follow", a.url, "--data", b.data)
	require.Equal(t, 0, code, errs)
	require.Eventually(t, func() bool {
		out, _, _ := stoa(t, "", "admin", "peer", "list", "--data", b.data)
		return strings.Contains(out, "accepted")
	}, time.Minute, 100*time.Millisecond, "%s", &b.log)

	t.Run("killed between commit and delivery", func(t *testing.T) {
		b.kill()
		c := must.Get(client.New(a.url, client.Options{Key: readPair(t, file)}))(t)
		p := post(t, c, protocol.NewPost{Kind: protocol.Offer, Title: "Just before the cut", Body: "Acknowledged, not delivered."})
		a.kill()
		b.start()
		require.Nil(t, findURI(board(t, b.url, ""), p.URI))
		a.start()
		arrives(t, b.url, p.URI, 3*time.Minute) // peers that were killed are tried again later and later
		require.Len(t, board(t, b.url, "&q=cut"), 1, "once")
	})

	const writers = 6
	random, rounds := rand.New(rand.NewPCG(storagetest.Seed(t), 1)), storagetest.Rounds(t, 8)
	each := 8 * rounds
	titles := make(chan string, writers*each)
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			writeAll(t, a.url, client.Options{Key: readPair(t, file)}, fmt.Sprintf("crash-%d", i), "", each, func(p protocol.Post) { titles <- p.Title })
		})
	}
	killer := make(chan struct{})
	go func() {
		defer close(killer)
		for i := range rounds {
			time.Sleep(time.Duration(50+random.IntN(350)) * time.Millisecond)
			victim := a
			if i%2 == 1 {
				victim = b
			}
			victim.kill()
			time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
			victim.start()
		}
	}()
	group.Wait()
	<-killer
	close(titles)
	want := map[string]int{}
	for title := range titles {
		want[title] = 1
	}
	require.Len(t, want, writers*each)
	require.Equal(t, want, countTitles(t, a.url))
	var got map[string]int
	require.Eventually(t, func() bool {
		got = countTitles(t, b.url)
		return len(got) >= len(want)
	}, 3*time.Minute, 200*time.Millisecond, "not all came to B\n%s", &b.log) // peers that were killed are tried again later and later
	require.Equal(t, want, got)
	for _, s := range []*server{a, b} {
		s.kill()
		out, errs, code := stoa(t, "", "admin", "check", "--data", s.data)
		require.Equal(t, 0, code, errs)
		require.Equal(t, "ok\n", out)
	}
}

func readPair(t testing.TB, file string) key.Pair {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	pair, err := key.ParsePair(raw)
	if err != nil {
		t.Error(err)
	}
	return pair
}

// writeAll posts n signed posts, replies to a post where one is named, each until
// it is acknowledged.
func writeAll(t testing.TB, node string, o client.Options, name, to string, n int, done func(protocol.Post)) {
	c, err := client.New(node, o)
	if err != nil {
		t.Error(err)
		return
	}
	deadline := time.Now().Add(3 * time.Minute)
	for i := range n {
		title := fmt.Sprintf("%s-%d", name, i)
		for {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			args := map[string]any{"kind": "offer", "title": title, "body": "Written under fire."}
			if to != "" {
				args["inReplyTo"] = to
			}
			res, err := c.Do(ctx, client.Call{Operation: "post_to_board", IdempotencyKey: title, Args: args})
			cancel()
			if err == nil {
				var p protocol.Post
				if err := json.Unmarshal(res.Body, &p); err != nil || p.Title != title {
					t.Errorf("answer to %s: %s", title, res.Body)
				}
				done(p)
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("%s was not acknowledged in time: %v", title, err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// countTitles walks a whole board and counts the titles of the load.
func countTitles(t testing.TB, node string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	after := ""
	for {
		page, status := get[protocol.Page[protocol.Post]](t, node+"/api/public/board?limit=100"+after)
		require.Equal(t, 200, status)
		for _, p := range page.Items {
			if strings.HasPrefix(p.Title, "crash-") {
				counts[p.Title]++
			}
		}
		if page.Next == nil {
			return counts
		}
		after = "&after=" + *page.Next
	}
}
