package storage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"
)

// A move copies the database of a stopped node to the other engine. The source is only read, and marked at the end; the target is
// empty at the beginning. Each batch of rows commits with how far the move is, so that a move that was killed goes on where it was. Then
// what is not copied is rebuilt, each table of both sides is counted and hashed, and only when all are equal is the source marked and the
// target free to be served.

const (
	movedSetting  = "moved"  // of a source: where to, and when
	movingSetting = "moving" // of a target: how far
)

// ErrMoved is wrapped by the error of a database that was moved to another one, and ErrMoving by that of one into which a move is not done.
var (
	ErrMoved  = errors.New("the database was moved")
	ErrMoving = errors.New("a move into the database is not done")
)

// A Moved is what a source says once it was moved.
type Moved struct {
	To string    `json:"to"` // without a password
	At time.Time `json:"at"`
}

// moving is how far a move is.
type moving struct {
	Source string    `json:"source"` // which node's
	Table  string    `json:"table"`  // of the last batch
	After  []moveKey `json:"after"`
	Rows   int64     `json:"rows"`
	Words  string    `json:"words"` // index of words that is being built; "" before the rows are there
	Last   int64     `json:"last"`
	Built  bool      `json:"built"`
	Later  []string  `json:"later,omitempty"` // statements that make the indexes of words of PostgreSQL when the words are there
}

// A moveKey is a part of a key.
type moveKey struct {
	Int  *int64  `json:"i,omitempty"`
	Text *string `json:"t,omitempty"`
	Blob []byte  `json:"b,omitempty"`
	Bool *bool   `json:"o,omitempty"`
}

func keysOfMove(values []any) (all []moveKey) {
	for _, v := range values {
		switch v := v.(type) {
		case int64:
			all = append(all, moveKey{Int: &v})
		case string:
			all = append(all, moveKey{Text: &v})
		case bool:
			all = append(all, moveKey{Bool: &v})
		case []byte:
			all = append(all, moveKey{Blob: v})
		}
	}
	return all
}

func (k moveKey) value() any {
	switch {
	case k.Int != nil:
		return *k.Int
	case k.Text != nil:
		return *k.Text
	case k.Bool != nil:
		return *k.Bool
	}
	return append([]byte{}, k.Blob...)
}

// A MoveStep is how far a move is: what it does, with which table, and how many rows of how many are done.
type MoveStep struct {
	Doing, Table string
	Rows, Of     int64
}

// A MoveReport is what both sides have in the end.
type MoveReport struct {
	Tables  []MovedTable      `json:"tables"`
	Rows    int64             `json:"rows"`
	Rebuilt map[string]string `json:"notCopied"`
}

type mover struct {
	from, to *DB
	tables   []*movedTable
	state    moving
	of       int64
	report   func(MoveStep)
	at       func(point string) // for tests; nil for none
}

// Move moves a database to the other engine, or goes on with a move. report is told after each batch.
func Move(ctx context.Context, from, to Config, report func(MoveStep)) (MoveReport, error) {
	return moveAt(ctx, from, to, report, func(string) {})
}

func moveAt(ctx context.Context, from, to Config, report func(MoveStep), at func(string)) (out MoveReport, err error) {
	if (from.URL == "") == (to.URL == "") {
		return out, errors.New("a move goes from SQLite to PostgreSQL or back: copy a SQLite database with stoa admin backup, and one of PostgreSQL with pg_dump")
	}
	m := &mover{report: report, at: at}
	if m.from, err = openAlone(ctx, from, true); err != nil {
		return out, fmt.Errorf("source: %w", err)
	}
	defer func() { err = errors.Join(err, m.from.Close()) }()
	if m.to, err = openAlone(ctx, to, false); err != nil {
		return out, fmt.Errorf("target: %w", err)
	}
	defer func() { err = errors.Join(err, m.to.Close()) }()
	err = m.from.alone(ctx, func() error {
		return m.to.alone(ctx, func() error {
			out, err = m.run(ctx, named(to))
			return err
		})
	})
	return out, err
}

