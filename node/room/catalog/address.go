package catalog

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stoa/node/hall"
	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// Catalogs that their businesses have elsewhere: read at an address, now and then daily.

// How addresses are asked.
const (
	readEvery   = 24 * time.Hour
	readAgain   = 15 * time.Minute // after the first failure that may pass
	readApart   = time.Minute      // two readings that the owner asks for
	readFor     = 75 * time.Second // for one reading with its import: less than a job may take
	AnswerFor   = 45 * time.Second // for the answer
	readLanes   = 2                // how many are read at the same time
	tellAfter   = 4                // failures in a row that may pass
	maxTag      = 300
	shownFaults = 20 // of a file
)

func readName(handle string) string { return "catalog " + handle }

func readJob(s *storage.CatalogSource, at time.Time) storage.Job {
	return storage.Job{Kind: storage.CatalogJob, Lane: fmt.Sprint("catalog ", crc32.ChecksumIEEE([]byte(s.Handle))%readLanes),
		Dedupe: readName(s.Handle), Args: []byte(s.Handle), RunAt: at}
}

// Address says how the catalog of a business of the caller is read.
func (c *Catalog) Address(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.OwnInput) (protocol.CatalogReading, error) {
	handle, err := ownShop(ctx, tx, by, in.Owned)
	if err != nil {
		return protocol.CatalogReading{}, err
	}
	s, err := tx.CatalogSources().ByHandle(ctx, handle)
	if err != nil {
		s = &storage.CatalogSource{}
	}
	return readingOf(s), storage.IfMissing(err, nil)
}

// ownShop returns the handle of a business of the caller, whose row is locked in a writing transaction.
func ownShop(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.Owned) (string, error) {
	p, err := hall.Own(ctx, tx, by, in)
	if err != nil {
		return "", err
	}
	return p.Draft.Handle, business(ctx, tx, p.Draft.Handle)
}

func readingOf(s *storage.CatalogSource) protocol.CatalogReading {
	moment := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	own, mode := protocol.OwnKeep, s.Mode
	if s.Overwrite {
		own = protocol.OwnOverwrite
	}
	if mode == "" {
		mode = protocol.ImportReplace
	}
	return protocol.CatalogReading{
		URL: protocol.OrNil(s.URL), Mode: mode, Own: own, Waiting: s.Waiting, AskedAt: moment(s.AskedAt), ReadAt: moment(s.ReadAt),
		ChangedAt: moment(s.ChangedAt), Added: s.Added, Changed: s.Changed, Removed: s.Removed, Kept: s.Kept, Fault: protocol.OrNil(s.Fault), Falls: s.Fell,
		Faults: append([]protocol.LineFault{}, s.Faults...), NextAt: moment(s.NextAt), Untrusted: true,
	}
}

// PutAddress sets where the catalog of a business is read, and enqueues the first reading.
func (c *Catalog) PutAddress(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.CatalogAddress) (protocol.CatalogReading, error) {
	handle, err := ownShop(ctx, tx, by, in.Owned)
	if err != nil {
		return protocol.CatalogReading{}, err
	}
	if why := protocol.CallbackFault(in.URL, c.Private); why != "" {
		return protocol.CatalogReading{}, protocol.Invalid(protocol.Fault{Pointer: "/url", Code: "catalog-address", Detail: why})
	}
	s, err := tx.CatalogSources().ByHandle(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		s, err = &storage.CatalogSource{Handle: handle}, nil
	}
	if err != nil {
		return protocol.CatalogReading{}, err
	}
	holder, err := tx.Accounts().OfProfile(ctx, handle)
	if err = storage.IfMissing(err, nil); err != nil {
		return protocol.CatalogReading{}, err
	}
	s.URL, s.Mode, s.Overwrite, s.Account = in.URL, in.Mode, in.Own == protocol.OwnOverwrite, holder.ID
	s.Tag, s.Modified, s.Told = "", "", ""
	return c.readSoon(ctx, tx, s, false)
}

// ReadAddress enqueues a reading.
func (c *Catalog) ReadAddress(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.CatalogAsk) (protocol.CatalogReading, error) {
	handle, err := ownShop(ctx, tx, by, in.Owned)
	if err != nil {
		return protocol.CatalogReading{}, err
	}
	s, err := tx.CatalogSources().ByHandle(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		err = noAddress(handle)
	}
	if err != nil {
		return protocol.CatalogReading{}, err
	}
	return c.readSoon(ctx, tx, s, in.Falls)
}

func noAddress(handle string) error {
	return protocol.Errorf(protocol.NotFound, "the catalog of @%s is read at no address; put_catalog_address sets one", handle)
}

