package storage_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// skew fills a database with what is in the tables of a node that is old, busy
// and badly treated, in thousandths of the full size. What is asked for stays as
// it is at any scale: eight jobs that are due, three outlets that are behind.
func skew(t *testing.T, db *storage.DB, scale int) {
	t.Helper()
	series := `WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT)) `
	fill := func(full int, insert string, args ...any) {
		t.Helper()
		require.NoError(t, storage.Exec(t.Context(), db, insert, append([]any{full * scale / 1000}, args...)...))
	}
	skewItems(t, db, scale, fill)
	now, day := start.UnixMilli(), (24 * time.Hour).Milliseconds()

	job := `INSERT INTO job (kind, lane, args, state, blocked, run_at, attempt, done_at) ` + series + `SELECT `
	fill(100_000, job+`'silence', NULL, ?, 'waiting', 0, CAST(? AS BIGINT) + n, 0, NULL FROM series`, []byte(`{}`), now+day)
	fill(300_000, job+`'process', 'host:a', ?, 'done', NULL, CAST(? AS BIGINT) - n, 1, CAST(? AS BIGINT) - n FROM series`, []byte(`{}`), now, now)
	fill(50_000, job+`'process', 'host:crowd', ?, 'waiting', 1, CAST(? AS BIGINT) - n, 0, NULL FROM series`, []byte(`{}`), now)
	require.NoError(t, storage.Exec(t.Context(), db, `INSERT INTO lane (name, job) SELECT 'host:crowd', max(id) FROM job WHERE state = 'done'`))

	exec := func(text string, args ...any) {
		t.Helper()
		require.NoError(t, storage.Exec(t.Context(), db, text, args...))
	}
	copies := func(full int, table, where string, set map[string]string) {
		t.Helper()
		require.NoError(t, storage.CopyRows(t.Context(), db, table, where, full*scale/1000, set))
	}
	root, reply := samplePost(start, 1), samplePost(start.Add(time.Second), 1)
	reply.InReplyTo = &root.ID
	store(t, db, root, reply)
	copies(50_000, "post", `in_reply_to IS NOT NULL`, map[string]string{"seq": "seq + s", "id": "id || CAST(s AS TEXT)", "uri": "uri || CAST(s AS TEXT)"})
	exec(`UPDATE post SET thread_count = ?, reply_count = ? WHERE in_reply_to IS NULL`, 50*scale+1, 50*scale+1)
	copies(100_000, "log", `seq = 2`, map[string]string{"seq": "seq + s", "object_id": "'post_' || CAST(s AS TEXT)"})
	head := 100*scale + 2
	exec(`UPDATE stream SET head = ?`, head)
	copies(100_000, "feed", `subject_id = (SELECT id FROM post WHERE in_reply_to IS NULL)`,
		map[string]string{"seq": "seq + 1000000 + s", "id": "id || CAST(s AS TEXT)", "subject_id": "CAST(s AS TEXT)", "n": "1000 + s"})
	if !storage.OnPostgres(db) {
		exec(`UPDATE tally SET head = 1000000`)
	}

	orphan := remotePost(start.Add(2*time.Second), "orphan")
	orphan.ReplyTo, orphan.Author.Actor = lateURI, ptr("https://far.example/u/asha")
	write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().Insert(ctx, orphan) })
	copies(50_000, "post", `in_reply_to IS NULL AND reply_to <> ''`, // hidden, since they are not in the index of words
		map[string]string{"seq": "seq + s", "id": "id || CAST(s AS TEXT)", "uri": "uri || CAST(s AS TEXT)", "state": "'hidden'"})

	outlet := `INSERT INTO outlet (board, inbox, host, stoa, cursor, failures, next_at, state) ` + series +
		`SELECT ?, 'https://h' || CAST(n AS TEXT) || '.example/' || ?, 'h' || CAST(n AS TEXT) || '.example', FALSE, `
	fill(6667, outlet+`CAST(? AS BIGINT), 0, 0, 'active' FROM series`, boardID, "active", head)
	fill(3333, outlet+`1, 20, CAST(? AS BIGINT) + n, 'dead' FROM series`, boardID, "dead", now+day)
	exec(`UPDATE outlet SET cursor = cursor - 1 WHERE host IN ('h1.example', 'h2.example', 'h3.example') AND state = 'active'`)
	fill(100_000, `INSERT INTO follower (local_actor, actor, inbox, shared_inbox, host, follow_id, stoa, created_at) `+series+
		`SELECT ?, 'https://h' || CAST(n AS TEXT) || '.example/u', 'https://h' || CAST(n AS TEXT) || '.example/in', '', 'h' || CAST(n AS TEXT) ||
			'.example', 'x', FALSE, 0 FROM series`, boardID)
	exec(`INSERT INTO follower_count (local_actor, n) VALUES (?, ?)`, boardID, 100*scale)

	fill(10_000, `INSERT INTO stream (board, epoch, head, of_agent, due) `+series+`SELECT 'agent ' || CAST(n AS TEXT), '', 1, TRUE, FALSE FROM series`)
	fill(10_000, `INSERT INTO follower_count (local_actor, n) `+series+`SELECT 'agent ' || CAST(n AS TEXT), 1 FROM series`)

	fill(1000, `INSERT INTO subscription (board, host, node_actor, log_url, epoch, last_seq, state, follow_id, checked_at, next_at, failures, last_error) `+series+
		`SELECT 'https://p' || CAST(n AS TEXT) || '.example/ap/board', 'p.example', '', '', '', 0, 'pending', '', 0, 1, 0, '' FROM series`)
	fill(10_000, `INSERT INTO log_taken (board, seq, hash, entry) `+series+
		`SELECT 'https://p' || CAST(n % 100 AS TEXT) || '.example/ap/board', n, '', `+
		map[bool]string{true: "''::bytea", false: "x''"}[storage.OnPostgres(db)]+` FROM series`)
	fill(10_000, `INSERT INTO remote_agent (actor, host, agent, doc) `+series+
		`SELECT 'https://p.example/ap/agents/s' || CAST(n AS TEXT), 'p' || CAST(n AS TEXT) || '.example', '', '{}' FROM series`)
	fill(100_000, `INSERT INTO agent_document (agent, uri, fault, failures, read_at, next_at) `+series+
		`SELECT 'eip155:1:0xaa:' || CAST(n AS TEXT), '', '', 0, 1, n FROM series`)
	fill(10_000, `INSERT INTO ard_entry (source, identifier, publisher, digest, doc) `+series+
		`SELECT 'https://d' || CAST(n AS TEXT) || '.example/x.json', 'urn:air:x.example:s' || CAST(n % 10 AS TEXT), '', '', '{}' FROM series`)
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		thread := storage.StoredThread{ID: "thr_0", Handle: "asha", Kind: protocol.Question, State: protocol.ThreadOpen, Writer: "w"}
		return errors.Join(tx.Threads().Insert(ctx, &thread),
			tx.Callbacks().Insert(ctx, &storage.StoredCallback{ID: "msg_0", State: protocol.CallbackDone, Handle: "asha"}))
	})
	copies(100_000, "thread", `id = 'thr_0'`, map[string]string{"id": "id || CAST(s AS TEXT)"})
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		return errors.Join(begins(ctx, tx, "thr_sold", soldAgent, "0xa", 5), begins(ctx, tx, "thr_began", soldAgent+"7", "0xa", 5))
	})
	copies(100_000, "thread", `id = 'thr_began'`, map[string]string{"id": "id || CAST(s AS TEXT)", "agent": "agent || CAST(s AS TEXT)"})
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Threads().Insert(ctx, &storage.StoredThread{ID: "thr_far", Handle: "asha", Kind: protocol.Question, State: protocol.ThreadClosed,
			Writer: "actor:https://far.example/u/a", Origin: "far.example"})
	})
	exec(`UPDATE thread SET created_at = 1 WHERE id = 'thr_far'`)
	copies(100_000, "thread", `id = 'thr_far'`, map[string]string{"id": "id || CAST(s AS TEXT)", "created_at": "created_at + s"})
	copies(100_000, "callback", `id = 'msg_0'`, map[string]string{"id": "'msg_9' || CAST(s AS TEXT)", "thread_id": "CAST(s AS TEXT)"})

	// What is kept for some time: the first rows are of long ago, as many at each
	// scale, and prunable.
	bytes := func(text string) string {
		return `CAST(` + text + ` AS ` + map[bool]string{true: "BYTEA", false: "BLOB"}[storage.OnPostgres(db)] + `)`
	}
	at := fmt.Sprintf(`CASE WHEN n <= %d THEN %d ELSE %d END`, prunable, now-1000*day, now+day) // when it is due to end
	name := `CAST(n AS TEXT)`
	fill(20_000, `INSERT INTO ticket (hash, purpose, account, handle, mail, expires_at) `+series+
		`SELECT `+bytes(`'hash' || CAST(n AS TEXT)`)+`, 'sign-in', 'acc_1', '', CASE WHEN n <= 5 THEN 'a@example.org' ELSE 'b@example.org' END, `+at+` FROM series`)
	fill(100_000, `INSERT INTO session (id, hash, account, program, created_at, expires_at, last_used_at) `+series+
		`SELECT `+name+`, `+bytes(name)+`, 'acc_1', '', 0, `+at+`, 0 FROM series`)
	fill(100_000, `INSERT INTO news (reader, n, kind, ref) `+series+`SELECT 'handle:asha', n, 'reply', 'x' FROM series`)
	exec(`INSERT INTO news_mark (n, at) VALUES (?, ?), (1000000, ?)`, prunable, now-1000*day, now)
	fill(100_000, `INSERT INTO host_scheme (host, scheme, at) `+series+`SELECT 'h' || `+name+`, 'rfc9421', `+at+` FROM series`)
	fill(1_000_000, `INSERT INTO spent (key, until) `+series+`SELECT `+bytes(`CAST(1000000000 + n AS TEXT)`)+`, `+at+` FROM series`)
	fill(100_000, `INSERT INTO receipt (caller, key, operation, digest, answer, expires) `+series+
		`SELECT 'asha', `+name+`, 'create_post', ?, ?, `+at+` FROM series`, []byte("d"), []byte("a"))
	fill(500_000, `INSERT INTO kept (key, host, actor, signer, proven, at, body) `+series+
		`SELECT `+bytes(name)+`, 'h' || `+name+`, 'https://h.example/u', '', FALSE, `+at+`, ? FROM series`, []byte{})
	fill(130_000, `INSERT INTO kept (key, host, actor, signer, proven, at, body) `+series+
		`SELECT `+bytes(`'waits' || `+name)+`, 'h', 'https://h.example/u', '', FALSE, CAST(? AS BIGINT), ? FROM series`, now, []byte("{}"))
	fill(1_000_000, `INSERT INTO used_signature (key, until) `+series+`SELECT `+bytes(`CAST(1000000000 + n AS TEXT)`)+`, `+at+` FROM series`)
	fill(100_000, `INSERT INTO usage (process, n, at, doc) `+series+`SELECT 'p', n, n + `+at+`, ? FROM series`, []byte("{}"))
	fill(100_000, `INSERT INTO sighting (handle, at) `+series+`SELECT `+name+`, `+at+` FROM series`)
	words := map[bool]string{true: ", words", false: ""}[storage.OnPostgres(db)]
	fill(100_000, `INSERT INTO profile_rank (pos, seq, since, until, closed_at`+words+`) `+series+`SELECT n, 1, 0, n, `+at+
		map[bool]string{true: ", ''::tsvector", false: ""}[storage.OnPostgres(db)]+` FROM series`)
	fill(10_000, `INSERT INTO archive_import (id, handle, state, holder, at, done, ruling, report) `+series+
		`SELECT 'i' || `+name+`, 'x', 'staging', '', `+at+`, 0, ?, ? FROM series`, []byte{}, []byte{})
	fill(100_000, `INSERT INTO archive_piece (import_id, n, bytes) `+series+`SELECT 'i' || CAST(n / 10 AS TEXT), n % 10, ? FROM series`, []byte("x"))
	fill(100_000, `INSERT INTO tombstone (uri, host, until) `+series+`SELECT 'https://h.example/' || `+name+`, 'h.example', `+at+` FROM series`)
	fill(50_000, `INSERT INTO remote_actor (id, host, type, handle, name, inbox, shared_inbox, doc, fetched_at) `+series+
		`SELECT `+name+`, 'x' || `+name+`, 'Person', '', '', '', '', ?, `+at+` FROM series`, []byte{})
	fill(50_000, `INSERT INTO remote_key (key_id, owner, host, algorithm, key, fetched_at, negative_until) `+series+
		`SELECT `+name+`, '', 'x' || `+name+`, '', ?, `+at+`, 0 FROM series`, []byte{})
	fill(50_000, `INSERT INTO reader (post_id, host, actor, at) `+series+`SELECT `+name+`, 'x', '', `+at+` FROM series`)
	fill(100_000, `INSERT INTO audit (at, actor, action, subject, detail) `+series+`SELECT `+at+`, 'x', 'flag', 'x', '' FROM series`)
	fill(100_000, `INSERT INTO writer (post_id, network) `+series+`SELECT 'post_' || CAST(CASE WHEN n <= ? THEN n ELSE 8000000 + n END AS TEXT), 'x'
		FROM series`, prunable)
	fill(10_000, `INSERT INTO block (id, kind, value, post, reason, note, actor, created_at, expires_at) `+series+
		`SELECT `+name+`, 'host', 'h' || `+name+`, '', '', '', '', 0, `+at+` FROM series`)
	fill(100_000, `INSERT INTO api_token (id, hash, account, handle, name, scopes, created_at, revoked_at) `+series+
		`SELECT `+name+`, `+bytes(name)+`, 'acc_1', 'x' || `+name+`, '', '[]', 0, `+at+` FROM series`)
	fill(10_000, `INSERT INTO review (seq, post_id) `+series+`SELECT n, 'x' FROM series`)
	fill(100_000, `INSERT INTO probe (target, kind, host, domain, due_at) `+series+
		`SELECT 'https://p' || `+name+`, 'http', 'p' || `+name+`, 'p' || `+name+`, `+at+` FROM series`)
	skewBids(t, db, scale, fill, at)
	skewMeetings(t, db, fill, at)
	skewOrders(t, fill)
	skewReviews(t, db, fill)
	skewShops(t, db, fill)
	exec(`UPDATE job SET done_at = ? WHERE id IN (SELECT id FROM job WHERE state = 'done' ORDER BY id LIMIT ?)`, now-1000*day, prunable)
	storage.Analyze(t, db)
}

