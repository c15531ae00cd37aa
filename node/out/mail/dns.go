package mail

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"strings"
)

// A Record is a TXT record that lets receivers trust the node's letters.
type Record struct {
	Purpose string // SPF, DKIM or DMARC
	Name    string // of the record
	Want    string // its value; "" when the node cannot know it
	Found   []string
	Fault   string // what is wrong, "" for nothing
}

// NoAnswer is the fault of a record about which the DNS said nothing.
const NoAnswer = "the DNS did not answer; try again"

// Line returns the record as a line of a zone file, in strings of 255 bytes at most (RFC 1035 §3.3.14).
func (r Record) Line() string {
	var b strings.Builder
	for rest := r.Want; ; {
		n := min(len(rest), 255)
		b.WriteString(` "` + rest[:n] + `"`)
		if rest = rest[n:]; rest == "" {
			return r.Name + ". IN TXT" + b.String()
		}
	}
}

// CheckDNS compares what the DNS says about the domain of From with what it should say: who may send
// for it (SPF, RFC 7208), the public DKIM key (RFC 6376), and what becomes of other letters (DMARC,
// RFC 7489). lookup returns the TXT records of a name. Server and DKIM decide what is wanted.
func (s *Sender) CheckDNS(ctx context.Context, lookup func(ctx context.Context, name string) ([]string, error)) []Record {
	_, domain, _ := strings.Cut(s.From, "@")
	return []Record{s.spf(ctx, domain, lookup), s.dkim(ctx, domain, lookup), s.dmarc(ctx, domain, lookup)}
}

type lookupTXT func(ctx context.Context, name string) ([]string, error)

// read fills in the records that begin with a version. Other texts have no meaning here.
func (r *Record) read(ctx context.Context, lookup lookupTXT, version string) {
	all, err := lookup(ctx, r.Name)
	missing, isDNS := err.(*net.DNSError)
	for _, text := range all {
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), version) {
			r.Found = append(r.Found, text)
		}
	}
	switch {
	case err != nil && (!isDNS || !missing.IsNotFound):
		r.Fault = NoAnswer
	case len(r.Found) == 0:
		r.Fault = "there is no such record: add it"
	case len(r.Found) > 1:
		r.Fault = "there are several such records, so receivers use none: keep one"
	}
}

func (s *Sender) spf(ctx context.Context, domain string, lookup lookupTXT) Record {
	host, _, _ := net.SplitHostPort(s.Server)
	sender := "a:" + host
	switch ip := net.ParseIP(host); {
	case ip == nil:
	case ip.IsLoopback():
		sender = "mx" // the mail server on this machine, if it is the domain's
	case ip.To4() != nil:
		sender = "ip4:" + host
	default:
		sender = "ip6:" + host
	}
	r := Record{Purpose: "SPF", Name: domain, Want: "v=spf1 " + sender + " -all"}
	r.read(ctx, lookup, "v=spf1")
	if r.Fault == "" {
		terms := strings.Fields(strings.ToLower(r.Found[0]))
		switch last := terms[len(terms)-1]; last {
		case "+all", "all", "?all":
			r.Fault = "it ends with " + last + ", which lets everybody send for the domain: end it with -all"
		}
		r.Want = r.Found[0] // who sends for the domain is the operator's to say
	}
	return r
}

func (s *Sender) dkim(ctx context.Context, domain string, lookup lookupTXT) Record {
	if s.DKIM == nil {
		return Record{Purpose: "DKIM", Name: "<selector>._domainkey." + domain,
			Fault: "the node signs nothing: make a key with stoa admin mail key, and set dkim-key and dkim-selector, unless the mail server signs"}
	}
	r := Record{Purpose: "DKIM", Name: s.Selector + "._domainkey." + domain}
	kind, public := publicKey(s.DKIM)
	r.Want = "v=DKIM1; k=" + kind + "; p=" + public
	r.read(ctx, lookup, "v=dkim1")
	if r.Fault == "" && !strings.Contains(strings.Join(strings.Fields(r.Found[0]), "")+";", "p="+public+";") {
		r.Fault = "it has another key than dkim-key: replace it, or use another selector"
	}
	return r
}

func (s *Sender) dmarc(ctx context.Context, domain string, lookup lookupTXT) Record {
	r := Record{Purpose: "DMARC", Name: "_dmarc." + domain, Want: "v=DMARC1; p=quarantine; adkim=r; aspf=r"}
	r.read(ctx, lookup, "v=dmarc1")
	if r.Fault == "" && !strings.Contains(strings.ToLower(strings.Join(strings.Fields(r.Found[0]), "")), ";p=") {
		r.Fault = "it has no p=, so receivers ignore it"
	}
	if len(r.Found) == 1 && r.Fault == "" {
		r.Want = r.Found[0]
	}
	return r
}

// publicKey returns the kind and the public half of a key as a DKIM record has them (RFC 6376 §3.6.1,
// RFC 8463 §4).
func publicKey(signer crypto.Signer) (kind, value string) {
	if k, ok := signer.Public().(ed25519.PublicKey); ok {
		return "ed25519", base64.StdEncoding.EncodeToString(k)
	}
	der, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return "rsa", "" // ReadKey returns no other kinds
	}
	return "rsa", base64.StdEncoding.EncodeToString(der)
}

// WriteKey makes a RSA key of 2048 bits, which every receiver verifies, and writes it as PEM to a file
// that only its owner can read. It never overwrites a file.
func WriteKey(file string) error {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