// readSoon stores a source and enqueues a reading. One that runs stores nothing then.
func (c *Catalog) readSoon(ctx context.Context, tx *storage.Tx, s *storage.CatalogSource, falls bool) (protocol.CatalogReading, error) {
	s.Round = max(s.Round+1, int(tx.Now.UnixMilli())) // also after another source was removed
	s.Waiting, s.Falls, s.NextAt, s.Failures = true, falls, tx.Now, 0
	if next := s.AskedAt.Add(readApart); next.After(tx.Now) {
		s.NextAt = next
	}
	if _, err := tx.Jobs().DropNamed(ctx, storage.CatalogJob, readName(s.Handle)); err != nil {
		return protocol.CatalogReading{}, err
	}
	return readingOf(s), errors.Join(tx.CatalogSources().Put(ctx, s), tx.Enqueue(ctx, readJob(s, s.NextAt)))
}

// RemoveAddress ends the reading of the catalog of a business.
func (c *Catalog) RemoveAddress(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.OwnInput) (protocol.None, error) {
	handle, err := ownShop(ctx, tx, by, in.Owned)
	if err != nil {
		return protocol.None{}, err
	}
	found, err := tx.CatalogSources().Delete(ctx, handle)
	if err == nil && !found {
		err = noAddress(handle)
	}
	if err != nil {
		return protocol.None{}, err
	}
	_, err = tx.Jobs().DropNamed(ctx, storage.CatalogJob, readName(handle))
	return protocol.None{}, err
}

// A toRead is a source that is to be read.
type toRead struct {
	*storage.CatalogSource
	whole bool // also when it is as it was
	ended string
	rests bool // the business is not shown
}

// A readFault is why a catalog was not read. Its kind is what the owner is told of once.
type readFault struct {
	kind, text string
	passes     bool
	faults     []protocol.LineFault
}

func (f *readFault) Error() string { return f.text }

// Read is the handler of CatalogJob: it reads a catalog at its address and imports it.
func (c *Catalog) Read(ctx context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	s, err := c.toRead(ctx, string(j.Args))
	if err != nil || s == nil {
		return nil, err
	}
	var got answer
	var fault *readFault
	switch {
	case s.ended != "":
		fault = &readFault{kind: "ended", text: s.ended}
	case !s.rests:
		asked, cancel := context.WithTimeout(ctx, readFor)
		defer cancel()
		got, fault = c.readAt(asked, s)
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.Profiles().ForUpdate(ctx, s.Handle); err != nil {
			return storage.IfMissing(err, nil)
		}
		now, err := tx.CatalogSources().ByHandle(ctx, s.Handle)
		if err != nil {
			return storage.IfMissing(err, nil)
		}
		if now.Round != s.Round { // the owner has asked for another, which this one kept from the queue
			return tx.Enqueue(ctx, readJob(now, now.NextAt))
		}
		return c.note(ctx, tx, now, s, got, fault)
	}, nil
}

// toRead returns the source of a reading, nil where it is not read any more.
func (c *Catalog) toRead(ctx context.Context, handle string) (s *toRead, err error) {
	err = c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		found, err := tx.CatalogSources().ByHandle(ctx, handle)
		if err != nil {
			return storage.IfMissing(err, nil)
		}
		p, shop, err := tx.Merchants().Own(ctx, handle)
		if err != nil {
			return storage.IfMissing(err, nil)
		}
		holder, err := tx.Accounts().OfProfile(ctx, handle)
		if err = storage.IfMissing(err, nil); err != nil {
			return err
		}
		s = &toRead{CatalogSource: found, rests: p.State != "", whole: found.Falls || found.Fault != ""}
		switch {
		case p.Draft.Kind != protocol.Business:
			s.ended = "the profile is no business any more"
		case holder.ID != found.Account:
			s.ended = "the profile has another owner than when the address was set; save the address again to have it read"
		}
		s.whole = s.whole || shop != nil && shop.UpdatedAt.After(found.ReadAt)
		return nil
	})
	return s, err
}

// note stores how a reading went, tells the owner of a new fault, and enqueues the next.
func (c *Catalog) note(ctx context.Context, tx *storage.Tx, now *storage.CatalogSource, s *toRead, got answer, fault *readFault) error {
	now.Waiting, now.Falls = false, false
	wait := netx.Spread(readEvery, 0.1)
	switch {
	case s.rests:
	case fault != nil:
		now.Failures++
		now.AskedAt, now.Fault, now.Faults, now.Fell = tx.Now, fault.text, fault.faults, fault.kind == "falls"
		if fault.passes {
			wait = netx.Jitter(netx.Backoff(readAgain, readEvery, now.Failures))
		}
		if now.Told != fault.kind && (!fault.passes || now.Failures >= tellAfter) {
			now.Told = fault.kind
			if err := tx.Notify(ctx, protocol.Notice{Handle: now.Handle, Event: protocol.CatalogTrouble, Subject: now.Handle,
				Title: "Catalog at " + hostOf(now.URL) + ": " + fault.text}); err != nil {
				return err
			}
		}
	default:
		now.AskedAt, now.ReadAt, now.Fault, now.Faults, now.Fell, now.Told, now.Failures = tx.Now, tx.Now, "", nil, false, "", 0
		if d := got.did; d != nil {
			now.Tag, now.Modified, now.Kept = got.tag, got.modified, d.Kept
			if d.Added+d.Changed+d.Removed > 0 {
				now.ChangedAt, now.Added, now.Changed, now.Removed = tx.Now, d.Added, d.Changed, d.Removed
			}
		}
	}
	if s.ended != "" {
		now.NextAt = time.Time{}
		return tx.CatalogSources().Put(ctx, now)
	}
	now.NextAt = tx.Now.Add(wait)
	return errors.Join(tx.CatalogSources().Put(ctx, now), tx.Enqueue(ctx, readJob(now, now.NextAt)))
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Hostname()
	}
	return address
}

