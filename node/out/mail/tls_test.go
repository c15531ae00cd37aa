package mail

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// guarded is a server's session that takes letters of one user alone, and tells
// how the connection was when they came.
type guarded struct {
	box
	conn   *smtp.Conn
	user   *string // that signed in
	greets chan string
}

type guard struct {
	got    chan string
	greets chan string
}

func (g guard) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &guarded{box{got: g.got}, c, new(string), g.greets}, nil
}

func (g *guarded) AuthMechanisms() []string { return []string{sasl.Plain} }

func (g *guarded) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "stoa" || password != "right" {
			return &smtp.SMTPError{Code: 535, Message: "wrong password of " + user}
		}
		*g.user = user
		return nil
	}), nil
}

func (g *guarded) Mail(string, *smtp.MailOptions) error {
	if _, protected := g.conn.TLSConnectionState(); !protected || *g.user == "" {
		return &smtp.SMTPError{Code: 530, Message: "sign in first"}
	}
	g.greets <- g.conn.Hostname()
	return nil
}

// authority is a certificate authority of this test, and a certificate by it for
// this machine's address.
func authority(t *testing.T, ends time.Time) (*x509.CertPool, tls.Certificate) {
	t.Helper()
	made := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		k := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		if parent == nil {
			parent, signer = template, k
		}
		template.NotBefore = ends.Add(-48 * time.Hour)
		raw := must.Get(x509.CreateCertificate(rand.Reader, template, parent, &k.PublicKey, signer))(t)
		c := must.Get(x509.ParseCertificate(raw))(t)
		return c, k
	}
	root, rootKey := made(&x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	leaf, leafKey := made(&x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: ends, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, root, rootKey)
	pool := x509.NewCertPool()
	pool.AddCert(root)
	return pool, tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: leafKey}
}

// guardedServer takes letters over TLS only, from the first byte or after STARTTLS.
func guardedServer(t *testing.T, security string, c tls.Certificate) (addr string, g guard) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	g = guard{make(chan string, 1), make(chan string, 1)}
	s := smtp.NewServer(g)
	s.ErrorLog = log.New(io.Discard, "", 0)
	s.Domain = "mail.example"
	config := &tls.Config{Certificates: []tls.Certificate{c}}
	addr = l.Addr().String()
	if security == TLS {
		l = tls.NewListener(l, config)
	} else {
		s.TLSConfig = config
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return addr, g
}

// TestSend_Protected sends over both kinds of protection, signed in; nothing goes
// to a server whose certificate is not of a known authority, has expired or is of
// another name, nor without the password.
func TestSend_Protected(t *testing.T) {
	t.Parallel()
	roots, good := authority(t, time.Now().Add(time.Hour))
	strangers, _ := authority(t, time.Now().Add(time.Hour))
	late, ended := authority(t, time.Now().Add(-time.Minute))
	letter := Message{ID: "ntc_1", To: "asha@example.org", Subject: "s", Text: "t"}
	tests := []struct {
		name        string
		certificate tls.Certificate
		roots       *x509.CertPool
		password    string
		host        string // by which the server is called; "" its address
		refused     string // in the error; "" it is sent
	}{
		{name: "sent", certificate: good, roots: roots, password: "right"},
		{name: "unknown authority", certificate: good, roots: strangers, password: "right", refused: "certificate"},
		{name: "system's authorities", certificate: good, password: "right", refused: "certificate"},
		{name: "certificate has run out", certificate: ended, roots: late, password: "right", refused: "certificate"},
		{name: "certificate of another name", certificate: good, roots: roots, password: "right", host: "localhost", refused: "certificate"},
		{name: "wrong password", certificate: good, roots: roots, password: "wrong", refused: "the user or the password"},
		{name: "no password", certificate: good, roots: roots, refused: "530"},
	}
	for _, security := range []string{StartTLS, TLS} {
		for _, test := range tests {
			t.Run(security+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				addr, g := guardedServer(t, security, test.certificate)
				if test.host != "" {
					_, port, err := net.SplitHostPort(addr)
					require.NoError(t, err)
					addr = net.JoinHostPort(test.host, port)
				}
				s := &Sender{Server: addr, Security: security, Password: test.password, From: "stoa@n1.example", Host: "n1.example"}
				if test.password != "" {
					s.User = "stoa"
				}
				if test.roots != nil {
					s.TLSConfig = &tls.Config{RootCAs: test.roots}
				}
				err := s.Send(t.Context(), letter)
				if test.refused != "" {
					require.ErrorContains(t, err, test.refused)
					require.NotContains(t, err.Error(), "stoa@")
					require.NotContains(t, err.Error(), "of stoa", "what a server says stays out")
					require.Equal(t, test.name == "no password", protocol.CodeOf(err) == protocol.InvalidRequest, "only what the letter is refused for is final")
					require.Empty(t, g.got)
					if test.password != "" {
						require.ErrorContains(t, s.Check(t.Context()), test.refused)
					}
					return
				}
				require.NoError(t, err)
				require.Contains(t, <-g.got, "Message-ID: <ntc_1@n1.example>")
				require.Equal(t, "n1.example", <-g.greets, "the node greets by its own name, after STARTTLS too")
				require.NoError(t, s.Check(t.Context()))
				require.Empty(t, g.got, "a check sends nothing")
			})
		}
	}
}
