package storage

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"stoa/protocol"
)

// Directories of other makers that this node follows, and their entries (ARD 0.9).

// ardWordIndex is the index of the words and facets of entries.
var ardWordIndex = wordIndex{table: "ard_entry_word", of: "ard_entry", steps: usualSteps}

// An ARDSource is a directory that this node follows, and how it was last read.
type ARDSource struct {
	URL, Host string
	Registry  bool
	Tag       string // ETag of the document
	Refused   int    // entries that were not taken
	CheckedAt time.Time
	OKAt      time.Time // zero: never
	WholeAt   time.Time // when it was last read although its tag may have been the same
	NextAt    time.Time
	Failures  int
	LastError string
}

var ardSourceTable = tableOf[ARDSource]("ard_source")

// ARDSources reads and writes them.
type ARDSources struct{ tx *Tx }

func (tx *Tx) ARDSources() ARDSources { return ARDSources{tx} }

// Add stores a new source. It is a conflict when there are too many.
func (as ARDSources) Add(ctx context.Context, s ARDSource) error {
	if err := as.tx.dirty(); err != nil {
		return err
	}
	if err := as.tx.lockName(ctx, "ard-sources"); err != nil {
		return err
	}
	all, err := as.List(ctx)
	switch {
	case err != nil:
		return err
	case len(all) >= protocol.MaxARDDirectories:
		return protocol.Errorf(protocol.Conflict, "this node follows %d directories already; unfollow one", len(all))
	}
	return as.Put(ctx, &s)
}

// Put stores how a source was read.
func (as ARDSources) Put(ctx context.Context, s *ARDSource) error {
	s.LastError = storable(s.LastError)
	return ardSourceTable.put(ctx, as.tx, s, "url")
}

// ByURL returns a source, which is locked in a writing transaction; ErrNotFound when there is none.
func (as ARDSources) ByURL(ctx context.Context, address string) (*ARDSource, error) {
	return orNil(findLocked[ARDSource](ctx, as.tx, ardSourceTable.from+`WHERE url = ?`, address))
}

// List returns every source, by address.
func (as ARDSources) List(ctx context.Context) ([]ARDSource, error) {
	return list[ARDSource](ctx, as.tx, ardSourceTable.from+`ORDER BY url`)
}

// Delete deletes a source with its entries. It is false when there is none.
func (as ARDSources) Delete(ctx context.Context, address string) (bool, error) {
	if err := as.tx.dropWorded(ctx, ardWordIndex, entriesOf, address); err != nil {
		return false, err
	}
	n, err := as.tx.write(ctx, `DELETE FROM ard_source WHERE url = ?`, address)
	return n > 0, err
}

const (
	entriesOf      = `SELECT seq FROM ard_entry WHERE source = ?`
	entryNamed     = `SELECT seq FROM ard_entry WHERE source = ? AND identifier = ?`
	entriesCount   = `SELECT count(*) FROM ard_entry WHERE source = ?`
	entriesDigests = `SELECT identifier, digest FROM ard_entry WHERE source = ?`
	// An identifier is found once, in the directory that had it first, and not where a followed node can tell of it itself.
	entriesBySeq = `SELECT e.seq, e.source, e.doc, s.ok_at FROM ard_entry e JOIN ard_source s ON s.url = e.source WHERE e.%s` +
		` AND NOT EXISTS (SELECT 1 FROM ard_entry o WHERE o.identifier = e.identifier AND o.seq < e.seq)` +
		` AND NOT EXISTS (SELECT 1 FROM subscription b WHERE b.host = e.publisher)`
)

// Count returns how many entries of a source are stored.
func (as ARDSources) Count(ctx context.Context, address string) (n int, err error) {
	return n, as.tx.row(ctx, entriesCount, address).Scan(&n)
}

// Entries returns the identifiers of the entries of a source, with their digests.
func (as ARDSources) Entries(ctx context.Context, address string) (map[string]string, error) {
	all := map[string]string{}
	rows, err := as.tx.query(ctx, entriesDigests, address)
	_, err = collect(rows, err, func(s scanner) (none struct{}, err error) {
		var identifier, digest string
		err = s.Scan(&identifier, &digest)
		all[identifier] = digest
		return none, err
	})
	return all, err
}

// An ARDEntryDoc is an entry as it is stored.
type ARDEntryDoc struct {
	protocol.ClaimedEntry
	Digest string
	doc    []byte
}

// NewARDEntryDoc makes the form in which an entry is stored.
func NewARDEntryDoc(e protocol.ClaimedEntry) (ARDEntryDoc, error) {
	doc, err := json.Marshal(e)
	if err != nil {
		return ARDEntryDoc{}, fmt.Errorf("encode entry: %w", err)
	}
	sum := sha256.Sum256(doc)
	return ARDEntryDoc{e, base64.RawURLEncoding.EncodeToString(sum[:]), doc}, nil
}