// An answer is what an address had; did is nil where it is as it was.
type answer struct {
	tag, modified string
	did           *storage.ItemChanges
}

// readAt reads a catalog and imports it.
func (c *Catalog) readAt(ctx context.Context, s *toRead) (got answer, fault *readFault) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return got, asFault(err)
	}
	req.Header.Set("Accept", protocol.ImportItems.UploadMedia+", */*;q=0.1")
	for name, value := range map[string]string{"If-None-Match": s.Tag, "If-Modified-Since": s.Modified} {
		if value != "" && !s.whole {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.Client.Do(req)
	if err != nil {
		return got, asFault(err)
	}
	defer resp.Body.Close()
	switch conditional := !s.whole && s.Tag+s.Modified != ""; {
	case resp.StatusCode == http.StatusNotModified && conditional:
		return got, nil
	case resp.StatusCode != http.StatusOK:
		return got, &readFault{kind: "status", text: fmt.Sprintf("the address answers with status %d instead of the file", resp.StatusCode),
			passes: resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout}
	case !isCatalog(resp.Header.Get("Content-Type")):
		return got, &readFault{kind: "type", text: "the address answers with a web page or another kind of file, not with a catalog; " +
			"check that it needs no sign-in and leads to the file itself"}
	}
	got.tag, got.modified = validator(resp.Header.Get("ETag")), validator(resp.Header.Get("Last-Modified"))
	f, leave, err := c.uploads.Receive(ctx, "catalog of "+s.Handle, resp.Body)
	if err != nil {
		return got, asFault(err)
	}
	defer leave()
	defer f.Close()
	feed := &storage.ItemFeed{Keep: !s.Overwrite, First: s.ReadAt.IsZero(), Falls: s.Falls}
	out, did, err := c.read(ctx, protocol.Caller{Handle: s.Handle}, s.Handle, protocol.ItemsImport{Mode: s.Mode}, f, feed)
	if err == nil {
		got.did = did
		return got, nil
	}
	if fault = asFault(err); out.FaultCount > 0 {
		fault = &readFault{kind: "faults", text: fmt.Sprintf("the file has %d faults; nothing was changed", out.FaultCount),
			faults: out.Faults[:min(len(out.Faults), shownFaults)]}
	}
	return got, fault
}

// validator is a header that is sent back, "" for one that is none.
func validator(text string) string {
	if len(text) > maxTag || protocol.TextFault("", text) != nil {
		return ""
	}
	return text
}

// isCatalog reports whether an answer of a media type may be a catalog. Servers call files of text what they like, but not pages.
func isCatalog(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	switch media {
	case "", "text/plain", "application/octet-stream", "binary/octet-stream", "application/csv", "application/vnd.ms-excel":
		return true
	}
	for known := range strings.SplitSeq(protocol.ImportItems.UploadMedia, ",") {
		if media == strings.TrimSpace(known) {
			return true
		}
	}
	return false
}

// asFault says in words for the owner why a catalog was not read.
func asFault(err error) *readFault {
	refused, isRefused := errors.AsType[*outbound.Refused](err)
	timeout, isNet := errors.AsType[net.Error](err)
	said, isSaid := errors.AsType[*protocol.Error](err)
	switch {
	case errors.Is(err, storage.ErrFalls):
		return &readFault{kind: "falls", text: "the file has fewer than half of the items on sale; nothing was changed. If that is right, have it taken as it is"}
	case isRefused && refused.Form:
		return &readFault{kind: "refused", text: "the address, or one that it leads to, is not https at port 443"}
	case isRefused:
		return &readFault{kind: "refused", text: "the address, or one that it leads to, is not public"}
	case errors.Is(err, outbound.ErrBodyTooLarge):
		return &readFault{kind: "large", text: fmt.Sprintf("the file has more than %d MB", protocol.MaxItemsUpload>>20)}
	case isSaid:
		return &readFault{kind: "file", text: said.Detail, passes: said.RetryAfter > 0 || said.Code.Temporary()}
	case errors.Is(err, context.DeadlineExceeded), isNet && timeout.Timeout():
		return &readFault{kind: "slow", text: "the file did not arrive, or could not be taken, within a minute", passes: true}
	case errors.Is(err, io.ErrUnexpectedEOF), isNet:
		return &readFault{kind: "unreachable", text: "the address cannot be reached", passes: true}
	}
	return &readFault{kind: "unreachable", text: "the file cannot be read at the address", passes: true}
}
