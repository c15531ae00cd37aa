package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"stoa/protocol"
)

// Old posts may give what is long of them (body, evidence, statement, object) to a file of their month: a part, a SQLite
// database on either engine. The row stays, so lists, threads, counts, reactions and moderation are as before, and so does
// what the index of words has of title and tags; a search does not find the words of the body any more.
//
// A reader adds what is in a part (whole). What a writer reads of a post is the row, which is what the index of words
// knows: it hides, restores and verifies a post without its part. A revision and a deletion leave the part, and the next
// visit of the job erases there what no row refers to (part_erase).
//
// A row is in the file, on disk, before the post refers to it, and is erased an hour after the post no longer does: so a
// process that is killed loses nothing, and a reader whose snapshot is older still finds it. One process at a time works on the files,
// by a lease. One that was held up for longer than its lease does no harm: what it put into a file counts only if nobody has taken over
// since (renew), and what it erases it looks up while it alone writes the file.

const (
	partChunk  = 50              // posts that one transaction moves: other writes wait for it
	partLease  = 2 * time.Minute // of the process that moves some
	eraseAfter = time.Hour
	firstMonth = 202001 // has older posts too, so that ids of other nodes cannot cause many files
	partSetup  = `PRAGMA secure_delete = ON; CREATE TABLE IF NOT EXISTS post (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, body TEXT NOT NULL,
		evidence BLOB, statement BLOB, object BLOB) STRICT`
)

// ErrPartsBusy means that another process moves posts into parts or out of them.
var ErrPartsBusy = errors.New("another process moves posts of old months now: wait until it has ended")

// ErrMonth means that a month is not over.
var ErrMonth = errors.New("only posts of a month that is over move into a file")

// A Part is the file of a month.
type Part struct {
	Month int64  `json:"month"` // as 202601
	Posts int64  `json:"posts"`
	Bytes int64  `json:"bytes"`     // -1 when posts refer to it and it is missing
	Taken bool   `json:"takenBack"` // back by an operator, so that the job does not fill it again
	File  string `json:"file"`

	Version string `json:"-"` // of the file: another one after each change
}

// MonthOf is the month of a time, as 202601.
func MonthOf(t time.Time) int64 {
	return max(int64(t.UTC().Year()*100+int(t.UTC().Month())), firstMonth)
}

// nextMonth is the month after m.
func nextMonth(m int64) int64 {
	return MonthOf(time.Date(int(m/100), time.Month(m%100)+1, 1, 0, 0, 0, 0, time.UTC))
}

// monthSeqs returns the range of the numbers of a month's posts, without its ends.
func monthSeqs(m int64) (after, before int64) {
	begin := func(m int64) int64 { return seqAt(time.Date(int(m/100), time.Month(m%100), 1, 0, 0, 0, 0, time.UTC)) }
	if after = begin(m) - 1; m == firstMonth {
		after = math.MinInt64
	}
	return after, begin(nextMonth(m))
}

// parts are the open files.
type parts struct {
	dir string

	mu   sync.Mutex // guards open
	open map[int64]*sql.DB
}

func (ps *parts) file(month int64) string {
	return filepath.Join(ps.dir, fmt.Sprintf("posts-%d-%02d.db", month/100, month%100))
}

func (ps *parts) reader(month int64) (*sql.DB, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if db := ps.open[month]; db != nil {
		return db, nil
	}
	if _, err := os.Stat(ps.file(month)); err != nil {
		return nil, err
	}
	// rw, because a reader has to roll back the journal of a process that was killed.
	db, err := openPart(ps.file(month), "?mode=rw&_pragma=busy_timeout(5000)&_pragma=query_only(1)")
	if err == nil {
		db.SetMaxOpenConns(4)
		ps.open[month] = db
	}
	return db, err
}

func openPart(file, query string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+query)
}

