package federation

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"stoa/identity/tree"
	"stoa/protocol/activity"
	"stoa/storage"
)

// A node is a witness (C2SP tlog-witness) of the boards that it follows, and of no others: what it cosigns of a board it accepts of its log
// too, so that all that this node has seen of the board is one tree. It shows what it accepted to anyone, and compares what it reads with what
// another node shows; so nodes that are told different stories find that out from each other.

// witnessName is the name of a node's cosignatures, and without scheme the address below which it takes checkpoints.
func witnessName(base string) string {
	_, rest, _ := strings.Cut(base, "://")
	return rest + witnessPath
}

const (
	witnessPath    = "/ap/witness"
	maxProof       = 63 // hashes
	sizeType       = "text/x.tlog.size"
	witnessTimeout = 5 * time.Second
)

// An offer is what add-checkpoint takes: a checkpoint, and the proof that it begins with the tree of a size.
type offer struct {
	old   int64
	proof tlog.TreeProof
	raw   []byte
}

// bytes is the body of a request (C2SP tlog-witness "add-checkpoint").
func (o offer) bytes() []byte {
	b := []byte("old " + strconv.FormatInt(o.old, 10) + "\n")
	for _, h := range o.proof {
		b = append(b, h.String()+"\n"...)
	}
	return append(append(b, '\n'), o.raw...)
}

func parseOffer(body string) (o offer, ok bool) {
	head, raw, ok := strings.Cut(body, "\n\n")
	lines := strings.Split(head, "\n")
	size, named := strings.CutPrefix(lines[0], "old ")
	if !ok || !named || len(lines)-1 > maxProof {
		return o, false
	}
	var err error
	if o.old, err = strconv.ParseInt(size, 10, 64); err != nil || o.old < 0 || strconv.FormatInt(o.old, 10) != size {
		return o, false
	}
	for _, line := range lines[1:] {
		h, err := tlog.ParseHash(line)
		if err != nil {
			return o, false
		}
		o.proof = append(o.proof, h)
	}
	o.raw = []byte(raw)
	return o, true
}

// witnessed returns the followed board whose tree in its epoch has an origin; nil when there is none.
func (f *Federation) witnessed(ctx context.Context, origin string) (*followed, error) {
	board, epoch, ok := strings.Cut(origin, "/tree/")
	if !ok || len(origin) > activity.MaxID {
		return nil, nil
	}
	schemes := []string{"https://"}
	if f.c.AllowPrivate {
		schemes = append(schemes, "http://")
	}
	for _, scheme := range schemes {
		s, err := f.following(ctx, scheme+board)
		if err != nil || s != nil && s.Epoch == epoch {
			return s, err
		}
	}
	return nil, nil
}

// addCheckpoint cosigns a checkpoint of a followed board that contains the one that was accepted last.
func (f *Federation) addCheckpoint(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, tree.MaxCheckpoint))
	o, ok := parseOffer(string(body))
	if err != nil || !ok {
		f.problem(w, refuse(http.StatusBadRequest, "not a request to add a checkpoint, of at most 64 KiB", err))
		return
	}
	s, err := f.witnessed(r.Context(), tree.OriginOf(o.raw))
	if err == nil && s == nil {
		err = refuse(http.StatusNotFound, "this node is a witness of the boards that it follows", nil)
	}
	if err != nil {
		f.problem(w, err)
		return
	}
	line, size, err := f.witness(r.Context(), s, o)
	if err != nil {
		f.problem(w, err)
		return
	}
	if line == nil {
		w.Header().Set("Content-Type", sizeType)
		w.WriteHeader(http.StatusConflict)
		line = []byte(strconv.FormatInt(size, 10) + "\n")
	} else {
		w.Header().Set("Content-Type", textPlain)
	}
	_, _ = w.Write(line)
}

