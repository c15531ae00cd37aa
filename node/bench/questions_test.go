package bench_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
	"stoa/storage/storagetest/fill"
)

// goal is how long a question may take, with 95 of 100 (or the slowest of fewer)
// answers, on a node of any size.
const goal = 50 * time.Millisecond

// repeats is how often each question is asked; the first answer counts too.
const repeats = 3

// BenchmarkLists asks the questions of lists_test.go through the HTTP door's
// handler, on SQLite and, where a cluster is named, on PostgreSQL, for each size,
// and prints a table. The filled databases stay in the directory for next time.
func BenchmarkLists(b *testing.B) {
	dir := os.Getenv("STOA_BENCH_LISTS")
	if dir == "" {
		b.Skip("run it with make bench-lists")
	}
	sizes := strings.Fields(cmp.Or(os.Getenv("BENCH_SIZES"), "10k 1m"))
	engines := []string{"sqlite"}
	if os.Getenv(storagetest.PostgresEnv) != "" {
		engines = append(engines, "postgres")
	}
	var runs []listRun
	for _, engine := range strings.Fields(cmp.Or(os.Getenv("BENCH_ENGINES"), strings.Join(engines, " "))) {
		for _, size := range sizes {
			what := must.Get(fill.Parse(size))(b)
			runs = append(runs, measure(b, dir, engine, what))
		}
	}
	report := reportOf(runs)
	fmt.Print(report)
	require.NoError(b, os.WriteFile(filepath.Join(dir, "lists.md"), []byte(report), 0o600))
}

// A listRun is every question asked of one database.
type listRun struct {
	engine  string
	posts   int
	answers []answered
}

type answered struct {
	question
	page  string // first or deep
	times []time.Duration
}

func (a answered) slowest() time.Duration { return slices.Max(a.times) }

func measure(b *testing.B, dir, engine string, what fill.Config) listRun {
	b.Helper()
	ctx := context.Background()
	name := fmt.Sprintf("%s-%d-%d-%d", engine, what.Posts, what.Profiles, what.Boards)
	c := node.Config{Listen: "127.0.0.1:0", BaseURL: "http://127.0.0.1:8350", Data: filepath.Join(dir, name), Dev: true, Version: "test"}
	if engine == "postgres" {
		c.Database = keptDatabase(b, fmt.Sprintf("bench_%d_%d_%d", what.Posts, what.Profiles, what.Boards))
	}
	n := must.Get(node.New(ctx, c, slog.New(slog.DiscardHandler)))(b)
	defer func() { require.NoError(b, n.Close()) }()
	start := time.Now()
	what.Base = n.Base
	require.NoError(b, fill.Fill(ctx, n.DB, what))
	if engine == "postgres" { // as autovacuum does in its time
		db := must.Get(sql.Open("pgx", c.Database))(b)
		must.Get(db.Exec(`VACUUM (ANALYZE)`))(b)
		require.NoError(b, db.Close())
	}
	fmt.Printf("%s: filled in %s\n", name, time.Since(start).Round(time.Second))
	start = time.Now()
	h := &asker{House: &nodetest.House{Node: n, T: b}}
	r := listRun{engine: engine, posts: what.Posts}
	every := must.Get(strconv.Atoi(cmp.Or(os.Getenv("BENCH_EVERY"), "1")))(b)
	all, counted := h.wanted(what.Profiles)
	for _, l := range all {
		if l.bearer != "" || l.op == protocol.ReadModerationLog.Operation {
			every = 1 // they are few
		}
		for i, q := range l.questions() {
			if i%every == 0 {
				r.answers = append(r.answers, h.pages(q)...)
			}
		}
	}
	for _, q := range counted {
		r.answers = append(r.answers, h.pages(q)...)
	}
	fmt.Printf("%s: %d questions asked in %s\n", name, len(r.answers), time.Since(start).Round(time.Second))
	return r
}

// wanted are the listings and counts that BENCH_ONLY leaves: all of them, those that are private, or
// the listing of one operation.
func (h *asker) wanted(profiles int) ([]listing, []question) {
	only := os.Getenv("BENCH_ONLY")
	keys := h.listKeys()
	private, counted := privateListings(keys), counts(keys)
	if only == "private" {
		return private, counted
	}
	all := append(listings(profiles, h.roots()), private...)
	if only != "" {
		return slices.DeleteFunc(all, func(l listing) bool { return l.op.Name != only }), nil
	}
	return all, counted
}

// keptDatabase is the URL of a database of the cluster, made where missing.
func keptDatabase(b *testing.B, name string) string {
	b.Helper()
	u := must.Get(url.Parse(os.Getenv(storagetest.PostgresEnv)))(b)
	db := must.Get(sql.Open("pgx", u.String()))(b)
	defer db.Close()
	var there bool
	require.NoError(b, db.QueryRow(`SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`, name).Scan(&there))
	if !there {
		must.Get(db.Exec(`CREATE DATABASE ` + name + ` ENCODING 'UTF8' TEMPLATE template0`))(b)
	}
	u.Path = "/" + name
	return u.String()
}

// An asker asks a node and measures.
type asker struct {
	*nodetest.House
	n int
}

