package storage

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"stoa/protocol"
)

// How posts move into parts and back, and what they leave there is erased.

// A partWork moves posts for one process at a time. owner has no spaces.
type partWork struct {
	db    *DB
	owner string
}

const partsSetting = "parts lease"

// claim gives the process the right to move posts for partLease, or renews it; until zero ends it.
func (w partWork) claim(ctx context.Context, tx *Tx, until time.Time) error {
	held, err := tx.Settings().Get(ctx, partsSetting)
	if err != nil {
		return err
	}
	var end int64
	var owner string
	if _, err := fmt.Sscanf(held, "%d %s", &end, &owner); err == nil && owner != w.owner && tx.Now.Before(moment(end)) {
		return ErrPartsBusy
	}
	return tx.Settings().Put(ctx, partsSetting, fmt.Sprintf("%d %s", millis(until), w.owner))
}

// renew renews the right, unless another process has had it since hold.
func (w partWork) renew(ctx context.Context, tx *Tx) error {
	held, err := tx.Settings().Get(ctx, partsSetting)
	if err == nil && !strings.HasSuffix(held, " "+w.owner) {
		err = ErrPartsBusy
	}
	if err != nil {
		return err
	}
	return w.claim(ctx, tx, tx.Now.Add(partLease))
}

// hold is claim in a transaction of its own.
func (w partWork) hold(ctx context.Context) error {
	return w.db.Write(ctx, func(ctx context.Context, tx *Tx) error { return w.claim(ctx, tx, tx.Now.Add(partLease)) })
}

func (w partWork) end(ctx context.Context) error {
	return w.db.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *Tx) error { return w.claim(ctx, tx, tx.Now) })
}

// DetachOld moves the posts of each month that has been over for at least so many months into its part, oldest first. It stops after atMost,
// and reports whether some are left. Months that an operator took back stay. It is ErrPartsBusy while another process moves posts.
func (db *DB) DetachOld(ctx context.Context, months int, owner string, atMost time.Duration) (more bool, err error) {
	w := partWork{db, owner}
	if err := w.hold(ctx); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, w.end(ctx)) }()
	var first, month int64
	done := map[int64]Part{}
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		month = MonthOf(time.Date(tx.Now.Year(), tx.Now.Month()-time.Month(months), 1, 0, 0, 0, 0, time.UTC))
		if first, err = orZero(find[int64](ctx, tx, `SELECT seq FROM post ORDER BY seq LIMIT 1`)); err != nil {
			return err
		}
		all, err := tx.partRows(ctx)
		for _, p := range all {
			done[p.Month] = p
		}
		return err
	})
	if err != nil || first == 0 {
		return false, err
	}
	until := time.Now().Add(atMost)
	for m := MonthOf(timeAt(first)); m < month; m = nextMonth(m) {
		if done[m].Taken {
			continue
		}
		for left := true; left; {
			if left, err = w.detachSome(ctx, m); err != nil {
				return false, err
			}
			if time.Now().After(until) {
				return true, nil
			}
		}
	}
	return false, nil
}

// Detach moves the posts of a month that is over into its part, and Reattach moves them back into their rows, where the job leaves them; what the
// file has of them is erased. Both are ErrPartsBusy while another process moves some.
func (db *DB) Detach(ctx context.Context, month int64, owner string, progress Progress) error {
	return db.moveMonth(ctx, month, owner, false, progress)
}

func (db *DB) Reattach(ctx context.Context, month int64, owner string, progress Progress) error {
	return db.moveMonth(ctx, month, owner, true, progress)
}

func (db *DB) moveMonth(ctx context.Context, month int64, owner string, back bool, progress Progress) (err error) {
	w := partWork{db, owner}
	begin, _ := monthSeqs(month)
	some := w.detachSome
	if back {
		some = w.reattachSome
	}
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if err := w.claim(ctx, tx, tx.Now.Add(partLease)); err != nil {
			return err
		}
		if month >= MonthOf(tx.Now) {
			return fmt.Errorf("%w: %d-%02d", ErrMonth, month/100, month%100)
		}
		return tx.putPart(ctx, month, begin, back)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.end(ctx)) }()
	for left, n := true, int64(0); left; n += partChunk {
		progress.tell("posts", n)
		if left, err = some(ctx, month); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) putPart(ctx context.Context, month, upto int64, kept bool) error {
	return tx.exec(ctx, `INSERT INTO part (month, upto, kept) VALUES (?, ?, ?) ON CONFLICT (month) DO UPDATE SET upto = excluded.upto, kept = excluded.kept`,
		month, upto, kept)
}

