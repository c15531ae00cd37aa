package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stoa/identity/key"
	"stoa/node/out/mail"
	"stoa/node/out/outbound"
	"stoa/node/out/s3"
	"stoa/node/room/account"
	"stoa/node/room/credential"
	"stoa/node/room/operate"
	"stoa/node/work/backup"
	"stoa/protocol"
	"stoa/storage"
)

const bucketScheme = "s3://"

// backupFaults reports the faults of the settings of backups.
func (c Config) backupFaults(bad func(format string, args ...any)) {
	if _, err := backup.ParseRecipients(c.BackupRecipients); err != nil {
		bad("backup-recipient: %w", err)
	}
	if _, err := time.Parse("15:04", cmp.Or(c.BackupAt, "03:00")); err != nil {
		bad("backup-at: %q is not a time of day such as 03:00", c.BackupAt)
	}
	if c.BackupCheck < 0 || c.BackupCheck > 7 {
		bad("backup-check-days: must be from 1 to 7")
	}
	if c.BackupDir == "" {
		if len(c.BackupRecipients) > 0 {
			bad("backup-dir: name a place for the backups that backup-recipient is for")
		}
		return
	}
	if _, err := c.place(c.BackupDir, nil); err != nil {
		bad("backup-dir: %w", err)
	}
}

// place is the directory or bucket of an address. db is what backups are made of, nil to read only.
func (c Config) place(address string, db *storage.DB) (backup.Place, error) {
	rest, bucket := strings.CutPrefix(address, bucketScheme)
	if !bucket {
		if strings.Contains(address, "://") {
			return nil, fmt.Errorf("%q is neither a directory nor s3://bucket/prefix", address)
		}
		return backup.Directory(address), nil
	}
	name, prefix, _ := strings.Cut(rest, "/")
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	if name == "" || strings.ContainsAny(name, "@?#%:") {
		return nil, fmt.Errorf("%q is not s3://bucket/prefix", address)
	}
	b := &s3.Bucket{Name: name, Prefix: prefix, Region: cmp.Or(c.BackupRegion, "us-east-1"), ID: c.BackupKey}
	b.Endpoint = cmp.Or(c.BackupEndpoint, "https://s3."+b.Region+".amazonaws.com")
	if u, err := url.Parse(b.Endpoint); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" {
		return nil, errors.New("backup-s3-endpoint must be an https URL")
	}
	if b.ID == "" {
		b.ID, b.Secret, b.Session = os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")
	}
	if c.BackupSecret != "" {
		var err error
		if b.Secret, err = mail.ReadPassword(c.BackupSecret); err != nil {
			return nil, fmt.Errorf("backup-s3-secret: %w", err)
		}
	}
	if b.ID == "" || b.Secret == "" {
		return nil, errors.New("name the access key of the bucket with backup-s3-key and backup-s3-secret, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY " +
			"in the environment")
	}
	// The address is the operator's own, as that of a chain's endpoint: it may be on this machine or its network.
	b.Client = outbound.New(outbound.Options{AllowPrivate: true, Ports: []uint16{443, urlPort(b.Endpoint)}, UserAgent: "stoa/" + c.Version,
		Timeout: 3 * time.Minute, MaxBody: s3.MaxPart})
	p := backup.Bucket{Bucket: b}
	if db != nil {
		p.Expected = func(ctx context.Context) (n int64) {
			_ = db.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
				n, err = tx.Site().Bytes(ctx)
				return err
			})
			return n
		}
	}
	return p, nil
}

func urlPort(address string) (port uint16) {
	if u, err := url.Parse(address); err == nil {
		fmt.Sscan(u.Port(), &port)
	}
	return cmp.Or(port, 443)
}

// backups makes what makes backups; nil where the settings name no place.
func (c Config) backups(db *storage.DB, base string, log *slog.Logger) (*backup.Backup, error) {
	if c.BackupDir == "" {
		return nil, nil
	}
	place, err := c.place(c.BackupDir, db)
	if err != nil {
		return nil, fmt.Errorf("%w: backup-dir: %w", ErrConfig, err)
	}
	return c.backupTo(place, db, base, log)
}