// A statement runs again and again. It leaves the database as it found it, or nearly.
type statement struct {
	name string
	run  func(ctx context.Context, db *storage.DB) error
}

// A call is a statement of one transaction, which is rolled back where it is a write.
type call struct {
	name string
	in   mode
	run  func() error
}

type mode bool

const (
	looks  mode = false
	undone mode = true
)

// calls makes statements of a table of calls.
func calls(table func(ctx context.Context, tx *storage.Tx) []call) (all []statement) {
	for i, c := range table(context.Background(), nil) { // of which only the names are looked at
		in := map[mode]func(func(context.Context, *storage.Tx) error) func(context.Context, *storage.DB) error{looks: reading, undone: rolledBack}[c.in]
		all = append(all, statement{c.name, in(func(ctx context.Context, tx *storage.Tx) error { return table(ctx, tx)[i].run() })})
	}
	return all
}

var grown = []statement{
	{"claim jobs", func(ctx context.Context, db *storage.DB) error {
		jobs, _, err := db.ClaimJobs(ctx, "growth", 8, time.Minute)
		if err == nil && len(jobs) != 8 {
			err = fmt.Errorf("%d jobs", len(jobs))
		}
		if err != nil {
			return err
		}
		return db.ReleaseJobs(ctx, "growth")
	}},
	{"claim outlets", func(ctx context.Context, db *storage.DB) error {
		due, err := db.ClaimOutlets(ctx, "growth", 128, 128, time.Minute)
		if err == nil && len(due) != 3 {
			err = fmt.Errorf("%d outlets", len(due))
		}
		if err != nil {
			return err
		}
		return db.ReleaseOutlets(ctx, "growth")
	}},
	{"an entry of a directory is replaced", func(ctx context.Context, db *storage.DB) error {
		return db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			return tx.ARDSources().DropEntry(ctx, "https://d6.example/x.json", "urn:air:x.example:s6")
		})
	}},
}

