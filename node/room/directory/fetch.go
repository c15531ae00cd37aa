package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// A reading is what was read of a directory.
type reading struct {
	same    bool // nothing has changed
	tag     string
	entries []protocol.ClaimedEntry // with different identifiers
	refused int                     // of those that it has
	wait    time.Duration           // of one that failed: not asked again before
}

// documentLimits are those of a catalog, and of a page of a registry.
var documentLimits = strictjson.Limits{MaxBytes: protocol.MaxARDDocument, MaxDepth: 16, MaxTokens: 400_000}

const (
	pageSize = 100
	maxPages = 2 * protocol.MaxARDEntries / pageSize // a registry may have fewer on a page than it is asked for
	maxTag   = 200
)

// An answered is an answer with a status other than expected.
type answered int

func (a answered) Error() string { return "it answered " + strconv.Itoa(int(a)) }

// fetch reads a directory: a catalog, if its tag is another one; or the pages of a registry's list (ARD 0.9, GET agents), and of
// a registry without one the catalog of its host.
func (d *Directory) fetch(ctx context.Context, s *toRead) (got reading, err error) {
	if !s.Registry {
		return d.fetchCatalog(ctx, s, s.URL)
	}
	got, err = d.fetchPages(ctx, s.URL)
	status, _ := errors.AsType[answered](err)
	if status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
		u, err := url.Parse(s.URL)
		if err != nil {
			return got, err
		}
		u.Path = protocol.ARDCatalogPath
		return d.fetchCatalog(ctx, s, u.String())
	}
	return got, err
}

func (d *Directory) fetchCatalog(ctx context.Context, s *toRead, address string) (got reading, err error) {
	tag := s.Tag
	if s.whole {
		tag = ""
	}
	var doc struct {
		SpecVersion string            `json:"specVersion"`
		Entries     []json.RawMessage `json:"entries"`
	}
	if got.tag, got.wait, err = d.get(ctx, address, tag, &doc); err != nil {
		if status, _ := errors.AsType[answered](err); status == http.StatusNotModified && tag != "" {
			return reading{same: true}, nil
		}
		return got, err
	}
	if doc.SpecVersion == "" || doc.Entries == nil {
		return got, errors.New("the document has no specVersion or no entries: it is no ai-catalog.json")
	}
	got.add(doc.Entries, d.House.Private)
	return got, nil
}

func (d *Directory) fetchPages(ctx context.Context, base string) (got reading, err error) {
	query := url.Values{"pageSize": {strconv.Itoa(pageSize)}}
	for range maxPages {
		var page struct {
			Items []json.RawMessage `json:"items"`
			Total int               `json:"total"`
			Token string            `json:"pageToken"`
		}
		if _, got.wait, err = d.get(ctx, base+"/agents?"+query.Encode(), "", &page); err != nil {
			return got, err
		}
		if page.Items == nil {
			return got, errors.New("the document has no items: it is no list of a registry")
		}
		got.add(page.Items, d.House.Private)
		if page.Token == "" || len(page.Items) == 0 {
			return got, nil
		}
		if len(got.entries) == protocol.MaxARDEntries {
			got.refused += max(0, page.Total-got.refused-len(got.entries))
			return got, nil
		}
		query.Set("pageToken", page.Token)
	}
	return got, errors.New("its list has more than " + strconv.Itoa(maxPages) + " pages")
}

// add takes entries that are valid and not there yet.
func (got *reading) add(entries []json.RawMessage, private bool) {
	seen := map[string]bool{}
	for i := range got.entries {
		seen[got.entries[i].Identifier] = true
	}
	for _, raw := range entries {
		e, err := protocol.ParseClaimedEntry(raw, private)
		if err != nil || seen[e.Identifier] || len(got.entries) == protocol.MaxARDEntries {
			got.refused++
			continue
		}
		seen[e.Identifier] = true
		got.entries = append(got.entries, e)
	}
}

// get reads a document of JSON, if its tag is another than the given one. Failed, it also returns for how long not to ask again.
func (d *Directory) get(ctx context.Context, address, tag string, into any) (newTag string, wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", 0, err
	}
	req.Header.Set("Accept", "application/json")
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	resp, err := d.Client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", netx.RetryAfter(resp.Header.Get("Retry-After"), time.Now(), readEvery), answered(resp.StatusCode)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", 0, err
	}
	if err := strictjson.Check(raw, documentLimits); err != nil {
		return "", 0, fmt.Errorf("the document is not acceptable JSON: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return "", 0, fmt.Errorf("the document has another shape: %w", err)
	}
	if newTag = resp.Header.Get("ETag"); len(newTag) > maxTag || protocol.TextFault("", newTag) != nil {
		newTag = ""
	}
	return newTag, 0, nil
}