// named is a database as it is told: without a password.
func named(c Config) string {
	u, err := url.Parse(c.URL)
	if c.URL == "" || err != nil {
		return c.Path
	}
	return u.Redacted()
}

const moverName = "stoa-move"

// openAlone opens a database that no node uses. A source is brought up to this program as a start of the node would; of a target are only
// its tables.
func openAlone(ctx context.Context, c Config, source bool) (*DB, error) {
	if c.moving = true; c.URL == "" {
		c.Serve = true // the lock of who serves it
	} else if u, err := url.Parse(c.URL); err == nil {
		q := u.Query()
		q.Set("application_name", moverName)
		u.RawQuery = q.Encode()
		c.URL = u.String()
	}
	db, err := openTables(ctx, c)
	if err == nil && source {
		err = db.begin(ctx, c)
	}
	return db, err
}

// otherClients are the connections of others to the database. The view pg_stat_activity would also lock catalogs that each sign-in
// to the server reads, for as long as the transaction lasts: a VACUUM FULL would wait for it, and nobody could connect.
const otherClients = `FROM pg_stat_get_activity(NULL) WHERE datid = (SELECT datid FROM pg_stat_get_activity(pg_backend_pid()))
	AND pid <> pg_backend_pid() AND backend_type = 'client backend'`

const (
	moveLock   = `SELECT pg_try_advisory_xact_lock(hashtextextended('move the database', 0))`
	moveOthers = `SELECT count(*), COALESCE(string_agg(DISTINCT COALESCE(NULLIF(application_name, ''), 'a program without a name'), ', '), '')
		` + otherClients + ` AND application_name <> ?`
)

// untilGone counts connections until there are none, or a few seconds have passed: those of a process that has ended go a moment later.
func untilGone(ctx context.Context, count func() (int, error)) error {
	for range 30 {
		n, err := count()
		if err != nil || n == 0 {
			return err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// ErrPooler means that the connections of a node's other processes cannot be seen, nor a schema be set for a connection.
var ErrPooler = errors.New("a pooler such as PgBouncer is before the database, behind which the node's other processes are not seen: " +
	"give --database the address of the server itself")

// alone runs do while nothing else may open the database of PostgreSQL, if nothing else is connected to it. On SQLite the lock of who
// serves it does that.
func (db *DB) alone(ctx context.Context, do func() error) error {
	if db.engine != enginePostgres {
		return do()
	}
	if !db.sql.Direct() {
		return ErrPooler
	}
	return db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		var mine bool
		if err := tx.row(ctx, moveLock).Scan(&mine); err != nil {
			return err
		}
		if !mine {
			return errors.New("another process moves this database, or rotates its master key")
		}
		var others int
		var who string
		err := untilGone(ctx, func() (int, error) {
			var again int // what a transaction has seen of the connections stays the same otherwise
			if err := tx.row(ctx, `SELECT 1 FROM (SELECT pg_stat_clear_snapshot()) c`).Scan(&again); err != nil {
				return 0, err
			}
			err := tx.row(ctx, moveOthers, moverName).Scan(&others, &who)
			return others, err
		})
		if err != nil {
			return err
		}
		if others > 0 {
			return fmt.Errorf("%w: %d connections to it are open (%s). Stop every process of the node, and what else is connected", ErrServed, others, who)
		}
		return do()
	})
}

// refuseMoved refuses to open a database that is moved, or being moved.
func (db *DB) refuseMoved(ctx context.Context) error {
	return db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		if db.engine == enginePostgres {
			var free bool
			if err := tx.row(ctx, `SELECT pg_try_advisory_xact_lock_shared(hashtextextended('move the database', 0))`).Scan(&free); err != nil {
				return err
			}
			if !free {
				return fmt.Errorf("%w: it runs now", ErrMoving)
			}
		}
		moved, err := tx.Moved(ctx)
		if err == nil && moved != nil {
			return fmt.Errorf("%w to %s at %s", ErrMoved, moved.To, moved.At.UTC().Format(time.RFC3339))
		}
		if err != nil {
			return err
		}
		if text, err := tx.Settings().Get(ctx, movingSetting); err != nil || text != "" {
			return cmp.Or(err, fmt.Errorf("%w: run stoa admin move again, with the same source and target", ErrMoving))
		}
		return nil
	})
}