// grownCalls are those of the board, the feed, threads, jobs and what is pruned.
func grownCalls(ctx context.Context, tx *storage.Tx) []call {
	root := func() string { return rootID(ctx, tx) }
	return []call{
		{"a sale ends what was begun", undone, func() error {
			ended, _, err := tx.Begun().End(ctx, storage.Sale{Agent: soldAgent, Owner: "0xb", Block: 7})
			names, list := tx.Begun().List(ctx, "eip155:1:0x1", "", 100)
			return errors.Join(err, list, found(ended, nil), found(len(names), nil))
		}},
		{"due subscriptions", looks, func() error { return must.Err(tx.Subscriptions().ListDue(ctx, 32)) }},
		{"entries taken of a log", looks, func() error { return must.Err(tx.Subscriptions().ListTaken(ctx, "https://p.example/ap/board")) }},
		{"documents of identities", looks, func() error { return some(tx.AgentDocuments().Due(ctx, 60)) }},
		{"nodes that are gone", looks, func() error { return must.Err(tx.RemoteAgents().Prune(ctx)) }},
		{"entries of a directory", looks, func() error { return must.Err(tx.ARDSources().Entries(ctx, "https://d5.example/x.json")) }},
		{"tickets sent to an address", looks, func() error { return must.Err(tx.Tickets().CountTo(ctx, storage.TicketSignIn, "a@example.org", start)) }},
		{"tickets of an account", looks, func() error { return must.Err(tx.Tickets().CountOf(ctx, storage.TicketSignIn, "acc_1")) }},
		{"count followers", looks, func() error { return some(tx.Followers().Count(ctx, boardID)) }},
		{"is peer", looks, func() error { return must.Err(tx.Peers().Has(ctx, "nobody.example")) }},
		{"count a thread", looks, func() error {
			root := root()
			n, err := tx.Posts().CountThread(ctx, root)
			return found(n-1, err)
		}},
		{"list a thread", looks, func() error { return must.Err(tx.Posts().ListThread(ctx, root(), 20, "")) }},
		{"list replies", looks, func() error { return must.Err(tx.Posts().ListReplies(ctx, root(), 20, "")) }},
		{"reply in a thread", undone, func() error {
			root := root()
			p := samplePost(start.Add(time.Hour), 1)
			p.InReplyTo = &root
			return publish(ctx, tx, p)
		}},
		{"parent of a crowd", undone, func() error {
			late := remotePost(start.Add(-time.Hour), "late")
			late.URI = lateURI
			err := tx.Posts().Insert(ctx, late)
			p, _ := tx.Posts().ByID(ctx, late.ID)
			return found(p.ReplyCount, err)
		}},
		{"hide and show a post", undone, func() error {
			return errors.Join(tx.Posts().SetState(ctx, root(), protocol.Hidden, ""), tx.Posts().SetState(ctx, root(), protocol.Visible, ""))
		}},
		{"verdict about a post", undone, func() error { return tx.Posts().SetVerdict(ctx, root(), protocol.AuthorProof{}, "", "") }},
		{"author in a thread", looks, func() error { return must.Err(tx.Posts().ThreadAuthor(ctx, root(), "asha", "h.example")) }},
		{"posts of an actor", looks, func() error { return some(tx.Posts().OfActor(ctx, "https://far.example/u/asha", 10)) }},
		{"a page of the log", looks, func() error { return some(tx.Logs().After(ctx, boardID, 100, 50)) }},
		{"tree of the log", looks, func() error { return must.Err(tx.Logs().Tree(ctx, boardID)) }},
		{"feed", looks, func() error { return some(tx.Feed().List(ctx, nil, false, 20, "")) }},
		{"feed after", looks, func() error { return some(tx.Feed().After(ctx, 1000, 20)) }},
		{"threads of an agent", looks, func() error { return some(tx.Threads().List(ctx, "asha", "", 20, "")) }},
		{"open threads of an agent", looks, func() error { return some(tx.Threads().List(ctx, "asha", protocol.ThreadOpen, 20, "")) }},
		{"count open threads", undone, func() error { return some(tx.Threads().CountOpen(ctx, "asha", "w", 5)) }},
		{"count threads of other servers", undone, func() error {
			n, err := tx.RemoteThreads().Count(ctx, "asha", "actor:https://far.example/u/a", "far.example")
			return errors.Join(err, found(1-n.Open, nil))
		}},
		{"threads of a person elsewhere", undone, func() error { return some(tx.RemoteThreads().ListOf(ctx, "asha", "actor:https://far.example/u/a")) }},
		{"callbacks", looks, func() error { return some(tx.Callbacks().List(ctx, "asha", "", "", 20, "")) }},
		{"receipt", looks, func() error {
			r, err := tx.Requests().Receipt(ctx, "asha", "300")
			if err == nil && r == nil {
				err = errors.New("no receipt")
			}
			return err
		}},
		{"spend", undone, func() error { return tx.Requests().Spend(ctx, spend()) }},
		{"keep an activity", undone, func() error {
			return must.Err(tx.Inbox().Keep(ctx, storage.Kept{Key: sha256.Sum256([]byte("x")), Host: "a.example", Actor: "x", Body: []byte("{}")}))
		}},
		{"empty a kept activity", undone, func() error { return tx.Inbox().Empty(ctx, [32]byte([]byte("waits1                          "))) }},
		{"evict some", undone, func() error {
			n, err := storage.EvictKeys(ctx, tx, storage.StockActors, "1", "2", "3", "400")
			return found(n-3, err)
		}},
		{"use a signature", undone, func() error {
			first, err := tx.Requests().UseSignature(ctx, [32]byte{1}, start)
			if err == nil && !first {
				err = errors.New("used already")
			}
			return err
		}},
		{"note a reader", undone, func() error {
			root := root()
			fresh, err := tx.Posts().PutReader(ctx, root, "reads.example", "x")
			if err == nil && !fresh {
				err = errors.New("not fresh")
			}
			return err
		}},
		{"follow", undone, func() error {
			return tx.Followers().Put(ctx, storage.Follower{LocalActor: boardID, Actor: "x", Host: "x"})
		}},
		{"followers", looks, func() error { return some(tx.Followers().List(ctx, boardID, 20, "")) }},
		{"a post of an agent that is followed", undone, func() error { return tx.Logs().AppendAgent(ctx, "agent 1", storage.LogCreate, "post_x") }},
		{"is a post boosted to an inbox", looks, func() error {
			all, err := tx.Followers().AllFollow(ctx, "https://h1.example/in", boardID, "agent 1", start)
			if err == nil && all {
				err = errors.New("nobody follows the agent")
			}
			return err
		}},
		{"unfollow", undone, func() error { return tx.Followers().Remove(ctx, boardID, "https://h1.example/u") }},
		{"wake the outlets of a host", undone, func() error { return tx.Outlets().WakeHost(ctx, "h1.example") }},
		{"usage of others", looks, func() error { return some(tx.Requests().UsageOfOthers(ctx, "other", time.Minute)) }},
		{"tell usage", undone, func() error { return tx.Requests().PutUsage(ctx, storage.Usage{Process: "other", N: 1, Doc: []byte{}}) }},
		{"tokens of an account", looks, func() error { return must.Err(tx.Tokens().Count(ctx, "acc_1")) }},
		{"thread by its token", looks, func() error {
			_, err := tx.Threads().IDByToken(ctx, [32]byte{1})
			if errors.Is(err, storage.ErrNotFound) {
				err = nil
			}
			return err
		}},
		{"tombstoned", looks, func() error { return must.Err(tx.Inbox().Tombstoned(ctx, "https://h.example/1")) }},
		{"sessions of an account", looks, func() error { return some(tx.Sessions().List(ctx, "acc_1", 20, "")) }},
		{"audit log", looks, func() error { return must.Err(tx.AuditLog().List(ctx, "", "", 20, "")) }},
		{"next probe", looks, func() error { return must.Err(tx.Probes().Next(ctx)) }},
		{"claim probes", undone, func() error {
			return must.Err(tx.Probes().Claim(ctx, storage.ProbeClaim{Most: 4, PerDomain: 4, Lease: time.Minute}))
		}},
		{"enqueue", undone, func() error {
			return tx.Enqueue(ctx, storage.Job{Kind: "notice", Lane: "host:crowd", Dedupe: "notice x"})
		}},
		{"is a lane full", looks, func() error { return must.Err(tx.Jobs().LaneFull(ctx, "host:crowd", 200)) }},
		{"next job of a lane", undone, func() error { return must.Err(tx.Jobs().Next(ctx, 1, "growth", time.Minute)) }},
		{"jobs by name", looks, func() error { return must.Err(tx.Jobs().Named(ctx, "webhook")) }},
		{"prune spent", undone, func() error {
			_, n, err := tx.Requests().PruneSpent(ctx, nil)
			return found(n, err)
		}},
		{"prune signatures", undone, func() error { return some(storage.PruneTable("used_signature")(ctx, tx)) }},
		{"prune usage", undone, func() error { return some(tx.Requests().PruneUsage(ctx)) }},
		{"prune ranks", undone, func() error { return some(tx.Profiles().PruneRanks(ctx, longAgo)) }},
		{"prune imports", undone, func() error { return some(tx.Imports().Prune(ctx, longAgo)) }},
		{"prune receipts", undone, func() error { return some(storage.PruneTable("receipt")(ctx, tx)) }},
		{"prune sessions", undone, func() error { return some(storage.PruneTable("session")(ctx, tx)) }},
		{"prune jobs", undone, func() error { return some(tx.Jobs().Prune(ctx, longAgo)) }},
		{"prune kept activities", undone, func() error { return some(tx.Inbox().Prune(ctx, longAgo)) }},
		{"prune tombstones", undone, func() error { return some(storage.PruneTable("tombstone")(ctx, tx)) }},
		{"prune news", undone, func() error { return some(tx.News().Prune(ctx, longAgo)) }},
		{"prune callbacks", undone, func() error { return must.Err(tx.Callbacks().Prune(ctx, longAgo)) }},
		{"prune tokens", undone, func() error { return some(tx.Tokens().Prune(ctx, longAgo)) }},
		{"prune audit", undone, func() error { return some(tx.AuditLog().Prune(ctx, longAgo, longAgo)) }},
		{"prune schemes", undone, func() error { return some(tx.Peers().PruneSchemes(ctx, longAgo)) }},
		{"prune blocks", undone, func() error { return some(tx.Blocks().Prune(ctx)) }},
		{"prune writers", undone, func() error { return must.Err(tx.Posts().PruneWriters(ctx, longAgo)) }},
		{"prune actors and keys", undone, func() error { return some(tx.Peers().PruneFetched(ctx, longAgo)) }},
		{"prune sightings", undone, func() error { return some(tx.Probes().ForgetSightings(ctx)) }},
		{"hours that begin or end", undone, func() error { return must.Err(tx.Merchants().RefreshHours(ctx)) }},
		{"news", looks, func() error {
			_, _, _, err := tx.News().After(ctx, []string{"handle:asha"}, 0, 20)
			return err
		}},
		{"list dead jobs", looks, func() error { return must.Err(tx.Jobs().List(ctx, storage.JobDead, "", 20, "")) }},
	}
}

