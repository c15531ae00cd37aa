package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A clock is the time of a database, which a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func of(t *testing.T, c storage.Config, place Place) (*Backup, *clock) {
	at := &clock{at: time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)}
	c.Now = at.now
	db := storagetest.OpenConfig(t, c)
	put(t, db, "word", "stoa keeps this")
	return &Backup{DB: db, URL: c.URL, Place: place, Base: "https://a.example", Host: "a.example", Program: "test", Temp: t.TempDir(), At: 3 * time.Hour,
		Owner: "one", Log: slog.New(slog.DiscardHandler)}, at
}

func put(t *testing.T, db *storage.DB, name, value string) {
	require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Settings().Put(ctx, name, value) }))
}

func state(t *testing.T, db *storage.DB) (s storage.BackupState) {
	require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		s, err = tx.Settings().Backup(ctx)
		return err
	}))
	return s
}

func names(t *testing.T, p Place) (all []string) {
	for _, f := range must.Get(p.List(t.Context()))(t) {
		all = append(all, f.Name)
	}
	return all
}

// restored reads a file of a place and returns what was found in it.
func restored(t *testing.T, b *Backup, name string, ids ...age.Identity) (storage.Loaded, error) {
	for _, f := range must.Get(b.Place.List(t.Context()))(t) {
		if f.Name == name {
			r := must.Get(b.Place.Open(t.Context(), f))(t)
			defer r.Close()
			open, plain, err := Unpack(r, ids)
			if err != nil {
				return storage.Loaded{}, err
			}
			require.False(t, plain)
			return storage.ReadDump(t.Context(), open, nil)
		}
	}
	return storage.Loaded{}, os.ErrNotExist
}

func TestMake(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		dir := Directory(filepath.Join(t.TempDir(), "backups"))
		b, now := of(t, c, dir)
		s, err := b.Make(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, []string{"a.example-20261120T030000Z.tar.gz"}, names(t, dir))
		require.Equal(t, now.now(), s.MadeAt)
		require.Equal(t, s.Name, s.Checked)
		require.Equal(t, now.now(), s.CheckedAt)
		require.Positive(t, s.Bytes)
		require.Equal(t, s, state(t, b.DB))
		require.Empty(t, s.Owner)
		require.False(t, s.NextAt.Before(time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)))
		require.True(t, s.NextAt.Before(time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)))
		info := must.Get(os.Stat(filepath.Join(string(dir), s.Name)))(t)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.Empty(t, must.Get(os.ReadDir(b.Temp))(t), "nothing is left of the copy and the trial")
		_, err = restored(t, b, s.Name)
		require.NoError(t, err)

		wait, err := b.step(t.Context())
		require.NoError(t, err)
		require.Equal(t, lookEvery, wait)
		require.Len(t, names(t, dir), 1, "not due")
		now.add(26 * time.Hour)
		must.Get(b.step(t.Context()))(t)
		require.Len(t, names(t, dir), 2)
	})
}

// TestMake_Sealed: what was stored is checked although the node has no identity, and opens only with one.
func TestMake_Sealed(t *testing.T) {
	t.Parallel()
	x, pq, other := must.Get(age.GenerateX25519Identity())(t), must.Get(age.GenerateHybridIdentity())(t), must.Get(age.GenerateX25519Identity())(t)
	for name, recipient := range map[string]string{"x25519": x.Recipient().String(), "hybrid": pq.Recipient().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := of(t, storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db")}, Directory(t.TempDir()))
			b.Recipients = must.Get(ParseRecipients([]string{recipient}))(t)
			s, err := b.Make(t.Context(), nil)
			require.NoError(t, err)
			require.True(t, s.Sealed)
			require.Equal(t, s.Name, s.Checked)
			require.Regexp(t, `\.tar\.gz\.age$`, s.Name)
			raw := must.Get(os.ReadFile(filepath.Join(b.Place.String(), s.Name)))(t)
			require.NotContains(t, string(raw), "backup.json")
			_, err = restored(t, b, s.Name)
			require.ErrorIs(t, err, ErrSealed)
			_, err = restored(t, b, s.Name, other)
			require.ErrorIs(t, err, errIdentity)
			_, err = restored(t, b, s.Name, other, x, pq)
			require.NoError(t, err)
		})
	}
	_, err := ParseRecipients([]string{x.String()})
	require.ErrorContains(t, err, "secret identity")
	require.NotContains(t, err.Error(), x.String())
	_, err = ParseRecipients([]string{x.Recipient().String(), pq.Recipient().String()})
	require.Error(t, err, "kinds that cannot be mixed are refused at the start")
	_, err = ParseRecipients([]string{"age1nonsense"})
	require.Error(t, err)
}

