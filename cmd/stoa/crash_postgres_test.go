package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stoa/node/client"
	"stoa/storage/storagetest"
)

// TestCrash_Postgres crashes PostgreSQL, and in turn one of two processes on it, at
// random points under load. Every write is repeated under its idempotency key until
// it is acknowledged. In the end each is there exactly once, for both processes, and
// numbers have no gap. A crash ends the connections of every test of the server, so
// it runs where STOA_TEST_POSTGRES_CRASH says that the server is for it alone.
func TestCrash_Postgres(t *testing.T) {
	if os.Getenv("STOA_TEST_POSTGRES_CRASH") == "" {
		return // make soak sets it
	}
	random, rounds := rand.New(rand.NewPCG(storagetest.Seed(t), 3)), storagetest.Rounds(t, 8)
	database := storagetest.PostgresURL(t)
	u, err := url.Parse(database)
	require.NoError(t, err)
	admin, err := sql.Open("pgx", database)
	require.NoError(t, err)
	defer admin.Close()
	_, err = admin.Exec(`ALTER DATABASE ` + strings.TrimPrefix(u.Path, "/") + ` SET synchronous_commit = on`)
	require.NoError(t, err)

	port := freePorts(t, 2)
	a := newServerProcess(t, port, "--database", database)
	b := newServerProcess(t, port+10, "--database", database, "--base-url", a.url, "--data", a.data)
	file := filepath.Join(t.TempDir(), "load.jwk")
	of := []string{"--data", a.data, "--database", database}
	for _, command := range [][]string{{"keygen", file}, append([]string{"admin", "profile", "put"}, of...), append([]string{"admin", "key", "add", "load", file}, of...)} {
		_, errs, code := stoa(t, `{"handle":"load","name":"Load","kind":"person"}`, command...)
		require.Equal(t, 0, code, errs)
	}

	// The clients of b sign for the address of both and reach b.
	atB := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(b.url, "http://"))
	}}}
	const writers = 8
	each := 25 * rounds
	titles := make(chan string, writers*each)
	var group sync.WaitGroup
	for i := range writers {
		o := client.Options{Key: readPair(t, file)}
		if i%2 == 1 {
			o.HTTP = atB
		}
		group.Go(func() { writeAll(t, a.url, o, fmt.Sprintf("crash-%d", i), each, titles) })
	}
	written := make(chan struct{})
	go func() { group.Wait(); close(written) }()
	for round := range 2 * rounds {
		time.Sleep(time.Duration(50+random.IntN(350)) * time.Millisecond)
		switch round % 4 {
		case 1, 3:
			victim := []*server{a, b}[round/2%2]
			victim.kill()
			victim.start()
		default:
			crashPostgres(t, admin)
		}
	}
	<-written
	close(titles)
	want := map[string]int{}
	for title := range titles {
		want[title] = 1
	}
	require.Len(t, want, writers*each)
	for _, s := range []*server{a, b} {
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Equal(c, want, countTitles(t, s.url)) }, time.Minute, 100*time.Millisecond, "%s", &s.log)
	}
	a.kill()
	b.kill()
	out, errs, code := stoa(t, "", append([]string{"admin", "check"}, of...)...)
	require.Equal(t, 0, code, errs)
	require.Equal(t, "ok\n", out)
}

// crashPostgres kills a process of the server: it ends all others, recovers from its
// log and goes on. It returns when the server answers.
func crashPostgres(t *testing.T, admin *sql.DB) {
	var pid int
	require.NoError(t, admin.QueryRow(`SELECT pg_backend_pid()`).Scan(&pid))
	p, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	require.Eventually(t, func() bool {
		var now int
		return admin.QueryRow(`SELECT pg_backend_pid()`).Scan(&now) == nil && now != pid
	}, time.Minute, 10*time.Millisecond)
}
