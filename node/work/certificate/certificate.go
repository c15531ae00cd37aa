// Package certificate has the TLS certificates of the node: those that it gets and renews by ACME (RFC 8555), and those of files.
//
// Certificates of an authority are kept in the database, sealed, for every process of the node. One process at a time orders, by a lease;
// the authority may ask any of them for the proof of a name, which is in the database too: tls-alpn-01 (RFC 8737) on the HTTPS address,
// and in every second try http-01 on the other one. The authority says when to renew (RFC 9773); one that does not is asked after two thirds
// of the certificate's life. What fails is tried again after a minute, then later and later: authorities count failures.
//
// autocert of golang.org/x/crypto orders in each process that has no certificate, and does not ask when to renew; certmagic does both, and
// adds two megabytes to the program. So this package has the order of steps, and golang.org/x/crypto/acme the protocol.
package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

const (
	leaseFor  = 5 * time.Minute // an order takes seconds
	lookEvery = time.Minute     // whether another process has a newer certificate
	tryFirst  = time.Minute     // after a failure
	tryMost   = 6 * time.Hour
	proofFor  = time.Hour // a proof is kept, should the process end meanwhile
)

// A Sealer encrypts keys at rest.
type Sealer interface {
	Seal(purpose string, secret []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// An ACME gets certificates from an authority. Make it with its fields, and have Run run.
type ACME struct {
	Names     []string     // DNS names; the first names the certificate
	Directory string       // URL of the authority
	Contact   string       // mail address for its notices, "" for none
	Client    *http.Client // for the authority
	Owner     string       // of leases: this process
	DB        *storage.DB
	Seal      Sealer
	Log       *slog.Logger

	current atomic.Pointer[held]
}

// A held is a certificate that is served, as it is stored.
type held struct {
	tls.Certificate
	sealed []byte
}

// TLS is how the node serves HTTPS.
func (a *ACME) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1", acme.ALPNProto}, GetCertificate: a.certificate}
}

var errNone = errors.New("certificate: there is none yet; it is being ordered")

// certificate answers a handshake.
func (a *ACME) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if name != "" && !slices.Contains(a.Names, name) {
		return nil, errors.New("certificate: another name")
	}
	if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acme.ALPNProto {
		raw, err := a.proof(hello.Context(), alpnKey(name))
		if err != nil {
			return nil, err
		}
		cert, err := pair(raw)
		return &cert, err
	}
	if c := a.current.Load(); c != nil {
		return &c.Certificate, nil
	}
	return nil, errNone
}

// proof returns what was stored under a key for the authority.
func (a *ACME) proof(ctx context.Context, key string) (raw []byte, err error) {
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		raw, err = tx.Certificates().Challenge(ctx, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a.Seal.Open(storage.PurposeCertificate(key), raw)
}

const challengePath = "/.well-known/acme-challenge/"

func alpnKey(name string) string  { return "tls-alpn-01 " + name }
func httpKey(token string) string { return "http-01 " + token }

// Plain is what the address without TLS serves: proofs for the authority, and the way to base.
func (a *ACME) Plain(base string) http.Handler {
	to := Redirect(base)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, is := strings.CutPrefix(r.URL.Path, challengePath)
		if !is || len(token) > 128 {
			to.ServeHTTP(w, r)
			return
		}
		raw, err := a.proof(r.Context(), httpKey(token))
		if err != nil {
			http.Error(w, "there is no such challenge", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Write(raw)
	})
}

// Redirect leads readers to an https address. What would change something is refused, since it came in the clear.
func Redirect(base string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "use "+base+": what you sent came in the clear; nothing was done", http.StatusForbidden)
			return
		}
		to := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
		http.Redirect(w, r, base+to.String(), http.StatusMovedPermanently)
	})
}

// Run gets the certificate and renews it until ctx ends.
func (a *ACME) Run(ctx context.Context) error {
	for {
		wait, err := a.step(ctx)
		if err != nil && ctx.Err() == nil {
			a.Log.Error("certificate", "names", a.Names, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// step loads what another process has got, does what is due, and says when to look again.
func (a *ACME) step(ctx context.Context) (wait time.Duration, err error) {
	row, now, err := a.load(ctx)
	if err != nil || !a.due(&row, now) {
		return until(&row, now), err
	}
	mine := false
	err = a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		now = tx.Now
		row, mine, err = tx.Certificates().Claim(ctx, a.Names[0], a.Owner, now.Add(leaseFor))
		return err
	})
	if err != nil || !mine {
		return time.Second, err
	}
	limited, cancel := context.WithTimeout(ctx, leaseFor-time.Minute)
	defer cancel()
	if a.due(&row, now) { // nobody did it meanwhile
		err = a.renew(limited, &row, now)
	}
	row.Owner, row.LastError = "", ""
	if err != nil && ctx.Err() == nil {
		row.Failures++
		row.LastError = protocol.Clip(protocol.OneLine(err.Error()), 500)
		row.NextAt = now.Add(netx.Jitter(netx.Backoff(tryFirst, tryMost, row.Failures)))
	}
	stored := a.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *storage.Tx) error { return tx.Certificates().Put(ctx, row) })
	_, now, loaded := a.load(context.WithoutCancel(ctx))
	return until(&row, now), errors.Join(err, stored, loaded)
}

// load reads the certificate, and serves it when it is another one.
func (a *ACME) load(ctx context.Context) (row storage.Certificate, now time.Time, err error) {
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		now = tx.Now
		row, err = tx.Certificates().ByName(ctx, a.Names[0])
		return storage.IfMissing(err, nil)
	})
	if was := a.current.Load(); err != nil || len(row.Sealed) == 0 || was != nil && bytes.Equal(was.sealed, row.Sealed) {
		return row, now, err
	}
	raw, err := a.Seal.Open(storage.PurposeCertificate(a.Names[0]), row.Sealed)
	if err != nil {
		return row, now, err
	}
	cert, err := pair(raw)
	if err == nil {
		a.current.Store(&held{cert, row.Sealed})
	}
	return row, now, err
}

// due reports whether there is something to do: the certificate is missing, of other names or to be renewed, or the authority
// is to be asked when.
func (a *ACME) due(row *storage.Certificate, now time.Time) bool {
	return !row.NextAt.After(now) && (a.expires(row, now) || !row.LookAt.IsZero() && !row.LookAt.After(now))
}

func (a *ACME) expires(row *storage.Certificate, now time.Time) bool {
	return len(row.Sealed) == 0 || row.Names != strings.Join(a.Names, " ") || !row.RenewAt.After(now)
}

// until is how long nothing is due: at most lookEvery, and less while there is no certificate or it is short, since another process may get it.
func until(row *storage.Certificate, now time.Time) time.Duration {
	most := min(lookEvery, max(row.NotAfter.Sub(now)/10, time.Second))
	next := most
	for _, at := range []time.Time{row.RenewAt, row.LookAt} {
		if d := at.Sub(now); !at.IsZero() && row.NextAt.Before(at) && d < next {
			next = d
		}
	}
	if d := row.NextAt.Sub(now); d > 0 {
		return min(d, most)
	}
	return max(next, time.Second)
}

// State says until when the certificate is valid, zero for none, and why the last try failed, "" if it did not.
func (a *ACME) State(ctx context.Context) (notAfter time.Time, failed string) {
	row, _, err := a.load(ctx)
	if err != nil {
		return time.Time{}, err.Error()
	}
	return row.NotAfter, row.LastError
}
