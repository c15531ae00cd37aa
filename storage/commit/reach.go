package commit

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// How long a PostgreSQL server that does not answer holds a caller up. What one request meets of them is less than the 30
// seconds in which a node answers.
const (
	connectLimit = 3 * time.Second        // each host of the URL, unless it has connect_timeout
	silenceLimit = 15 * time.Second       // a statement of a process that serves, from byte to byte
	longLimit    = 5 * time.Minute        // the same, of what nobody waits for (ReadLong)
	pingLimit    = 3 * time.Second        // the same, of the ping of a connection that was idle
	waitLimit    = 8 * time.Second        // for a connection, or for a writer that is held up
	retryEvery   = 250 * time.Millisecond // while connecting fails, how often it is tried
	awayLimit    = 10 * time.Second       // how long a host that did not answer is passed over
	startLimit   = time.Minute            // how long a process that serves waits for the database when it starts
)

var (
	errAway   = errors.New("no server takes connections")
	errSilent = errors.New("the server does not answer")
	errHeldUp = errors.New("other statements are not answered")
)

// A reach connects to the servers of one URL. After a connection that failed, one caller at a time tries again, and the others
// get the error at once.
type reach struct {
	driver.Connector
	dialer net.Dialer

	several bool         // hosts: one that does not answer is passed over
	direct  atomic.Bool  // no pooler is in between
	limit   atomic.Int64 // nanoseconds that a server may be silent; 0 is for ever

	mu      sync.Mutex // guards those below
	failure error      // of the last try, nil when it succeeded
	trying  bool
	next    time.Time
	away    map[string]time.Time // addresses that did not answer, with when they are tried again
}

// newReach parses a URL, and returns its first host too. With writes it takes, of several hosts, the one that takes writes, unless
// target_session_attrs says otherwise.
func newReach(url string, writes bool) (*reach, string, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, "", fmt.Errorf("database URL: %w", err)
	}
	// One round trip and no named statements, except those of Lookup: every text is
	// new under bun, and a transaction pooler does not keep names.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectLimit
	}
	if cfg.ValidateConnect == nil && writes {
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	r := &reach{away: map[string]time.Time{}, several: len(cfg.Fallbacks) > 0}
	cfg.DialFunc = r.dial
	cfg.AfterConnect = func(_ context.Context, c *pgconn.PgConn) error {
		wireUnder(c).connected()
		return nil
	}
	r.Connector = stdlib.GetConnector(*cfg,
		stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool {
			if p.IdleDuration < time.Second {
				return false
			}
			wireOf(p.Conn).patience(pingLimit)
			return true
		}),
		stdlib.OptionResetSession(func(_ context.Context, c *pgx.Conn) error {
			wireOf(c).patience(0)
			return nil
		}))
	return r, hostOf(&cfg.Config), nil
}

func (r *reach) open() *sql.DB { return sql.OpenDB(r) }

// Connect makes a connection.
func (r *reach) Connect(ctx context.Context) (driver.Conn, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	c, err := r.Connector.Connect(ctx)
	r.leave(ctx, err)
	return c, err
}

func (r *reach) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		if r.trying || time.Now().Before(r.next) {
			return fmt.Errorf("%w: %w", errAway, r.failure)
		}
		r.trying = true
	}
	return nil
}

func (r *reach) leave(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trying = false
	if err != nil && ctx.Err() != nil {
		return // the caller's time was up, which says nothing
	}
	r.failure, r.next = err, time.Now().Add(retryEvery)
}

// dial connects to an address, and passes over one that did not answer lately.
func (r *reach) dial(ctx context.Context, network, address string) (net.Conn, error) {
	r.mu.Lock()
	until := r.away[address]
	r.mu.Unlock()
	if time.Now().Before(until) {
		return nil, fmt.Errorf("%s: %w", address, errAway)
	}
	c, err := r.dialer.DialContext(ctx, network, address)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.away, address)
	if err == nil {
		return &wire{Conn: c, reach: r, address: address}, nil
	}
	if r.several && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) {
		r.away[address] = time.Now().Add(awayLimit)
	}
	return nil, err
}

// passOver passes over an address for a while: it took a connection, and did not serve it.
func (r *reach) passOver(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.several {
		r.away[address] = time.Now().Add(awayLimit)
	}
}

