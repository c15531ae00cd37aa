package federation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/integrity"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// Limits of one page of the log.
const (
	maxLogPage  = 200       // entries; a page ends at a multiple of it
	maxLogBytes = 900 << 10 // of entries; a reader takes 1 MiB
)

// createOf is the Create of a post of this node, with the node's proof in the name
// of its author. It depends only on the row, so its bytes change only when the post
// is changed; then the log has an Update instead.
func (f *Federation) createOf(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) ([]byte, error) {
	o, err := f.newCreate(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	return f.prove(o, f.site.Author(p), p.CreatedAt)
}

func (f *Federation) newCreate(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (activity.Object, error) {
	parent, digest, err := f.noteParts(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	return f.site.Create(p, parent, digest), nil
}

// updateOf is the Update of a post of this node that its author changed, with the node's proof in the name of its author.
func (f *Federation) updateOf(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) ([]byte, error) {
	parent, digest, err := f.noteParts(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	return f.prove(f.site.Update(p, parent, digest), f.site.Author(p), p.WrittenAt())
}

// noteParts returns what a post's Note has from elsewhere: the parent, and the digest of the author's statement.
func (f *Federation) noteParts(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (parent *protocol.StoredPost, digest string, err error) {
	if parent, err = f.parentOf(ctx, tx, p); err == nil {
		digest, err = digestOf(p)
	}
	return parent, digest, err
}

func digestOf(p *protocol.StoredPost) (string, error) {
	if p.Statement == nil {
		return "", nil
	}
	return integrity.Digest(p.Statement)
}

// innerOf is the activity that an entry of the log announces. It is nil without an
// error if the entry's post is no longer public.
func (f *Federation) innerOf(ctx context.Context, tx *storage.Tx, e storage.LogEntry) ([]byte, error) {
	if protocol.IsID(protocol.BidID, e.ObjectID) {
		return f.bidEntry(ctx, tx, e)
	}
	if strings.HasPrefix(e.ObjectID, storage.LogAgent) {
		return f.agentEntry(e)
	}
	if isNews(e.ObjectID) {
		return f.newsEntry(ctx, tx, e)
	}
	p, err := tx.Posts().ByID(ctx, e.ObjectID)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch e.Kind {
	case storage.LogCreate, storage.LogUpdate:
		switch {
		case e.Redacted || p.State != protocol.Visible:
			return nil, nil
		case e.Activity != nil:
			return e.Activity, nil // as received: its proof holds
		case e.Kind == storage.LogUpdate:
			return f.updateOf(ctx, tx, p)
		}
		return f.createOf(ctx, tx, p)
	case storage.LogDelete:
		if e.Activity != nil {
			return e.Activity, nil
		}
		author := f.site.Author(p)
		return f.prove(f.site.Delete(p, e.At), author, e.At)
	case storage.LogHide:
		return f.prove(f.site.Moderate("Remove", p.URI, e.Seq, e.At), f.site.Board(), e.At)
	case storage.LogRestore:
		return f.prove(f.site.Moderate("Add", p.URI, e.Seq, e.At), f.site.Board(), e.At)
	}
	return nil, fmt.Errorf("log entry %d: unknown kind %q", e.Seq, e.Kind)
}

// entry is one entry of our log as other nodes read it: numbered, with the board's
// proof, containing the announced activity. public is false for an entry that only
// keeps its number.
func (f *Federation) entry(ctx context.Context, tx *storage.Tx, epoch string, e storage.LogEntry) (raw []byte, public bool, err error) {
	inner, err := f.innerOf(ctx, tx, e)
	if err != nil {
		return nil, false, err
	}
	if inner == nil {
		hash, err := f.erasedHash(ctx, tx, epoch, e)
		if err != nil {
			return nil, false, err
		}
		raw, err := f.site.Erased(e.Seq, hash).Bytes()
		return raw, false, err
	}
	name := epoch + "/" + strconv.FormatInt(e.Seq, 10)
	if known, ok := f.entries.Get(name, f.now()); ok {
		return known, true, nil
	}
	raw, err = f.prove(f.site.Entry(epoch, e.Seq, e.At, inner), f.site.Board(), e.At)
	if err == nil {
		f.entries.Put(name, raw, len(raw), f.now().Add(time.Hour))
	}
	return raw, true, err
}

// serveLog serves a page of the board's log, ascending (GET …?after=N&limit=M). The
// ETag is epoch and head, so that a repeated request costs little; If-Match with
// another epoch gives 412. A signed reader is evidently up, so deliveries that wait
// for it are retried now.
func (f *Federation) serveLog(w http.ResponseWriter, r *http.Request) {
	after, limit, err := logQuery(r)
	if err != nil {
		f.problem(w, refuse(http.StatusBadRequest, err.Error(), err))
		return
	}
	mayMake := f.reader(r) // peers do not wait for a turn
	var page []byte
	var status int
	read := func(ctx context.Context, tx *storage.Tx) error {
		epoch, head, err := tx.Logs().Head(ctx, f.site.Board())
		if err != nil {
			return err
		}
		etag := logTag(epoch, head)
		w.Header().Set("ETag", etag)
		if status = precondition(r, etag, epoch); status != 0 {
			return nil
		}
		page, err = f.logPage(ctx, tx, epoch, head, after, limit, mayMake)
		return err
	}
	err = f.c.DB.Read(r.Context(), read)
	if errors.Is(err, storage.ErrNotFound) { // the first request creates the log of a new board
		err = f.c.DB.Write(r.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, _, err := tx.Logs().Head(ctx, f.site.Board())
			return err
		})
		if err == nil {
			err = f.c.DB.Read(r.Context(), read)
		}
	}
	if errors.Is(err, errUnmade) { // nobody waits inside a transaction
		var done func()
		if done, err = f.makeBlocks(r.Context()); err == nil {
			defer done()
			mayMake = true
			err = f.c.DB.Read(r.Context(), read)
		}
	}
	if err != nil {
		f.problem(w, err)
		return
	}
	head := w.Header()
	head.Set("Cache-Control", "public, no-cache")
	head.Set("Access-Control-Allow-Origin", "*")
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	head.Set("Content-Type", activity.MediaType)
	_, _ = w.Write(page)
}

func logQuery(r *http.Request) (after int64, limit int, err error) {
	limit = maxLogPage
	q := r.URL.Query()
	if s := q.Get("after"); s != "" {
		if after, err = strconv.ParseInt(s, 10, 64); err != nil || after < 0 {
			return 0, 0, errors.New("after must be a sequence number, 0 or more")
		}
	}
	if s := q.Get("limit"); s != "" {
		if limit, err = strconv.Atoi(s); err != nil || limit < 1 {
			return 0, 0, errors.New("limit must be 1 to 200")
		}
		limit = min(limit, maxLogPage)
	}
	return after, limit, nil
}

func logTag(epoch string, head int64) string {
	return `"` + epoch + "-" + strconv.FormatInt(head, 10) + `"`
}

// precondition evaluates If-Match and If-None-Match; 0 means that the request
// continues.
func precondition(r *http.Request, etag, epoch string) int {
	if want := r.Header.Get("If-Match"); want != "" && want != "*" && !strings.HasPrefix(want, `"`+epoch+"-") {
		return http.StatusPreconditionFailed
	}
	for tag := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		// The tag of a compressed answer ends in -gzip (compressedTag of the router).
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag = strings.TrimSuffix(strings.Trim(tag, `"`), "-gzip"); tag != "" && tag == strings.Trim(etag, `"`) {
			return http.StatusNotModified
		}
	}
	return 0
}

// reader records that a node with a known key reads the log, and reports whether it
// is a peer. It fetches nothing.
func (f *Federation) reader(r *http.Request) (peer bool) {
	actor, ok := f.knownSigner(r)
	if !ok {
		return false
	}
	host := hostOf(actor)
	peer, err := f.withinRate(r, host, 0)
	if err != nil { // the page is served, and counts for the client network
		return false
	}
	err = f.c.DB.Write(r.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return errors.Join(tx.Outlets().WakeHost(ctx, host), tx.Logs().AskWitness(ctx, f.site.Board(), actor, host))
	})
	if err != nil {
		f.observe("wake", host, err)
	}
	return peer
}

// knownSigner returns the actor that signed a read, if its key is stored here and
// verifies.
func (f *Federation) knownSigner(r *http.Request) (string, bool) {
	if !httpsig.Signed(r.Header) {
		return "", false
	}
	msg, err := httpsig.FromRequest(r, f.target)
	if err != nil {
		return "", false
	}
	keys := &storedKeys{f: f}
	v := httpsig.Verifier{Keys: keys, Now: f.now, AllowLoopback: f.c.AllowPrivate}
	if _, err := v.Verify(r.Context(), &msg, nil, httpsig.FederationPolicy()); err != nil {
		return "", false
	}
	return keys.owner, keys.owner != ""
}

// A storedKeys resolver finds keys in the database and fetches none.
type storedKeys struct {
	f     *Federation
	owner string
}

func (k *storedKeys) Resolve(ctx context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	found, err := k.f.knownKey(ctx, strings.Clone(q.Params.KeyID))
	if err != nil || found == nil {
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	pub, err := httpKey(found)
	if err != nil {
		return httpsig.Resolved{}, err
	}
	k.owner = found.Owner
	return httpsig.Resolved{Key: pub}, nil
}