// partRows are the months that have or had a part, oldest first, without what only the files know.
func (tx *Tx) partRows(ctx context.Context) ([]Part, error) {
	rows, err := tx.query(ctx, `SELECT month, kept FROM part ORDER BY month`)
	return collect(rows, err, func(s scanner) (p Part, err error) {
		err = s.Scan(&p.Month, &p.Taken)
		p.File = tx.db.parts.file(p.Month)
		return p, err
	})
}

const monthPosts = `SELECT ` + storedColumns + ` FROM post WHERE seq > ? AND seq < ? AND part = ? AND state <> 'deleted' ORDER BY seq LIMIT ?`

// monthSome reads the next posts of a month, at most partChunk and whole, whose text is in that part, or with part 0 in their rows.
func (w partWork) monthSome(ctx context.Context, month, part int64) (posts []numberedPost, err error) {
	if err := w.hold(ctx); err != nil {
		return nil, err
	}
	err = w.db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		after, before := monthSeqs(month)
		upto, err := find[int64](ctx, tx, `SELECT upto FROM part WHERE month = ?`, month)
		if err == nil {
			after = max(after, upto)
		} else if err != ErrNotFound {
			return err
		}
		rows, err := tx.query(ctx, monthPosts, after, before, part, partChunk)
		posts, err = collect(rows, err, scanNumbered)
		for i := range posts {
			if err == nil {
				err = tx.whole(ctx, posts[i].seq, &posts[i].StoredPost)
			}
		}
		return err
	})
	return posts, err
}