// A broken place fails or changes what is written.
type broken struct {
	Directory
	room   int  // bytes before the disk is full; 0: none
	change bool // a byte of what is read
}

func (p *broken) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	if p.room == 0 {
		return p.Directory.Put(ctx, name, write)
	}
	return p.Directory.Put(ctx, name, func(w io.Writer) error { return write(&small{w, p.room}) })
}

func (p *broken) Open(ctx context.Context, f Stored) (io.ReadCloser, error) {
	if p.change {
		path := filepath.Join(string(p.Directory), f.Name)
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		raw[len(raw)/2] ^= 1
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			return nil, err
		}
	}
	return p.Directory.Open(ctx, f)
}

type small struct {
	to   io.Writer
	room int
}

func (s *small) Write(p []byte) (int, error) {
	if s.room -= len(p); s.room < 0 {
		return 0, fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return s.to.Write(p)
}

func TestMake_Fails(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		place := &broken{Directory: Directory(t.TempDir())}
		b, now := of(t, c, place)
		told := tells(b)
		good, err := b.Make(t.Context(), nil)
		require.NoError(t, err)

		place.room = 2000
		now.add(24 * time.Hour)
		s, err := b.Make(t.Context(), nil)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Contains(t, s.LastError, "no room left")
		require.Equal(t, 1, s.Failures)
		require.Equal(t, good.Name, s.Name, "the last good one stays")
		require.True(t, s.NextAt.Before(now.now().Add(time.Hour)), "soon again")
		require.Equal(t, []string{good.Name}, names(t, place), "nothing of it is left")

		place.room, place.change = 0, true
		now.add(time.Hour)
		s, err = b.Make(t.Context(), nil)
		require.Error(t, err)
		require.Contains(t, s.LastError, "not kept")
		require.Equal(t, 2, s.Failures)
		require.Equal(t, []string{good.Name}, names(t, place), "what does not read back is not kept")
		require.Equal(t, []string{"fails: " + told.first}, told.all, "once")

		place.change = false
		now.add(time.Hour)
		s, err = b.Make(t.Context(), nil)
		require.NoError(t, err)
		require.Zero(t, s.Failures)
		require.EqualValues(t, 2, s.Failed, "the count of all time")
		require.Empty(t, s.LastError)
		require.Equal(t, "works", told.all[1])
		_, err = b.Make(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, told.all, 2)
	})
}

// telling is what operators were told.
type telling struct {
	all   []string
	first string // error
}

func tells(b *Backup) *telling {
	told := &telling{}
	b.Tell = func(_ context.Context, _ *storage.Tx, s storage.BackupState, works bool) error {
		if works {
			told.all = append(told.all, "works")
			return nil
		}
		told.first = cmp.Or(told.first, s.LastError)
		told.all = append(told.all, "fails: "+s.LastError)
		return nil
	}
	return told
}

// TestLate: operators are told once when no backup was finished for two days, by whichever process looks, and not because a node was off.
func TestLate(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		b, now := of(t, c, Directory(t.TempDir()))
		told := tells(b)
		_, err := b.step(t.Context())
		require.NoError(t, err)
		now.add(3 * 24 * time.Hour)
		_, err = b.step(t.Context())
		require.NoError(t, err)
		require.Empty(t, told.all, "the node was off")

		now.add(24 * time.Hour)
		for range 3 { // a process that is killed at it, as often as it begins
			require.NoError(t, b.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				_, mine, err := tx.Settings().ClaimBackup(ctx, "two", tx.Now.Add(24*time.Hour), func(string) bool { return true })
				require.True(t, mine)
				return err
			}))
			require.Empty(t, told.all)
			now.add(8 * time.Hour)
			_, err = b.step(t.Context())
			require.NoError(t, err)
		}
		require.Empty(t, told.all, "two days since the last")
		for range 3 {
			now.add(time.Minute)
			_, err = b.step(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, []string{"fails: "}, told.all)
		now.add(24 * time.Hour) // the lease is over
		_, err = b.step(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"fails: ", "works"}, told.all)
	})
}

