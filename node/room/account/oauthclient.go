package account

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"stoa/identity/cache"
	"stoa/protocol"
)

// A document is what a client says of itself (RFC 7591 §2), and the host that serves it, "" for one that registered.
type document struct {
	ID           string   `json:"client_id"`
	Name         string   `json:"client_name"`
	RedirectURIs []string `json:"redirect_uris"`
	Auth         string   `json:"token_endpoint_auth_method"`

	Host string `json:"-"`
}

// Bounds of metadata documents (draft-ietf-oauth-client-id-metadata-document §6.6).
const (
	maxDocument   = 10 << 10
	keepDocument  = 10 * time.Minute
	keepDocuments = 500
	awaitDocument = 5 * time.Second
)

// documents reads clients' metadata documents: only for somebody who is signed in and was sent here by the program.
type documents struct {
	client *http.Client
	kept   *cache.Cache[document]
}

func newDocuments(client *http.Client) documents {
	direct := *client
	direct.Timeout = awaitDocument
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the address is the identity
	return documents{&direct, cache.Of[document](keepDocuments)}
}

// read returns the document at an address. Errors are *protocol.Error with code conflict: the person sees them.
func (ds documents) read(ctx context.Context, address string) (d document, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Path == "" || u.Path == "/" || u.Fragment != "" || u.User != nil || u.String() != address {
		return d, protocol.Errorf(protocol.Conflict, "the program's id is not the address of a metadata document")
	}
	now := time.Now()
	if d, ok := ds.kept.Get(address, now); ok {
		return d, nil
	}
	fail := func(why string) (document, error) {
		return document{}, protocol.Errorf(protocol.Conflict, "what the program says about itself at %s %s; nothing was allowed", u.Host, why)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fail("cannot be read")
	}
	req.Header.Set("Accept", "application/json")
	res, err := ds.client.Do(req)
	if err != nil {
		return fail("cannot be read now")
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case err != nil || res.StatusCode != http.StatusOK:
		return fail("cannot be read now")
	case len(raw) > maxDocument:
		return fail("is longer than 10 KiB")
	case json.Unmarshal(raw, &d) != nil || d.ID != address:
		return fail("names another program")
	case d.Auth != "" && d.Auth != "none":
		return fail("asks for a kind of client authentication that this node does not have; only none is possible")
	case len(d.RedirectURIs) == 0 || len(d.RedirectURIs) > 100 || slices.ContainsFunc(d.RedirectURIs, func(r string) bool { return !protocol.IsRedirectURI(r) }):
		return fail("names an address to return to that is not possible")
	}
	d.Host, d.Name = u.Host, protocol.CleanText(protocol.Clip(d.Name, 100))
	ds.kept.Put(address, d, 0, now.Add(keepDocument))
	return d, nil
}
