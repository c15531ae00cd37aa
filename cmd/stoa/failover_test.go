package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// answerLimit is the time in which every request is answered, whatever happens to the database.
const answerLimit = 29 * time.Second

// A witness sees every request of a test and its answer.
type witness struct {
	t    *testing.T
	next http.RoundTripper

	mu       sync.Mutex // guards those below
	statuses map[int]int
	longest  time.Duration
}

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	res, err := w.next.RoundTrip(r)
	took := time.Since(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest = max(w.longest, took)
	if err != nil {
		if r.Context().Err() == nil {
			w.t.Errorf("%s %s after %s: %v", r.Method, r.URL.Path, took, err)
		}
		return res, err
	}
	w.statuses[res.StatusCode]++
	if res.StatusCode >= 500 && res.StatusCode != http.StatusServiceUnavailable {
		w.t.Errorf("%s %s: %s", r.Method, r.URL.Path, res.Status)
	}
	if res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "" {
		w.t.Errorf("%s %s: 503 without Retry-After", r.Method, r.URL.Path)
	}
	return res, err
}

// A load is what many do at once on a node whose database fails. Each write is repeated under its key until it is acknowledged.
type load struct {
	*auction
	saw  *witness
	life context.Context
	run  sync.WaitGroup

	mu    sync.Mutex          // guards those below
	done  map[string][]string // ids of what was acknowledged, by kind
	times []time.Time         // of the acknowledgements
	seen  map[string]bool     // posts that a stream showed
	from  int                 // how many posts had been acknowledged, or were under way, when it showed the first

	pause time.Duration                 // between meeting requests
	again func(code protocol.Code) bool // reports whether a refusal is of the test's making, and the request is repeated
}

const (
	posts    = "posts"
	bids     = "bids"
	meetings = "meetings"

	posters = 4
)

func newLoad(t *testing.T, database string) (l *load, end func()) { return newLoadOn(t, 0, database) }

func newLoadOn(t *testing.T, port int, database string, more ...string) (l *load, end func()) {
	l = &load{auction: newAuctionOn(t, port, database, more...), done: map[string][]string{}, seen: map[string]bool{}, pause: time.Second / 5,
		again: func(protocol.Code) bool { return false }}
	l.saw = &witness{t: t, next: l.http.Transport, statuses: map[int]int{}}
	l.http = &http.Client{Timeout: time.Minute, Transport: l.saw}
	var cancel func()
	l.life, cancel = context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return l, func() { cancel(); l.run.Wait() }
}

func (l *load) acknowledge(kind, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[kind] = append(l.done[kind], id)
	l.times = append(l.times, time.Now())
}

// more waits until there are n more acknowledgements of each kind.
func (l *load) more(n int) { l.t.Helper(); l.moreOf(n, posts, bids, meetings) }

func (l *load) moreOf(n int, kinds ...string) {
	l.t.Helper()
	count := func() map[string]int {
		l.mu.Lock()
		defer l.mu.Unlock()
		now := map[string]int{}
		for _, kind := range kinds {
			now[kind] = len(l.done[kind])
		}
		return now
	}
	before := count()
	var now map[string]int
	require.Eventually(l.t, func() bool {
		now = count()
		for kind := range now {
			if now[kind] < before[kind]+n {
				return false
			}
		}
		return true
	}, 3*time.Minute, 20*time.Millisecond, "%v, and then %v", &before, &now)
}

// refuses waits until more requests are answered with 503.
func (l *load) refuses() {
	l.t.Helper()
	count := func() int {
		l.saw.mu.Lock()
		defer l.saw.mu.Unlock()
		return l.saw.statuses[http.StatusServiceUnavailable]
	}
	before := count()
	require.Eventually(l.t, func() bool { return count() > before+posters }, time.Minute, 20*time.Millisecond)
}

// outage is the longest time without an acknowledgement, after the first ones.
func (l *load) outage(first int) (longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := max(first, 1); i < len(l.times); i++ {
		longest = max(longest, l.times[i].Sub(l.times[i-1]))
	}
	return longest
}