// PutEntry stores an entry of a source in place of the one with its identifier. It is false for one that the source, which
// must be there, has no room for.
func (as ARDSources) PutEntry(ctx context.Context, address string, e *ARDEntryDoc) (bool, error) {
	if err := as.DropEntry(ctx, address, e.Identifier); err != nil {
		return false, err
	}
	if n, err := as.Count(ctx, address); err != nil || n >= protocol.MaxARDEntries {
		return false, err
	}
	var seq int64
	if err := as.tx.row(ctx, `INSERT INTO ard_entry (source, identifier, publisher, digest, doc) VALUES (?, ?, ?, ?, ?) RETURNING seq`,
		address, e.Identifier, e.Publisher(), e.Digest, string(e.doc)).Scan(&seq); err != nil {
		return false, err
	}
	err := ardWordIndex.add(ctx, as.tx, seq, entryText(&e.ClaimedEntry))
	return err == nil, err
}

// DropEntry deletes an entry of a source. What is not known is no error.
func (as ARDSources) DropEntry(ctx context.Context, address, identifier string) error {
	return as.tx.dropWorded(ctx, ardWordIndex, entryNamed, address, identifier)
}

// DropUnder deletes the entries of publishers that are a host or its sub-domains, and those of directories there.
func (as ARDSources) DropUnder(ctx context.Context, host string) error {
	below := "%." + host
	return as.tx.dropWorded(ctx, ardWordIndex, `SELECT seq FROM ard_entry WHERE publisher = ? OR publisher LIKE ? OR source IN (`+
		`SELECT url FROM ard_source WHERE host = ? OR host LIKE ?)`, host, below, host, below)
}

// Prune deletes the entries of directories that did not answer for 30 days, and returns how many directories had some.
func (as ARDSources) Prune(ctx context.Context) (gone int, err error) {
	all, err := as.List(ctx)
	for i := range all {
		if s := &all[i]; err == nil && !s.OKAt.IsZero() && s.OKAt.Before(as.tx.Now.Add(-gonePruned)) {
			var n int
			if n, err = as.Count(ctx, s.URL); err == nil && n > 0 {
				gone++
				err = as.tx.dropWorded(ctx, ardWordIndex, entriesOf, s.URL)
			}
		}
	}
	return gone, err
}

// eachEntryField calls field for every searched text of an entry with its class.
func eachEntryField(e *protocol.ClaimedEntry, field func(class int, s string)) {
	field(0, e.DisplayName)
	for _, list := range [][]string{e.Tags, e.Capabilities, e.RepresentativeQueries} {
		for _, s := range list {
			field(1, s)
		}
	}
	field(2, e.Description)
}

// mediaFacet is the facet of a media type.
func mediaFacet(media string) string { return facet(facetMedia, strings.TrimSuffix(media, "+json")) }

// entryText is the text of an entry.
func entryText(e *protocol.ClaimedEntry) string {
	t := &text{seen: map[string]bool{}, most: maxText}
	eachEntryField(e, func(_ int, s string) { t.add(len(forms)-1, s) })
	for _, x := range []struct{ path, facet string }{{protocol.ARDTags, facetTag}, {protocol.ARDCapabilities, facetCapability},
		{protocol.ARDKind, facetKind}, {protocol.ARDLanguages, facetLanguage}, {protocol.ARDRegions, facetRegion},
		{protocol.ARDPublisherOf, facetPublisher}} {
		for _, v := range protocol.ARDValuesOf(e.ARDEntry, x.path) {
			t.put(facet(x.facet, v))
		}
	}
	t.put(mediaFacet(e.Type))
	return string(t.b)
}

// A FoundEntry is an entry of a followed directory that a search found.
type FoundEntry struct {
	protocol.ClaimedEntry
	Via   string    // the directory
	OKAt  time.Time // when that was last read
	Score int       // as that of [Profiles.Search]
}

// ListDirectoryEntries is the name of the list in cursors.
const ListDirectoryEntries = "directory-ard"

// Search lists entries that have all words of a text and meet the terms as far as the index can decide, those that were stored
// last first.
func (as ARDSources) Search(ctx context.Context, text string, terms []protocol.ARDTerm, limit int, after string) (protocol.Page[FoundEntry], error) {
	s := newPlainSearch(text, terms)
	for _, t := range terms {
		var group []string
		for _, v := range t.Values {
			switch t.Path {
			case protocol.ARDType:
				group = append(group, mediaFacet(v))
			case protocol.ARDPublisherOf:
				group = append(group, facet(facetPublisher, v))
			}
		}
		if len(group) > 0 {
			s.groups = append(s.groups, group)
		}
	}
	found, err := walkWords(ctx, as.tx, ardWordIndex, ListDirectoryEntries, &s, limit, after, as.bySeqs, func(*FoundEntry) bool { return true })
	for i := range found.Items {
		e := &found.Items[i]
		e.Score = max(s.scoreOf(func(field func(int, string)) { eachEntryField(&e.ClaimedEntry, field) }), 50)
	}
	return found, err
}

func (as ARDSources) bySeqs(ctx context.Context, seqs []int64) (map[int64]FoundEntry, error) {
	in, args := inSeqs(seqs)
	rows, err := as.tx.query(ctx, fmt.Sprintf(entriesBySeq, in), args...)
	all := map[int64]FoundEntry{}
	_, err = collect(rows, err, func(s scanner) (none struct{}, err error) {
		var seq, ok int64
		var e FoundEntry
		var doc []byte
		if err := s.Scan(&seq, &e.Via, &doc, &ok); err != nil {
			return none, err
		}
		err = json.Unmarshal(doc, &e.ClaimedEntry)
		e.OKAt = moment(ok)
		all[seq] = e
		return none, err
	})
	return all, err
}
