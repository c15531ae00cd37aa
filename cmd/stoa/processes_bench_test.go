package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// BenchmarkProcesses measures signed posts to one, two and four processes of a node on
// one PostgreSQL, on 64 and 512 connections that are spread over them: writes a
// second, and the processor time of the processes and of the server a write. The
// client is this process. make bench-processes runs it on a server that waits for the
// disk. STOA_BENCH_PROGRAMS compares builds in one run: "before=/path/of/stoa now=…".
// The posts are of benchAuthors authors in turn, whom each process knows already.
func BenchmarkProcesses(b *testing.B) {
	if os.Getenv(storagetest.PostgresEnv) == "" {
		b.Skip("needs " + storagetest.PostgresEnv)
	}
	programs := strings.Fields(os.Getenv("STOA_BENCH_PROGRAMS"))
	if len(programs) == 0 {
		programs = []string{"now=" + filepath.Join(bin(b), "stoa")}
	}
	for _, connections := range []int{64, 512} {
		for _, processes := range []int{1, 2, 4} {
			for _, p := range programs {
				name, program, _ := strings.Cut(p, "=")
				b.Run(fmt.Sprintf("connections=%d/processes=%d/%s", connections, processes, name), func(b *testing.B) {
					if b.N > 1 { // the first is a probe
						benchmarkProcesses(b, program, processes, connections)
					}
				})
			}
		}
	}
}

// BenchmarkProcesses_Standby is the same for one and four processes on a server with a synchronous standby, reached through PgBouncer. The
// figures of the servers are those of the primary, of the standby and of PgBouncer.
func BenchmarkProcesses_Standby(b *testing.B) {
	if os.Getenv(storagetest.PoolerEnv) == "" {
		b.Skip("needs " + storagetest.PoolerEnv)
	}
	for _, processes := range []int{1, 4} {
		b.Run(fmt.Sprint("processes=", processes), func(b *testing.B) {
			if b.N == 1 {
				return
			}
			first := storagetest.Primary(b)
			second := first.Standby(true)
			pooler, end := storagetest.Pooler(b, first.URL(), "transaction")
			defer end()
			benchmarkProcessesOn(b, filepath.Join(bin(b), "stoa"), processes, 64, storagetest.Through(b, first.URL(), pooler), first.URL(), func() time.Duration {
				var backend int
				require.NoError(b, second.Open("stoa").QueryRow(`SELECT pg_backend_pid()`).Scan(&backend))
				_, postmaster, err := procTimes(backend)
				require.NoError(b, err)
				return serverTime(b, postmaster) + poolerTime(b)
			})
		})
	}
}

// poolerTime is the processor time of PgBouncer, which a shell of this process runs.
func poolerTime(b *testing.B) (all time.Duration) {
	b.Helper()
	for _, e := range must.Get(os.ReadDir("/proc"))(b) {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil || strings.TrimSpace(string(name)) != "pgbouncer" {
			continue
		}
		spent, shell, err := procTimes(pid)
		if err != nil {
			continue
		}
		if _, parent, err := procTimes(shell); err == nil && parent == os.Getpid() {
			all += spent
		}
	}
	return all
}

func benchmarkProcesses(b *testing.B, program string, processes, connections int) {
	database := storagetest.EmptyPostgresURL(b) // each program makes its own tables
	benchmarkProcessesOn(b, program, processes, connections, database, database, func() time.Duration { return 0 })
}

// benchmarkProcessesOn has the address of the database for the processes and for itself, and the processor time of other servers.
func benchmarkProcessesOn(b *testing.B, program string, processes, connections int, database, direct string, others func() time.Duration) {
	plain := must.Get(sql.Open("pgx", direct))(b)
	defer plain.Close()
	var backend int
	require.NoError(b, plain.QueryRow(`SELECT pg_backend_pid()`).Scan(&backend))
	_, postmaster, err := procTimes(backend)
	if err != nil {
		b.Skip("processor times are read from /proc of the server's machine: ", err)
	}

	port := freePorts(b, processes)
	nodes := []*server{newServerProcessOf(b, program, port, "--database", database)}
	base := nodes[0].url
	for i := 1; i < processes; i++ {
		nodes = append(nodes, newServerProcessOf(b, program, port+10*i, "--database", database, "--base-url", base, "--data", nodes[0].data))
	}
	pairs := loadAgents(b, plain, loadAgent(b, nodes[0].data, database))
	for _, n := range nodes {
		greet(b, strings.TrimPrefix(n.url, "http://"), base, pairs)
	}
	var next atomic.Int64
	write := func(posts int) {
		next.Store(0)
		var group sync.WaitGroup
		for i := range connections {
			group.Go(func() {
				writePosts(b, strings.TrimPrefix(nodes[i%processes].url, "http://"), base, pairs, &next, posts)
			})
		}
		group.Wait()
	}
	write(10 * connections)
	cpu := func() (node, server time.Duration) {
		for _, n := range nodes {
			spent, _, err := procTimes(n.command.Process.Pid)
			require.NoError(b, err)
			node += spent
		}
		return node, serverTime(b, postmaster) + others()
	}
	node, server := cpu()
	b.ResetTimer()
	write(b.N)
	b.StopTimer()
	nodeAfter, serverAfter := cpu()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(float64((nodeAfter-node).Microseconds())/float64(b.N), "node-µs/write")
	b.ReportMetric(float64((serverAfter-server).Microseconds())/float64(b.N), "server-µs/write")
}

