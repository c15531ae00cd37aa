package storage

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"stoa/storage/commit"
)

// A dump is a copy of a database as of one moment, as a tar: backup.json, the data, and sums.json at its end, without
// which it was cut short. On SQLite the data is the file (stoa.db); on PostgreSQL every table as text of COPY, in
// parts of whole rows (tables/post/00001.copy), which is loaded into tables that the migrations make.

// DumpFormat is the name of the format, in backup.json.
const DumpFormat = "stoa.backup/v1"

const (
	dumpHead = "backup.json"
	dumpFile = "stoa.db"
	dumpSums = "sums.json"
	maxSums  = 4 << 20 // bytes of backup.json and of sums.json
)

// A DumpHead begins a dump.
type DumpHead struct {
	Format  string      `json:"format"`
	Engine  string      `json:"engine"`
	Schema  int64       `json:"schema"` // number of the newest migration
	Program string      `json:"program"`
	Base    string      `json:"base"` // public address of the node
	At      time.Time   `json:"at"`
	Tables  []DumpTable `json:"tables,omitempty"` // of PostgreSQL
}

// A DumpTable is a table and its columns, in the order of the data.
type DumpTable struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
}

// DumpSums end a dump.
type DumpSums struct {
	SHA256    string              `json:"sha256,omitempty"` // of the SQLite file
	Tables    map[string]TableSum `json:"tables"`
	Sequences map[string]Sequence `json:"sequences,omitempty"`
}

// A TableSum is how many rows a table has. On PostgreSQL Sum is the sum of the rows' SHA-256, as four numbers of 64 bits:
// it depends on every row and not on their order.
type TableSum struct {
	Rows int64  `json:"rows"`
	Sum  string `json:"sum,omitempty"`
}

// A Sequence is where the numbers of PostgreSQL have come to.
type Sequence struct {
	Last   int64 `json:"last"`
	Called bool  `json:"called"`
}

// Rows counts the rows of all tables.
func (s DumpSums) Rows() (n int64) {
	for _, t := range s.Tables {
		n += t.Rows
	}
	return n
}

// ErrDump is wrapped by the error of a dump that is damaged, cut short, or none.
var ErrDump = errors.New("the backup is not sound")

// A Progress is told what is done now and how much of it, in rows or bytes.
type Progress func(what string, done int64)

func (p Progress) tell(what string, done int64) {
	if p != nil {
		p(what, done)
	}
}

// Dump writes a dump while the node runs. temp is a path for a copy of the SQLite file, which is removed.
func (db *DB) Dump(ctx context.Context, w io.Writer, head DumpHead, temp string, progress Progress) (DumpSums, error) {
	head.Format, head.Engine = DumpFormat, string(db.engine)
	t := tar.NewWriter(w)
	var sums DumpSums
	var err error
	if db.engine == enginePostgres {
		sums, err = db.dumpPostgres(ctx, t, head, progress)
	} else {
		sums, err = db.dumpSQLite(ctx, t, head, temp, progress)
	}
	if err == nil {
		err = putJSON(t, dumpSums, sums)
	}
	if err == nil {
		err = t.Close()
	}
	if err != nil {
		return sums, fmt.Errorf("backup: %w", err)
	}
	return sums, nil
}

func putJSON(t *tar.Writer, name string, v any) error {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return putMember(t, name, raw)
}

func putMember(t *tar.Writer, name string, raw []byte) error {
	err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(raw))})
	if err == nil {
		_, err = t.Write(raw)
	}
	return err
}

func (db *DB) dumpSQLite(ctx context.Context, t *tar.Writer, head DumpHead, temp string, progress Progress) (sums DumpSums, err error) {
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return sums, err
	}
	progress.tell("copy the database", 0)
	if err := db.sql.Backup(ctx, temp); err != nil {
		return sums, err
	}
	defer os.Remove(temp)
	counts, schema, err := commit.CountSQLite(ctx, temp)
	if err != nil {
		return sums, err
	}
	head.Schema, sums.Tables = schema, map[string]TableSum{}
	for name, n := range counts {
		sums.Tables[name] = TableSum{Rows: n}
	}
	f, err := os.Open(temp)
	if err != nil {
		return sums, err
	}
	defer f.Close()
	state, err := f.Stat()
	if err != nil {
		return sums, err
	}
	if err := putJSON(t, dumpHead, head); err != nil {
		return sums, err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dumpFile, Mode: 0o600, Size: state.Size()}); err != nil {
		return sums, err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(t, sum, &counted{ctx: ctx, what: "write the copy", to: progress}), f)
	sums.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return sums, err
}

// A counted tells how many bytes passed, and stops when its context ends.
type counted struct {
	ctx  context.Context
	what string
	to   Progress
	n    int64
}

func (c *counted) Write(p []byte) (int, error) {
	const step = 64 << 20
	before := c.n / step
	if c.n += int64(len(p)); c.n/step != before {
		c.to.tell(c.what, c.n)
	}
	return len(p), c.ctx.Err()
}

// openDump reads the beginning of a dump.
func openDump(r io.Reader) (t *tar.Reader, head DumpHead, err error) {
	t = tar.NewReader(r)
	h, err := t.Next()
	if err == nil && h.Name != dumpHead {
		err = errors.New("it does not begin with " + dumpHead)
	}
	if err == nil {
		err = getJSON(t, &head)
	}
	if err == nil && head.Format != DumpFormat {
		err = fmt.Errorf("its format is %q, and this program reads %s", head.Format, DumpFormat)
	}
	return t, head, unsound(err)
}

func unsound(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, ErrDump) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("it was cut short (%w)", err)
	}
	return fmt.Errorf("%w: %w", ErrDump, err)
}

