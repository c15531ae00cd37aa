package storage

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"stoa/storage/commit"
)

const (
	dumpPart     = 4 << 20 // bytes of a part of a table, about
	versionTable = "goose_db_version"
)

// exactText makes COPY write values in full and without regard to settings of the server, and take as long as it takes.
const exactText = `SET LOCAL datestyle = 'ISO'; SET LOCAL intervalstyle = 'postgres'; SET LOCAL extra_float_digits = 3; SET LOCAL bytea_output = 'hex';
	SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL synchronize_seqscans = off`

// A pgOwn is a connection to PostgreSQL next to those of reads and writes, used by one goroutine.
type pgOwn struct {
	pool *sql.DB
	sql  *sql.Conn
	pg   *pgx.Conn // the same connection
}

func openPgOwn(ctx context.Context, address string) (*pgOwn, error) {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	own := &pgOwn{pool: stdlib.OpenDB(*cfg)}
	own.sql, err = own.pool.Conn(ctx)
	if err == nil {
		err = own.sql.Raw(func(raw any) error {
			own.pg = raw.(*stdlib.Conn).Conn()
			return nil
		})
	}
	if err != nil {
		return nil, errors.Join(err, own.pool.Close())
	}
	return own, nil
}

// close ends the connection, and with it a transaction that is not committed.
func (o *pgOwn) close() {
	o.pg.Close(context.Background())
	o.sql.Close()
	o.pool.Close()
}

// run runs statements without arguments.
func (o *pgOwn) run(ctx context.Context, text string) error {
	_, err := o.pg.PgConn().Exec(ctx, text).ReadAll()
	return err
}

func quoted(names ...string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = pgx.Identifier{name}.Sanitize()
	}
	return strings.Join(all, ", ")
}

var createsTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// pgMigrations are the migrations up to a version, and the tables that they make; those without a log (UNLOGGED) hold nothing to keep.
func pgMigrations(schema int64) (text string, tables []string, err error) {
	dir, err := Migrations(string(enginePostgres))
	if err != nil {
		return "", nil, err
	}
	files := dir.(sqlFiles)
	entries, err := files.ReadDir("")
	for _, e := range entries {
		if migrationNumber(e.Name()) <= schema {
			text += files[e.Name()] + "\n"
		}
	}
	for _, m := range createsTable.FindAllStringSubmatch(text, -1) {
		tables = append(tables, m[1])
	}
	return text, append(tables, versionTable), err
}

func migrationNumber(name string) int64 {
	n, _ := strconv.ParseInt(strings.SplitN(name, "_", 2)[0], 10, 64)
	return n
}

// tables lists the tables of the node with their columns.
func (o *pgOwn) tables(ctx context.Context) (all []DumpTable, schema int64, err error) {
	err = o.pg.QueryRow(ctx, `SELECT max(version_id) FROM `+versionTable).Scan(&schema)
	if err != nil {
		return nil, 0, err
	}
	_, ours, err := pgMigrations(schema)
	if err != nil {
		return nil, 0, err
	}
	rows, err := o.pg.Query(ctx, `SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
		GROUP BY c.relname ORDER BY c.relname`)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var t DumpTable
		if err := rows.Scan(&t.Name, &t.Columns); err != nil {
			return nil, 0, err
		}
		if slices.Contains(ours, t.Name) {
			all = append(all, t)
		}
	}
	return all, schema, rows.Err()
}

// sequences reads how far numbers have come. They belong to no snapshot: read after the rows, they are at least as far.
func (o *pgOwn) sequences(ctx context.Context) (map[string]Sequence, error) {
	rows, err := o.pg.Query(ctx, `SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'S'`)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	all := map[string]Sequence{}
	for _, name := range names {
		var s Sequence
		if err := o.pg.QueryRow(ctx, `SELECT last_value, is_called FROM `+quoted(name)).Scan(&s.Last, &s.Called); err != nil {
			return nil, err
		}
		all[name] = s
	}
	return all, err
}