// loadAgent makes a profile with a key on a node.
func loadAgent(b *testing.B, data, database string) key.Pair {
	b.Helper()
	file := filepath.Join(b.TempDir(), "load.jwk")
	of := []string{"--data", data, "--database", database}
	for _, step := range [][]string{
		append([]string{"admin", "profile", "put"}, of...), {"keygen", file}, append([]string{"admin", "key", "add", "load", file}, of...),
	} {
		_, errs, code := stoa(b, `{"handle":"load","name":"Load","kind":"person"}`, step...)
		require.Equal(b, 0, code, errs)
	}
	return readPair(b, file)
}

// benchAuthors is how many authors write.
const benchAuthors = 10_000

// loadAgents makes copies of the profile load, each with a key of its own.
func loadAgents(b *testing.B, db *sql.DB, first key.Pair) []key.Pair {
	b.Helper()
	pairs := []key.Pair{first}
	var thumbprints, handles []string
	var public [][]byte
	for i := 1; i < benchAuthors; i++ {
		pair := must.Get(key.GenerateEd25519())(b)
		pairs, thumbprints, handles = append(pairs, pair), append(thumbprints, pair.Thumbprint()), append(handles, fmt.Sprint("load-", i))
		jwk := must.Get(key.MarshalPublic(pair.Published()))(b)
		public = append(public, jwk)
	}
	copies := func(table string, other map[string]string) {
		rows := must.Get(db.Query(`SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`, table))(b)
		var columns, values []string
		for rows.Next() {
			var column string
			require.NoError(b, rows.Scan(&column))
			columns, values = append(columns, column), append(values, cmp.Or(other[column], "r."+column))
		}
		require.NoError(b, rows.Err())
		must.Get(db.Exec(`INSERT INTO `+table+` (`+strings.Join(columns, ", ")+`) SELECT `+strings.Join(values, ", ")+` FROM `+table+` r,
			unnest($1::text[], $2::text[], $3::bytea[]) WITH ORDINALITY u (thumbprint, handle, jwk, n) WHERE r.handle = 'load'`,
			thumbprints, handles, public))(b)
	}
	copies("profile", map[string]string{"seq": "r.seq + u.n", "handle": "u.handle", "pos": "NULL", "listed": "FALSE",
		"draft": `replace(r.draft, '"load"', '"' || u.handle || '"')`})
	copies("agent_key", map[string]string{"handle": "u.handle", "thumbprint": "u.thumbprint", "public_jwk": "u.jwk"})
	return pairs
}

// greet makes a signed read of each author, so that a process has seen every key.
func greet(b *testing.B, address, base string, pairs []key.Pair) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			send, end := sender(b, address, base)
			defer end()
			for i := next.Add(1); i <= int64(len(pairs)) && send("GET", "/api/public/board?limit=1", nil, pairs[i-1], 200); i = next.Add(1) {
			}
		})
	}
	group.Wait()
}

// sender returns what sends signed requests of a node on one connection to the process at an
// address, and reports whether the answer is the wanted one.
func sender(b *testing.B, address, base string) (send func(method, path string, body []byte, by key.Pair, want int) bool, end func()) {
	target, err := httpsig.ParseTarget(base)
	if err != nil {
		b.Error(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1, DisableCompression: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}}}
	return func(method, path string, body []byte, by key.Pair, want int) bool {
		r, err := http.NewRequest(method, base+path, bytes.NewReader(body))
		if err == nil {
			if body != nil {
				r.Header.Set("Content-Type", "application/json")
			}
			err = httpsig.SignRequest(r, target, body, httpsig.SignOptions{Key: by.Signer()})
		}
		if err != nil {
			b.Error(err)
			return false
		}
		res, err := client.Do(r)
		if err != nil {
			b.Error(err)
			return false
		}
		answer, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != want {
			b.Errorf("%s: %s", res.Status, answer)
		}
		return res.StatusCode == want
	}, client.CloseIdleConnections
}

// writePosts makes posts of a node on one connection to the process at an address, as
// long as next is not over a number.
func writePosts(b *testing.B, address, base string, pairs []key.Pair, next *atomic.Int64, posts int) {
	send, end := sender(b, address, base)
	defer end()
	for i := next.Add(1); i <= int64(posts); i = next.Add(1) {
		body := fmt.Appendf(nil, `{"kind":"offer","title":"Post %d",
			"body":"Two hundred sheets of hand-made paper from Jaipur, number %d, samples first, within the week."}`, i, i)
		if !send("POST", "/api/public/board", body, pairs[i%int64(len(pairs))], 201) {
			return
		}
	}
}

// procTimes is the processor time that a process and its ended children have used, and
// its parent.
func procTimes(pid int) (spent time.Duration, parent int, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])) // from the third on
	for i := 14; i <= 17; i++ {
		n, err := strconv.Atoi(fields[i-3])
		if err != nil {
			return 0, 0, err
		}
		spent += time.Duration(n) * 10 * time.Millisecond // USER_HZ is 100 on Linux
	}
	parent, err = strconv.Atoi(fields[4-3])
	return spent, parent, err
}

// serverTime is the processor time that all processes of a PostgreSQL server have used.
func serverTime(b *testing.B, postmaster int) time.Duration {
	b.Helper()
	all, _, err := procTimes(postmaster)
	require.NoError(b, err)
	entries := must.Get(os.ReadDir("/proc"))(b)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if spent, parent, err := procTimes(pid); err == nil && parent == postmaster { // an error: it has ended
			all += spent
		}
	}
	return all
}
