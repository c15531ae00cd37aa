package commit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

// A read of a standby finds all that was committed before it began, as a read of the primary does: the process asks the primary for
// its position in the write-ahead log, one question for all reads that wait for it, and a standby answers that has replayed it. So
// a client reads what it wrote, at every process, and its requests say nothing about it. A standby that is behind, away, or on another
// timeline than the primary is passed over.

const (
	replayWait  = 16 * time.Millisecond // how long a read waits for a standby that is behind
	passedOver  = time.Second / 2       // how long reads do not try a standby that was behind or away
	replicaName = "timeline"            // of the row of the table generation with the primary's timeline
)

var (
	errBehind  = errors.New("storage: the standby is behind the primary")
	errUnknown = errors.New("storage: the standby does not say where it is") // as one that has not replayed the first migration
)

// A mark is a position of the primary: a place in its log, on a timeline that began with a fail-over.
type mark struct {
	lsn      string
	timeline int64
}

// primaryMark is where every commit that was answered is. Without synchronous_commit some are not on disk yet.
const primaryMark = `SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END::text,
	pg_walfile_name(pg_current_wal_insert_lsn())`

// hasMark asks a standby, or one that was made the primary. That the row is there proves its timeline: after a fail-over a standby that
// continued the old one may be ahead of the new primary.
const hasMark = `SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() >= $1::text::pg_lsn
	ELSE pg_current_wal_flush_lsn() >= $1::text::pg_lsn AND ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int8 = $2 END
	AND EXISTS (SELECT FROM generation WHERE name = '` + replicaName + `' AND n = $2)`

// replicas are the standbys of a database.
type replicas struct {
	db     *DB
	all    []*replica
	turn   atomic.Uint64
	direct atomic.Uint64 // reads that the primary answered
	told   atomic.Int64  // when the log last said that one was not read, in nanoseconds after the DB was opened

	mu       sync.Mutex // guards those below
	next     *question
	asking   bool
	timeline int64 // that the table generation has
}

type replica struct {
	host   string
	pool   *pool
	until  atomic.Int64 // passed over until then, in nanoseconds after the DB was opened
	reads  atomic.Uint64
	behind atomic.Uint64
}

// A question is what several reads wait for.
type question struct {
	done chan struct{}
	mark mark
	err  error
}

func (db *DB) openReplicas(n int) error {
	if len(db.config.Replicas) == 0 {
		return nil
	}
	db.replicas = &replicas{db: db}
	for _, url := range db.config.Replicas {
		reach, host, err := newReach(url, false)
		if err != nil {
			return fmt.Errorf("replica: %w", err)
		}
		reach.limit.Store(int64(silenceLimit))
		reach.direct.Store(db.direct)
		pool := reach.open()
		pool.SetMaxOpenConns(n)
		pool.SetMaxIdleConns(n)
		db.replicas.all = append(db.replicas.all, &replica{host: host, pool: newPool(bun.NewDB(pool, pgdialect.New()), Postgres, n, true)})
	}
	return nil
}

func (rs *replicas) close() (err error) {
	if rs == nil {
		return nil
	}
	for _, r := range rs.all {
		err = errors.Join(err, r.pool.close())
	}
	return err
}

// ReadAnywhere is Read that a standby may answer. fn may run twice.
func (db *DB) ReadAnywhere(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	if db.replicas == nil {
		return db.Read(ctx, fn)
	}
	if r := db.replicas.pick(); r != nil {
		m, err := db.replicas.ask(ctx)
		if err == nil {
			if err = r.read(ctx, db, m, fn); !r.failed(db, err) {
				return err
			}
		}
		db.replicas.tell(ctx, r, err)
	}
	db.replicas.direct.Add(1)
	return db.Read(ctx, fn)
}

// tell logs why a standby was not read, once a minute.
func (rs *replicas) tell(ctx context.Context, r *replica, err error) {
	now, last := int64(time.Since(rs.db.heard.opened)), rs.told.Load()
	if ctx.Err() == nil && !errors.Is(err, errBehind) && (last == 0 || now-last >= int64(time.Minute)) && rs.told.CompareAndSwap(last, now) {
		rs.db.log.Warn("a standby is not read", "host", r.host, "err", err)
	}
}

// pick is the standby whose turn it is, nil when all are passed over.
func (rs *replicas) pick() *replica {
	first := rs.turn.Add(1)
	for i := range uint64(len(rs.all)) {
		r := rs.all[(first+i)%uint64(len(rs.all))]
		if int64(time.Since(rs.db.heard.opened)) >= r.until.Load() {
			return r
		}
	}
	return nil
}

// failed reports whether the primary is to be asked instead.
func (r *replica) failed(db *DB, err error) bool {
	conflict := false // with what the standby replays
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		conflict = e.Code == "40001" || e.Code == "40P01"
	}
	switch {
	case err == nil:
		r.reads.Add(1)
		return false
	case errors.Is(err, errBehind):
		r.behind.Add(1)
	case !conflict && !unreachable(err) && !errors.Is(err, errUnknown):
		r.reads.Add(1)
		return false
	}
	if !conflict {
		r.until.Store(int64(time.Since(db.heard.opened) + passedOver))
	}
	return true
}