func getJSON(t *tar.Reader, v any) error {
	raw, err := io.ReadAll(io.LimitReader(t, maxSums))
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	return err
}

// closeDump reads the end of a dump, after sums.json, so that the layers below check all that was written.
func closeDump(t *tar.Reader, r io.Reader) error {
	if _, err := t.Next(); err != io.EOF {
		return unsound(errors.Join(errors.New("there is more after "+dumpSums), err))
	}
	_, err := io.Copy(io.Discard, r)
	return unsound(err)
}

// A Loaded is what was read of a dump.
type Loaded struct {
	Head DumpHead
	Sums DumpSums // as the dump says, and as it was found to be
}

// ReadDump reads a dump to its end and compares it with its sums, without a database.
func ReadDump(ctx context.Context, r io.Reader, progress Progress) (Loaded, error) {
	t, head, err := openDump(r)
	if err != nil {
		return Loaded{}, err
	}
	var l taker
	if head.Engine == string(enginePostgres) {
		l = &rowReader{head: head, sums: map[string]*rowSum{}}
	} else {
		l = &fileReader{to: io.Discard}
	}
	return readDump(ctx, t, r, head, l, progress)
}

// A taker takes the members of a dump and compares what it took with the sums.
type taker interface {
	member(ctx context.Context, name string, r io.Reader, progress Progress) error
	compare(ctx context.Context, want DumpSums) error
}

func readDump(ctx context.Context, t *tar.Reader, r io.Reader, head DumpHead, l taker, progress Progress) (Loaded, error) {
	for {
		h, err := t.Next()
		if err != nil {
			return Loaded{}, unsound(err)
		}
		if err := ctx.Err(); err != nil {
			return Loaded{}, err
		}
		if h.Name != dumpSums {
			if err := l.member(ctx, h.Name, t, progress); err != nil {
				return Loaded{}, err
			}
			continue
		}
		found := Loaded{Head: head}
		if err := getJSON(t, &found.Sums); err != nil {
			return Loaded{}, unsound(err)
		}
		if err := closeDump(t, r); err != nil {
			return Loaded{}, err
		}
		return found, l.compare(ctx, found.Sums)
	}
}

// A fileReader takes the file of SQLite.
type fileReader struct {
	to  io.Writer
	sum string
}

func (f *fileReader) member(ctx context.Context, name string, r io.Reader, progress Progress) error {
	if name != dumpFile || f.sum != "" {
		return fmt.Errorf("%w: the member %q is not known", ErrDump, name)
	}
	sum := sha256.New()
	from := io.TeeReader(r, io.MultiWriter(sum, &counted{ctx: ctx, what: "read the copy", to: progress}))
	if _, err := io.Copy(f.to, from); err != nil {
		return unsound(err)
	}
	f.sum = hex.EncodeToString(sum.Sum(nil))
	return nil
}

func (f *fileReader) compare(_ context.Context, want DumpSums) error {
	if f.sum != want.SHA256 {
		return fmt.Errorf("%w: the SHA-256 of its database is %s, and it says %s", ErrDump, f.sum, want.SHA256)
	}
	return nil
}

// LoadFile writes the SQLite database of a dump to a new file and compares its rows with the sums.
func LoadFile(ctx context.Context, r io.Reader, path string, progress Progress) (Loaded, error) {
	t, head, err := openDump(r)
	if err != nil {
		return Loaded{}, err
	}
	if head.Engine != string(engineSQLite) {
		return Loaded{}, fmt.Errorf("%w: it is one of %s; name the database to restore it into with --database", ErrDump, head.Engine)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return Loaded{}, err
	}
	found, err := readDump(ctx, t, r, head, &fileReader{to: f}, progress)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = compareFile(ctx, path, found)
	}
	if err != nil {
		os.Remove(path)
	}
	return found, err
}

// compareFile compares the rows of a SQLite file with what its dump says.
func compareFile(ctx context.Context, path string, l Loaded) error {
	counts, schema, err := commit.CountSQLite(ctx, path)
	if err != nil {
		return unsound(err)
	}
	if schema != l.Head.Schema || len(counts) != len(l.Sums.Tables) {
		return fmt.Errorf("%w: its tables are those of version %d, %d of them; it says version %d, %d", ErrDump, schema, len(counts), l.Head.Schema,
			len(l.Sums.Tables))
	}
	for name, n := range counts {
		if t := l.Sums.Tables[name]; t.Rows != n {
			return fmt.Errorf("%w: the table %s has %d rows, and it says %d", ErrDump, name, n, t.Rows)
		}
	}
	return nil
}

// TryFile restores a dump of SQLite into a file of its own, opens it, checks the file and its invariants, and removes it.
func TryFile(ctx context.Context, r io.Reader, path string, progress Progress) (found Loaded, err error) {
	RemoveSQLite(path)
	defer RemoveSQLite(path)
	if found, err = LoadFile(ctx, r, path, progress); err != nil {
		return found, err
	}
	progress.tell("check the database", 0)
	return found, openAndCheck(ctx, path)
}

func openAndCheck(ctx context.Context, path string) error {
	db, err := Open(ctx, Config{Path: path})
	if err != nil {
		return err
	}
	return errors.Join(faulty(db.Check(ctx)), db.Close())
}

// ErrFaults is wrapped by the error of a trial of a sound backup whose rows break a rule, as those of the node do.
var ErrFaults = errors.New("the backup is whole, and the database that it is of has faults")

func faulty(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrFaults, err)
}

// RemoveSQLite removes a SQLite file that nobody has open, and what belongs to it.
func RemoveSQLite(path string) {
	for _, part := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
		os.Remove(path + part)
	}
}
