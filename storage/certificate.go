package storage

import (
	"context"
	"errors"
	"time"
)

// A Certificate is a TLS certificate with its key, or the key of the account at the authority that issues them.
type Certificate struct {
	Name      string
	Names     string // DNS names of the certificate, divided by spaces
	Sealed    []byte // PEM, encrypted; empty before the first is there
	NotAfter  time.Time
	RenewAt   time.Time
	LookAt    time.Time // when the authority is asked next when to renew
	NextAt    time.Time // not before that it is tried again
	Failures  int       // in a row
	LastError string
	Owner     string    // process that orders
	LeaseEnd  time.Time // when another one may
}

var certificateTable = tableOf[Certificate]("certificate")

// Certificates reads and writes certificates.
type Certificates struct{ tx *Tx }

func (tx *Tx) Certificates() Certificates { return Certificates{tx} }

var certificateByName = certificateTable.from + `WHERE name = ?`

// ByName returns a certificate; ErrNotFound when nobody has tried to get it.
func (cs Certificates) ByName(ctx context.Context, name string) (Certificate, error) {
	return find[Certificate](ctx, cs.tx, certificateByName, name)
}

// Claim gives a process the right to order a certificate until a time; false while another one has it.
func (cs Certificates) Claim(ctx context.Context, name, owner string, until time.Time) (Certificate, bool, error) {
	if err := cs.tx.lockName(ctx, "certificate "+name); err != nil {
		return Certificate{}, false, err
	}
	c, err := cs.ByName(ctx, name)
	if errors.Is(err, ErrNotFound) {
		c, err = Certificate{Name: name, Sealed: []byte{}}, nil
	}
	if err != nil || c.Owner != "" && c.Owner != owner && c.LeaseEnd.After(cs.tx.Now) {
		return c, false, err
	}
	c.Owner, c.LeaseEnd = owner, until
	return c, true, cs.Put(ctx, c)
}

// Put stores a certificate.
func (cs Certificates) Put(ctx context.Context, c Certificate) error {
	return certificateTable.put(ctx, cs.tx, &c, "name", "names", "sealed", "not_after", "renew_at", "look_at", "next_at", "failures", "last_error",
		"owner", "lease_end")
}

var challengeByKey = `SELECT sealed FROM acme_challenge WHERE key = ? AND ends_at > ?`

// Challenge returns what proves a name; ErrNotFound when nothing does.
func (cs Certificates) Challenge(ctx context.Context, key string) ([]byte, error) {
	return find[[]byte](ctx, cs.tx, challengeByKey, key, millis(cs.tx.Now))
}

// PutChallenge stores what proves a name, until a time.
func (cs Certificates) PutChallenge(ctx context.Context, key string, sealed []byte, until time.Time) error {
	return cs.tx.exec(ctx, `INSERT INTO acme_challenge (key, sealed, ends_at) VALUES (?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET sealed = EXCLUDED.sealed, ends_at = EXCLUDED.ends_at`, key, sealed, millis(until))
}
