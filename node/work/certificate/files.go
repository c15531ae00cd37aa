package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// readEvery is how often files are looked at.
const readEvery = 10 * time.Second

// Files is a certificate and its key in PEM files, which are read again when they change.
type Files struct {
	Cert, Key string
	Log       *slog.Logger
	Every     time.Duration // zero: readEvery

	current atomic.Pointer[tls.Certificate]
	seen    [2]time.Time
}

// Load reads the files.
func (f *Files) Load() error {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err == nil {
		f.current.Store(&cert)
		f.changed()
	}
	return err
}

// changed reports whether a file is another one than before.
func (f *Files) changed() bool {
	was := f.seen
	for i, path := range []string{f.Cert, f.Key} {
		if info, err := os.Stat(path); err == nil {
			f.seen[i] = info.ModTime()
		}
	}
	return was != f.seen
}

// TLS is how the node serves HTTPS.
func (f *Files) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return f.current.Load(), nil
	}}
}

// Plain is what the address without TLS serves.
func (f *Files) Plain(base string) http.Handler { return Redirect(base) }

// Run reads the files again when they change, until ctx ends. Files that do not fit together leave the certificate as it is: one of them
// may be written a moment later.
func (f *Files) Run(ctx context.Context) error {
	every := f.Every
	if every == 0 {
		every = readEvery
	}
	for failed := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		if !f.changed() && !failed {
			continue
		}
		if err := f.Load(); err != nil {
			failed = true
			f.Log.Error("certificate: the files are not used", "cert", f.Cert, "err", err)
			continue
		}
		failed = false
		f.Log.Info("certificate: read again", "cert", f.Cert)
	}
}

// State says until when the certificate is valid.
func (f *Files) State(context.Context) (notAfter time.Time, failed string) {
	c := f.current.Load()
	if c == nil || c.Leaf == nil {
		return time.Time{}, errors.New("no certificate was read").Error()
	}
	return c.Leaf.NotAfter, ""
}
