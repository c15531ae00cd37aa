package storage

import (
	"context"
	"strings"
	"time"

	"stoa/protocol/sorting"
)

// A JobHealth says how many jobs of one kind wait, sleep, fail and were given up.
type JobHealth struct {
	Kind      JobKind
	Due       int // to be run now, or running
	Sleeping  int // to be run later
	Retrying  int // of the first thousand that wait, those that failed before
	Dead      int
	LastError string    // of one that retries, otherwise of the newest that is dead
	Oldest    time.Time // when the first that waits was due; zero for none
}

const (
	countDue = `SELECT count(*) FROM (SELECT 1 FROM job WHERE state = 'waiting' AND kind = ? AND run_at <= ? ORDER BY run_at LIMIT ?) r`
	retrying = `SELECT count(*), COALESCE(max(last_error), '')
		FROM (SELECT last_error FROM job WHERE state = 'waiting' AND kind = ? ORDER BY run_at LIMIT 1000) r WHERE last_error <> ''`
	lastDeath = `SELECT last_error FROM job WHERE state = 'dead' AND kind = ? ORDER BY run_at DESC, id DESC LIMIT 1`
)

// Health counts the jobs of each kind that wait or are dead, up to 10,000 of each.
func (js Jobs) Health(ctx context.Context) ([]JobHealth, error) {
	stats, err := js.Stats(ctx)
	if err != nil {
		return nil, err
	}
	by := map[JobKind]*JobHealth{}
	for _, s := range stats {
		if s.State == JobDone {
			continue
		}
		h := by[s.Kind]
		if h == nil {
			h = &JobHealth{Kind: s.Kind}
			by[s.Kind] = h
		}
		switch s.State {
		case JobDead:
			h.Dead = s.Count
			if err := js.tx.row(ctx, lastDeath, string(s.Kind)).Scan(&h.LastError); err != nil {
				return nil, err
			}
		case JobWaiting:
			h.Oldest = s.Oldest
			if err := js.tx.row(ctx, countDue, string(s.Kind), millis(js.tx.Now), mostCounted).Scan(&h.Due); err != nil {
				return nil, err
			}
			h.Sleeping = s.Count - h.Due
			var last string
			if err := js.tx.row(ctx, retrying, string(s.Kind)).Scan(&h.Retrying, &last); err != nil {
				return nil, err
			}
			if last != "" {
				h.LastError = last
			}
		}
	}
	all := make([]JobHealth, 0, len(by))
	for _, h := range by {
		all = append(all, *h)
	}
	sorting.Stable(all, func(a, b JobHealth) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
	return all, nil
}

// A StockUse is how much of its cap a stock uses.
type StockUse struct {
	Stock Stock
	Rows  int
	Bytes int64
	Cap   Cap
}

// Stocks measures every stock, in a time that grows with them: cache the result in a Memo.
func (st Site) Stocks(ctx context.Context) ([]StockUse, error) {
	all := make([]StockUse, 0, len(stocks))
	for name, s := range stocks {
		u := StockUse{Stock: name, Cap: Caps[name]}
		if err := st.tx.row(ctx, s.measure()).Scan(&u.Rows, &u.Bytes); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	sorting.Stable(all, func(a, b StockUse) int { return strings.Compare(string(a.Stock), string(b.Stock)) })
	return all, nil
}

// Bytes is the size of the database, without files that SQLite empties by itself.
func (st Site) Bytes(ctx context.Context) (int64, error) {
	query := `SELECT c.page_count * s.page_size FROM pragma_page_count() c, pragma_page_size() s`
	if st.tx.db.engine == enginePostgres {
		query = `SELECT pg_database_size(current_database())`
	}
	return find[int64](ctx, st.tx, query)
}

// PaymentAccounts counts the accounts at payment providers, up to 10,000.
func (st Site) PaymentAccounts(ctx context.Context) (int, error) {
	return find[int](ctx, st.tx, `SELECT count(*) FROM (SELECT 1 FROM payment_account LIMIT 10000) r`)
}

// A Server is the database program.
type Server struct {
	Version string
	Schema  int64     // version of the tables
	Clock   time.Time // there
}

// Server says which program holds the database, and what time it is there.
func (st Site) Server(ctx context.Context) (s Server, err error) {
	query := `SELECT sqlite_version(), max(version_id), ? FROM goose_db_version`
	args := []any{millis(st.tx.Now)}
	if st.tx.db.engine == enginePostgres {
		query, args = `SELECT current_setting('server_version'), max(version_id), CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)
			FROM goose_db_version`, nil
	}
	var clock int64
	err = st.tx.row(ctx, query, args...).Scan(&s.Version, &s.Schema, &clock)
	s.Clock = time.UnixMilli(clock).UTC()
	return s, err
}
