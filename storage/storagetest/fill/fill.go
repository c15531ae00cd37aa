// Package fill makes a large node for tests and benchmarks: posts in threads of
// sentences filled with words by Zipf's law, one in eight in Hindi, tags, kinds,
// authors and resolutions, the profiles that wrote them, and what their owners and
// the operators see. The same seed gives the same contents. What it writes is in no
// log, so it is not sent to other nodes.
package fill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// MaxPosts is the most posts that one node is filled with.
const MaxPosts = 10_000_000

// A Config says what to make. Base, Posts and Profiles are required.
type Config struct {
	Base            string // public address of the node, without a slash at the end
	Posts, Profiles int
	Threads         int // of contact, half of them with the first profile; they need profiles
	Boards          int // attention boards, of the first persons
	Items           int // of businesses besides the few that each has; the first has LargeShop of them. They need profiles
	Seed            uint64
	Progress        func(what string, done, of int) // called once a chunk; nil for silence
}

// Parse reads what to make: "N" for N posts, a tenth as many profiles and a
// twentieth as many threads, or a list of posts=N, profiles=M, threads=T,
// boards=B, items=I and seed=S; there are no attention boards unless boards says so, and few items unless items does. A number may end in k or m.
func Parse(s string) (Config, error) {
	c := Config{Seed: 1, Profiles: -1, Threads: -1}
	if !strings.Contains(s, "=") {
		s = "posts=" + s
	}
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := number(value)
		if err != nil || n > MaxPosts {
			return c, fmt.Errorf("%q: a number up to %d is needed", part, MaxPosts)
		}
		switch name {
		case "posts":
			c.Posts = n
		case "profiles":
			c.Profiles = n
		case "threads":
			c.Threads = n
		case "boards":
			c.Boards = n
		case "items":
			c.Items = n
		case "seed":
			c.Seed = uint64(n)
		default:
			return c, fmt.Errorf("%q: say posts=, profiles=, threads=, boards=, items= or seed=", part)
		}
	}
	if c.Profiles < 0 {
		c.Profiles = c.Posts / 10
	}
	if c.Threads < 0 && c.Profiles > 0 {
		c.Threads = c.Posts / 20
	}
	c.Threads = max(c.Threads, 0)
	return c, nil
}

var numeral = regexp.MustCompile(`^([0-9]{1,9})([km]?)$`)

func number(s string) (int, error) {
	m := numeral.FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	n, err := strconv.Atoi(m[1])
	return n * map[string]int{"": 1, "k": 1000, "m": 1_000_000}[m[2]], err
}

// version is raised when the same configuration makes other contents.
const version = 6

// state is how far a database is filled, and with what.
type state struct {
	Version         int
	Posts, Profiles int
	Threads, Boards int
	Items           int `json:",omitempty"`
	Seed            uint64
	Until           int64 // time of the last post, Unix milliseconds
	PostsDone       int
	ProfilesDone    int
	ThreadsDone     int
	ItemsDone       int `json:",omitempty"` // batches
}

const setting = "fill"

// How much one transaction writes. Each profile moves the clock of the lists, a
// row whose every version PostgreSQL walks over until the transaction ends.
const (
	manyPosts    = 5000
	manyProfiles = 500
	manyThreads  = 1000
)

// Fill fills a database. One that is filled with the same already is left as it
// is, one whose filling was interrupted is filled on; filling it with something
// else is an error.
func Fill(ctx context.Context, db *storage.DB, c Config) error {
	s, err := begin(ctx, db, c)
	if err != nil {
		return err
	}
	w := newWriter(c, time.UnixMilli(s.Until).UTC())
	step := func(what string, done func(*state) *int, of, chunk int, one func(ctx context.Context, tx *storage.Tx, n int) error) error {
		for *done(&s) < of {
			next := s
			err := db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
				from := *done(&s)
				to := min(from+chunk, of)
				for n := from; n < to; n++ {
					if err := one(ctx, tx, n); err != nil {
						return fmt.Errorf("%s %d: %w", what, n, err)
					}
				}
				next = s
				*done(&next) = to
				if what == "posts" && to == of { // the counts are true with the last of them
					if err := tx.Posts().CountThreads(ctx); err != nil {
						return err
					}
				}
				return put(ctx, tx, next)
			})
			if err != nil {
				return err
			}
			s = next
			if c.Progress != nil {
				c.Progress(what, *done(&s), of)
			}
		}
		return nil
	}
	if err := step("profiles", func(s *state) *int { return &s.ProfilesDone }, s.Profiles, manyProfiles, w.profile); err != nil {
		return err
	}
	if err := step("posts", func(s *state) *int { return &s.PostsDone }, s.Posts, manyPosts, w.post); err != nil {
		return err
	}
	if err := step("batches of items", func(s *state) *int { return &s.ItemsDone }, (s.Items+itemsAtOnce-1)/itemsAtOnce, 1, w.items); err != nil {
		return err
	}
	return step("threads", func(s *state) *int { return &s.ThreadsDone }, s.Threads, manyThreads, w.thread)
}

