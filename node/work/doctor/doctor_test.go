package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// codes are those of checks, their names where nothing was found.
func codes(all ...protocol.Check) (found []string) {
	for _, c := range all {
		name := c.Code
		if name == "" {
			name = c.Name + " " + string(c.Verdict)
		}
		found = append(found, name)
	}
	return found
}

// TestAilments: each has a check, a code of its own, and says what is wrong and what to do.
func TestAilments(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, a := range protocol.Ailments() {
		c := protocol.Found(a.Code, "seen")
		require.False(t, known[a.Code], a.Code)
		known[a.Code] = true
		require.NotEmpty(t, c.What+c.Mend+c.How)
		require.NotEmpty(t, c.Mend, a.Code)
		require.NotEqual(t, protocol.CheckOK, c.Verdict)
	}
	require.GreaterOrEqual(t, len(known), 40)
}

// TestMark: a mark is good for a minute, for one secret, and as it was made.
func TestMark(t *testing.T) {
	t.Parallel()
	secret, other := []byte("secret"), []byte("other")
	mark := newMark(secret, noon)
	require.True(t, validMark(secret, mark, noon.Add(30*time.Second)))
	for name, ok := range map[string]bool{
		"later":   validMark(secret, mark, noon.Add(61*time.Second)),
		"earlier": validMark(secret, mark, noon.Add(-61*time.Second)),
		"other":   validMark(other, mark, noon),
		"changed": validMark(secret, "B"+mark[1:], noon) || validMark(secret, mark[:len(mark)-4], noon) || validMark(secret, mark+"AA", noon),
		"empty":   validMark(secret, "", noon),
	} {
		require.False(t, ok, name)
	}
	require.NotEqual(t, mark, newMark(secret, noon))

	missing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	h := Handler(secret, "1", []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, missing)
	for mark, want := range map[string]int{newMark(secret, time.Now()): 200, newMark(other, time.Now()): 404, "x": 404} {
		r := httptest.NewRequest("GET", Path+"x", nil)
		r.SetPathValue("mark", mark)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, want, w.Code)
		require.Equal(t, want == 200, len(w.Body.String()) > 0)
	}
}

// TestForwarded decides by the hops that reached the node.
func TestForwarded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		base      string
		tls       bool
		forwarded []string
		trusted   bool
		want      string
	}{
		{"https://n.example", false, []string{madeUp + ", 198.51.100.7"}, true, "forwarded ok"},
		{"https://n.example", false, []string{madeUp, "198.51.100.7"}, true, "forwarded ok"},
		{"https://n.example", false, []string{"198.51.100.7"}, true, "forwarded ok"},
		{"https://n.example", false, nil, true, "forwarded-missing"},
		{"https://n.example", false, nil, false, "forwarded-missing"},
		{"https://n.example", false, []string{madeUp}, true, "forwarded-passed"},
		{"https://n.example", false, []string{madeUp}, false, "forwarded-untrusted"},
		{"https://n.example", false, []string{madeUp + ", 198.51.100.7"}, false, "forwarded-untrusted"},
		{"https://n.example", true, []string{madeUp}, false, "forwarded ok"}, // no proxy
		{"https://n.example", true, []string{madeUp, "198.51.100.7"}, false, "forwarded-untrusted"},
		{"http://127.0.0.1:8080", false, []string{madeUp}, false, "forwarded ok"},
	} {
		d := Doctor{Base: tt.base, TLS: tt.tls}
		require.Equal(t, []string{tt.want}, codes(d.forwarded(&page{Forwarded: tt.forwarded, Trusted: tt.trusted})), "%+v", tt)
	}
}

