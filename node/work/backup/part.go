package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"
	"slices"
	"strconv"
	"time"

	"filippo.io/age"

	"stoa/storage"
)

// The files of old posts (storage.Part) change seldom: one is copied when it is new or has changed since it was copied, and an earlier copy
// is kept as long as a backup from before the next one is. They are named <host>-posts-2025-01-<time>.db.gz, with .age when encrypted.

var partName = regexp.MustCompile(`^([a-z0-9._-]{1,260})-posts-(\d{4})-(\d{2})-(\d{8}T\d{6}Z)\.db\.gz(\.age)?$`)

// A PartCopy is the copy of the file of a month, as 202501, in a place.
type PartCopy struct {
	Stored
	Host  string
	Month int64
	At    time.Time
}

// PartCopies are those among the files of a place, the newest first.
func PartCopies(all []Stored) (copies []PartCopy) {
	for _, f := range all {
		m := partName.FindStringSubmatch(f.Name)
		if m == nil {
			continue
		}
		at, err := time.Parse(nameTime, m[4])
		month, e := strconv.ParseInt(m[2]+m[3], 10, 64)
		if errors.Join(err, e) == nil {
			copies = append(copies, PartCopy{f, m[1], month, at})
		}
	}
	slices.SortFunc(copies, func(a, b PartCopy) int { return b.At.Compare(a.At) })
	return copies
}

// errParts means that the backup is kept, and cannot bring back the text of all old posts.
var errParts = errors.New("files of old posts are not copied")

// parts copies the files of old posts that have changed.
func (b *Backup) parts(ctx context.Context, at time.Time, s storage.BackupState, progress storage.Progress) error {
	all, err := b.DB.Parts(ctx)
	if err != nil {
		return err
	}
	there, err := b.Place.List(ctx)
	if err != nil {
		return err
	}
	copied, changed := map[int64]storage.CopiedPart{}, false
	for _, p := range all {
		switch was, known := s.Parts[p.Month]; {
		case p.Bytes == 0: // its posts are back in the database
		case p.Bytes < 0:
			err = errors.Join(err, fmt.Errorf("%s is missing", p.File))
		case known && was.Version == p.Version && slices.ContainsFunc(there, func(f Stored) bool { return f.Name == was.Name }):
			copied[p.Month] = was
		default:
			name, e := b.putPart(ctx, p.Month, at, progress)
			if err = errors.Join(err, e); e == nil {
				copied[p.Month], changed = storage.CopiedPart{Name: name, Version: p.Version}, true
			}
		}
	}
	if changed || len(copied) != len(s.Parts) {
		err = errors.Join(err, b.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			s, err := tx.Settings().Backup(ctx)
			if err != nil || s.Owner != b.Owner {
				return err
			}
			s.Parts = copied
			return tx.Settings().PutBackup(ctx, s)
		}))
	}
	return err
}

// putPart copies the file of a month, and reads back what was stored.
func (b *Backup) putPart(ctx context.Context, month int64, at time.Time, progress storage.Progress) (name string, err error) {
	name = fmt.Sprintf("%s-posts-%d-%02d-%s.db.gz", hostName(b.Host), month/100, month%100, at.UTC().Format(nameTime))
	if len(b.Recipients) > 0 {
		name += ".age"
	}
	if progress != nil {
		progress("copying the posts of a month", month)
	}
	var identity age.Identity
	wrote, read := sha256.New(), sha256.New()
	size := &counter{}
	err = b.Place.Put(ctx, name, func(w io.Writer) (err error) {
		size.to = w
		identity, err = pack(size, b.Recipients, func(w io.Writer) error {
			return b.DB.CopyPart(ctx, month, io.MultiWriter(w, wrote))
		})
		return err
	})
	if err == nil {
		err = b.readPart(ctx, Stored{name, size.n}, identity, read)
	}
	if err == nil && string(wrote.Sum(nil)) != string(read.Sum(nil)) {
		err = storage.ErrDump
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", name, err), b.Place.Delete(context.WithoutCancel(ctx), name))
	}
	return name, nil
}

func (b *Backup) readPart(ctx context.Context, f Stored, identity age.Identity, into hash.Hash) error {
	var identities []age.Identity
	if identity != nil {
		identities = append(identities, identity)
	}
	return ReadPart(ctx, b.Place, f, identities, into)
}

// ReadPart writes the file of a month that was copied to a place.
func ReadPart(ctx context.Context, from Place, f Stored, identities []age.Identity, into io.Writer) error {
	in, err := from.Open(ctx, f)
	if err != nil {
		return err
	}
	defer in.Close()
	r, plain, err := Unpack(in, identities)
	if err == nil && !plain {
		err = errNotOurs
	}
	if err == nil {
		_, err = io.Copy(into, r)
	}
	return err
}

// RestoreParts brings back the files of old posts that a restored database refers to and that are not here: each as it was copied last before
// the backup was made, nil if it is not known when. host is the node's, "" for any. It returns how many, and those that are in neither place.
func RestoreParts(ctx context.Context, db *storage.DB, from Place, host string, made *time.Time, identityFile string) (n int, lacks []string, err error) {
	all, err := db.Parts(ctx)
	all = slices.DeleteFunc(all, func(p storage.Part) bool { return p.Bytes >= 0 })
	if err != nil || len(all) == 0 {
		return 0, nil, err
	}
	stored, err := from.List(ctx)
	var identities []age.Identity
	if err == nil && identityFile != "" {
		identities, err = ReadIdentities(identityFile)
	}
	if err != nil {
		return 0, nil, err
	}
	copies := PartCopies(stored)
	for _, p := range all {
		mine := slices.DeleteFunc(slices.Clone(copies), func(f PartCopy) bool { return f.Month != p.Month || host != "" && f.Host != host })
		if len(mine) == 0 {
			lacks = append(lacks, p.File)
			continue
		}
		i := slices.IndexFunc(mine, func(f PartCopy) bool { return made == nil || !f.At.After(*made) })
		if i < 0 {
			i = len(mine) - 1
		}
		if err := db.PutPart(p.Month, func(w io.Writer) error { return ReadPart(ctx, from, mine[i].Stored, identities, w) }); err != nil {
			return n, lacks, fmt.Errorf("%s: %w", mine[i].Name, err)
		}
		n++
	}
	return n, lacks, nil
}

// surplusParts lists the copies of a host that no backup from a time or later needs: there is a later one from before that time.
func surplusParts(all []Stored, host string, oldest time.Time) (drop []string) {
	later := map[int64]bool{} // months with a copy from before the oldest backup, or made with it
	for _, c := range PartCopies(all) {
		if c.Host != hostName(host) {
			continue
		}
		if later[c.Month] {
			drop = append(drop, c.Name)
		}
		later[c.Month] = later[c.Month] || !c.At.After(oldest)
	}
	return drop
}
