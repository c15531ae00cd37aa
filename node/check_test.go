package node_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/out/mail"
	"stoa/node/out/mail/mailtest"
	"stoa/protocol/must"
)

// certificateFor writes a certificate of a host and its key to a directory.
func certificateFor(t *testing.T, dir, host string, until time.Time) (cert, keyFile string) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotAfter: until}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))(t)
	cert, keyFile = filepath.Join(dir, host+".pem"), filepath.Join(dir, host+".key")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	raw := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	return cert, keyFile
}

// wrong are the checks that found a fault, each with what to do.
func wrong(t *testing.T, found []node.Finding) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, f := range found {
		require.NotEmpty(t, f.Found, f.Check)
		if !f.OK {
			require.NotEmpty(t, f.Mend, f.Check)
			all[f.Check] = f.Found
		}
	}
	return all
}

// TestCheck: sound settings are found sound, and of many faults each is named at once. Nothing is changed.
func TestCheck(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		server := mailtest.Start(t)
		h := nodetest.New(t, change, func(c *node.Config) {
			c.SMTP, c.SMTPSecurity, c.MailFrom, c.BaseURL = server.Addr, mail.Plain, "stoa@node.example", "https://localhost"
		})
		h.Post("Sourdough")
		dir := t.TempDir()
		c := h.Config
		c.Dev, c.Data = false, h.Config.Data
		c.TLSCert, c.TLSKey = certificateFor(t, dir, "localhost", time.Now().Add(time.Hour))
		c.HTTPListen, c.OperatorListen = "127.0.0.1:0", "127.0.0.1:0"
		files := func() (all []string) {
			for _, at := range []string{c.Data, dir} {
				require.NoError(t, filepath.WalkDir(at, func(path string, _ fs.DirEntry, err error) error { all = append(all, path); return err }))
			}
			return all
		}
		before := files()
		require.Empty(t, wrong(t, c.Check(t.Context())))

		_, other := certificateFor(t, dir, "other.example", time.Now().Add(time.Hour))
		busy := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer busy.Close()
		bad := c
		bad.TLSKey, bad.BaseURL, bad.MasterKey = other, "https://elsewhere.example", filepath.Join(dir, "other.key.master")
		must.Get(key.LoadOrCreateMaster(bad.MasterKey))(t)
		bad.Listen, bad.SMTP, bad.ContentSignal, bad.Texts = busy.Addr().String(), "127.0.0.1:1", "perhaps", filepath.Join(dir, "none")
		bad.Chain = []string{"1=http://127.0.0.1:1,0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}
		got := wrong(t, bad.Check(t.Context()))
		for _, name := range []string{"content-signal", "tls-cert", "base-url", "master-key", "listen", "smtp", "texts", "chain"} {
			require.Contains(t, got, name)
		}
		require.Len(t, got, 8, "%v", got)
		require.Contains(t, got["base-url"], "https://localhost")

		late := c
		late.TLSCert, late.TLSKey = certificateFor(t, dir, "late.example", time.Now().Add(-time.Hour))
		require.Contains(t, wrong(t, late.Check(t.Context()))["tls-cert"], "late.example")
		late.BaseURL, late.Database, late.Data = "https://late.example", "", t.TempDir()
		require.Contains(t, wrong(t, late.Check(t.Context()))["tls-cert"], "ended")
		late.MasterKey = ""
		require.Empty(t, must.Get(os.ReadDir(late.Data))(t), "nothing is made")
		if c.Database == "" {
			require.Subset(t, files(), before)
			gone := c
			gone.MasterKey = filepath.Join(dir, "none.key")
			require.Contains(t, wrong(t, gone.Check(t.Context()))["master-key"], "there is no")
		} else {
			down := c
			down.Database = "postgres://stoa@127.0.0.1:1/stoa?connect_timeout=2"
			require.Contains(t, wrong(t, down.Check(t.Context())), "database")
		}
	})
}