// Moved is where the database was moved to; nil for one that was not.
func (tx *Tx) Moved(ctx context.Context) (m *Moved, err error) {
	text, err := tx.Settings().Get(ctx, movedSetting)
	if err != nil || text == "" {
		return nil, err
	}
	return m, json.Unmarshal([]byte(text), &m)
}

// Unmove takes the mark from a source, so that it is served again; false when it has none.
func Unmove(ctx context.Context, c Config) (was bool, err error) {
	db, err := openAlone(ctx, c, false)
	if err != nil {
		return false, err
	}
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		n, err := tx.write(ctx, `DELETE FROM secret WHERE name = ?`, settingPrefix+movedSetting)
		was = n > 0
		return err
	})
	return was, errors.Join(err, db.Close())
}

func (m *mover) run(ctx context.Context, target string) (out MoveReport, err error) {
	if err = m.prepare(ctx); err == nil {
		err = m.copy(ctx)
	}
	if err == nil {
		err = m.rebuild(ctx)
	}
	if err != nil {
		return out, err
	}
	if out, err = m.compare(ctx); err != nil {
		return out, err
	}
	m.at("compared")
	moved, err := json.Marshal(Moved{To: target, At: m.from.sql.Clock()})
	if err != nil {
		return out, err
	}
	if err := m.from.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.Settings().Put(ctx, movedSetting, string(moved)) }); err != nil {
		return out, err
	}
	m.at("marked")
	return out, m.to.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.write(ctx, `DELETE FROM secret WHERE name = ?`, settingPrefix+movingSetting)
		return err
	})
}

// prepare reads the tables of both sides, and begins the move or finds where it was.
func (m *mover) prepare(ctx context.Context) error {
	schemas := map[engine]schema{}
	for _, db := range []*DB{m.from, m.to} {
		if err := db.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
			schemas[db.engine], err = db.readSchema(ctx, tx.sql.Connection())
			return err
		}); err != nil {
			return err
		}
	}
	var err error
	if m.tables, err = matchSchemas(schemas[engineSQLite], schemas[enginePostgres]); err != nil {
		return err
	}
	var source string
	if err := m.from.Read(ctx, func(ctx context.Context, tx *Tx) error {
		value, err := tx.Settings().Stored(ctx, "node-ed25519")
		if errors.Is(err, ErrNotFound) {
			return errors.New("the source holds no node: nothing to move")
		}
		sum := sha256.Sum256(value)
		source = hex.EncodeToString(sum[:16])
		for _, t := range m.tables {
			var n int64
			if err == nil {
				err = tx.row(ctx, `SELECT count(*) FROM `+t.name).Scan(&n)
			}
			m.of += n
		}
		return err
	}); err != nil {
		return err
	}
	return m.to.Write(ctx, func(ctx context.Context, tx *Tx) error {
		text, err := tx.Settings().Get(ctx, movingSetting)
		if err != nil {
			return err
		}
		if text == "" {
			m.state = moving{Source: source}
			return m.begin(ctx, tx)
		}
		if err := json.Unmarshal([]byte(text), &m.state); err != nil {
			return err
		}
		if m.state.Source != source {
			return errors.New("a move from another node into the target is not done: name another target, or an empty one")
		}
		return nil
	})
}

