// Package backup makes a copy of the database each day, in a directory or a bucket of S3, encrypted to recipients of age
// where some are named; restores it on trial, and deletes old ones: what is kept is the newest of 7 days, 4 weeks and 6 months.
//
// One process of a node makes it, by a lease. A process that is killed at any point leaves no file that counts: the next one
// removes what it finds of it. The master key is in no backup.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"filippo.io/age"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

const (
	leaseFor  = 5 * time.Minute
	renewWait = time.Minute
	lookEvery = time.Minute      // between two checks whether one is due
	tryFirst  = 10 * time.Minute // after the first failure
	tryMost   = 6 * time.Hour
	spread    = time.Hour // after At, within which nodes begin
)

// A Backup makes backups. Its members are set before its first use.
type Backup struct {
	DB         *storage.DB
	URL        string // of PostgreSQL, "" on SQLite
	Place      Place
	Recipients []age.Recipient // none: not encrypted
	Base       string          // public address of the node
	Host       string          // its host, which begins the names
	Program    string          // version
	Temp       string          // directory for copies of a SQLite database
	At         time.Duration   // after midnight UTC
	CheckDays  int             // a trial restore at least each so many days; 0 and 1: of every backup
	Owner      string          // of leases: this process
	Log        *slog.Logger

	// Tell tells operators that backups do not work, or that they do again; nil to tell nobody.
	Tell func(ctx context.Context, tx *storage.Tx, s storage.BackupState, works bool) error
}

// ErrRunning means that another process is making a backup.
var ErrRunning = errors.New("another process makes a backup now: wait until it has ended")

// Run makes a backup each day until ctx ends.
func (b *Backup) Run(ctx context.Context) error {
	for {
		wait, err := b.step(ctx)
		if err != nil && ctx.Err() == nil {
			b.Log.Error("backup", "place", b.Place.String(), "err", err)
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

func (b *Backup) step(ctx context.Context) (time.Duration, error) {
	var s storage.BackupState
	var now time.Time
	err := b.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		now = tx.Now
		s, err = tx.Settings().Backup(ctx)
		return err
	})
	if err != nil {
		return lookEvery, err
	}
	if late(s, now) && !s.Told && b.Tell != nil {
		if err := b.DB.Write(ctx, b.tellLate); err != nil {
			return lookEvery, err
		}
	}
	if wait := s.NextAt.Sub(now); wait > 0 && wait <= 24*time.Hour+spread { // a later one was set by a clock that was wrong
		return min(wait, lookEvery), nil
	}
	s, err = b.Make(ctx, nil)
	if errors.Is(err, ErrRunning) {
		err = nil
	}
	if err == nil && s.Name != "" {
		b.Log.Info("backup made", "name", s.Name, "bytes", s.Bytes, "rows", s.Rows, "dur", s.Took.Round(time.Millisecond), "checked", s.Checked == s.Name)
	}
	return lookEvery, err
}

// Make makes a backup now, checks it and deletes old ones. It is ErrRunning while another process does.
func (b *Backup) Make(ctx context.Context, progress storage.Progress) (s storage.BackupState, err error) {
	mine := false
	err = b.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		s, mine, err = tx.Settings().ClaimBackup(ctx, b.Owner, tx.Now.Add(leaseFor), ended)
		return err
	})
	if err != nil {
		return s, err
	}
	if !mine {
		return s, ErrRunning
	}
	work, lose := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); b.renew(work, lose) }()
	done, err := b.make(work, s, progress)
	if cause := context.Cause(work); err != nil && cause != nil && ctx.Err() == nil {
		err = cause
	}
	lose(nil)
	<-ended
	if ctx.Err() != nil {
		return s, errors.Join(err, b.release(context.WithoutCancel(ctx)))
	}
	return b.finish(context.WithoutCancel(ctx), done, err)
}

// ended reports whether the process of an owner, host:pid:name, ran on this machine and has ended: then its lease counts no more.
func ended(owner string) bool {
	parts := strings.Split(owner, ":")
	host, _ := os.Hostname()
	if len(parts) != 3 || parts[0] != host {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return false
	}
	p, err := os.FindProcess(pid)
	return err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

var errLost = errors.New("the lease of the backup was lost: the database was not reached for minutes, or another process took over")

// renew keeps the lease until ctx ends, and ends ctx when it is lost.
func (b *Backup) renew(ctx context.Context, lose context.CancelCauseFunc) {
	tick := time.NewTicker(renewWait)
	defer tick.Stop()
	for missed := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		mine := false
		err := b.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			s, err := tx.Settings().Backup(ctx)
			if mine = s.Owner == b.Owner; err != nil || !mine {
				return err
			}
			s.LeaseEnd = tx.Now.Add(leaseFor)
			if err := tx.Settings().PutBackup(ctx, s); err != nil {
				return err
			}
			return b.tellLate(ctx, tx)
		})
		if missed++; err == nil {
			missed = 0
		}
		if err == nil && !mine || missed >= int(leaseFor/renewWait) {
			lose(errLost)
			return
		}
	}
}