// get asks once; an answer that is kept by the door is not taken.
func (h *asker) get(q question) ([]byte, time.Duration) {
	h.T.Helper()
	h.n++
	target := q.with("utm_n", strconv.Itoa(h.n)).target()
	r := httptest.NewRequest(q.op.HTTP.Method, h.Base+target, strings.NewReader(q.body))
	r.RequestURI = target
	if q.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+q.bearer)
	}
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	start := time.Now()
	h.Handler().ServeHTTP(w, r)
	took := time.Since(start)
	require.Equal(h.T, 200, w.Code, "%s: %s", target, w.Body)
	return w.Body.Bytes(), took
}

// pages asks for the first page and for one deep inside the listing, where it
// goes that far.
func (h *asker) pages(q question) []answered {
	first := answered{q, "first", nil}
	var body []byte
	for range repeats {
		var took time.Duration
		body, took = h.get(q)
		first.times = append(first.times, took)
	}
	after := deeper(body)
	if after == "" {
		return []answered{first}
	}
	deep := answered{q.with("after", after), "deep", nil}
	for range repeats {
		_, took := h.get(deep.question)
		deep.times = append(deep.times, took)
	}
	return []answered{first, deep}
}

// deeper is a place half a year after the end of a page where the listing goes
// by time, else the place after the page itself; "" where the page is the last.
func deeper(body []byte) string {
	var page struct {
		Next    *string
		Replies json.RawMessage
	}
	if json.Unmarshal(body, &page) != nil {
		return ""
	}
	if page.Next == nil && len(page.Replies) > 0 { // of one post
		_ = json.Unmarshal(page.Replies, &page)
	}
	if page.Next == nil {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(*page.Next)
	if listing, place, ok := strings.Cut(string(raw), "\x00"); err == nil && ok && (listing == "board" || listing == "feed") {
		if seq, err := strconv.ParseInt(place, 10, 64); err == nil {
			const halfYear = int64(182*24*time.Hour/time.Millisecond) << 21 // as storage numbers posts
			return *protocol.Cursor(listing, strconv.FormatInt(seq-halfYear, 10))
		}
	}
	return *page.Next
}

// roots are two posts that began threads: of those that are there, the one with
// the most replies and another.
func (h *asker) roots() []string {
	body, _ := h.get(question{op: protocol.ReadBoard.Operation,
		query: url.Values{"kind": {"resolution"}, "limit": {"100"},
			"after": {*protocol.Cursor("board", strconv.FormatInt(int64(time.Now().Add(-100*24*time.Hour).UnixMilli())<<21, 10))}}})
	var page protocol.Page[protocol.Post]
	require.NoError(h.T, json.Unmarshal(body, &page))
	count := map[string]int{}
	var most, other string
	for _, p := range page.Items {
		if p.Root == nil {
			continue
		}
		if count[*p.Root]++; count[*p.Root] > count[most] {
			most = *p.Root
		}
		other = *p.Root
	}
	require.NotEmpty(h.T, most)
	return []string{most, other}
}

// reportOf is a table of the listings and the slowest questions.
func reportOf(runs []listRun) string {
	var b strings.Builder
	b.WriteString("\n| listing | engine | posts | questions | median | 95 % | 95 % of the fastest of three | slowest | over " + goal.String() +
		" |\n|---|---|---|---|---|---|---|---|---|\n")
	type key struct{ engine, group string }
	small := map[key]time.Duration{}
	for _, r := range runs {
		for _, group := range groupsOf(r) {
			var times, best []time.Duration // the best are those that nothing else on the machine held up
			over := 0
			for _, a := range r.answers {
				if groupOf(a) == group {
					times, best = append(times, a.times...), append(best, slices.Min(a.times))
					if a.slowest() > goal {
						over++
					}
				}
			}
			slices.Sort(times)
			slices.Sort(best)
			p95 := times[len(times)*95/100]
			ratio := ""
			if was, ok := small[key{r.engine, group}]; ok {
				ratio = fmt.Sprintf(" (× %.1f)", float64(p95)/float64(was))
			} else {
				small[key{r.engine, group}] = p95
			}
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %s | %s%s | %s | %s | %d |\n", group, r.engine, r.posts, len(times)/repeats,
				ms(times[len(times)/2]), ms(p95), ratio, ms(best[len(best)*95/100]), ms(times[len(times)-1]), over)
		}
	}
	for _, r := range runs {
		slow := slices.Clone(r.answers)
		slices.SortFunc(slow, func(x, y answered) int { return cmp.Compare(slices.Min(y.times), slices.Min(x.times)) })
		fmt.Fprintf(&b, "\nSlowest of %d posts on %s, by their fastest answer:\n\n", r.posts, r.engine)
		for _, a := range slow[:min(len(slow), 25)] {
			target, _ := url.QueryUnescape(a.target())
			fmt.Fprintf(&b, "    %s to %s  %s page of %s%s\n", ms(slices.Min(a.times)), ms(a.slowest()), a.page, target, a.body)
		}
	}
	return b.String()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }

func groupOf(a answered) string {
	text := ""
	if a.query.Has("q") || strings.Contains(a.body, `"text":"`) && !strings.Contains(a.body, `"text":""`) {
		text = ", with words"
	}
	return "`" + a.op.Name + "`" + text + ", " + a.page + " page"
}

func groupsOf(r listRun) (groups []string) {
	for _, a := range r.answers {
		if g := groupOf(a); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}