// witness checks what is offered of a followed board, and accepts and cosigns it. Without a line and an error, the last checkpoint that was
// accepted has another size than the offer begins with.
func (f *Federation) witness(ctx context.Context, s *followed, o offer) (line []byte, size int64, err error) {
	c, err := f.openCheckpoint(ctx, s.Board, s.Epoch, o.raw)
	switch {
	case errors.Is(err, tree.ErrTree):
		return nil, 0, refuse(http.StatusForbidden, "the checkpoint is not signed by the board", err)
	case err != nil:
		return nil, 0, refuse(http.StatusServiceUnavailable, "the key of the board is not to be had; try again later", err)
	case s.conflict:
		return nil, 0, refuse(http.StatusForbidden, "the log of this board contradicts what was taken of it", nil)
	case o.old > c.Size:
		return nil, 0, refuse(http.StatusBadRequest, "the old size is larger than the checkpoint's", nil)
	}
	var last tree.Checkpoint
	if s.tree != nil {
		if last, err = tree.Parse(s.tree.Checkpoint); err != nil {
			return nil, 0, err
		}
	}
	if s.tree != nil && last.Size == c.Size && last.Root != c.Root {
		if err := f.noteOffered(ctx, s, last, c, o.raw); err != nil {
			return nil, 0, err
		}
		return nil, 0, refuse(http.StatusConflict, "the tree of this size has another root", nil)
	}
	if o.old != last.Size {
		return nil, last.Size, nil
	}
	if o.old == 0 && len(o.proof) > 0 || o.old > 0 && o.old < c.Size && tlog.CheckTree(o.proof, c.Size, c.Root, o.old, last.Root) != nil {
		return nil, 0, refuse(http.StatusUnprocessableEntity, "the proof does not show that the tree contains the last one", nil)
	}
	if line, err = tree.Cosign(c, witnessName(f.site.Base), f.c.Keys.Ed25519.Signer(), f.now()); err != nil || last.Size == c.Size && s.tree != nil {
		return line, 0, err
	}
	from := s.LastSeq
	if len(s.taken) > 0 { // these are compared when the log is read next
		from = s.taken[0].Seq - 1
	}
	err = f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		accepted, err := tx.Subscriptions().AcceptTree(ctx, storage.FollowedTree{
			Board: s.Board, Epoch: s.Epoch, Size: c.Size, Proved: from, Checkpoint: o.raw,
		}, last.Size)
		if err == nil && !accepted {
			err = refuse(http.StatusServiceUnavailable, "another checkpoint was accepted meanwhile; try again", nil)
		}
		return err
	})
	return line, 0, err
}

// noteOffered notes that a board signed two trees of one size.
func (f *Federation) noteOffered(ctx context.Context, s *followed, last, c tree.Checkpoint, raw []byte) error {
	found, err := f.noteConflict(s, treeConflict(s, last, s.tree.Checkpoint, c, raw))
	if err != nil {
		return err
	}
	return f.c.DB.Write(ctx, found)
}

// postOffer sends an offer to the witness of a node. It returns the status and up to 4 KiB of the answer.
func (f *Federation) postOffer(ctx context.Context, base string, o offer) (status int, body []byte, err error) {
	u, err := f.parseID(base + witnessPath + "/add-checkpoint")
	if err != nil {
		return 0, nil, err
	}
	if err := f.admits(ctx, u.Host); err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	release, err := f.hosts.take(ctx, u.Host)
	if err != nil {
		return 0, nil, err
	}
	defer release()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(string(o.bytes())))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", textPlain)
	r.Header.Set("User-Agent", f.userAgent())
	res, err := f.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer closeBody(res)
	body, err = io.ReadAll(io.LimitReader(res.Body, 4<<10))
	return res.StatusCode, body, err
}

// serveWitnessed serves the last checkpoint of a followed board that this node accepted, by its origin (GET …?origin=O): who follows the board too
// compares it with its own.
func (f *Federation) serveWitnessed(w http.ResponseWriter, r *http.Request) {
	s, err := f.witnessed(r.Context(), r.URL.Query().Get("origin"))
	if err == nil && (s == nil || s.tree == nil) {
		err = refuse(http.StatusNotFound, "this node is a witness of the boards that it follows", nil)
	}
	if err != nil {
		f.problem(w, err)
		return
	}
	w.Header().Set("Content-Type", textPlain)
	w.Header().Set("Cache-Control", "public, no-cache")
	_, _ = w.Write(s.tree.Checkpoint)
}

// compareElsewhere compares the tree of a followed log, as it was read, with what another node accepted of it, a random one that this node follows: a
// board that tells the two different stories signed both. What this node asks for itself the board cannot replace.
func (f *Federation) compareElsewhere(ctx context.Context, board string, t *followedTree) error {
	var other *storage.Subscription
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		other, err = tx.Subscriptions().Another(ctx, board)
		return absent(err)
	})
	if err != nil || other == nil {
		return err
	}
	t.ctx = ctx
	err = f.compareAt(ctx, board, t, strings.TrimSuffix(other.Board, "/ap/board")+witnessPath)
	if _, found := errors.AsType[*conflictError](err); found {
		return err
	}
	if errors.Is(err, errNotFound) { // it does not follow the board
		err = nil
	}
	f.observe("witness", other.Host, err)
	return nil
}

func (f *Federation) compareAt(ctx context.Context, board string, t *followedTree, witness string) error {
	raw, err := f.fetchAs(ctx, witness+"/checkpoint?origin="+url.QueryEscape(t.Origin), "", treeTypes)
	if err != nil {
		return err
	}
	s, err := f.following(ctx, board)
	if err != nil || s == nil || tree.Origin(board, s.Epoch) != t.Origin {
		return err
	}
	theirs, err := f.openCheckpoint(ctx, board, s.Epoch, raw)
	if err == nil && theirs.Size > t.Size { // it has read the log since
		t, err = f.readTree(ctx, s, t.prefix, s.LastSeq)
	}
	if err != nil || theirs.Size > t.Size {
		return err
	}
	same, err := t.contains(theirs)
	if err == nil && !same {
		err = treeConflict(s, t.Checkpoint, t.raw, theirs, raw)
	}
	return err
}