const (
	lateAfter = 48 * time.Hour // since the last one
	lateTried = 12 * time.Hour // since the first try after it: a node that was off for days is not late
)

// late reports whether there is no backup of the last two days, although it was tried.
func late(s storage.BackupState, now time.Time) bool {
	since := s.MadeAt
	if since.IsZero() {
		since = s.TriedAt
	}
	return !s.TriedAt.IsZero() && now.Sub(s.TriedAt) > lateTried && now.Sub(since) > lateAfter
}

func (b *Backup) tellLate(ctx context.Context, tx *storage.Tx) error {
	s, err := tx.Settings().Backup(ctx)
	if err != nil || !late(s, tx.Now) || b.Tell == nil || s.Told {
		return err
	}
	if err := b.tell(ctx, tx, &s, false); err != nil {
		return err
	}
	return tx.Settings().PutBackup(ctx, s)
}

// tell tells operators that backups do not work, once, and that they work again.
func (b *Backup) tell(ctx context.Context, tx *storage.Tx, s *storage.BackupState, works bool) error {
	if b.Tell == nil || s.Told != works {
		return nil
	}
	s.Told = !works
	return b.Tell(ctx, tx, *s, works)
}

// A made is what a run has done.
type made struct {
	name    string
	size    int64
	rows    int64
	began   time.Time
	took    time.Duration
	tried   bool // restored
	check   time.Duration
	sealed  bool
	dropped []string
}

func (b *Backup) make(ctx context.Context, s storage.BackupState, progress storage.Progress) (m made, err error) {
	if s.Running != "" { // of a process that was killed
		if err := b.Place.Delete(ctx, s.Running); err != nil {
			return m, err
		}
	}
	if err := b.Place.Sweep(ctx, hostName(b.Host)+"-"); err != nil {
		b.Log.Warn("what an interrupted backup left is not removed", "place", b.Place.String(), "err", err)
	}
	err = b.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		m.began = tx.Now
		m.sealed = len(b.Recipients) > 0
		m.name = Name(b.Host, tx.Now, m.sealed)
		return b.note(ctx, tx, m.name)
	})
	if err != nil {
		return m, err
	}
	var sums storage.DumpSums
	var identity age.Identity
	began := time.Now()
	err = b.Place.Put(ctx, m.name, func(w io.Writer) (err error) {
		counted := &counter{to: w}
		identity, err = b.Write(ctx, counted, m.began, &sums, progress)
		m.size, m.rows = counted.n, sums.Rows()
		return fullCopy(b.Temp, err)
	})
	m.took = time.Since(began)
	if err != nil {
		return m, err
	}
	began = time.Now()
	m.tried = b.CheckDays <= 1 || s.CheckedAt.IsZero() || m.began.Sub(s.CheckedAt) > time.Duration(b.CheckDays)*24*time.Hour-spread
	err = b.check(ctx, m, identity, sums, progress)
	m.check = time.Since(began)
	if err != nil && !errors.Is(err, storage.ErrFaults) {
		return m, errors.Join(fmt.Errorf("the new backup is not kept: %w", err), b.Place.Delete(context.WithoutCancel(ctx), m.name))
	}
	if lost := b.parts(ctx, m.began, s, progress); lost != nil {
		return m, errors.Join(err, fmt.Errorf("%w: %w", errParts, lost))
	}
	if dropped := b.drop(ctx, &m, s); dropped != nil {
		err = errors.Join(err, fmt.Errorf("%w: %w", errOld, dropped))
	}
	return m, err
}

// errOld means that the new backup is sound and kept.
var errOld = errors.New("old backups are not deleted")

// note stores the name of the file that is being written.
func (b *Backup) note(ctx context.Context, tx *storage.Tx, name string) error {
	s, err := tx.Settings().Backup(ctx)
	if err != nil {
		return err
	}
	if s.Owner != b.Owner {
		return errLost
	}
	s.Running = name
	return tx.Settings().PutBackup(ctx, s)
}

// A counter counts what passes.
type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

