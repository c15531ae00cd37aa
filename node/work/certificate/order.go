package certificate

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/acme"

	"stoa/storage"
)

// renew does what is due: it orders a certificate, or asks when to renew the one that is there.
func (a *ACME) renew(ctx context.Context, row *storage.Certificate, now time.Time) error {
	if !a.expires(row, now) {
		a.ask(ctx, row, now)
		return nil
	}
	client, err := a.account(ctx)
	if err != nil {
		return err
	}
	o, err := client.AuthorizeOrder(ctx, acme.DomainIDs(a.Names...))
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	for _, uri := range o.AuthzURLs {
		if err := a.prove(ctx, client, uri, row.Failures%2 == 1); err != nil {
			return err
		}
	}
	if o, err = client.WaitOrder(ctx, o.URI); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: a.Names}, key)
	if err != nil {
		return err
	}
	chain, _, err := client.CreateCertFromOrder(ctx, o, csr, true)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	raw, err := encode(key, chain)
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return err
	}
	row.Names, row.Sealed = strings.Join(a.Names, " "), a.Seal.Seal(storage.PurposeCertificate(row.Name), raw)
	row.NotAfter, row.Failures, row.NextAt = leaf.NotAfter, 0, time.Time{}
	row.RenewAt = leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) * 2 / 3)
	a.Log.Info("certificate", "names", a.Names, "until", leaf.NotAfter)
	a.askFor(ctx, row, leaf, now)
	return nil
}

// prove lets the authority see that a name is the node's.
func (a *ACME) prove(ctx context.Context, client *acme.Client, uri string, plain bool) error {
	z, err := client.GetAuthorization(ctx, uri)
	if err != nil || z.Status == acme.StatusValid {
		return err
	}
	kinds := []string{"tls-alpn-01", "http-01"}
	if plain {
		kinds = []string{"http-01", "tls-alpn-01"}
	}
	var chosen *acme.Challenge
	for _, kind := range kinds {
		for _, c := range z.Challenges {
			if chosen == nil && c.Type == kind {
				chosen = c
			}
		}
	}
	if chosen == nil {
		return fmt.Errorf("the authority takes no proof for %s that the node can give", z.Identifier.Value)
	}
	key, raw, err := answer(client, chosen, z.Identifier.Value)
	if err != nil {
		return err
	}
	if err := a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Certificates().PutChallenge(ctx, key, a.Seal.Seal(storage.PurposeCertificate(key), raw), tx.Now.Add(proofFor))
	}); err != nil {
		return err
	}
	if _, err := client.Accept(ctx, chosen); err != nil {
		return fmt.Errorf("%s for %s: %w", chosen.Type, z.Identifier.Value, err)
	}
	if _, err := client.WaitAuthorization(ctx, z.URI); err != nil {
		return fmt.Errorf("%s for %s: %w", chosen.Type, z.Identifier.Value, err)
	}
	return nil
}

// answer is what proves a name by a challenge, and the key under which it is stored.
func answer(client *acme.Client, c *acme.Challenge, name string) (key string, raw []byte, err error) {
	if c.Type == "http-01" {
		text, err := client.HTTP01ChallengeResponse(c.Token)
		return httpKey(c.Token), []byte(text), err
	}
	cert, err := client.TLSALPN01ChallengeCert(c.Token, name)
	if err == nil {
		raw, err = encode(cert.PrivateKey, cert.Certificate)
	}
	return alpnKey(name), raw, err
}