func (c Config) backupTo(place backup.Place, db *storage.DB, base string, log *slog.Logger) (*backup.Backup, error) {
	to, err := backup.ParseRecipients(c.BackupRecipients)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	at, err := time.Parse("15:04", cmp.Or(c.BackupAt, "03:00"))
	if err != nil {
		return nil, err
	}
	return &backup.Backup{DB: db, URL: c.Database, Place: place, Recipients: to, Base: base, Host: u.Host, Program: c.Version, Temp: c.Data,
		At: time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute, CheckDays: c.BackupCheck, Owner: owner(), Log: log,
		Tell: account.TellOfBackups}, nil
}

// Backup makes a backup of a file of its own. On SQLite, where no recipient is set, it is a database file; otherwise the form of those
// that the node makes by itself. progress may be nil.
func (a *Admin) Backup(ctx context.Context, c Config, path string, progress storage.Progress) error {
	if a.DB.Engine() == "sqlite" && len(c.BackupRecipients) == 0 {
		if err := a.DB.Backup(ctx, path); err != nil {
			return err
		}
		return a.DB.Write(ctx, operate.BackupDone)
	}
	place := backup.Directory(filepath.Dir(path))
	if _, err := os.Stat(string(place)); err != nil {
		return err
	}
	b, err := c.backupTo(place, a.DB, a.Base, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	b.Temp = filepath.Dir(path)
	if err := place.Put(ctx, filepath.Base(path), func(w io.Writer) error {
		var sums storage.DumpSums
		_, err := b.Write(ctx, w, time.Now().UTC(), &sums, progress)
		return err
	}); err != nil {
		return err
	}
	return a.DB.Write(ctx, operate.BackupDone)
}

// BackUp makes a backup in the place of the settings now, as the node does each day.
func (a *Admin) BackUp(ctx context.Context, c Config, log *slog.Logger, progress storage.Progress) (s storage.BackupState, err error) {
	b, err := c.backups(a.DB, a.Base, log)
	if err == nil && b == nil {
		err = fmt.Errorf("%w: name a file, or the place of the node's backups with --backup-dir", ErrConfig)
	}
	if err != nil {
		return s, err
	}
	return b.Make(ctx, progress)
}

// A Source is a backup to restore.
type Source struct {
	From     string // a file, a directory or s3://…; "" means backup-dir
	Date     string // of a directory or bucket: the newest of this day, such as 2026-11-20, or one by its name; "" means the newest
	Identity string // file of age identities
	Progress storage.Progress
	Read     func(read, of int64) // told as the backup is read, in bytes; may be nil
}

// watched tells how much of a backup was read.
type watched struct {
	io.ReadCloser
	read, of int64
	tell     func(read, of int64)
}

func (r *watched) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.read += int64(n)
	r.tell(r.read, r.of)
	return n, err
}

func (s Source) watch(f io.ReadCloser, size int64) io.ReadCloser {
	if s.Read == nil {
		return f
	}
	return &watched{ReadCloser: f, of: size, tell: s.Read}
}

// Backups lists the backups of a place, the newest first.
func Backups(ctx context.Context, c Config, from string) (place string, all []backup.Stored, err error) {
	p, all, err := backupsOf(ctx, c, from)
	if err != nil {
		return "", nil, err
	}
	return p.String(), all, nil
}