// Write writes a backup. The identity opens it, and is nil where it is not encrypted.
func (b *Backup) Write(ctx context.Context, w io.Writer, at time.Time, sums *storage.DumpSums, progress storage.Progress) (age.Identity, error) {
	return pack(w, b.Recipients, func(w io.Writer) (err error) {
		head := storage.DumpHead{Program: b.Program, Base: b.Base, At: at}
		*sums, err = b.DB.Dump(ctx, w, head, filepath.Join(b.Temp, "backup-copy.db"), progress)
		return err
	})
}

// check reads the backup back from the place, and restores it on trial when that is due.
func (b *Backup) check(ctx context.Context, m made, identity age.Identity, sums storage.DumpSums, progress storage.Progress) error {
	f, err := b.Place.Open(ctx, Stored{m.name, m.size})
	if err != nil {
		return err
	}
	defer f.Close()
	var identities []age.Identity
	if identity != nil {
		identities = append(identities, identity)
	}
	r, _, err := Unpack(f, identities)
	if err != nil {
		return err
	}
	var found storage.Loaded
	switch {
	case !m.tried:
		found, err = storage.ReadDump(ctx, r, progress)
	case b.URL != "":
		found, err = storage.TryPostgres(ctx, r, b.URL, progress)
	default:
		found, err = storage.TryFile(ctx, r, filepath.Join(b.Temp, "backup-trial.db"), progress)
	}
	if (err == nil || errors.Is(err, storage.ErrFaults)) && (found.Sums.Rows() != sums.Rows() || found.Sums.SHA256 != sums.SHA256) {
		return fmt.Errorf("%w: it is another one than was written", storage.ErrDump)
	}
	return full(b.Temp, fullCopy(b.Temp, err))
}

// drop deletes the backups, and the files of old posts, that are no longer kept.
func (b *Backup) drop(ctx context.Context, m *made, s storage.BackupState) error {
	all, err := b.Place.List(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.Name
	}
	held := s.Checked
	if m.tried {
		held = m.name
	}
	drop := surplus(names, b.Host, m.began, held, m.name)
	oldest := m.began
	for _, name := range names {
		if of, at, ok := ParseName(name); ok && of == hostName(b.Host) && at.Before(oldest) && !slices.Contains(drop, name) {
			oldest = at
		}
	}
	for _, name := range append(drop, surplusParts(all, b.Host, oldest)...) {
		if err := b.Place.Delete(ctx, name); err != nil {
			return err
		}
		m.dropped = append(m.dropped, name)
	}
	return nil
}

// release ends the lease of a run that was cut short by the end of the process; the next run removes what it left.
func (b *Backup) release(ctx context.Context) error {
	return b.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Settings().Backup(ctx)
		if err != nil || s.Owner != b.Owner {
			return err
		}
		s.Owner = ""
		return tx.Settings().PutBackup(ctx, s)
	})
}

// finish stores the outcome of a run, and when the next one is due.
func (b *Backup) finish(ctx context.Context, m made, failed error) (s storage.BackupState, err error) {
	faulty := errors.Is(failed, storage.ErrFaults)
	kept := failed == nil || faulty || errors.Is(failed, errOld) || errors.Is(failed, errParts)
	more := time.Duration(rand.Int64N(int64(spread)))
	err = b.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if s, err = tx.Settings().Backup(ctx); err != nil {
			return err
		}
		if s.Owner != b.Owner { // another process has taken over
			return nil
		}
		s.Owner, s.Running, s.LastError = "", "", ""
		s.NextAt = nextDaily(tx.Now, b.At, more)
		if kept {
			s.TriedAt = time.Time{}
			s.MadeAt, s.Name, s.Bytes, s.Rows, s.Took, s.Sealed = m.began, m.name, m.size, m.rows, m.took, m.sealed
		}
		if kept && !faulty && m.tried {
			s.CheckedAt, s.Checked, s.CheckTook = tx.Now, m.name, m.check
		}
		if failed == nil {
			s.Failures = 0
		} else {
			s.Failures, s.Failed, s.LastError = s.Failures+1, s.Failed+1, protocol.Clip(protocol.OneLine(failed.Error()), 500)
		}
		if !kept {
			if again := tx.Now.Add(netx.Jitter(netx.Backoff(tryFirst, tryMost, s.Failures))); again.Before(s.NextAt) {
				s.NextAt = again
			}
		}
		if err := b.tell(ctx, tx, &s, failed == nil); err != nil {
			return err
		}
		return tx.Settings().PutBackup(ctx, s)
	})
	return s, errors.Join(failed, err)
}
