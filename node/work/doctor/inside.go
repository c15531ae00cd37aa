package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"stoa/identity/key"
	"stoa/node/out/mail"
	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/storage"
)

// offsets asks for dates, and returns how far the clock is behind each; whom it asked, and which did not tell.
func (d *Doctor) offsets(ctx context.Context, f *found) (off []time.Duration, asked, errs []string) {
	var mu sync.Mutex // guards the results
	var wg sync.WaitGroup
	ask := func(o outbound.Options, address string) {
		wg.Go(func() {
			by, err := d.dateOf(ctx, client(o), address)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, host(address)+": "+cause(err))
				return
			}
			off, asked = append(off, by), append(asked, host(address))
		})
	}
	for _, address := range d.Dated {
		o := d.own()
		o.Ports = nil
		ask(o, address)
	}
	for _, peer := range f.peers {
		ask(d.Options, peer+"/healthz")
	}
	wg.Wait()
	return off, asked, errs
}

// dateOf returns how far the clock is behind the Date of an answer (RFC 9110 §6.6.1).
func (d *Doctor) dateOf(ctx context.Context, c *http.Client, address string) (time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Cache-Control", "no-cache")
	before := d.now()
	res, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	after := d.now()
	at, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return 0, err
	}
	if age, err := strconv.Atoi(res.Header.Get("Age")); err == nil { // of a cache on the way
		at = at.Add(time.Duration(age) * time.Second)
	}
	return at.Add(time.Second / 2).Sub(before.Add(after.Sub(before) / 2)), nil
}

// databaseClock compares with the clock of a database server.
func (d *Doctor) databaseClock(ctx context.Context) (protocol.Check, bool) {
	if d.DB == nil || d.DB.Engine() != "postgres" {
		return protocol.Check{}, false
	}
	var s storage.Server
	before := d.now()
	if err := d.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		s, err = tx.Site().Server(ctx)
		return err
	}); err != nil {
		return protocol.Check{}, false // which the check of the database says
	}
	off := s.Clock.Sub(before)
	if off > -clockDrifts && s.Clock.Sub(d.now()) < clockDrifts {
		return protocol.Check{}, false
	}
	return protocol.Found("clock-database", offset(off)+", by the clock of the database server"), true
}

// chains asks each endpoint of each chain.
func (d *Doctor) chains(ctx context.Context, _ *found) []protocol.Check {
	if d.Chain == nil {
		return []protocol.Check{protocol.Unseen("chain", "no chain is set")}
	}
	states := d.Chain.Look(ctx)
	answering := map[uint64]int{}
	for _, s := range states {
		if s.Err == nil {
			answering[s.Chain]++
		}
	}
	var all []protocol.Check
	var fine []string
	for _, s := range states {
		name := fmt.Sprintf("chain %d, %s", s.Chain, s.Host)
		switch {
		case s.Wrong:
			all = append(all, protocol.Found("chain-wrong", name))
		case s.Err != nil && answering[s.Chain] == 0:
			all = append(all, protocol.Found("chain-silent", name+": "+s.Err.Error()))
		case s.Err != nil:
			all = append(all, protocol.Found("chain-endpoint", name+": "+s.Err.Error()))
		case s.Stuck:
			all = append(all, protocol.Found("chain-stuck", fmt.Sprintf("%s: block %d, made %s ago", name, s.Head, d.now().Sub(s.At).Round(time.Second))))
		default:
			fine = append(fine, fmt.Sprintf("%s: block %d", name, s.Head))
		}
	}
	if len(all) == 0 {
		all = []protocol.Check{protocol.Passed("chain", strings.Join(fine, "; "))}
	}
	return all
}

// mail compares the DNS records of the sender with the settings.
func (d *Doctor) mail(ctx context.Context, _ *found) []protocol.Check {
	if d.Mail == nil {
		return []protocol.Check{protocol.Found("mail-off", "smtp is not set")}
	}
	records, err := d.Mail(ctx, d.resolver().LookupTXT)
	if err != nil {
		return []protocol.Check{protocol.Unseen("mail", err.Error())}
	}
	var all []protocol.Check
	var names []string
	for _, r := range records {
		code := "mail-" + strings.ToLower(r.Purpose)
		switch {
		case r.Fault == "":
			names = append(names, r.Name)
			continue
		case r.Fault == mail.NoAnswer:
			code = "mail-dns"
		case r.Purpose == "DKIM" && r.Want == "":
			code = "mail-unsigned"
		}
		all = append(all, protocol.Found(code, r.Name+": "+r.Fault))
	}
	if len(all) == 0 {
		all = []protocol.Check{protocol.Passed("mail", "SPF, DKIM and DMARC are there: "+strings.Join(names, ", "))}
	}
	return all
}

const (
	oldBackup   = 8 * day // where nothing makes them by itself
	oldOfItself = 2 * day
	copied      = "master-key-copy"
)

