package commit

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"

	"stoa/protocol/trace"
)

// A conn is one connection with its prepared statements. It serves one
// transaction at a time.
type conn struct {
	bun    bun.Conn
	engine Engine
	stmts  map[string]*sql.Stmt // by text; nil on PostgreSQL, where statements stay unnamed
	named  map[string]named     // by text (held.go)
	kept   map[string]bool      // by text: kept by PostgreSQL
	broken bool                 // must not be used again
	heard  *pulse               // is told of each statement that was answered
}

// A pulse is when a server last answered, for those who wait for one of its connections. A server that answers is only slow,
// however long a transaction takes; one that does not is away.
type pulse struct {
	opened time.Time
	limit  time.Duration // of silence, after which nobody need wait
	at     atomic.Int64  // nanoseconds after opened; 0 while nothing was asked
}

func (p *pulse) beat() { p.at.Store(int64(time.Since(p.opened))) }

// rest returns how much of the limit is left.
func (p *pulse) rest() time.Duration {
	at := p.at.Load()
	if at == 0 {
		return p.limit
	}
	return p.limit - (time.Since(p.opened) - time.Duration(at))
}

// maxStmts limits the prepared statements of a connection. There are far fewer
// constant texts; the limit is for texts that are built.
const maxStmts = 512

func openConn(ctx context.Context, db *bun.DB, e Engine, heard *pulse) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	out := &conn{bun: c, engine: e, heard: heard}
	if e == SQLite {
		out.stmts = map[string]*sql.Stmt{}
	}
	return out, nil
}

func (c *conn) close() error {
	var err error
	if c.broken {
		// So that the driver's pool does not reuse it.
		_ = c.bun.Conn.Raw(func(any) error { return driver.ErrBadConn })
		return nil
	}
	for _, s := range c.stmts {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, c.bun.Close())
}

func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	s, err := c.bun.Conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	if len(c.stmts) >= maxStmts {
		for text, old := range c.stmts {
			old.Close()
			delete(c.stmts, text)
			break
		}
	}
	c.stmts[query] = s
	return s, nil
}

// keep makes PostgreSQL keep a statement, with its plan, as long as the connection lasts;
// later uses of its text then run it.
func (c *conn) keep(ctx context.Context, text string) error {
	if c.kept[text] {
		return nil
	}
	err := c.bun.Conn.Raw(func(raw any) error {
		_, err := raw.(*stdlib.Conn).Conn().Prepare(ctx, text, text)
		return err
	})
	if err == nil {
		if c.kept == nil {
			c.kept = map[string]bool{}
		}
		c.kept[text] = true
	}
	return err
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(ctx context.Context, query string, args ...any) (int64, error) {
	var res sql.Result
	var err error
	if c.stmts == nil {
		res, err = c.bun.Conn.ExecContext(ctx, c.engine.rebind(query), args...)
	} else {
		var s *sql.Stmt
		query, args = literalLimits(query, args)
		if s, err = c.prepare(query); err == nil {
			res, err = s.ExecContext(ctx, args...)
		}
	}
	if err != nil {
		return 0, err
	}
	c.heard.beat()
	return res.RowsAffected()
}

func (c *conn) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if c.stmts == nil {
		rows, err := c.bun.Conn.QueryContext(ctx, c.engine.rebind(query), args...)
		if err == nil {
			c.heard.beat()
		}
		return rows, err
	}
	query, args = literalLimits(query, args)
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// read runs fn on a snapshot.
func (c *conn) read(ctx context.Context, db *DB, fn func(ctx context.Context, tx *Tx) error) error {
	ctx, span := trace.Start(ctx, "read", trace.Internal)
	defer span.End()
	if _, err := c.exec(ctx, db.engine.beginRead()); err != nil {
		c.broken = true
		return fmt.Errorf("begin a read: %w", err)
	}
	defer func() {
		// Also after a panic, and when the caller's context has ended.
		if _, e := c.exec(context.Background(), "ROLLBACK"); e != nil {
			c.broken = true
		}
	}()
	return fn(ctx, &Tx{Now: db.Clock(), db: db, conn: c})
}

// literalLimits writes the integers of LIMIT ? into a statement. SQLite inspects such a
// parameter to plan the statement, and would prepare it again at each execution;
// limits have few values, so that each text is prepared once.
func literalLimits(query string, args []any) (string, []any) {
	const parameter = "LIMIT ?"
	if !strings.Contains(query, parameter) || strings.Count(query, "?") != len(args) {
		return query, args
	}
	var text strings.Builder
	kept := make([]any, 0, len(args))
	for {
		before, after, found := strings.Cut(query, parameter)
		text.WriteString(before)
		n := strings.Count(before, "?")
		kept, args = append(kept, args[:n]...), args[n:]
		if !found {
			return text.String(), kept
		}
		switch n := args[0].(type) {
		case int:
			text.WriteString("LIMIT " + strconv.Itoa(n))
		case int64:
			text.WriteString("LIMIT " + strconv.FormatInt(n, 10))
		default:
			text.WriteString(parameter)
			kept = append(kept, n)
		}
		query, args = after, args[1:]
	}
}

// A pool lends connections to readers.
type pool struct {
	db     *bun.DB
	engine Engine
	own    bool          // close db with the pool
	slots  chan struct{} // one a connection that is lent
	idle   chan *conn
	heard  pulse // of its readers
}

func newPool(db *bun.DB, e Engine, n int, own bool) *pool {
	return &pool{db: db, engine: e, own: own, slots: make(chan struct{}, n), idle: make(chan *conn, n), heard: pulse{opened: time.Now(), limit: waitLimit}}
}

func (p *pool) get(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.slot(ctx); err != nil {
		return nil, err
	}
	select {
	case c := <-p.idle:
		return c, nil
	default:
	}
	c, err := openConn(ctx, p.db, p.engine, &p.heard)
	if err != nil {
		<-p.slots
	}
	return c, err
}

// slot waits for one of the connections. On PostgreSQL it gives up when none came back, and those who have them got no answer, for
// as long as a server that does not answer may hold a caller up.
func (p *pool) slot(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
	}
	var late <-chan time.Time
	if p.engine == Postgres {
		late = time.After(p.heard.limit)
	}
	for {
		select {
		case p.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			rest := p.heard.rest()
			if rest <= 0 {
				return errHeldUp
			}
			late = time.After(rest)
		}
	}
}

func (p *pool) put(c *conn) {
	// PostgreSQL connections go back to the driver's pool, which replaces those
	// that a cancelled query has closed. SQLite's keep their statements.
	if c.broken || p.engine == Postgres {
		c.close()
	} else {
		p.idle <- c
	}
	p.heard.beat()
	<-p.slots
}

func (p *pool) close() error {
	var err error
	for {
		select {
		case c := <-p.idle:
			err = errors.Join(err, c.close())
		default:
			if p.own {
				err = errors.Join(err, p.db.Close())
			}
			return err
		}
	}
}