// detachSome moves some posts of a month into its part, and reports whether there may be more.
func (w partWork) detachSome(ctx context.Context, month int64) (bool, error) {
	posts, err := w.monthSome(ctx, month, 0)
	if err != nil || len(posts) == 0 {
		return false, err
	}
	err = w.db.parts.change(ctx, month, func(tx *sql.Tx) error {
		for i := range posts {
			p := &posts[i]
			if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO post (seq, id, body, evidence, statement, object) VALUES (?, ?, ?, ?, ?, ?)`,
				p.seq, p.ID, p.Body, blob(p.Evidence), blob(p.Statement), blob(p.Object)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("fill %s: %w", w.db.parts.file(month), err)
	}
	err = w.each(ctx, posts, func(ctx context.Context, ps Posts, was, p *numberedPost) error {
		if p.Part != 0 || p.State == protocol.Deleted || p.Body != was.Body || !bytes.Equal(p.Evidence, was.Evidence) ||
			!bytes.Equal(p.Statement, was.Statement) || !bytes.Equal(p.Object, was.Object) {
			return nil
		}
		const short = `UPDATE post SET part = ?, body = '', evidence = NULL, statement = NULL, object = NULL WHERE seq = ?`
		if _, err := ps.tx.write(ctx, short, month, p.seq); err != nil {
			return err
		}
		if _, err := ps.tx.write(ctx, `DELETE FROM part_erase WHERE seq = ?`, p.seq); err != nil {
			return err
		}
		now := p.StoredPost
		now.Body = ""
		return ps.indexAgain(ctx, &p.StoredPost, &now, p.seq)
	}, func(ctx context.Context, tx *Tx) error {
		// A program that knows of no parts would show these posts without their text.
		if err := tx.exec(ctx, `UPDATE compatible SET since = ? WHERE since < ?`, partsSince, partsSince); err != nil {
			return err
		}
		return tx.putPart(ctx, month, posts[len(posts)-1].seq, false)
	})
	return len(posts) == partChunk, err
}

// partsSince is the migration that made parts.
const partsSince = 240

// reattachSome moves some posts of a month back into their rows, and reports whether there may be more.
func (w partWork) reattachSome(ctx context.Context, month int64) (bool, error) {
	posts, err := w.monthSome(ctx, month, month)
	if err != nil || len(posts) == 0 {
		return false, err
	}
	err = w.each(ctx, posts, func(ctx context.Context, ps Posts, was, p *numberedPost) error {
		if p.Part != month || p.State == protocol.Deleted {
			return nil
		}
		short := p.StoredPost
		p.Body, p.Evidence, p.Statement, p.Object = was.Body, was.Evidence, was.Statement, was.Object
		if err := ps.leave(ctx, p.seq, &p.StoredPost); err != nil {
			return err
		}
		if _, err := ps.tx.write(ctx, `UPDATE post SET body = ?, evidence = ?, statement = ?, object = ? WHERE seq = ?`,
			p.Body, blob(p.Evidence), blob(p.Statement), blob(p.Object), p.seq); err != nil {
			return err
		}
		return ps.indexAgain(ctx, &short, &p.StoredPost, p.seq)
	}, func(ctx context.Context, tx *Tx) error { return tx.putPart(ctx, month, posts[len(posts)-1].seq, true) })
	return len(posts) == partChunk, err
}

// each locks posts that were read before, calls fn with each as it was and as it is, and then end.
func (w partWork) each(ctx context.Context, posts []numberedPost, fn func(ctx context.Context, ps Posts, was, p *numberedPost) error,
	end func(ctx context.Context, tx *Tx) error) error {
	seqs, at := make([]int64, len(posts)), map[int64]int{}
	for i := range posts {
		seqs[i], at[posts[i].seq] = posts[i].seq, i
	}
	return w.db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if err := tx.settleWords(); err != nil {
			return err
		}
		if err := tx.dirty(); err != nil {
			return err
		}
		if err := w.renew(ctx, tx); err != nil {
			return err
		}
		in, args := inSeqs(seqs)
		now, err := tx.Posts().where(ctx, in+` ORDER BY seq`, args...)
		for i := range now {
			if err == nil {
				err = fn(ctx, tx.Posts(), &posts[at[now[i].seq]], &now[i])
			}
		}
		if err != nil {
			return err
		}
		return end(ctx, tx)
	})
}

// indexAgain replaces what the index of words has of a post, if it is there.
func (ps Posts) indexAgain(ctx context.Context, was, now *protocol.StoredPost, seq int64) error {
	if now.State != protocol.Visible || was.Body == now.Body {
		return nil
	}
	if err := ps.uncount(ctx, was, seq); err != nil {
		return err
	}
	if err := postWords.drop(ctx, ps.tx, seq, postText(was)); err != nil {
		return err
	}
	return ps.holdWords(now, seq)
}

// EraseParts deletes from the files what no post has referred to for an hour. It stops after atMost, and reports whether there
// is more. It is ErrPartsBusy while another process moves posts or makes a backup.
func (db *DB) EraseParts(ctx context.Context, owner string, atMost time.Duration) (more bool, err error) {
	w := partWork{db, owner}
	for until := time.Now().Add(atMost); ; {
		if more, err = w.eraseSome(ctx); err != nil || !more || time.Now().After(until) {
			return more, err
		}
	}
}

const (
	eraseMonth = `SELECT month FROM part_erase WHERE since <= ? ORDER BY seq LIMIT 1`
	eraseDue   = `SELECT seq FROM part_erase WHERE seq > ? AND seq < ? AND since <= ? ORDER BY seq LIMIT 1000`
)

// eraseSome erases some of one file, and reports whether there was any. The file itself stays: another process may have it open.
func (w partWork) eraseSome(ctx context.Context) (_ bool, err error) {
	var month int64
	err = w.db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		backup, err := tx.Settings().Backup(ctx)
		if err != nil {
			return err
		}
		month, err = orZero(find[int64](ctx, tx, eraseMonth, millis(tx.Now.Add(-eraseAfter))))
		if month != 0 && tx.Now.Before(backup.LeaseEnd) { // it may read an older state of the database for longer than an hour
			return ErrPartsBusy
		}
		return err
	})
	if err != nil || month == 0 {
		return false, err
	}
	var seqs []int64
	due := func() error {
		return w.db.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
			if err := w.claim(ctx, tx, tx.Now.Add(partLease)); err != nil {
				return err
			}
			after, before := monthSeqs(month)
			seqs, err = list[int64](ctx, tx, eraseDue, after, before, millis(tx.Now.Add(-eraseAfter)))
			return err
		})
	}
	if _, missing := os.Stat(w.db.parts.file(month)); errors.Is(missing, fs.ErrNotExist) {
		err = due()
	} else {
		err = w.db.parts.change(ctx, month, func(tx *sql.Tx) error { // while nobody else writes the file
			if err := due(); err != nil {
				return err
			}
			for _, seq := range seqs {
				if _, err := tx.ExecContext(ctx, `DELETE FROM post WHERE seq = ?`, seq); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return false, fmt.Errorf("erase in %s: %w", w.db.parts.file(month), err)
	}
	if len(seqs) > 0 { // otherwise another process has erased them meanwhile
		err = w.db.Write(ctx, func(ctx context.Context, tx *Tx) error {
			in, args := inSeqs(seqs)
			return tx.exec(ctx, `DELETE FROM part_erase WHERE `+in, args...)
		})
	}
	return true, errors.Join(err, w.end(ctx))
}