// A wire is a connection that fails when the server has been silent for too long.
type wire struct {
	net.Conn
	reach   *reach
	address string

	mu    sync.Mutex    // guards those below
	own   time.Duration // how long the server may be silent; 0 is the limit of the reach
	limit time.Duration // the one that the deadline was set by
	until time.Time     // the deadline; zero for none
	done  bool          // connecting
	ended bool          // the driver has set a deadline: the context of a caller has ended
	gone  bool          // the same, since the connection was taken
}

func wireOf(c *pgx.Conn) *wire { return wireUnder(c.PgConn()) }

func wireUnder(c *pgconn.PgConn) *wire {
	under := c.Conn()
	if t, ok := under.(*tls.Conn); ok {
		under = t.NetConn()
	}
	return under.(*wire)
}

// patience sets how long the server may be silent from now on; 0 is the limit of the reach.
func (w *wire) patience(own time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own, w.gone = own, false
}

// connected ends the time in which a silent server is passed over.
func (w *wire) connected() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
}

// wait moves the deadline, once a tenth of its time has passed.
func (w *wire) wait() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := cmp.Or(w.own, time.Duration(w.reach.limit.Load()))
	if w.ended || limit == 0 && w.limit == 0 {
		return nil
	}
	until := time.Time{}
	if limit > 0 {
		now := time.Now()
		if limit == w.limit && w.until.Sub(now) > limit-limit/10 {
			return nil
		}
		until = now.Add(limit)
	}
	w.limit, w.until = limit, until
	return w.Conn.SetDeadline(until)
}

func (w *wire) Read(b []byte) (int, error) {
	if err := w.wait(); err != nil {
		return 0, err
	}
	n, err := w.Conn.Read(b)
	w.mu.Lock()
	late := !w.done && errors.Is(err, os.ErrDeadlineExceeded)
	w.mu.Unlock()
	if late {
		w.reach.passOver(w.address)
	}
	return n, w.silent(err)
}

func (w *wire) Write(b []byte) (int, error) {
	if err := w.wait(); err != nil {
		return 0, err
	}
	n, err := w.Conn.Write(b)
	return n, w.silent(err)
}

// silent is the error of a deadline of the wire's own. It is no net.Error of a timeout, after which the driver would use the
// connection again.
func (w *wire) silent(err error) error {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return err
	}
	return fmt.Errorf("%w for %s", errSilent, w.limit)
}

func (w *wire) SetDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = w.gone || !t.IsZero()
	w.ended, w.until = !t.IsZero(), time.Time{} // without the driver's, the next wait sets one
	return w.Conn.SetDeadline(t)
}

// RemoteAddr is where the driver asks the server to cancel a statement. It may only do so when a caller's context has ended:
// a COMMIT that waits for a standby would otherwise be there without it, for a repeated request to find and acknowledge. A pooler is
// not asked: PgBouncer 1.18 to 1.20 may end by that (its issues 801, 822 and 904).
func (w *wire) RemoteAddr() net.Addr {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone && w.reach.direct.Load() {
		return w.Conn.RemoteAddr()
	}
	return nowhere{}
}

type nowhere struct{}

func (nowhere) Network() string { return "none" }
func (nowhere) String() string  { return "" }

// waitForServer connects to the database. A process that serves waits while nothing takes connections, and no longer than startLimit;
// what waiting does not mend, as a wrong password, is returned at once.
func (db *DB) waitForServer(ctx context.Context, pool *sql.DB) error {
	begin, told := time.Now(), time.Time{}
	for {
		err := pool.PingContext(ctx)
		if err == nil {
			return nil
		}
		if !db.config.Serve || !unreachable(err) || forGood(err) || time.Since(begin) >= startLimit {
			return fmt.Errorf("connect to the database: %w", err)
		}
		if time.Since(told) >= 5*time.Second {
			told = time.Now()
			db.log.Warn("the database is not reachable; the start waits for it", "at most", (startLimit - time.Since(begin)).Round(time.Second), "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

// forGood reports whether a server has answered that it will not take the connection: the name, the password or the database is wrong.
func forGood(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.ContainsFunc([]string{"28", "3D", "42"}, func(class string) bool { return strings.HasPrefix(e.Code, class) })
}