// lateURI is that of a post which many replies came before.
const lateURI = "https://far.example/notes/late"

// prunable is how many rows of each kind are of long ago.
const prunable = 100

var longAgo = start.Add(-500 * 24 * time.Hour)

// bounded are statements that look at much, but never at more than so many rows.
var bounded = []struct {
	name string
	rows float64
	run  func(ctx context.Context, db *storage.DB) error
}{
	{"job stats", 120_000, reading(func(ctx context.Context, tx *storage.Tx) error {
		stats, err := tx.Jobs().Stats(ctx)
		return found(len(stats), err)
	})},
	{"outlet stats", 60_000, reading(func(ctx context.Context, tx *storage.Tx) error {
		stats, err := tx.Outlets().Stats(ctx)
		return found(len(stats), err)
	})},
	// Of other nodes' agents it looks at the next 3,000 before it asks the index, for each of three ways to find the words.
	{"shops of all nodes by a rare word", 12_000, agentsBy(protocol.MerchantQuery{Q: "tearoom7 teap"}, 1)},
	{"drop dead followers", 15_000, rolledBack(func(ctx context.Context, tx *storage.Tx) error {
		n, err := tx.Followers().DropDead(ctx, boardID)
		return found(n, err)
	})},
	{"bytes that wait", 300_000, reading(func(ctx context.Context, tx *storage.Tx) error {
		n, err := tx.Inbox().WaitingBytes(ctx, 128<<20)
		return found(int(n), err)
	})},
	{"measure what may be evicted, on a snapshot", 700_000, func(ctx context.Context, db *storage.DB) error {
		return must.Err(db.Evict(ctx, storage.StockKept, storage.Caps[storage.StockKept]))
	}},
	{"count the review queue", 30_000, reading(func(ctx context.Context, tx *storage.Tx) error {
		n, err := tx.Moderation().CountReview(ctx)
		return found(n, err)
	})},
}