func backupsOf(ctx context.Context, c Config, from string) (backup.Place, []backup.Stored, error) {
	if from = cmp.Or(from, c.BackupDir); from == "" {
		return nil, nil, fmt.Errorf("%w: name the file, directory or bucket, or the place of the node's backups with --backup-dir", ErrConfig)
	}
	p, err := c.place(from, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	all, err := p.List(ctx)
	all = slices.DeleteFunc(all, func(f backup.Stored) bool { _, _, ok := backup.ParseName(f.Name); return !ok })
	slices.SortFunc(all, func(a, b backup.Stored) int {
		_, x, _ := backup.ParseName(a.Name)
		_, y, _ := backup.ParseName(b.Name)
		return y.Compare(x)
	})
	return p, all, err
}

// open finds the backup and opens it. plain: it is a SQLite file.
func (s Source) open(ctx context.Context, c Config) (r io.Reader, plain bool, name string, end func(), err error) {
	f, name, err := s.file(ctx, c)
	if err != nil {
		return nil, false, "", nil, err
	}
	if s.Identity == "" {
		r, plain, err = backup.Unpack(f, nil)
	} else if ids, wrong := backup.ReadIdentities(s.Identity); wrong != nil {
		err = fmt.Errorf("%w: identity: %w", ErrConfig, wrong)
	} else {
		r, plain, err = backup.Unpack(f, ids)
	}
	if err != nil {
		f.Close()
		return nil, false, "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, plain, name, func() { f.Close() }, nil
}

func (s Source) file(ctx context.Context, c Config) (io.ReadCloser, string, error) {
	from := cmp.Or(s.From, c.BackupDir)
	if info, err := os.Stat(from); from != "" && !strings.HasPrefix(from, bucketScheme) && (err != nil || !info.IsDir()) {
		f, wrong := os.Open(from)
		if err = errors.Join(err, wrong); err != nil {
			return nil, from, err
		}
		return s.watch(f, info.Size()), from, nil
	}
	p, all, err := backupsOf(ctx, c, from)
	if err != nil {
		return nil, "", err
	}
	hosts := map[string]bool{}
	for _, f := range all {
		host, at, _ := backup.ParseName(f.Name)
		if hosts[host] = true; s.Date == "" || f.Name == s.Date || at.Format(time.DateOnly) == s.Date {
			if len(hosts) > 1 {
				break
			}
			r, err := p.Open(ctx, f)
			if err == nil {
				r = s.watch(r, f.Size)
			}
			return r, p.String() + " " + f.Name, err
		}
	}
	if s.Date == "" && len(all) > 0 || len(hosts) > 1 {
		return nil, "", fmt.Errorf("%s has backups of several nodes: name one with --at NAME", p)
	}
	return nil, "", fmt.Errorf("%s has no such backup; stoa admin backup --list shows those that it has", p)
}

// parts brings back the files of old posts that the restored database refers to and that are not here: each as it was copied last before
// the backup was made.
func (s Source) parts(ctx context.Context, c Config, db *storage.DB, out *Restored) error {
	from := cmp.Or(s.From, c.BackupDir)
	if info, err := os.Stat(from); err == nil && !info.IsDir() {
		from = filepath.Dir(from)
	}
	place, err := c.place(from, nil)
	if err != nil {
		return err
	}
	host, _, known := backup.ParseName(out.From[strings.LastIndexAny(out.From, " /")+1:])
	if !known {
		host = ""
	}
	out.Parts, out.Lacks, err = backup.RestoreParts(ctx, db, place, host, out.At, s.Identity)
	return err
}

// Restored is what was restored.
type Restored struct {
	From  string     `json:"from"`
	Node  string     `json:"node"`           // its public address
	At    *time.Time `json:"at,omitempty"`   // what the backup is of; nil for a database file
	Rows  int64      `json:"rows,omitempty"` // each compared with what the backup says
	Kept  string     `json:"kept,omitempty"` // where the database of before is
	Tried bool       `json:"tried,omitempty"`
	Parts int        `json:"parts,omitempty"` // files of old posts that were brought back
	Lacks []string   `json:"lacks,omitempty"` // files of old posts that are neither here nor in the place
}

func (r *Restored) of(l storage.Loaded) {
	if !l.Head.At.IsZero() {
		r.At = &l.Head.At
	}
	r.Node, r.Rows = l.Head.Base, l.Sums.Rows()
}

// Restore replaces the database of a stopped node by a backup, and begins a new epoch of the board's log, so that peers read it
// again. The replaced database is kept: next to it, on PostgreSQL in a schema of its own.
func Restore(ctx context.Context, c Config, s Source, log *slog.Logger) (out Restored, err error) {
	if _, err := key.LoadMaster(c.masterKey()); errors.Is(err, fs.ErrNotExist) {
		return out, fmt.Errorf("%w: %w", ErrConfig, credential.MissingMaster(c.masterKey())) // before the database is replaced
	} else if err != nil {
		return out, err
	}
	r, plain, name, end, err := s.open(ctx, c)
	if err != nil {
		return out, err
	}
	defer end()
	out.From = name
	var found storage.Loaded
	if c.Database != "" {
		if plain {
			return out, fmt.Errorf("%w: %s is a SQLite database: leave --database out to restore it", ErrConfig, name)
		}
		out.Kept = "stoa_old_" + time.Now().UTC().Format("20060102t150405z")
		found, err = storage.LoadPostgres(ctx, r, c.Database, out.Kept, s.Progress)
	} else if err = os.MkdirAll(c.Data, 0o700); err == nil {
		out.Kept, err = storage.Replace(ctx, c.sqlite(), func(fresh string) error {
			found, err = unpackTo(ctx, r, plain, fresh, s.Progress)
			return err
		}, func(db *storage.DB) error {
			_, err := openKeys(ctx, db, c)
			return err
		})
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", name, err)
	}
	a, err := OpenAdmin(ctx, c, log)
	if err != nil {
		return out, err
	}
	defer a.Close()
	out.of(found)
	out.Node = a.Base
	if err := s.parts(ctx, c, a.DB, &out); err != nil {
		return out, err
	}
	if _, err = Do(ctx, a, protocol.NewEpoch, protocol.None{}); err != nil {
		return out, err
	}
	return out, a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { // the copy remembers a backup that was being made
		b, err := tx.Settings().Backup(ctx)
		if err != nil {
			return err
		}
		b.Owner, b.Running, b.TriedAt = "", "", time.Time{}
		return tx.Settings().PutBackup(ctx, b)
	})
}

// unpackTo writes the database of a backup to a new file.
func unpackTo(ctx context.Context, r io.Reader, plain bool, path string, progress storage.Progress) (storage.Loaded, error) {
	if plain {
		return storage.Loaded{}, storage.CopyFile(path, r)
	}
	return storage.LoadFile(ctx, r, path, progress)
}

// openKeys opens the keys that are sealed in a database.
func openKeys(ctx context.Context, db *storage.DB, c Config) (*credential.Keyring, error) {
	sealer, err := credential.MasterKey(ctx, db, c.masterKey())
	if err != nil {
		return nil, err
	}
	return credential.OpenKeyring(ctx, db, sealer, c.NewRSA)
}

// TryRestore restores a backup on trial: everything is read, loaded and compared, and nothing remains.
func TryRestore(ctx context.Context, c Config, s Source) (out Restored, err error) {
	r, plain, name, end, err := s.open(ctx, c)
	if err != nil {
		return out, err
	}
	defer end()
	out.From, out.Tried = name, true
	if plain {
		return out, fmt.Errorf("%s is a SQLite database: try it with stoa admin check --data and a directory that has it as stoa.db", name)
	}
	var found storage.Loaded
	if c.Database != "" {
		found, err = storage.TryPostgres(ctx, r, c.Database, s.Progress)
	} else {
		dir, e := tempDir(c)
		if e != nil {
			return out, e
		}
		defer os.RemoveAll(dir)
		found, err = storage.TryFile(ctx, r, filepath.Join(dir, "stoa.db"), s.Progress)
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", name, err)
	}
	out.of(found)
	return out, nil
}

// tempDir makes a directory in the data directory, which holds what has the size of the database, and is private.
func tempDir(c Config) (string, error) {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(c.Data, ".restore-*")
}

// RestoredProfile is what was brought back of a profile, and what was not.
type RestoredProfile struct {
	From   string                `json:"from"`
	At     *time.Time            `json:"at,omitempty"`
	Report protocol.ImportReport `json:"report"`
	Notes  []string              `json:"notes"` // what is not brought back, and what is to do
}

// RestoreProfile brings one profile back from a backup, by an archive of it. One that is here is replaced only with replace.
func (a *Admin) RestoreProfile(ctx context.Context, c Config, s Source, handle string, replace bool) (out RestoredProfile, err error) {
	here := true
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Profiles().Own(ctx, handle)
		here = err == nil
		return storage.IfMissing(err, nil)
	})
	if err != nil {
		return out, err
	}
	if here && !replace {
		return out, protocol.Errorf(protocol.Conflict, "@%s is here: to put it back as it was in the backup, add --replace", handle)
	}
	was, found, name, end, err := a.openBackup(ctx, c, s)
	if err != nil {
		return out, err
	}
	defer end()
	out.From = name
	if !found.Head.At.IsZero() {
		out.At = &found.Head.At
	}
	if was.Base != a.Base {
		return out, protocol.Errorf(protocol.Conflict, "the backup is of %s, and this node is %s: move the profile with stoa admin export and import",
			was.Base, a.Base)
	}
	account, err := a.ownerOf(ctx, was, handle, &out)
	if err != nil {
		return out, err
	}
	f, err := spool(c.Data)()
	if err != nil {
		return out, err
	}
	defer f.Close()
	passphrase := rand.Text()
	made, err := was.Export(ctx, protocol.ExportRequest{Owned: protocol.Owned{Handle: handle}, Passphrase: passphrase}, nil)
	if err != nil {
		return out, fmt.Errorf("%s: %w", name, err)
	}
	_, err = io.Copy(f, made)
	if err = errors.Join(err, made.Close()); err != nil {
		return out, err
	}
	out.Report, err = a.Import(ctx, f, protocol.ImportOrder{Account: account, Vouch: true,
		ImportRequest: protocol.ImportRequest{As: handle, Replace: replace, Passphrase: passphrase}}, nil)
	out.Notes = append(out.Notes, "not brought back, because an archive has none of it: followers, sign-ins and tokens, bids and orders with their money, "+
		"and what others wrote about the profile")
	return out, err
}