// begin begins a move into a target that holds nothing.
func (m *mover) begin(ctx context.Context, tx *Tx) error {
	for _, t := range m.tables {
		query := `SELECT 1 FROM ` + t.name + ` LIMIT 1`
		if t.name == "secret" {
			query = `SELECT 1 FROM secret WHERE name NOT LIKE '` + settingPrefix + `words of %' LIMIT 1`
		} else if slices.Contains(seeded, t.name) {
			continue
		}
		if found, err := tx.exists(ctx, query); err != nil || found {
			return cmp.Or(err, fmt.Errorf("the target is not empty: its table %s has rows. Name a new database or file", t.name))
		}
	}
	for _, name := range seeded {
		if _, err := tx.write(ctx, `DELETE FROM `+name); err != nil {
			return err
		}
	}
	return m.keep(ctx, tx, m.state)
}

func (m *mover) keep(ctx context.Context, tx *Tx, s moving) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tx.Settings().Put(ctx, movingSetting, string(raw))
}

// write runs what brings the move to the next state, in one transaction with it.
func (m *mover) write(ctx context.Context, do func(ctx context.Context, tx *Tx, next *moving) error) error {
	m.at("write")
	var next moving
	err := m.to.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if err := tx.dirty(); err != nil {
			return err
		}
		next = m.state
		if err := do(ctx, tx, &next); err != nil {
			return err
		}
		if err := m.keep(ctx, tx, next); err != nil {
			return err
		}
		m.at("written")
		return nil
	})
	if err == nil {
		m.state = next
		m.at("committed")
	}
	return err
}

// copy copies the rows. A batch is read while the one before it is written.
func (m *mover) copy(ctx context.Context) error {
	if m.state.Words != "" || m.state.Built {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan *moveBatch, 1)
	var failed error
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(batches)
		failed = m.from.Read(ctx, func(ctx context.Context, tx *Tx) error { return m.readAll(ctx, tx, batches) })
	})
	var err error
	for b := range batches {
		if err = m.write(ctx, func(ctx context.Context, tx *Tx, next *moving) error {
			next.Table, next.After, next.Rows = b.table.name, keysOfMove(b.after()), m.state.Rows+int64(len(b.rows))
			return b.write(ctx, tx.sql.Connection(), m.to.engine)
		}); err != nil {
			break
		}
		m.report(MoveStep{"copy", b.table.name, m.state.Rows, m.of})
	}
	cancel()
	reading.Wait()
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return m.write(context.WithoutCancel(ctx), func(ctx context.Context, tx *Tx, next *moving) error {
		next.Words = moveWords[0].table
		if m.to.engine == enginePostgres {
			if err := dropLater(ctx, tx, next); err != nil {
				return err
			}
		}
		return m.setCounters(ctx, tx)
	})
}