// write is ask until the answer is not a refusal of the test's making.
func (l *load) write(method, path, body string, sign func(*http.Request, []byte), into any) (code protocol.Code) {
	for {
		if code = l.ask(method, path, body, sign, into); !l.again(code) {
			return code
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (l *load) signed(pair key.Pair) func(*http.Request, []byte) {
	return func(r *http.Request, body []byte) {
		if err := httpsig.SignRequest(r, l.target, body, httpsig.SignOptions{Key: pair.Signer()}); err != nil {
			l.t.Error(err)
		}
	}
}

// keep repeats do, with another number each time, until the end.
func (l *load) keep(do func(n int)) {
	l.run.Go(func() {
		for n := 0; l.life.Err() == nil; n++ {
			do(n)
		}
	})
}

// start lets posters, bidders, which pay, those who ask for meetings and readers begin.
func (l *load) start() {
	l.t.Helper()
	l.opens("auction")
	token := func(handle string) string {
		l.bidder(handle)
		return must.Get(node.Do(l.t.Context(), l.admin, protocol.GrantToken, protocol.TokenGrant{NewToken: protocol.NewToken{Handle: handle, Name: "test",
			Scopes: protocol.OwnerScopes}}))(l.t).Secret
	}
	const hosts = 4
	for i := range hosts {
		require.NoError(l.t, openRooms(l.t.Context(), l.base, devAgent{OwnerToken: token(fmt.Sprint("host-", i))}, seeded{Meetings: map[string]any{
			"acceptingMeetingRequests": true, "maxWaiting": 100}}))
	}
	for i := range posters {
		sign := l.signed(l.bidder(fmt.Sprintf("poster-%d", i)))
		l.keep(func(n int) {
			title := fmt.Sprintf("crash-%d-%d", i, n)
			var p protocol.Post
			body := fmt.Sprintf(`{"kind":"offer","title":%q,"body":"Written under fire."}`, title)
			if code := l.write("POST", "/api/public/board", body, keyed(title, sign), &p); code != "" {
				l.t.Errorf("%s was refused: %s", title, code)
				return
			}
			l.acknowledge(posts, p.ID)
		})
	}
	for i := range 6 {
		sign := l.signed(l.bidder(fmt.Sprintf("bidder-%d", i)))
		l.keep(func(n int) {
			made, code := l.bid("auction", 100+int64(n)*10+rand.Int64N(40), fmt.Sprintf("Bid %d of %d", n, i), sign)
			if code != "" {
				time.Sleep(20 * time.Millisecond) // the slot is taken, or the bid too low
				return
			}
			var payment protocol.Payment
			switch code := l.ask("POST", "/api/public/payment/sandbox", `{"button":"pay"}`, bearer(made.PaymentURL), &payment); {
			case l.again(code):
				return // the hold has ended
			case code != "":
				l.t.Errorf("a payment was refused: %s", code)
				return
			}
			l.acknowledge(bids, made.StatusToken+" "+made.Bid.ID)
		})
	}
	guests := make([]func(*http.Request, []byte), hosts*100/8) // each has room for ten requests, and so has its network
	for i := range guests {
		as := bearer(token(fmt.Sprint("guest-", i)))
		guests[i] = func(r *http.Request, body []byte) {
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("2a00:%x::1", i+1))
			as(r, body)
		}
	}
	l.keep(func(n int) {
		if n/8 >= len(guests) {
			time.Sleep(time.Second)
			return
		}
		name := fmt.Sprintf("meeting-%d", n)
		at := time.Now().UTC().Add(time.Duration(48+n) * time.Hour).Truncate(time.Hour)
		body := fmt.Sprintf(`{"requester":%q,"email":"guest%d@example.org","purpose":"Yarn, number %d.","durationMin":30,"startsAt":%q}`,
			name, n, n, at.Format(time.RFC3339))
		var made protocol.MeetingReceipt
		if code := l.write("POST", fmt.Sprintf("/api/public/agents/host-%d/meetings", n%hosts), body, keyed(name, guests[n/8]), &made); code != "" {
			l.t.Errorf("%s was refused: %s", name, code)
			time.Sleep(time.Second)
			return
		}
		l.acknowledge(meetings, made.Request.ID)
		time.Sleep(l.pause)
	})
	for _, path := range []string{"/", "/board", "/api/public/board", "/agents/host-0", "/api/public/agents/auction/attention"} {
		l.keep(func(int) {
			if res, err := l.get(path, "text/html,application/json"); err == nil {
				res.Body.Close()
			}
			time.Sleep(20 * time.Millisecond)
		})
	}
	place := ""
	l.keep(func(int) { place = l.stream(place) })
}

func keyed(key string, sign func(*http.Request, []byte)) func(*http.Request, []byte) {
	return func(r *http.Request, body []byte) {
		r.Header.Set("Idempotency-Key", key)
		sign(r, body)
	}
}

func (l *load) get(path, accept string, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(l.life, "GET", l.base+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return l.http.Do(r)
}

// stream follows the feed from a place until the stream ends, and returns where.
func (l *load) stream(place string) string {
	client := *l.http
	client.Timeout = 0
	r := must.Get(http.NewRequestWithContext(l.life, "GET", l.base+"/api/public/feed/stream", nil))(l.t)
	if place != "" {
		r.Header.Set("Last-Event-ID", place)
	}
	res, err := client.Do(r)
	if err != nil {
		return place
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			place = id
		}
		var item protocol.FeedItem
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &item) == nil {
			l.mu.Lock()
			if l.seen[item.Subject.ID] = true; len(l.seen) == 1 {
				l.from = len(l.done[posts]) + posters
			}
			l.mu.Unlock()
		}
	}
	return place
}

// streamed waits until the stream has shown every post that was acknowledged since it began.
func (l *load) streamed() {
	l.t.Helper()
	all := func() []string {
		l.mu.Lock()
		defer l.mu.Unlock()
		return slices.Clone(l.done[posts][l.from:])
	}()
	assert.Eventually(l.t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return !slices.ContainsFunc(all, func(id string) bool { return !l.seen[id] })
	}, time.Minute, 50*time.Millisecond, "the stream misses some")
}