// ownerOf is the account that a profile belonged to, "" where that is not here any more.
func (a *Admin) ownerOf(ctx context.Context, was *Admin, handle string, out *RestoredProfile) (account string, err error) {
	var owner storage.Account
	err = was.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		owner, err = tx.Accounts().OfProfile(ctx, handle)
		return storage.IfMissing(err, nil)
	})
	if err != nil || owner.ID == "" {
		return "", err
	}
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Accounts().ByID(ctx, owner.ID)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		out.Notes = append(out.Notes, "its account "+owner.ID+" is not here any more: give the profile another with stoa admin account link")
		return "", nil
	}
	return owner.ID, err
}

// openBackup opens the database of a backup next to this one.
func (a *Admin) openBackup(ctx context.Context, c Config, s Source) (was *Admin, found storage.Loaded, name string, end func(), err error) {
	r, plain, name, shut, err := s.open(ctx, c)
	if err != nil {
		return nil, found, "", nil, err
	}
	defer shut()
	at := storage.Config{Parts: c.parts(), Log: slog.New(slog.DiscardHandler)}
	var drop func()
	if c.Database != "" && plain {
		return nil, found, "", nil, fmt.Errorf("%w: %s is a SQLite database, and the node is on PostgreSQL", ErrConfig, name)
	}
	if c.Database != "" {
		schema := "stoa_restore_" + strings.ToLower(rand.Text()[:10])
		drop = func() { _ = storage.DropSchema(context.WithoutCancel(ctx), c.Database, schema) }
		if at.URL, err = storage.InSchema(c.Database, schema); err == nil {
			found, err = storage.LoadSchema(ctx, r, c.Database, schema, s.Progress)
		}
	} else {
		dir, e := tempDir(c)
		if e != nil {
			return nil, found, "", nil, e
		}
		drop = func() { os.RemoveAll(dir) }
		at.Path = filepath.Join(dir, "stoa.db")
		found, err = unpackTo(ctx, r, plain, at.Path, s.Progress)
	}
	if err == nil {
		was, err = openOther(ctx, c, at)
	}
	if err != nil {
		drop()
		return nil, found, "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return was, found, name, func() { was.Close(); drop() }, nil
}

// openOther opens another database of the same node, with its keys.
func openOther(ctx context.Context, c Config, at storage.Config) (*Admin, error) {
	db, err := storage.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	var a *Admin
	keys, err := openKeys(ctx, db, c)
	base := ""
	if err == nil {
		base, err = storedBase(ctx, db)
	}
	if err == nil {
		a, err = newAdmin(db, keys, base, c)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return a, nil
}