func begin(ctx context.Context, db *storage.DB, c Config) (s state, err error) {
	for _, n := range []int{c.Posts, c.Profiles, c.Threads} {
		if n < 0 || n > MaxPosts {
			return s, fmt.Errorf("fill: from 0 to %d posts, profiles and threads", MaxPosts)
		}
	}
	if c.Threads > 0 && c.Profiles == 0 {
		return s, errors.New("fill: threads are with profiles; say how many")
	}
	if c.Items > 0 && (c.Profiles < 4 || c.Items > LargeShop*businesses(c.Profiles)) {
		return s, fmt.Errorf("fill: at most %d items for each business, which three in ten profiles are", LargeShop)
	}
	if c.Boards < 0 || c.Boards > persons(c.Profiles) {
		return s, errBoards
	}
	err = db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		raw, err := tx.Settings().Get(ctx, setting)
		if err != nil {
			return err
		}
		s = state{Version: version, Posts: c.Posts, Profiles: c.Profiles, Threads: c.Threads, Boards: c.Boards, Items: c.Items, Seed: c.Seed,
			Until: tx.Now.Add(-time.Minute).UnixMilli()}
		if raw == "" {
			return put(ctx, tx, s)
		}
		if err := json.Unmarshal([]byte(raw), &s); err != nil {
			return err
		}
		if s.Version != version || s.Posts != c.Posts || s.Profiles != c.Profiles || s.Threads != c.Threads ||
			s.Boards != c.Boards || s.Items != c.Items || s.Seed != c.Seed {
			return fmt.Errorf("fill: this database is filled with posts=%d,profiles=%d,threads=%d,boards=%d,seed=%d already; take another data directory",
				s.Posts, s.Profiles, s.Threads, s.Boards, s.Seed)
		}
		return nil
	})
	return s, err
}

func put(ctx context.Context, tx *storage.Tx, s state) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tx.Settings().Put(ctx, setting, string(raw))
}

// A writer makes the things of one node by their number.
type writer struct {
	Config
	until time.Time
	plan  *plan
	words *zipf
	tags  *zipf
}

func newWriter(c Config, until time.Time) *writer {
	return &writer{Config: c, until: until, plan: newPlan(c), words: newZipf(Words), tags: newZipf(Tags)}
}

// at is when post n was written: the posts are spread over a year.
func (w *writer) at(n int) time.Time {
	step := max(time.Millisecond, 365*24*time.Hour/time.Duration(max(1, w.Posts)))
	return w.until.Add(-time.Duration(w.Posts-1-n) * step).Truncate(time.Millisecond)
}

func (w *writer) postID(n int) string {
	return protocol.RemoteID(protocol.PostID, w.at(n), fmt.Sprintf("fill %d post %d", w.Seed, n))
}

// A zipf draws ranks from 0 up, each as often as one over its place.
type zipf struct{ sums []float64 }

func newZipf(n int) *zipf {
	z := &zipf{make([]float64, n)}
	sum := 0.0
	for i := range z.sums {
		sum += 1 / float64(i+1)
		z.sums[i] = sum
	}
	return z
}

// rank is the rank that stands at a share of the whole, from 0 to 1.
func (z *zipf) rank(share float64) int {
	if len(z.sums) == 0 {
		return 0
	}
	want := share * z.sums[len(z.sums)-1]
	lo, hi := 0, len(z.sums)-1
	for lo < hi {
		if mid := (lo + hi) / 2; z.sums[mid] < want {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return min(lo, math.MaxInt32)
}
