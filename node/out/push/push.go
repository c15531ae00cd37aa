// Package push sends messages to browsers by Web Push: through the push service that a browser chose
// (RFC 8030), encrypted for the browser (RFC 8291) and in the name of the node (RFC 8292). It makes
// one attempt. It does not follow redirects and never connects to an address that is not public.
package push

import (
	"context"
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/SherClockHolmes/webpush-go"

	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/protocol/netx"
)

const (
	timeout       = 10 * time.Second // for the whole exchange
	kept          = 24 * time.Hour   // how long the push service keeps a message for a browser that is off
	maxAnswer     = 16 << 10         // bytes of an answer that are read, so that the connection can be reused
	maxRetryAfter = 6 * time.Hour
)

// A Key is the node's key pair for push services (RFC 8292 §2), both halves in base64url.
type Key struct{ private, public string }

// NewKey derives the key pair from a secret.
func NewKey(secret []byte) (Key, error) {
	for n := byte(0); ; n++ {
		d := sha256.Sum256(append([]byte("web push\x00"), append(secret, n)...))
		k, err := ecdh.P256().NewPrivateKey(d[:])
		if err == nil { // all but one of 2^32 are keys
			return Key{base64.RawURLEncoding.EncodeToString(d[:]), base64.RawURLEncoding.EncodeToString(k.PublicKey().Bytes())}, nil
		}
		if n == 255 {
			return Key{}, err
		}
	}
}

// Public returns the public half, which browsers are given.
func (k Key) Public() string { return k.public }

// A Subscription is where a browser is reached.
type Subscription struct {
	Endpoint     string
	P256dh, Auth []byte
}

// A Sender sends as one node. It is safe for concurrent use.
type Sender struct {
	Client  *http.Client // of node/out/outbound
	Key     Key
	Contact string // of the operator, for push services: a mail address or an https URL
	Private bool   // allow loopback addresses and plain http to them: development
}

// Send sends a message of at most 3,900 bytes. Of the messages with one topic, any text, the push service
// keeps the last. Any outcome but success is a *webhook.Failure, except an error of this node.
func (s *Sender) Send(ctx context.Context, to Subscription, topic string, message []byte) error {
	if why := protocol.CallbackFault(to.Endpoint, s.Private); why != "" {
		return &webhook.Failure{Kind: webhook.ErrRefused, Text: "the push service's address " + why}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sum := sha256.Sum256([]byte(topic))
	res, err := webpush.SendNotificationWithContext(ctx, message, &webpush.Subscription{Endpoint: to.Endpoint, Keys: webpush.Keys{
		Auth: base64.RawURLEncoding.EncodeToString(to.Auth), P256dh: base64.RawURLEncoding.EncodeToString(to.P256dh),
	}}, &webpush.Options{
		HTTPClient: s.Client, Subscriber: s.Contact, VAPIDPublicKey: s.Key.public, VAPIDPrivateKey: s.Key.private,
		TTL: int(kept / time.Second), Urgency: webpush.UrgencyHigh, Topic: base64.RawURLEncoding.EncodeToString(sum[:24]), // RFC 8030 §5.4: 32 characters
	})
	if err != nil {
		return &webhook.Failure{Kind: webhook.ErrRetry, Text: "the push service did not answer", Err: err}
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	f := &webhook.Failure{Status: res.StatusCode, Kind: webhook.ErrRefused, Text: fmt.Sprintf("the push service answered %d", res.StatusCode)}
	switch code := res.StatusCode; {
	case code >= 200 && code <= 299:
		return nil
	case code == http.StatusNotFound || code == http.StatusGone: // RFC 8030 §7.3: the subscription has ended
		f.Kind = webhook.ErrGone
	case code == http.StatusTooManyRequests || code >= 500:
		f.Kind, f.RetryAfter = webhook.ErrRetry, netx.RetryAfter(res.Header.Get("Retry-After"), time.Now(), maxRetryAfter)
	}
	return f
}