// backup looks at the last copy of the database.
func (d *Doctor) backup(ctx context.Context, _ *found) []protocol.Check {
	if d.DB == nil || d.Backup == nil {
		return []protocol.Check{protocol.Unseen("backup", "the database is not open")}
	}
	b, err := d.Backup(ctx)
	if err != nil {
		return []protocol.Check{protocol.Unseen("backup", err.Error())}
	}
	age := d.now().Sub(b.At)
	seen := fmt.Sprintf("the last one is of %s, %s ago", b.At.UTC().Format(time.RFC3339), days(age))
	switch {
	case b.Failed != "":
		return []protocol.Check{protocol.Found("backup-failed", b.Failed)}
	case b.At.IsZero() && d.DB.Engine() == "postgres":
		return []protocol.Check{protocol.Found("backup-unknown", "PostgreSQL")}
	case b.At.IsZero():
		return []protocol.Check{protocol.Found("backup-none", "stoa admin backup was never run")}
	case age > oldBackup || b.Daily && age > oldOfItself:
		return []protocol.Check{protocol.Found("backup-old", seen)}
	case b.Tried.IsZero():
		return []protocol.Check{protocol.Found("backup-untried", seen)}
	}
	return []protocol.Check{protocol.Passed("backup", seen+"; restored on trial "+b.Tried.UTC().Format(time.RFC3339))}
}

// A keyCopy is a copy of the master key that was compared with it.
type keyCopy struct {
	At          time.Time `json:"at"`
	Fingerprint string    `json:"fingerprint"`
}

// KeyCopied compares the text of a copy with the master key, and notes that there is one.
func KeyCopied(ctx context.Context, db *storage.DB, masterKey string, text []byte) error {
	ours, err := key.MasterFingerprint(masterKey)
	if err != nil {
		return err
	}
	theirs, err := key.Fingerprint(text)
	if err != nil {
		return fmt.Errorf("the copy is no master key: %w", err)
	}
	if theirs != ours {
		return fmt.Errorf("the copy is of another key: its fingerprint is %s, that of the master key %s", theirs, ours)
	}
	return db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		raw, err := json.Marshal(keyCopy{tx.Now, ours})
		if err != nil {
			return err
		}
		if err := tx.Settings().Put(ctx, copied, string(raw)); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "master key copied", ours, "")
	})
}

// masterKey looks at whether a copy of the key was compared with it.
func (d *Doctor) masterKey(ctx context.Context, _ *found) []protocol.Check {
	if d.DB == nil {
		return []protocol.Check{protocol.Unseen("master-key", "the database is not open")}
	}
	ours, err := key.MasterFingerprint(d.MasterKey)
	if err != nil {
		return []protocol.Check{protocol.Unseen("master-key", err.Error())}
	}
	var c keyCopy
	err = d.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		raw, err := tx.Settings().Get(ctx, copied)
		if err != nil || raw == "" {
			return err
		}
		return json.Unmarshal([]byte(raw), &c)
	})
	seen := fmt.Sprintf("fingerprint %s", ours)
	switch {
	case err != nil:
		return []protocol.Check{protocol.Unseen("master-key", err.Error())}
	case c.At.IsZero():
		return []protocol.Check{protocol.Found("key-uncopied", seen)}
	case c.Fingerprint != ours:
		return []protocol.Check{protocol.Found("key-other", seen+"; the copy of "+c.At.Format(time.DateOnly)+" has "+c.Fingerprint)}
	}
	return []protocol.Check{protocol.Passed("master-key", seen+", compared "+c.At.Format(time.DateOnly))}
}

// versions compares the version of the program with that of the running node, and of peers.
func (d *Doctor) versions(ctx context.Context, f *found) []protocol.Check {
	seen := "this program " + d.Version
	if f.page != nil && f.page.Version != d.Version {
		return []protocol.Check{protocol.Found("versions-restart", seen+", the running node "+f.page.Version)}
	}
	var wg sync.WaitGroup
	theirs := make([]string, len(f.peers))
	for i, peer := range f.peers {
		wg.Go(func() { theirs[i] = peerVersion(ctx, client(d.Options), peer) })
	}
	wg.Wait()
	newer := false
	for i, v := range theirs {
		if v != "" {
			seen += ", " + host(f.peers[i]) + " " + v
		}
		newer = newer || later(v, d.Version)
	}
	if newer {
		return []protocol.Check{protocol.Found("versions-behind", seen)}
	}
	return []protocol.Check{protocol.Passed("versions", seen)}
}

// peerVersion is the version that a stoa node gives in its NodeInfo, "" if it gives none.
func peerVersion(ctx context.Context, c *http.Client, base string) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/nodeinfo/2.1", nil)
	if err != nil {
		return ""
	}
	res, err := c.Do(r)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var info struct {
		Software struct{ Name, Version string }
	}
	if json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&info) != nil || info.Software.Name != "stoa" {
		return ""
	}
	return protocol.Clip(info.Software.Version, 40)
}

// later reports whether a release is a later one than another: 0.10.0 than 0.9.1. What is no release is not.
func later(a, b string) bool {
	x, xok := numbers(a)
	y, yok := numbers(b)
	if !xok || !yok {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return x[i] > y[i]
		}
	}
	return false
}

func numbers(version string) (n [3]int, ok bool) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) != len(n) {
		return n, false
	}
	for i, p := range parts {
		var err error
		if n[i], err = strconv.Atoi(p); err != nil {
			return n, false
		}
	}
	return n, true
}
