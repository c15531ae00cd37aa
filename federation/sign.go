package federation

import (
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"net/http"
	"slices"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/httpsig/cavage"
	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/protocol/activity"
	"stoa/storage"
)

// Signature schemes of a host. Unknown hosts get the first: it is what most of the
// fediverse accepted in 2026; after a 401 others are tried once, see schemesFrom.
const (
	schemeCavage  = "cavage"
	schemeFormer  = "cavage-former" // by the RSA key before a rotation, which a server may know without fetching the next one
	schemeRSA     = "rfc9421-rsa"
	schemeEd25519 = "rfc9421-ed25519"
)

// requestTTL is how long a signature of ours is valid.
const requestTTL = 5 * time.Minute

func ed25519Of(pair key.Pair) (ed25519.PublicKey, error) {
	pub, ok := pair.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("federation: an Ed25519 key is required")
	}
	return pub, nil
}

// sign signs a request as one of the node's actors. It is called when sending: a
// signature made when queueing would be too old after an outage.
func (f *Federation) sign(r *http.Request, body []byte, actor, scheme string) error {
	now, pair := f.now(), f.c.Keys.RSA
	if scheme == schemeFormer {
		pair, scheme = f.c.Keys.former(), schemeCavage
	}
	if scheme == schemeCavage {
		priv, ok := pair.Signer().(*rsa.PrivateKey)
		if !ok {
			return errors.New("federation: an RSA key is required")
		}
		r.Header.Set("Date", now.UTC().Format(http.TimeFormat))
		return cavage.Sign(r, body, activity.MainKey(actor), priv)
	}
	o := httpsig.SignOptions{
		Key: f.c.Keys.Ed25519.Signer(), KeyID: activity.ProofKey(actor), Tag: "-", Nonce: "-", Created: now, TTL: requestTTL,
		Components: []string{"@method", "@target-uri"},
	}
	if scheme == schemeRSA {
		o.Key, o.KeyID, o.SendAlg = f.c.Keys.RSA.Signer(), activity.MainKey(actor), true
	}
	if len(body) > 0 {
		o.Components = append(o.Components, "content-digest")
	}
	return httpsig.SignRequest(r, httpsig.NewTarget(r.URL.Scheme, r.URL.Host), body, o)
}

// schemesFrom are the schemes to try in turn while the answer is 401: the known one of the host first.
func (f *Federation) schemesFrom(known string) []string {
	all := []string{schemeCavage, schemeFormer, schemeRSA}
	if f.c.Keys.former().IsZero() {
		all = []string{schemeCavage, schemeRSA}
		if known == schemeFormer {
			known = schemeCavage
		}
	}
	n := len(all)
	others := slices.DeleteFunc(all, func(s string) bool { return s == known })
	return append([]string{known}, others...)[:n]
}

func (f *Federation) schemeOf(ctx context.Context, host string) string {
	scheme := schemeCavage
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		known, err := tx.Peers().Scheme(ctx, host)
		if err == nil && known != "" {
			scheme = known
		}
		return nil
	})
	if err != nil {
		f.observe("scheme", host, err)
	}
	return scheme
}

func (f *Federation) rememberScheme(ctx context.Context, host, scheme string) {
	err := f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return f.setScheme(ctx, tx, host, scheme)
	})
	if err != nil {
		f.observe("scheme", host, err)
	}
}

func (f *Federation) setScheme(ctx context.Context, tx *storage.Tx, host, scheme string) error {
	if err := f.grow(ctx, tx, storage.StockSchemes); err != nil {
		return err
	}
	return tx.Peers().SetScheme(ctx, host, scheme)
}

// prove signs a document with the node's Ed25519 key in the name of an actor. The
// same document and time give the same bytes.
func (f *Federation) prove(o activity.Object, actor string, at time.Time) ([]byte, error) {
	raw, err := o.Bytes()
	if err != nil {
		return nil, err
	}
	return integrity.Sign(raw, f.c.Keys.Ed25519.Signer(), activity.ProofKey(actor), at.Truncate(time.Millisecond))
}