// some is found for what a call returns: a list, a page, or how many.
func some(v any, err error) error {
	if err != nil {
		return err
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice:
		return found(r.Len(), nil)
	case reflect.Struct:
		return found(r.FieldByName("Items").Len(), nil)
	default:
		return found(int(r.Int()), nil)
	}
}

// found returns an error when nothing was found: then the statement does not do what it does
// on a node that is full.
func found(n int, err error) error {
	if err == nil && n <= 0 {
		err = errors.New("found nothing")
	}
	return err
}

var errRollBack = errors.New("to be rolled back")

// rolledBack runs fn in a write and rolls it back.
func rolledBack(fn func(ctx context.Context, tx *storage.Tx) error) func(ctx context.Context, db *storage.DB) error {
	return func(ctx context.Context, db *storage.DB) error {
		err := db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			if err := fn(ctx, tx); err != nil {
				return err
			}
			return errRollBack
		})
		if errors.Is(err, errRollBack) {
			return nil
		}
		return err
	}
}

// rootID is the post that the thread is under, the first entry of the log.
func rootID(ctx context.Context, tx *storage.Tx) string {
	entries, err := tx.Logs().After(ctx, boardID, 0, 1)
	if err != nil {
		return err.Error() // no post has it
	}
	return entries[0].ObjectID
}

