package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// issue makes a certificate with a serial number.
func issue(t *testing.T, serial int64) (cert, key []byte) {
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"stoa.example"}}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))(t)
	raw := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// TestFiles: files are read again when they change; those that do not fit together leave the certificate as it is.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), Log: slog.New(slog.DiscardHandler), Every: time.Millisecond}
	require.Error(t, f.Load())
	at := time.Now().Add(-time.Hour)
	write := func(path string, raw []byte) {
		at = at.Add(time.Second) // file systems have coarse times
		require.NoError(t, os.WriteFile(path, raw, 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	cert, private := issue(t, 1)
	write(f.Cert, cert)
	write(f.Key, private)
	require.NoError(t, f.Load())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	serial := func() int64 {
		c := must.Get(f.TLS().GetCertificate(&tls.ClientHelloInfo{}))(t)
		return c.Leaf.SerialNumber.Int64()
	}
	next, key := issue(t, 2)
	write(f.Cert, next)
	require.Never(t, func() bool { return serial() != 1 }, 50*time.Millisecond, time.Millisecond)
	write(f.Key, key)
	require.Eventually(t, func() bool { return serial() == 2 }, time.Minute, time.Millisecond)
	until, failed := f.State(t.Context())
	require.WithinDuration(t, time.Now().Add(time.Hour), until, time.Minute)
	require.Empty(t, failed)
	stop()
	require.NoError(t, <-done)
}

// TestBackoff: an authority that answers nothing is asked later and later, by one process at a time, and the certificate that is there stays.
func TestBackoff(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
		c.Now = func() time.Time { return now }
		db := storagetest.OpenConfig(t, c)
		server := httptest.NewServer(nil) // answers 404
		defer server.Close()
		asked := 0
		of := func(owner string) *ACME {
			return &ACME{Names: []string{"stoa.example"}, Directory: server.URL + "/directory", Client: server.Client(), Owner: owner, DB: db,
				Seal: must.Get(key.NewSealer(make([]byte, 32)))(t), Log: slog.New(slog.DiscardHandler)}
		}
		one, two := of("one"), of("two")
		cert, private := issue(t, 7)
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Certificates().Put(ctx, storage.Certificate{Name: "stoa.example", Names: "stoa.example",
				Sealed: one.Seal.Seal(storage.PurposeCertificate("stoa.example"), append(cert, private...)), NotAfter: now.Add(time.Hour), RenewAt: now})
		}))
		for range 12 * 60 {
			for _, a := range []*ACME{one, two} {
				if _, err := a.step(t.Context()); err != nil {
					asked++
				}
			}
			now = now.Add(time.Minute)
		}
		require.Less(t, asked, 20, "in half a day")
		require.Greater(t, asked, 5)
		for _, a := range []*ACME{one, two} {
			got := must.Get(a.certificate(&tls.ClientHelloInfo{ServerName: "STOA.example."}))(t)
			require.EqualValues(t, 7, got.Leaf.SerialNumber.Int64())
			_, err := a.certificate(&tls.ClientHelloInfo{ServerName: "other.example"})
			require.Error(t, err)
			_, failed := a.State(t.Context())
			require.NotEmpty(t, failed)
		}
		mine := func(owner string) (is bool) {
			require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
				_, is, err = tx.Certificates().Claim(ctx, "stoa.example", owner, tx.Now.Add(leaseFor))
				return err
			}))
			return is
		}
		require.True(t, mine("one"))
		require.False(t, mine("two"), "one orders")
		now = now.Add(leaseFor + time.Second)
		require.True(t, mine("two"), "the other one died")
		_, err := of("three").certificate(&tls.ClientHelloInfo{ServerName: "stoa.example"})
		require.True(t, errors.Is(err, errNone))
	})
}