// TestMake_Faults: a database that breaks a rule is backed up, and said to be so.
func TestMake_Faults(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		if c.URL == "" {
			c.Path = filepath.Join(t.TempDir(), "stoa.db")
		} else {
			c.URL = storagetest.EmptyPostgresURL(t)
		}
		storagetest.Unopened(t, c, func(exec func(query string, args ...any)) {
			exec(`INSERT INTO meeting_rules (handle, doc, updated_at) VALUES ('nobody', '{}', 1)`)
		})
		b, _ := of(t, c, Directory(t.TempDir()))
		s, err := b.Make(t.Context(), nil)
		require.ErrorIs(t, err, storage.ErrFaults)
		require.ErrorContains(t, err, "meeting rules without a profile: nobody")
		require.Len(t, names(t, b.Place), 1)
		require.Equal(t, names(t, b.Place)[0], s.Name)
		require.True(t, s.CheckedAt.IsZero())
	})
}

// TestMake_Cut: what a process left that was killed in the middle is removed by the next one, once its lease has ended.
func TestMake_Cut(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		dir := Directory(t.TempDir())
		b, now := of(t, c, dir)
		cut := Name("a.example", now.now().Add(-time.Minute), false)
		for _, name := range []string{cut, "." + cut + partial, ".other" + partial, "notes.txt"} {
			require.NoError(t, os.WriteFile(filepath.Join(string(dir), name), []byte("half"), 0o600))
		}
		require.NoError(t, os.WriteFile(filepath.Join(b.Temp, "backup-copy.db"), []byte("half"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(b.Temp, "backup-trial.db"), []byte("half"), 0o600))
		require.NoError(t, b.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Settings().PutBackup(ctx, storage.BackupState{Owner: "killed", Running: cut, LeaseEnd: tx.Now.Add(leaseFor)})
		}))
		_, err := b.Make(t.Context(), nil)
		require.ErrorIs(t, err, ErrRunning)
		now.add(leaseFor + time.Second)
		s, err := b.Make(t.Context(), nil)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{".other" + partial, "notes.txt", s.Name}, names(t, dir))
	})
}

// TestMake_Together: of several processes one makes it.
func TestMake_Together(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		b, _ := of(t, c, Directory(t.TempDir()))
		results := make(chan error, 4)
		for i := range 4 {
			one := *b
			one.Owner, one.Temp = fmt.Sprint("process ", i), t.TempDir()
			go func() {
				_, err := one.step(t.Context())
				results <- err
			}()
		}
		for range 4 {
			require.NoError(t, <-results)
		}
		require.Len(t, names(t, b.Place), 1)
	})
}

func TestEnded(t *testing.T) {
	t.Parallel()
	host := must.Get(os.Hostname())(t)
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	require.True(t, ended(fmt.Sprintf("%s:%d:x", host, gone.Process.Pid)))
	require.False(t, ended(fmt.Sprintf("%s:%d:x", host, os.Getpid())))
	require.False(t, ended(fmt.Sprintf("%s-other:%d:x", host, gone.Process.Pid)), "of another machine nothing is known")
	require.False(t, ended("nonsense"))
}