func (r *replica) read(ctx context.Context, db *DB, m mark, fn func(ctx context.Context, tx *Tx) error) error {
	c, err := r.pool.get(ctx)
	if err != nil {
		return err
	}
	defer func() { r.pool.put(c) }()
	if err := c.has(ctx, m); err != nil {
		return err
	}
	return c.read(ctx, db, fn)
}

// has waits until the standby has a position. It asks before the snapshot is taken, which then has what was replayed up to there.
func (c *conn) has(ctx context.Context, m mark) error {
	for waited, step := time.Duration(0), time.Millisecond; ; step *= 2 {
		var is sql.NullBool
		rows, err := c.query(ctx, hasMark, m.lsn, m.timeline)
		if err := First(rows, err).Scan(&is); err != nil {
			c.broken = true
			return errors.Join(errUnknown, err)
		}
		if is.Bool {
			return nil
		}
		if waited >= replayWait {
			return errBehind
		}
		time.Sleep(step)
		waited += step
	}
}

// ask asks the primary for its position, after the call.
func (rs *replicas) ask(ctx context.Context) (mark, error) {
	rs.mu.Lock()
	q := rs.next
	if q == nil {
		q = &question{done: make(chan struct{})}
		rs.next = q
		if !rs.asking {
			rs.asking = true
			go rs.answer()
		}
	}
	rs.mu.Unlock()
	select {
	case <-q.done:
		return q.mark, q.err
	case <-ctx.Done():
		return mark{}, ctx.Err()
	}
}

// answer answers questions as long as there are any.
func (rs *replicas) answer() {
	for {
		rs.mu.Lock()
		q := rs.next
		rs.next = nil
		rs.asking = q != nil
		rs.mu.Unlock()
		if q == nil {
			return
		}
		q.mark, q.err = rs.position(context.Background())
		close(q.done)
	}
}

func (rs *replicas) position(ctx context.Context) (m mark, err error) {
	var file string
	if err := rs.db.Lookup(ctx, primaryMark).Scan(&m.lsn, &file); err != nil {
		return m, err
	}
	if m.timeline, err = strconv.ParseInt(file[:min(8, len(file))], 16, 64); err != nil {
		return m, fmt.Errorf("name of a file of the log: %w", err)
	}
	rs.mu.Lock()
	known := rs.timeline == m.timeline
	rs.mu.Unlock()
	if known {
		return m, nil
	}
	_, err = rs.db.main.DB.ExecContext(ctx, `INSERT INTO generation (name, n) VALUES ('`+replicaName+`', $1)
		ON CONFLICT (name) DO UPDATE SET n = EXCLUDED.n WHERE generation.n <> EXCLUDED.n`, m.timeline)
	if err == nil {
		rs.mu.Lock()
		rs.timeline = m.timeline
		rs.mu.Unlock()
	}
	return m, err
}

// A ReplicaState is the state of a standby.
type ReplicaState struct {
	Host   string
	Up     bool          // it answers, on the timeline of the primary
	Bytes  int64         // of the log that it has not replayed
	Lag    time.Duration // how old the last transaction is that it has replayed, 0 when it has all
	Reads  uint64        // that it answered
	Behind uint64        // reads that it could not answer because it was behind
}

// Replicas asks each standby for its state. primary is how many reads the primary answered although a standby could have.
func (db *DB) Replicas(ctx context.Context) (all []ReplicaState, primary uint64) {
	if db.replicas == nil {
		return nil, 0
	}
	m, asked := db.replicas.ask(ctx)
	for _, r := range db.replicas.all {
		s := ReplicaState{Host: r.host, Reads: r.reads.Load(), Behind: r.behind.Load()}
		if asked == nil {
			var lag float64
			err := r.pool.db.DB.QueryRowContext(ctx, `SELECT GREATEST(0, $1::text::pg_lsn - now.lsn)::int8,
				CASE WHEN now.lsn >= $1::text::pg_lsn THEN 0 ELSE COALESCE(extract(epoch FROM now() - pg_last_xact_replay_timestamp()), 0) END::float8
				FROM (SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END AS lsn) now
				WHERE EXISTS (SELECT FROM generation WHERE name = '`+replicaName+`' AND n = $2)`, m.lsn, m.timeline).Scan(&s.Bytes, &lag)
			s.Up, s.Lag = err == nil, time.Duration(lag*float64(time.Second))
		}
		all = append(all, s)
	}
	return all, db.replicas.direct.Load()
}

// hostOf is the first host of a URL, without what is secret in it.
func hostOf(c *pgconn.Config) string {
	_, address := pgconn.NetworkAddress(c.Host, c.Port)
	return strings.TrimSpace(address)
}