// TestCertificate: a certificate ends soon by its own life.
func TestCertificate(t *testing.T) {
	t.Parallel()
	d := Doctor{DB: storagetest.Open(t), Names: []string{"stoa.example"}, Now: func() time.Time { return noon }}
	for _, tt := range []struct {
		life, left time.Duration
		want       string
	}{
		{90 * day, 30 * day, "certificate ok"}, {90 * day, 6 * day, "certificate-expires"}, {6 * day, 2 * day, "certificate ok"},
		{6 * day, 12 * time.Hour, "certificate-expires"}, {90 * day, -day, "certificate-expires"},
	} {
		c := &x509.Certificate{NotBefore: noon.Add(tt.left - tt.life), NotAfter: noon.Add(tt.left)}
		res := &http.Response{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}}
		require.Equal(t, []string{tt.want}, codes(d.certificate(t.Context(), res)...), "%+v", tt)
	}
	require.NoError(t, d.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.Certificates().Put(ctx, storage.Certificate{Name: "stoa.example", LastError: "429: too many orders"})
	}))
	c := &x509.Certificate{NotAfter: noon}
	found := d.certificate(t.Context(), &http.Response{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}})
	require.Contains(t, found[0].Seen, "429: too many orders")
	require.Equal(t, []string{"certificate unseen"}, codes(d.certificate(t.Context(), &http.Response{})...))
}

// TestPorts: what peers say together.
func TestPorts(t *testing.T) {
	t.Parallel()
	ok := protocol.Sight{Document: "ok", IPv4: "ok", IPv6: "none", Plain4: "ok", Plain6: "none"}
	plain, six, shut := ok, ok, protocol.Sight{Document: "timeout", IPv4: "timeout", IPv6: "none", Plain4: "timeout", Plain6: "none"}
	plain.Plain4, six.IPv6 = "timeout", "refused"
	failed := reached{peer: "https://c.example", err: errors.New("status 404")}
	at := func(s protocol.Sight) reached { return reached{peer: "https://b.example", Sight: s} }
	for name, tt := range map[string]struct {
		all  []reached
		want []string
	}{
		"open":       {[]reached{at(ok), at(ok), failed}, []string{"ports ok"}},
		"closed":     {[]reached{at(shut), at(shut)}, []string{"ports-closed"}},
		"differ":     {[]reached{at(ok), at(shut)}, []string{"ports-differ"}},
		"unasked":    {[]reached{failed}, []string{"ports-unasked"}},
		"port 80":    {[]reached{at(plain)}, []string{"ports-plain"}},
		"IPv6":       {[]reached{at(six)}, []string{"ports ok", "dns-closed"}},
		"not ok all": {nil, []string{"ports-unasked"}},
	} {
		d := Doctor{TLS: true}
		require.Equal(t, tt.want, codes(d.portsSeen(tt.all)...), name)
	}
	f := found{reach: []reached{at(ok)}}
	require.Equal(t, protocol.CheckUnseen, f.agree(protocol.Found("address-silent", "")).Verdict, "peers know better")
	require.Equal(t, protocol.CheckUnseen, f.agree(protocol.Found("dns-private", "")).Verdict)
	require.Equal(t, "host-changed", f.agree(protocol.Found("host-changed", "")).Code)
}

// TestClock: the median of several dates decides; one alone is no proof.
func TestClock(t *testing.T) {
	t.Parallel()
	at := func(off time.Duration) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", noon.Add(off).Format(http.TimeFormat))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	right, cached, ahead, far, drifts := at(0), at(-time.Minute), at(time.Hour), at(25*time.Hour), at(10*time.Second)
	for name, tt := range map[string]struct {
		dated []string
		want  string
	}{
		"right": {[]string{right}, "clock ok"}, "nobody": {nil, "clock-unasked"}, "one liar": {[]string{right, right, far}, "clock ok"},
		"wrong": {[]string{ahead, ahead, right}, "clock-wrong"}, "one alone": {[]string{ahead}, "clock-drifts"}, "drifts": {[]string{drifts, drifts}, "clock-drifts"},
		"early": {[]string{cached, cached}, "clock-wrong"}, "no answer": {[]string{"http://127.0.0.1:1"}, "clock-unasked"},
	} {
		d := Doctor{Base: "http://127.0.0.1", Dated: tt.dated, Now: func() time.Time { return noon }}
		require.Equal(t, []string{tt.want}, codes(d.clock(t.Context(), &found{})...), name)
	}
}