func (db *DB) dumpPostgres(ctx context.Context, t *tar.Writer, head DumpHead, progress Progress) (sums DumpSums, err error) {
	own, err := openPgOwn(ctx, db.sql.URL())
	if err != nil {
		return sums, err
	}
	defer own.close()
	if err := own.run(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; `+exactText); err != nil {
		return sums, err
	}
	if head.Tables, head.Schema, err = own.tables(ctx); err != nil {
		return sums, err
	}
	if err := putJSON(t, dumpHead, head); err != nil {
		return sums, err
	}
	sums.Tables = map[string]TableSum{}
	for _, table := range head.Tables {
		w := &tableWriter{tar: t, name: table.Name, progress: progress}
		if err := own.copyOut(ctx, w, table); err != nil {
			return sums, fmt.Errorf("%s: %w", table.Name, err)
		}
		if err := w.flush(len(w.waiting)); err != nil {
			return sums, err
		}
		sums.Tables[table.Name] = w.sum.result()
	}
	sums.Sequences, err = own.sequences(ctx)
	return sums, err
}

func (o *pgOwn) copyOut(ctx context.Context, w io.Writer, t DumpTable) error {
	_, err := o.pg.PgConn().CopyTo(ctx, w, `COPY (SELECT `+quoted(t.Columns...)+` FROM `+quoted(t.Name)+`) TO STDOUT`)
	return err
}

// A tableWriter writes the rows of a table in parts.
type tableWriter struct {
	tar      *tar.Writer
	name     string
	parts    int
	waiting  []byte
	sum      rowSum
	progress Progress
}

func (w *tableWriter) Write(p []byte) (int, error) {
	w.waiting = append(w.waiting, p...)
	if len(w.waiting) < dumpPart {
		return len(p), nil
	}
	if end := bytes.LastIndexByte(w.waiting, '\n') + 1; end > 0 {
		return len(p), w.flush(end)
	}
	return len(p), nil
}

func (w *tableWriter) flush(n int) error {
	if n == 0 {
		return nil
	}
	w.parts++
	part := w.waiting[:n]
	w.sum.add(part)
	if err := putMember(w.tar, fmt.Sprintf("tables/%s/%05d.copy", w.name, w.parts), part); err != nil {
		return err
	}
	w.waiting = w.waiting[:copy(w.waiting, w.waiting[n:])]
	w.progress.tell(w.name, w.sum.rows)
	return nil
}

// A rowSum sums the rows of a table. A row is a line: COPY writes line ends of values as \n.
type rowSum struct {
	rows  int64
	lanes [4]uint64
}

func (s *rowSum) add(lines []byte) {
	for line := range bytes.Lines(lines) {
		sum := sha256.Sum256(line)
		for i := range s.lanes {
			s.lanes[i] += binary.BigEndian.Uint64(sum[8*i:])
		}
		s.rows++
	}
}

func (s *rowSum) result() TableSum {
	var raw []byte
	for _, lane := range s.lanes {
		raw = binary.BigEndian.AppendUint64(raw, lane)
	}
	return TableSum{Rows: s.rows, Sum: hex.EncodeToString(raw)}
}

// A lineSum is a rowSum of what is written to it in pieces.
type lineSum struct {
	rowSum
	rest []byte
}

func (s *lineSum) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	end := bytes.LastIndexByte(s.rest, '\n') + 1
	s.add(s.rest[:end])
	s.rest = s.rest[:copy(s.rest, s.rest[end:])]
	return len(p), nil
}

// A rowReader takes the rows of PostgreSQL, and hands them to load where it is set.
type rowReader struct {
	head DumpHead
	sums map[string]*rowSum
	load func(ctx context.Context, t DumpTable, rows []byte) error
}

func (l *rowReader) member(ctx context.Context, name string, r io.Reader, progress Progress) error {
	parts := strings.Split(name, "/")
	i := -1
	if len(parts) == 3 && parts[0] == "tables" {
		i = slices.IndexFunc(l.head.Tables, func(t DumpTable) bool { return t.Name == parts[1] })
	}
	if i < 0 {
		return fmt.Errorf("%w: the member %q is not known", ErrDump, name)
	}
	rows, err := io.ReadAll(r)
	if err != nil {
		return unsound(err)
	}
	sum := l.sums[parts[1]]
	if sum == nil {
		sum = &rowSum{}
		l.sums[parts[1]] = sum
	}
	sum.add(rows)
	progress.tell(parts[1], sum.rows)
	if l.load == nil {
		return nil
	}
	return l.load(ctx, l.head.Tables[i], rows)
}

func (l *rowReader) compare(_ context.Context, want DumpSums) error {
	for _, t := range l.head.Tables {
		got := rowSum{}
		if s := l.sums[t.Name]; s != nil {
			got = *s
		}
		if got.result() != want.Tables[t.Name] {
			return fmt.Errorf("%w: the rows of %s are not those that it says: %d of %d", ErrDump, t.Name, got.rows, want.Tables[t.Name].Rows)
		}
	}
	return nil
}

// What a restore into PostgreSQL does at its end, and with what is there.
type pgRestore struct {
	schema string // that it makes for the tables; "" for the one of the connection
	keep   bool   // commit; otherwise nothing remains
	aside  string // name for the schema that is there, where it has tables; "" refuses
}

// TryPostgres restores a dump of PostgreSQL into a schema of its own within one transaction, reads every row back, checks the
// invariants, and rolls back: nothing remains, whenever it ends.
func TryPostgres(ctx context.Context, r io.Reader, address string, progress Progress) (Loaded, error) {
	return loadPostgres(ctx, r, address, pgRestore{schema: "stoa_backup_trial"}, progress)
}

// LoadPostgres restores a dump into the schema of the connection in one transaction. Tables that are there are kept, in a schema of the
// name aside. Every row is read back and compared with the sums.
func LoadPostgres(ctx context.Context, r io.Reader, address, aside string, progress Progress) (Loaded, error) {
	return loadPostgres(ctx, r, address, pgRestore{keep: true, aside: aside}, progress)
}

// LoadSchema restores a dump into a new schema next to the node's, to be opened with [InSchema] and deleted with [DropSchema].
func LoadSchema(ctx context.Context, r io.Reader, address, schema string, progress Progress) (Loaded, error) {
	return loadPostgres(ctx, r, address, pgRestore{schema: schema, keep: true}, progress)
}

func loadPostgres(ctx context.Context, r io.Reader, address string, how pgRestore, progress Progress) (found Loaded, err error) {
	t, head, err := openDump(r)
	if err != nil {
		return found, err
	}
	if head.Engine != string(enginePostgres) {
		return found, fmt.Errorf("%w: it is one of %s, and --database names PostgreSQL", ErrDump, head.Engine)
	}
	own, err := openPgOwn(ctx, address)
	if err != nil {
		return found, err
	}
	defer own.close()
	if how.keep {
		if direct, err := commit.Direct(ctx, own.sql); err != nil || !direct {
			return found, errors.Join(err, ErrPooler)
		}
	}
	if err := own.prepare(ctx, head, how); err != nil {
		return found, err
	}
	l := &rowReader{head: head, sums: map[string]*rowSum{}, load: own.copyIn}
	if found, err = readDump(ctx, t, r, head, l, progress); err != nil {
		return found, err
	}
	for name, s := range found.Sums.Sequences {
		if _, err := own.pg.Exec(ctx, `SELECT setval($1::regclass, $2, $3)`, quoted(name), s.Last, s.Called); err != nil {
			return found, err
		}
	}
	if err := own.readBack(ctx, found, progress); err != nil {
		return found, err
	}
	if !how.keep {
		return found, faulty(own.checkInvariants(ctx))
	}
	return found, own.run(ctx, `COMMIT`)
}

// prepare begins the transaction and makes empty tables.
func (o *pgOwn) prepare(ctx context.Context, head DumpHead, how pgRestore) error {
	text, ours, err := pgMigrations(head.Schema)
	if err != nil {
		return err
	}
	newest, err := lastMigration(enginePostgres)
	if err != nil {
		return err
	}
	if head.Schema > newest {
		return fmt.Errorf("%w: the backup has version %d, and this program knows versions up to %d", ErrNewer, head.Schema, newest)
	}
	for _, t := range head.Tables {
		if !slices.Contains(ours, t.Name) {
			return fmt.Errorf("%w: it has a table %q, which is none of a node", ErrDump, t.Name)
		}
	}
	if err := o.run(ctx, `BEGIN; `+exactText+`; SET LOCAL lock_timeout = '10s'`); err != nil {
		return err
	}
	if how.schema != "" {
		err = o.run(ctx, `CREATE SCHEMA `+quoted(how.schema)+`; SET LOCAL search_path = `+quoted(how.schema))
	} else {
		err = o.moveAside(ctx, how.aside)
	}
	if err != nil {
		return err
	}
	store, err := database.NewStore(goose.DialectPostgres, versionTable)
	if err != nil {
		return err
	}
	if err := store.CreateVersionTable(ctx, o.sql); err != nil {
		return err
	}
	if err := o.run(ctx, text); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	all, _, err := o.here(ctx)
	if err != nil {
		return err
	}
	return o.run(ctx, `TRUNCATE `+quoted(all...))
}

// here lists the tables of the current schema.
func (o *pgOwn) here(ctx context.Context) (names []string, schema string, err error) {
	if err := o.pg.QueryRow(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
		return nil, "", err
	}
	rows, err := o.pg.Query(ctx, `SELECT relname FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`)
	if err != nil {
		return nil, "", err
	}
	names, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return names, schema, err
}

// ErrInUse means that other connections to the database are open.
var ErrInUse = errors.New("the database is in use: stop every process of the node first")

// moveAside renames the schema, where it has tables, and makes an empty one in its place.
func (o *pgOwn) moveAside(ctx context.Context, aside string) error {
	names, schema, err := o.here(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	var others int
	err = untilGone(ctx, func() (int, error) {
		if err := o.run(ctx, `SELECT pg_stat_clear_snapshot()`); err != nil {
			return 0, err
		}
		err := o.pg.QueryRow(ctx, `SELECT count(*) `+otherClients).Scan(&others)
		return others, err
	})
	if err != nil {
		return err
	}
	if others > 0 {
		return fmt.Errorf("%w (%d other connections)", ErrInUse, others)
	}
	return o.run(ctx, `ALTER SCHEMA `+quoted(schema)+` RENAME TO `+quoted(aside)+`; CREATE SCHEMA `+quoted(schema)+`; SET LOCAL search_path = `+quoted(schema))
}

func (o *pgOwn) copyIn(ctx context.Context, t DumpTable, rows []byte) error {
	_, err := o.pg.PgConn().CopyFrom(ctx, bytes.NewReader(rows), `COPY `+quoted(t.Name)+` (`+quoted(t.Columns...)+`) FROM STDIN`)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDump, t.Name, err)
	}
	return nil
}

// readBack reads every row that was loaded and compares it with the sums.
func (o *pgOwn) readBack(ctx context.Context, l Loaded, progress Progress) error {
	for _, t := range l.Head.Tables {
		var s lineSum
		if err := o.copyOut(ctx, &s, t); err != nil {
			return err
		}
		if s.result() != l.Sums.Tables[t.Name] {
			return fmt.Errorf("%w: the rows of %s are other ones when they are read back", ErrDump, t.Name)
		}
		progress.tell("compare "+t.Name, s.rows)
	}
	return nil
}

// checkInvariants is [DB.Check] in this transaction.
func (o *pgOwn) checkInvariants(ctx context.Context) error {
	names, _, err := o.here(ctx)
	if err == nil {
		err = o.run(ctx, `ANALYZE `+quoted(names...))
	}
	if err != nil {
		return err
	}
	var wrong []error
	for _, i := range append(slices.Concat(invariants, bidInvariants), waitingInvariant) {
		var what string
		switch err := o.sql.QueryRowContext(ctx, i.query).Scan(&what); {
		case errors.Is(err, sql.ErrNoRows):
		case err == nil:
			wrong = append(wrong, fmt.Errorf("%s: %s", i.name, what))
		default:
			return fmt.Errorf("check: %s: %w", i.name, err)
		}
	}
	return errors.Join(wrong...)
}

// InSchema is the address of a database with another schema.
func InSchema(address, schema string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("database URL: %w", err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// DropSchema deletes a schema of [LoadSchema].
func DropSchema(ctx context.Context, address, schema string) error {
	own, err := openPgOwn(ctx, address)
	if err != nil {
		return err
	}
	defer own.close()
	return own.run(ctx, `DROP SCHEMA IF EXISTS `+quoted(schema)+` CASCADE`)
}
