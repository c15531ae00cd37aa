package directory

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stoa/identity/httpsig"
)

// Media types of key sets. The first is mandatory at the well-known path.
const (
	directoryMedia = "application/http-message-signatures-directory+json"
	jwkSetMedia    = "application/jwk-set+json"
	jsonMedia      = "application/json"
)

// found is the result of a fetch.
type found struct {
	keys     map[string]listed // by thumbprint, never nil
	set      []byte            // JWK Set of the keys that are used, and the card's client_name
	name     string            // client_name, "" for none
	at       time.Time
	lifetime time.Duration
}

// document is one answer with status 200.
type document struct {
	header http.Header
	body   []byte
}

// fetch fetches a key set: the document at the URL or, for a card, the set that the card contains
// or links to. One that is gone (410) is a set without keys, where other failures keep what is known.
func (c *Cache) fetch(ctx context.Context, src source) (*found, *Failure) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	got, failure := c.read(ctx, src)
	if failure != nil && failure.gone {
		return keysOf(&document{}, []byte(`{"keys":[]}`), src, time.Now())
	}
	return got, failure
}

func (c *Cache) read(ctx context.Context, src source) (*found, *Failure) {
	if src.meta {
		doc, failure := c.get(ctx, src, true)
		if failure != nil {
			return nil, failure
		}
		uri, failure := parseMetadata(doc.body, src.url)
		if failure != nil {
			return nil, failure
		}
		return c.follow(ctx, uri, src)
	}
	if !src.card {
		doc, failure := c.get(ctx, src, false)
		if failure != nil {
			return nil, failure
		}
		return keysOf(doc, doc.body, src, time.Now())
	}
	doc, failure := c.get(ctx, src, true)
	if failure != nil {
		return nil, failure
	}
	card, failure := parseCard(doc.body, src.url)
	if failure != nil {
		return nil, failure
	}
	var got *found
	if card.uri == "" {
		got, failure = keysOf(doc, card.set, src, time.Now())
	} else {
		got, failure = c.follow(ctx, card.uri, src)
	}
	if failure != nil {
		return nil, failure
	}
	got.lifetime = min(got.lifetime, lifetime(doc.header))
	got.named(card.name)
	return got, nil
}

// follow follows the link of a card, or of metadata, to its jwks_uri.
func (c *Cache) follow(ctx context.Context, uri string, from source) (*found, *Failure) {
	if len(uri) > httpsig.MaxAgentURL {
		return nil, &Failure{Code: httpsig.CodeDirectoryMalformed, Detail: "jwks_uri of the card is longer than 512 bytes"}
	}
	src, failure := newSource(uri, false, c.cfg.AllowLoopback)
	if failure != nil {
		if failure.Code == httpsig.CodeAgentMalformed {
			failure.Code = httpsig.CodeDirectoryMalformed
		}
		failure.Detail = "jwks_uri of the card: " + failure.Detail
		return nil, failure
	}
	src.kids = from.meta
	if src.host != from.host { // the host of the card is counted already
		c.mu.Lock()
		ok := c.enter(src.host)
		c.mu.Unlock()
		if !ok { // many cards that name one victim
			return nil, &Failure{Code: httpsig.CodeDirectoryUnreachable, Detail: "the host of jwks_uri has too many fetches under way; send the request again later"}
		}
		defer func() {
			c.mu.Lock()
			c.leave(src.host)
			c.mu.Unlock()
			c.signal()
		}()
	}
	doc, failure := c.get(ctx, src, false)
	if failure != nil {
		return nil, failure
	}
	return keysOf(doc, doc.body, src, time.Now())
}

