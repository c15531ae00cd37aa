// Package pushtest is a push service with one browser, for tests: it checks what it gets as push services do (RFC 8030, RFC 8292)
// and decrypts it as the browser does (RFC 8291, RFC 8188).
package pushtest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A Browser is one that has subscribed.
type Browser struct {
	Endpoint, P256dh, Auth string // as PushSubscription.toJSON has them
	Key                    string // public key of the node that it subscribed with, base64url; "" for any
	// Status is what the service answers, 201 when it is 0. Faults are what was wrong with what it got.
	Status  atomic.Int64
	Got     chan []byte // messages, decrypted
	Topics  chan string
	Faults  chan error
	private *ecdh.PrivateKey
	auth    []byte
}

var b64 = base64.RawURLEncoding

// New starts the service.
func New(t *testing.T) *Browser {
	t.Helper()
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{private: private, auth: make([]byte, 16), Got: make(chan []byte, 100), Topics: make(chan string, 100), Faults: make(chan error, 100)}
	rand.Read(b.auth)
	s := httptest.NewServer(b)
	t.Cleanup(s.Close)
	b.Endpoint, b.P256dh, b.Auth = s.URL+"/push/abc", b64.EncodeToString(private.PublicKey().Bytes()), b64.EncodeToString(b.auth)
	return b
}

func (b *Browser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status := int(b.Status.Load())
	if status == 0 {
		status = http.StatusCreated
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, 5000))
	if err == nil {
		err = errors.Join(b.headers(r), b.vapid(r))
	}
	var message []byte
	if err == nil {
		message, err = b.decrypt(raw)
	}
	if err != nil {
		b.Faults <- err
		status = http.StatusBadRequest
	}
	w.WriteHeader(status)
	if status == http.StatusCreated {
		b.Topics <- r.Header.Get("Topic")
		b.Got <- message
	}
}

func (b *Browser) headers(r *http.Request) error {
	for name, want := range map[string]string{"Content-Encoding": `^aes128gcm$`, "Ttl": `^[1-9][0-9]*$`, "Urgency": `^(very-low|low|normal|high)$`,
		"Topic": `^[A-Za-z0-9_-]{1,32}$`} {
		if got := r.Header.Get(name); !regexp.MustCompile(want).MatchString(got) {
			return fmt.Errorf("%s: %q", name, got)
		}
	}
	return nil
}

var vapidForm = regexp.MustCompile(`^vapid t=([\w-]+\.[\w-]+)\.([\w-]+), k=([\w-]+)$`)

// vapid checks who sends (RFC 8292 §2, §3).
func (b *Browser) vapid(r *http.Request) error {
	m := vapidForm.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil || b.Key != "" && m[3] != b.Key {
		return fmt.Errorf("the field Authorization: %q", r.Header.Get("Authorization"))
	}
	key, err := b64.DecodeString(m[3])
	if err != nil {
		return err
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), key)
	if err != nil {
		return err
	}
	sig, err := b64.DecodeString(m[2])
	if err != nil || len(sig) != 64 {
		return errors.New("the signature is not one of ES256")
	}
	sum := sha256.Sum256([]byte(m[1]))
	if !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		return errors.New("the token's signature does not verify")
	}
	head, claims, _ := strings.Cut(m[1], ".")
	var h struct{ Alg string }
	var c struct {
		Aud, Sub string
		Exp      int64
	}
	for text, into := range map[string]any{head: &h, claims: &c} {
		raw, err := b64.DecodeString(text)
		if err = errors.Join(err, json.Unmarshal(raw, into)); err != nil {
			return err
		}
	}
	left := time.Until(time.Unix(c.Exp, 0))
	if h.Alg != "ES256" || c.Aud != "http://"+r.Host || left <= 0 || left > 24*time.Hour || !regexp.MustCompile(`^(mailto:|https?:)[^:]`).MatchString(c.Sub) {
		return fmt.Errorf("the token says %+v %+v", h, c)
	}
	return nil
}

// decrypt is RFC 8291 §3.4 and RFC 8188 §2.
func (b *Browser) decrypt(raw []byte) ([]byte, error) {
	if len(raw) < 21+65 || len(raw) > 4096 || raw[20] != 65 {
		return nil, fmt.Errorf("%d bytes", len(raw))
	}
	salt, size, sender, sealed := raw[:16], binary.BigEndian.Uint32(raw[16:20]), raw[21:86], raw[86:]
	if int(size) < len(sealed) {
		return nil, fmt.Errorf("%d bytes in records of %d", len(sealed), size)
	}
	key, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return nil, err
	}
	shared, err := b.private.ECDH(key)
	if err != nil {
		return nil, err
	}
	info := "WebPush: info\x00" + string(b.private.PublicKey().Bytes()) + string(sender)
	ikm, err := hkdf.Key(sha256.New, shared, b.auth, info, 32)
	if err != nil {
		return nil, err
	}
	cek, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(cek)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, nonce, sealed, nil)
	if err != nil {
		return nil, err
	}
	plain = bytes.TrimRight(plain, "\x00")
	if !bytes.HasSuffix(plain, []byte{2}) {
		return nil, errors.New("it is not the last record")
	}
	return plain[:len(plain)-1], nil
}

// Next returns the next message, and fails the test when something was wrong with one.
func (b *Browser) Next(t *testing.T) (m struct{ Title, Body, URL, Tag string }) {
	t.Helper()
	select {
	case raw := <-b.Got:
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
	case err := <-b.Faults:
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("no message came")
	}
	return m
}