// account opens the node's account at the authority, and makes it when there is none. One process at a time has the lease.
func (a *ACME) account(ctx context.Context) (*acme.Client, error) {
	name := "account " + a.Directory
	var row storage.Certificate
	err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		row, err = tx.Certificates().ByName(ctx, name)
		return storage.IfMissing(err, nil)
	})
	if err != nil {
		return nil, err
	}
	var key *ecdsa.PrivateKey
	if len(row.Sealed) == 0 {
		key, err = a.newAccount(ctx, name)
	} else if raw, opened := a.Seal.Open(storage.PurposeCertificate(name), row.Sealed); opened != nil {
		return nil, opened
	} else {
		key, err = x509.ParseECPrivateKey(raw)
	}
	if err != nil {
		return nil, err
	}
	client := &acme.Client{Key: key, DirectoryURL: a.Directory, HTTPClient: a.Client}
	account := &acme.Account{}
	if a.Contact != "" {
		account.Contact = []string{"mailto:" + a.Contact}
	}
	if _, err := client.Register(ctx, account, acme.AcceptTOS); err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, fmt.Errorf("account at %s: %w", a.Directory, err)
	}
	return client, nil
}

func (a *ACME) newAccount(ctx context.Context, name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Certificates().Put(ctx, storage.Certificate{Name: name, Sealed: a.Seal.Seal(storage.PurposeCertificate(name), raw)})
	})
}

// askAgain bounds how often the authority is asked when to renew (RFC 9773 §4.3).
const (
	askSoonest = time.Hour
	askAgain   = 6 * time.Hour
	askLatest  = 24 * time.Hour
)

func (a *ACME) ask(ctx context.Context, row *storage.Certificate, now time.Time) {
	raw, err := a.Seal.Open(storage.PurposeCertificate(row.Name), row.Sealed)
	if err != nil {
		return
	}
	if cert, err := pair(raw); err == nil {
		a.askFor(ctx, row, cert.Leaf, now)
	}
}

// askFor asks the authority when to renew a certificate, and takes a moment in the window that it suggests (RFC 9773). Without an
// answer the time stays as it is.
func (a *ACME) askFor(ctx context.Context, row *storage.Certificate, leaf *x509.Certificate, now time.Time) {
	row.LookAt = now.Add(askAgain)
	var directory struct {
		RenewalInfo string `json:"renewalInfo"`
	}
	if _, err := a.get(ctx, a.Directory, &directory); err != nil || directory.RenewalInfo == "" {
		return
	}
	var info struct {
		Window struct{ Start, End time.Time } `json:"suggestedWindow"`
	}
	again, err := a.get(ctx, strings.TrimSuffix(directory.RenewalInfo, "/")+"/"+renewalID(leaf), &info)
	start, end := info.Window.Start, info.Window.End
	if err != nil || !end.After(start) || end.After(leaf.NotAfter) {
		return
	}
	row.RenewAt = start.Add(mathrand.N(end.Sub(start)))
	if latest := leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore) / 10); row.RenewAt.After(latest) {
		row.RenewAt = latest
	}
	if again > 0 {
		row.LookAt = now.Add(min(max(again, askSoonest), askLatest))
	}
}

// renewalID names a certificate: the identifier of its issuer's key and its serial number (RFC 9773 §4.1).
func renewalID(leaf *x509.Certificate) string {
	return base64.RawURLEncoding.EncodeToString(leaf.AuthorityKeyId) + "." + base64.RawURLEncoding.EncodeToString(serial(leaf.SerialNumber))
}

// serial is a serial number as DER has it.
func serial(n *big.Int) []byte {
	raw := n.Bytes()
	if len(raw) == 0 || raw[0]&0x80 != 0 {
		raw = append([]byte{0}, raw...)
	}
	return raw
}

// get reads a JSON document of the authority, and after how long it may be read again.
func (a *ACME) get(ctx context.Context, address string, into any) (again time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	res, err := a.Client.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s answers %s", address, res.Status)
	}
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 && n < 1<<20 {
		again = time.Duration(n) * time.Second
	}
	return again, json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(into)
}

// encode is a key and its chain in PEM.
func encode(key crypto.PrivateKey, chain [][]byte) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	out := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	for _, der := range chain {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return out, nil
}

// pair reads what encode made.
func pair(raw []byte) (tls.Certificate, error) { return tls.X509KeyPair(raw, raw) }