// get fetches one document: status 200 only, no redirect, at most MaxBody bytes.
func (c *Cache) get(ctx context.Context, src source, card bool) (*document, *Failure) {
	fail := func(code httpsig.Code, detail string, err error) (*document, *Failure) {
		return nil, &Failure{Code: code, Detail: src.url + " " + detail, Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, src.url, nil)
	if err != nil {
		return fail(httpsig.CodeAgentMalformed, "is not a URL", err)
	}
	req.Header.Set("Accept", directoryMedia+", "+jwkSetMedia+", "+jsonMedia+";q=0.9")
	if card {
		req.Header.Set("Accept", jsonMedia)
	}
	req.Header.Set("Accept-Encoding", "identity") // the proof covers the bytes as sent, and nothing is decompressed
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, c.broken(ctx, src, err)
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	coding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode/100 == 3:
		return fail(httpsig.CodeDirectoryRedirect, "redirects; a key directory must be served at its own URL", nil)
	case resp.StatusCode != http.StatusOK:
		_, failure := fail(httpsig.CodeDirectoryStatus, "answered with status "+strconv.Itoa(resp.StatusCode), nil)
		failure.gone = resp.StatusCode == http.StatusGone
		return nil, failure
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return fail(httpsig.CodeDirectoryMediaType, "sent a Content-Encoding that was not asked for", nil)
	case !accepts(media, src, card):
		return fail(httpsig.CodeDirectoryMediaType, "sent a Content-Type other than "+wanted(src, card), nil)
	case resp.ContentLength > MaxBody:
		return fail(httpsig.CodeDirectoryTooLarge, "sent more than 64 KiB", nil)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	if err != nil {
		return nil, c.broken(ctx, src, err)
	}
	if len(body) > MaxBody {
		return fail(httpsig.CodeDirectoryTooLarge, "sent more than 64 KiB", nil)
	}
	return &document{resp.Header, body}, nil
}

// broken returns the failure of an exchange without an answer.
func (c *Cache) broken(ctx context.Context, src source, err error) *Failure {
	f := &Failure{Code: httpsig.CodeDirectoryUnreachable, Detail: src.url + " cannot be reached", Err: err}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.Detail = src.url + " gave no complete answer within 3 seconds"
		return f
	}
	if c.cfg.Classify == nil {
		return f
	}
	switch code := c.cfg.Classify(err); code {
	case "":
	case httpsig.CodeDirectoryAddressRefused:
		f.Code, f.Detail = code, src.url+" is not at a public address and port"
	case httpsig.CodeDirectoryTooLarge:
		f.Code, f.Detail = code, src.url+" sent more than 64 KiB"
	default:
		f.Code = code
	}
	return f
}

func accepts(media string, src source, card bool) bool {
	switch {
	case card: // OAuth client metadata: JSON, or a server's own kind of it
		return media == jsonMedia || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
	case src.wellKnown():
		return media == directoryMedia
	}
	return media == directoryMedia || media == jwkSetMedia || media == jsonMedia
}

func wanted(src source, card bool) string {
	switch {
	case card:
		return jsonMedia
	case src.wellKnown():
		return directoryMedia
	}
	return jwkSetMedia + " or " + jsonMedia
}

// lifetime returns how long an answer is valid: max-age less Age (RFC 9111 §4.2.1, §5.2.2),
// between MinLifetime and MaxLifetime. An answer whose Cache-Control cannot be parsed (RFC 9111
// §4.2.1) or forbids storing gets MinLifetime.
func lifetime(h http.Header) time.Duration {
	d, set := defaultLifetime, false
	for part := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "no-store", "no-cache":
			return MinLifetime
		case "max-age":
			age := seconds(strings.Trim(strings.TrimSpace(value), `"`))
			if set {
				age = min(age, d)
			}
			d, set = age, true
		}
	}
	if set {
		d -= seconds(h.Get("Age"))
	}
	return clamp(d)
}

// seconds parses delta-seconds (RFC 9111 §1.2.2); anything else is 0.
func seconds(s string) time.Duration {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(n, 1<<31)) * time.Second
}

func clamp(d time.Duration) time.Duration { return max(MinLifetime, min(d, MaxLifetime)) }