// readAll reads every table from where the move is.
func (m *mover) readAll(ctx context.Context, tx *Tx, batches chan<- *moveBatch) error {
	c := tx.sql.Connection()
	if m.from.engine == enginePostgres { // a plan that gives rows at once, and sorts no table
		if _, err := c.ExecContext(ctx, `SET LOCAL enable_sort = off; SET LOCAL enable_seqscan = off`); err != nil {
			return err
		}
	}
	start := m.state
	for _, t := range m.tables {
		var after []any
		if t.name < start.Table {
			continue
		}
		if t.name == start.Table {
			for _, k := range start.After {
				after = append(after, k.value())
			}
		}
		if err := t.read(ctx, c, m.from.engine, after, func(b *moveBatch) error {
			select {
			case batches <- b:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// setCounters sets the numbers that the target gives next: no number that the source gave is given again.
func (m *mover) setCounters(ctx context.Context, tx *Tx) error {
	counts := map[string]int64{}
	var feed int64
	if err := m.from.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
		if m.from.engine == engineSQLite {
			if feed, err = find[int64](ctx, tx, `SELECT head FROM tally WHERE one = 1`); err != nil {
				return err
			}
			return eachRow(ctx, tx.sql.Connection(), `SELECT name, seq FROM sqlite_sequence`, nil, 2, func(row []any) error {
				counts[row[0].(string)] = row[1].(int64)
				return nil
			})
		}
		if feed, err = find[int64](ctx, tx, `SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM feed_number`); err != nil {
			return err
		}
		for _, t := range m.tables {
			if t.counter != "" && err == nil {
				counts[t.name], err = find[int64](ctx, tx, `SELECT COALESCE(pg_sequence_last_value(pg_get_serial_sequence(?, ?)::regclass), 0)`, t.name, t.counter)
			}
		}
		return err
	}); err != nil {
		return err
	}
	if m.to.engine == engineSQLite {
		return m.setSQLiteCounters(ctx, tx, counts, feed)
	}
	if err := tx.exec(ctx, `SELECT setval('feed_number', GREATEST(?::bigint, 1), ?::bigint > 0)`, feed, feed); err != nil {
		return err
	}
	for _, t := range m.tables {
		if t.counter == "" {
			continue
		}
		if err := tx.exec(ctx, `SELECT setval(pg_get_serial_sequence(?, ?), GREATEST(n, 1), n > 0)
			FROM (SELECT GREATEST(?::bigint, (SELECT max(`+t.counter+`) FROM `+t.name+`), 0) AS n) s`, t.name, t.counter, counts[t.name]); err != nil {
			return err
		}
	}
	return nil
}

func (m *mover) setSQLiteCounters(ctx context.Context, tx *Tx, counts map[string]int64, feed int64) error {
	if _, err := tx.write(ctx, `UPDATE tally SET head = ? WHERE one = 1`, feed); err != nil {
		return err
	}
	numbered, err := list[string](ctx, tx, `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'`)
	for _, name := range numbered {
		if n := counts[name]; n > 0 && err == nil {
			var changed int64
			if changed, err = tx.write(ctx, `UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?`, n, name); err == nil && changed == 0 {
				_, err = tx.write(ctx, `INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)`, name, n)
			}
		}
	}
	return err
}

// compare counts and hashes every table of both sides.
func (m *mover) compare(ctx context.Context) (out MoveReport, err error) {
	sides, errs := [2][]MovedTable{}, [2]error{}
	var mu sync.Mutex // guards done
	var done int64
	var hashing sync.WaitGroup
	for i, db := range []*DB{m.from, m.to} {
		hashing.Go(func() {
			errs[i] = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
				for _, t := range m.tables {
					h, err := t.hash(ctx, tx.sql.Connection(), func(rows int64) {
						mu.Lock()
						defer mu.Unlock()
						done += rows
						m.report(MoveStep{"compare", t.name, done / 2, m.of})
					})
					if err != nil {
						return err
					}
					sides[i] = append(sides[i], h)
				}
				if db.engine == enginePostgres {
					if waits, err := tx.exists(ctx, `SELECT 1 FROM log_waiting LIMIT 1`); err != nil || waits {
						return cmp.Or(err, errors.New("log entries wait for their numbers: run the move again"))
					}
				}
				return nil
			})
		})
	}
	hashing.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return out, err
	}
	for i, t := range m.tables {
		if sides[0][i] != sides[1][i] {
			return out, m.differs(ctx, t, sides[0][i], sides[1][i])
		}
		out.Rows += sides[0][i].Rows
	}
	out.Tables, out.Rebuilt = sides[0], notMoved
	return out, nil
}

// differs is the error of a table that is not the same on both sides.
func (m *mover) differs(ctx context.Context, t *movedTable, a, b MovedTable) error {
	what := ""
	err := m.from.Read(ctx, func(ctx context.Context, from *Tx) error {
		return m.to.Read(ctx, func(ctx context.Context, to *Tx) (err error) {
			what, err = t.firstDifference(ctx, [2]*sql.Conn{from.sql.Connection(), to.sql.Connection()}, [2]engine{m.from.engine, m.to.engine})
			return err
		})
	})
	return errors.Join(err, fmt.Errorf("%s is not the same on both sides: %d rows, hash %s in the source; %d rows, hash %s in the target: %s. "+
		"The source was changed after the move began: empty the target and begin again", t.name, a.Rows, a.Hash, b.Rows, b.Hash, what))
}