// change runs fn in a transaction of the file of a month, which is made if it is missing.
func (ps *parts) change(ctx context.Context, month int64, fn func(tx *sql.Tx) error) (err error) {
	if ps.dir == "" {
		return errors.New("there is no directory for the posts of old months: name one with parts-dir")
	}
	if err := os.MkdirAll(ps.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(ps.file(month), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	db, err := openPart(ps.file(month), "?_pragma=busy_timeout(5000)&_pragma=synchronous(full)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, partSetup); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (ps *parts) close() (err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for month, db := range ps.open {
		err = errors.Join(err, db.Close())
		delete(ps.open, month)
	}
	return err
}

// missing is the error of a file that posts refer to and that is not there.
func (ps *parts) missing(month int64, err error) error {
	return fmt.Errorf("the posts of %d-%02d are in %s: bring the file back, or name its directory with parts-dir: %w", month/100, month%100, ps.file(month), err)
}

// whole adds to a post what is in its part, if it has one.
func (tx *Tx) whole(ctx context.Context, seq int64, p *protocol.StoredPost) error {
	if p.Part == 0 {
		return nil
	}
	parts, month := tx.db.parts, p.Part
	db, err := parts.reader(month)
	var id string
	var evidence, statement, object []byte
	if err == nil {
		err = db.QueryRowContext(ctx, `SELECT id, body, evidence, statement, object FROM post WHERE seq = ?`, seq).Scan(&id, &p.Body, &evidence, &statement, &object)
	}
	if errors.Is(err, sql.ErrNoRows) { // it was erased, and a backup from before was restored
		return nil
	}
	if err == nil && id != p.ID {
		err = fmt.Errorf("it has another post under the number %d", seq)
	}
	if err != nil {
		return parts.missing(month, err)
	}
	p.Evidence, p.Statement, p.Object = evidence, statement, object
	return nil
}

// wholePosts is whole for the posts of a list.
func (tx *Tx) wholePosts(ctx context.Context, all []seqPost) error {
	for i := range all {
		if p := &all[i]; p.part != 0 {
			stored := protocol.StoredPost{Post: p.Post, Part: p.part}
			if err := tx.whole(ctx, p.seq, &stored); err != nil {
				return err
			}
			p.Body = stored.Body
		}
	}
	return nil
}

// leave makes a post refer to no part any more.
func (ps Posts) leave(ctx context.Context, seq int64, p *protocol.StoredPost) error {
	if p.Part == 0 {
		return nil
	}
	if _, err := ps.tx.write(ctx, `UPDATE post SET part = 0 WHERE seq = ?`, seq); err != nil {
		return err
	}
	return ps.tx.exec(ctx, `INSERT INTO part_erase (seq, month, since) VALUES (?, ?, ?) ON CONFLICT (seq) DO UPDATE SET since = excluded.since`,
		seq, p.Part, millis(ps.tx.Now))
}

// Parts returns every part, oldest first, with what its file says.
func (db *DB) Parts(ctx context.Context) (all []Part, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
		if all, err = tx.partRows(ctx); err != nil {
			return err
		}
		for i := range all {
			p := &all[i]
			info, e := os.Stat(p.File)
			switch {
			case e == nil:
				p.Bytes, p.Version = info.Size(), fmt.Sprintf("%d-%d", info.Size(), info.ModTime().UnixNano())
			case errors.Is(e, fs.ErrNotExist):
				after, before := monthSeqs(p.Month)
				needed, err := tx.exists(ctx, `SELECT 1 FROM post WHERE seq > ? AND seq < ? AND part = ? LIMIT 1`, after, before, p.Month)
				if err != nil {
					return err
				}
				if needed {
					p.Bytes = -1
				}
			default:
				return e
			}
		}
		return nil
	})
	for i := range all {
		if p := &all[i]; err == nil && p.Bytes > 0 {
			var in *sql.DB
			if in, err = db.parts.reader(p.Month); err == nil {
				err = in.QueryRowContext(ctx, `SELECT count(*) FROM post`).Scan(&p.Posts)
			}
		}
	}
	return all, err
}

// CopyPart writes the file of a month as it is at one moment.
func (db *DB) CopyPart(ctx context.Context, month int64, w io.Writer) error {
	in, err := db.parts.reader(month)
	if err != nil {
		return err
	}
	tx, err := in.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&n); err != nil { // from now on nobody writes the file
		return err
	}
	f, err := os.Open(db.parts.file(month))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// PutPart makes the file of a month from what write writes. It fails with fs.ErrExist when there is one.
func (db *DB) PutPart(month int64, write func(w io.Writer) error) error {
	file := db.parts.file(month)
	if err := os.MkdirAll(db.parts.dir, 0o700); err != nil {
		return err
	}
	begun := filepath.Join(db.parts.dir, "."+filepath.Base(file)+partSuffix)
	left, _ := filepath.Glob(begun + "*") // of a process that was killed
	for _, name := range left {
		_ = os.Remove(name)
	}
	f, err := os.CreateTemp(db.parts.dir, filepath.Base(begun)+"*")
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Link(f.Name(), file)
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// CheckParts checks that each part has the posts that refer to it.
func (db *DB) CheckParts(ctx context.Context) error {
	var wrong []error
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		all, err := tx.partRows(ctx)
		for _, p := range all {
			after, before := monthSeqs(p.Month)
			seqs, err := list[int64](ctx, tx, `SELECT seq FROM post WHERE seq > ? AND seq < ? AND part = ?`, after, before, p.Month)
			if err != nil {
				return err
			}
			if len(seqs) == 0 {
				continue
			}
			lost, err := db.parts.lacks(ctx, p.Month, seqs)
			if err != nil {
				wrong = append(wrong, db.parts.missing(p.Month, err))
			} else if lost > 0 {
				wrong = append(wrong, fmt.Errorf("the text of %d posts of %d-%02d is not in %s", lost, p.Month/100, p.Month%100, p.File))
			}
		}
		return err
	})
	return errors.Join(append(wrong, err)...)
}

// lacks counts those of the posts that the file of a month does not have.
func (ps *parts) lacks(ctx context.Context, month int64, seqs []int64) (n int, err error) {
	db, err := ps.reader(month)
	for _, seq := range seqs {
		var one int
		if err == nil {
			err = db.QueryRowContext(ctx, `SELECT 1 FROM post WHERE seq = ?`, seq).Scan(&one)
		}
		if errors.Is(err, sql.ErrNoRows) {
			n, err = n+1, nil
		}
	}
	return n, err
}

// checkParts is an error when a file is missing that posts refer to.
func (db *DB) checkParts(ctx context.Context) error {
	all, err := db.Parts(ctx)
	for _, p := range all {
		if p.Bytes < 0 {
			err = errors.Join(err, db.parts.missing(p.Month, fs.ErrNotExist))
		}
	}
	return err
}