// TestDisk: what is free is compared with fixed amounts, with a copy of the database, and with its growth.
func TestDisk(t *testing.T) {
	t.Parallel()
	now := noon
	db := storagetest.OpenConfig(t, storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db"), Now: func() time.Time { return now }})
	left := int64(100 << 30)
	d := Doctor{DB: db, Dirs: []string{"/data"}, Free: func(string) (int64, int64, error) { return left, 200 << 30, nil }}
	is := func(want string) {
		t.Helper()
		require.Equal(t, []string{want}, codes(d.disk(t.Context(), nil)...))
	}
	is("disk ok")
	left = 1 << 30
	is("disk-low")
	left = 100 << 20
	is("disk-full")
	left = 4 << 30
	is("disk ok")
	// A day later the database is a gigabyte larger: the disk is full in three days.
	require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		bytes := must.Get(tx.Site().Bytes(ctx))(t)
		return tx.Settings().Put(ctx, sizes, `[{"at":"`+noon.Format(time.RFC3339)+`","bytes":`+strconv.FormatInt(bytes-(2<<30), 10)+`}]`)
	}))
	now = now.Add(48 * time.Hour)
	is("disk-full")
	left = 20 << 30
	is("disk-low")
	left = 60 << 30
	is("disk ok")
	d.Dirs = []string{filepath.Join(t.TempDir(), "nowhere")}
	d.Free = nil
	is("disk unseen")
	d.Dirs = []string{t.TempDir()}
	require.Len(t, d.disk(t.Context(), nil), 1)
}

// TestMasterKey: the copy is of the key that there is now.
func TestMasterKey(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		file := filepath.Join(t.TempDir(), "master.key")
		must.Get(key.LoadOrCreateMaster(file))(t)
		d := Doctor{DB: db, MasterKey: file}
		is := func(want string) {
			t.Helper()
			require.Equal(t, []string{want}, codes(d.masterKey(t.Context(), nil)...))
		}
		is("key-uncopied")
		require.NoError(t, KeyCopied(t.Context(), db, file, must.Get(os.ReadFile(file))(t)))
		is("master-key ok")
		require.NoError(t, os.Remove(file))
		must.Get(key.LoadOrCreateMaster(file))(t)
		is("key-other")
		require.NoError(t, os.Remove(file))
		is("master-key unseen")
		require.Equal(t, []string{"database ok"}, codes(d.database(t.Context(), nil)...))
	})
}

// TestBackup: age, trial and failure of the last backup.
func TestBackup(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	for want, b := range map[string]Backup{
		"backup-none": {}, "backup-old": {At: noon.Add(-9 * day), Tried: noon}, "backup-untried": {At: noon.Add(-day)},
		"backup-failed": {At: noon, Tried: noon, Failed: "no space left"}, "backup ok": {At: noon.Add(-day), Tried: noon.Add(-time.Hour)},
	} {
		d := Doctor{DB: db, Now: func() time.Time { return noon }, Backup: func(context.Context) (Backup, error) { return b, nil }}
		require.Equal(t, []string{want}, codes(d.backup(t.Context(), nil)...))
	}
}

func TestLater(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"0.2.0", "0.1.9", true}, {"0.10.0", "0.9.1", true}, {"v1.0.0", "0.9.1", true}, {"0.1.0", "0.1.0", false}, {"0.1.0", "0.2.0", false},
		{"dev-1234", "0.1.0", false}, {"0.2.0", "dev", false}, {"", "", false}, {"0.2", "0.1.0", false},
	} {
		require.Equal(t, tt.want, later(tt.a, tt.b), "%s %s", tt.a, tt.b)
	}
}