func reading(fn func(ctx context.Context, tx *storage.Tx) error) func(ctx context.Context, db *storage.DB) error {
	return func(ctx context.Context, db *storage.DB) error { return db.Read(ctx, fn) }
}

// TestGrowth compares what each statement costs on ten times as much: the rows
// that PostgreSQL looks at, the pages that SQLite does. STOA_GROWTH is the larger
// scale in thousandths, 100 by default.
func TestGrowth(t *testing.T) {
	large := 100
	if text := os.Getenv("STOA_GROWTH"); text != "" {
		large = must.Get(strconv.Atoi(text))(t)
	}
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		c.Now = func() time.Time { return start }
		costs := map[string][2]float64{}
		for i, scale := range []int{large / 10, large} {
			own := c
			if i == 1 { // next to the smaller one
				if c.URL != "" {
					own.URL = storagetest.PostgresURL(t)
				} else {
					own.Path += ".large"
				}
			}
			db, err := storage.Open(t.Context(), own)
			require.NoError(t, err)
			skew(t, db, scale)
			enqueue(t, db, slices.Repeat([]storage.Job{{Kind: "due", RunAt: start.Add(-time.Second)}}, 8)...)
			for _, g := range slices.Concat(grown, grownShops, calls(grownCalls), calls(grownBids), calls(grownMeetings), calls(grownOrders),
				calls(grownReviews), calls(grownItems)) {
				cost := costs[g.name]
				cost[i], err = costOf(t, db, g.run)
				require.NoError(t, err, g.name)
				costs[g.name] = cost
			}
			for _, b := range bounded {
				cost, err := costOf(t, db, b.run)
				require.NoError(t, err, b.name)
				t.Logf("%-30s %8.0f", b.name, cost)
				if c.URL != "" {
					require.LessOrEqual(t, cost, b.rows, b.name)
				}
			}
			require.NoError(t, db.Close())
		}
		for _, name := range slices.Sorted(maps.Keys(costs)) {
			cost := costs[name]
			t.Logf("%-30s %8.0f %8.0f", name, cost[0], cost[1])
			// Where little is looked at, a few pages more are no growth; and a table of a few
			// pages is read whole, which the larger scales end.
			most, floor := 4.0, 50.0 // pages; a tree of one page gets two more levels at most
			if c.URL != "" {
				most, floor = 2, 1000 // rows
			}
			if c.URL != "" && large >= 1000 {
				floor = 150
			}
			assert.Less(t, cost[1], most*max(cost[0], floor), "%s: ten times as much costs %.0f instead of %.0f", name, cost[1], cost[0])
		}
	})
}

// costOf is how many rows PostgreSQL looks at for what run does, or how many pages
// SQLite does.
func costOf(t *testing.T, db *storage.DB, run func(ctx context.Context, db *storage.DB) error) (float64, error) {
	visited := storage.CountVisits(db)
	err := run(t.Context(), db)
	return visited(), err
}