// holds checks that all that was acknowledged is there, once.
func (l *load) holds() {
	l.t.Helper()
	l.mu.Lock()
	done := maps.Clone(l.done)
	l.mu.Unlock()
	got := countTitles(l.t, l.base)
	for title, n := range got {
		require.Equal(l.t, 1, n, title)
	}
	require.GreaterOrEqual(l.t, len(got), len(done[posts]))
	for _, kind := range []string{posts, bids, meetings} {
		twice := slices.Clone(done[kind])
		slices.Sort(twice)
		require.Len(l.t, slices.Compact(twice), len(done[kind]), kind)
	}
	for _, of := range done[bids] {
		token, id, _ := strings.Cut(of, " ")
		l.settles(protocol.BidReceipt{StatusToken: token, Bid: protocol.Bid{ID: id}}, 2)
	}
	kept := map[string]int{}
	rows := must.Get(l.plain.Query(`SELECT id, doc::json ->> 'name' FROM meeting`))(l.t)
	names := map[string]int{}
	for rows.Next() {
		var id, requester string
		require.NoError(l.t, rows.Scan(&id, &requester))
		kept[id]++
		names[requester]++
	}
	require.NoError(l.t, rows.Err())
	for _, id := range done[meetings] {
		require.Equal(l.t, 1, kept[id], "meeting request %s", id)
	}
	for name, n := range names {
		require.Equal(l.t, 1, n, name)
	}
	for _, s := range l.nodes {
		s.kill()
	}
	out, errs, code := stoa(l.t, "", append([]string{"admin", "check"}, l.of...)...)
	require.Equal(l.t, 0, code, errs)
	require.Equal(l.t, "ok\n", out)
}

// TestFailover kills the primary of two PostgreSQL servers under load and makes the other, which follows it synchronously, the
// primary. The processes of the node find it by themselves. Meanwhile every request is answered 503 with Retry-After; what was
// acknowledged is there, once; streams continue where they were.
func TestFailover(t *testing.T) {
	t.Parallel()
	failover(t, os.Getenv("STOA_TEST_ROUNDS") == "all", func(first, second *storagetest.Server) string { return storagetest.URL(first, second) })
}

// TestFailover_PgBouncer is the same with PgBouncer in transaction mode before each server. It keeps its clients when its server is gone.
func TestFailover_PgBouncer(t *testing.T) {
	if os.Getenv("STOA_TEST_ROUNDS") != "all" {
		return // make soak sets it
	}
	failover(t, false, func(first, second *storagetest.Server) string {
		one, endOne := storagetest.Pooler(t, first.URL(), "transaction")
		two, endTwo := storagetest.Pooler(t, second.URL(), "transaction")
		t.Cleanup(func() { endOne(); endTwo() })
		return storagetest.Through(t, first.URL(), one, two)
	})
}

// failover freezes the primary first, if it is asked to, for as long as a server takes to be given up that keeps its connections.
func failover(t *testing.T, freeze bool, url func(first, second *storagetest.Server) string) {
	first := storagetest.Primary(t)
	second := first.Standby(true)
	l, end := newLoad(t, url(first, second))
	l.start()
	l.more(5)
	if freeze {
		first.Freeze()
		time.Sleep(answerLimit)
		first.Thaw()
		l.more(5)
	}
	began := time.Now()
	first.Kill()
	time.Sleep(2 * time.Second)
	second.Promote()
	promoted := time.Since(began)
	l.more(5)
	outage := l.outage(0)
	l.streamed()
	end()
	t.Logf("promoted after %s; %s without a write; answers %v, the longest after %s; acknowledged: %d posts, %d bids paid, %d meetings",
		promoted.Round(time.Millisecond),
		outage.Round(time.Millisecond), l.saw.statuses, l.saw.longest.Round(time.Millisecond), len(l.done[posts]), len(l.done[bids]), len(l.done[meetings]))
	require.Less(t, l.saw.longest, answerLimit)
	require.Positive(t, l.saw.statuses[http.StatusServiceUnavailable])
	l.plain = second.Open("stoa") // not through a pooler of the first
	l.holds()
}