// TestMake_Ended: a process that ends in the middle counts no failure and leaves no lease.
func TestMake_Ended(t *testing.T) {
	t.Parallel()
	b, _ := of(t, storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db")}, Directory(t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.Make(ctx, func(string, int64) { cancel() })
	require.True(t, errors.Is(err, context.Canceled) || err != nil)
	s := state(t, b.DB)
	require.Empty(t, s.Owner)
	require.Zero(t, s.Failures)
	require.Empty(t, names(t, b.Place))
}

// TestMake_Weekly: between trial restores a backup is read back only.
func TestMake_Weekly(t *testing.T) {
	t.Parallel()
	b, now := of(t, storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db")}, Directory(t.TempDir()))
	b.CheckDays = 7
	var checked []string
	for range 9 {
		s := must.Get(b.Make(t.Context(), nil))(t)
		checked = append(checked, s.Checked[10:18])
		now.add(24 * time.Hour)
	}
	require.Equal(t, []string{"20261120", "20261120", "20261120", "20261120", "20261120", "20261120", "20261120", "20261127", "20261127"}, checked)
	require.Len(t, names(t, b.Place), keptDays)
}

func oldPost(t *testing.T, db *storage.DB, at time.Time, body string) string {
	id := protocol.NewID(protocol.PostID, at)
	require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.Posts().Insert(ctx, &protocol.StoredPost{State: protocol.Hidden, Board: "https://a.example/ap/board", Post: protocol.Post{
			ID: id, URI: "https://a.example/ap/posts/" + id,
			URL: "https://a.example/board/" + id, Kind: protocol.PostKinds[0], Title: "Paper", Body: body, CreatedAt: at,
			Author: protocol.Author{Name: "Asha", Method: protocol.ByProof}}})
	}))
	return id
}

// TestMake_Parts: the files of old posts are copied when they have changed, and an earlier copy is kept while a backup may need it.
func TestMake_Parts(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		dir := Directory(filepath.Join(t.TempDir(), "backups"))
		b, now := of(t, c, dir)
		id := must.Get(age.GenerateX25519Identity())(t)
		b.Recipients = []age.Recipient{id.Recipient()}
		january := time.Date(2025, 1, 5, 0, 0, 0, 0, time.UTC)
		for i := range 3 {
			oldPost(t, b.DB, january.Add(time.Duration(i)*time.Minute), "of January")
		}
		copies := func() (all []string) {
			for _, c := range PartCopies(must.Get(dir.List(t.Context()))(t)) {
				all = append(all, c.Name)
			}
			return all
		}
		after := func(days int) {
			t.Helper()
			now.add(time.Duration(days) * 24 * time.Hour)
			_, err := b.Make(t.Context(), nil)
			require.NoError(t, err)
		}
		after(1)
		require.Empty(t, copies())
		require.NoError(t, b.DB.Detach(t.Context(), 202501, "p", nil))
		after(1)
		first := "a.example-posts-2025-01-20261122T030000Z.db.gz.age"
		require.Equal(t, []string{first}, copies())
		after(1)
		require.Equal(t, []string{first}, copies(), "it has not changed")

		oldPost(t, b.DB, january, "late")
		require.NoError(t, b.DB.Detach(t.Context(), 202501, "p", nil))
		after(1)
		second := "a.example-posts-2025-01-20261124T030000Z.db.gz.age"
		require.Equal(t, []string{second, first}, copies())
		require.NoError(t, dir.Delete(t.Context(), second))
		after(1)
		third := "a.example-posts-2025-01-20261125T030000Z.db.gz.age"
		require.Equal(t, []string{third, first}, copies(), "what is gone from the place is copied again")
		for _, c := range PartCopies(must.Get(dir.List(t.Context()))(t))[:1] {
			var file bytes.Buffer
			require.NoError(t, ReadPart(t.Context(), dir, c.Stored, []age.Identity{id}, &file))
			require.Contains(t, file.String(), "of January")
			require.Contains(t, file.String(), "late")
		}
		for range 8 { // until no backup from before the third copy is kept
			after(31)
		}
		require.Equal(t, []string{third}, copies())

		parts := must.Get(b.DB.Parts(t.Context()))(t)
		require.NoError(t, os.Remove(parts[0].File))
		now.add(24 * time.Hour)
		s, err := b.Make(t.Context(), nil)
		require.ErrorContains(t, err, parts[0].File+" is missing")
		require.Equal(t, now.now(), s.MadeAt, "the backup is kept")
		require.Equal(t, []string{third}, copies())
	})
}
