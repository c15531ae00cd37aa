package hall

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

// A program that cannot solve a proof of work gives its person a link: the write waits as a draft, sealed, until somebody confirms it on a page of
// this node, whose proof, session and limits then count. The program asks with the same arguments and the draft's id what became of it.

// Bounds of drafts.
const (
	DraftLifetime = 15 * time.Minute // from the write; after the press, again as long for the program to read the result
	maxDraft      = 64 << 10         // bytes of arguments
	draftsOf      = 100              // of one network, which may be that of many people's programs
	maxDrafts     = 5000             // of the node; over it no link is offered
	countedFor    = 5 * time.Second  // how long their number is remembered
)

// ConfirmPath is the page of a draft's link, before its secret.
const ConfirmPath = "/confirm/"

// A Draft is a write that waits, or waited, for a person.
type Draft struct {
	Op   *protocol.Operation
	Args map[string]any

	link [32]byte
	url  string
	row  storage.Draft
}

// Waits reports whether nobody has decided it, Refused whether somebody refused.
func (d Draft) Waits() bool   { return d.row.State == storage.DraftWaits }
func (d Draft) Refused() bool { return d.row.State == storage.DraftRefused }

// Ends is when it is forgotten, URL the address of the person's page.
func (d Draft) Ends() time.Time { return d.row.EndsAt }
func (d Draft) URL() string     { return d.url }

// body is what is sealed of a draft.
type body struct {
	Args map[string]any `json:"args"`
	Link string         `json:"link"`
}

// fullness remembers for some seconds whether the node has as many drafts as it keeps.
type fullness struct {
	mu   sync.Mutex
	at   time.Time
	full bool
}

func (f *fullness) is(ctx context.Context, db *storage.DB, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.at) > countedFor {
		err := db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			n, err := tx.Drafts().Count(ctx, maxDrafts)
			f.full = n >= maxDrafts
			return err
		})
		f.full, f.at = f.full || err != nil, now
	}
	return f.full
}

// offer adds a link for a person to the refusal of a write that lacks nothing but a proof of work.
func (t *Table) offer(ctx context.Context, refused error, e *entry, req Request, value map[string]any) {
	asks, ok := errors.AsType[*protocol.Error](refused)
	ev := req.Evidence
	if ok && asks.Code == protocol.PowRequired && asks.Challenge != nil && req.Door != "page" && len(ev.Proof) == 0 && !identity.SignedRequest(ev.Request) {
		asks.Confirm = t.keep(ctx, e, ev.Network, value)
	}
}

// Offer is for a door that admits callers itself: a link by which a person confirms a write whose sender it does not serve; nil where that would not
// help.
func (t *Table) Offer(ctx context.Context, name string, args []byte, ev identity.Evidence) *protocol.Confirm {
	e := t.entries[name]
	if identity.SignedRequest(ev.Request) || len(ev.Proof) > 0 {
		return nil
	}
	args, value, err := open(args, &ev, e.op)
	if err != nil || t.pointless(ctx, e, &input{args: args}, value, Request{}) != nil {
		return nil
	}
	return t.keep(ctx, e, ev.Network, value)
}

// keep stores a draft; nil for an operation that no link confirms, and where no more are kept.
func (t *Table) keep(ctx context.Context, e *entry, network string, value map[string]any) *protocol.Confirm {
	if !e.op.Confirm || t.Receipts == nil || t.drafts.is(ctx, t.DB, time.Now()) {
		return nil
	}
	secret, hash := session.New(session.Ticket)
	link, linkHash := session.New(session.Ticket)
	raw, err := json.Marshal(body{value, link})
	if err != nil || len(raw) > maxDraft {
		return nil
	}
	d := storage.Draft{Hash: hash, Link: linkHash, Network: network, Op: e.op.Name, Digest: draftDigest(e.op, value), State: storage.DraftWaits,
		Body: t.Receipts.Seal(draftPurpose(hash), raw), Result: []byte{}}
	err = t.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		d.EndsAt = tx.Now.Add(DraftLifetime)
		return tx.Drafts().Insert(ctx, d, draftsOf)
	})
	if err != nil {
		return nil // the refusal stays as it is
	}
	return &protocol.Confirm{URL: t.Base + ConfirmPath + link, ID: secret, State: string(storage.DraftWaits)}
}

// confirms returns the id of a draft among the arguments, which it takes out.
func confirms(op *protocol.Operation, value map[string]any) (id string, sent bool) {
	if !op.Confirm {
		return "", false
	}
	id, sent = value["confirmId"].(string)
	delete(value, "confirmId")
	return id, sent && id != ""
}

func draftPurpose(hash [32]byte) string {
	return "draft:" + base64.RawURLEncoding.EncodeToString(hash[:])
}

func draftDigest(op *protocol.Operation, value map[string]any) [32]byte {
	value = maps.Clone(value)
	delete(value, "messageId")    // which A2A clients make anew
	raw, _ := json.Marshal(value) // cannot fail: it was decoded
	return digestOf(op.Name, raw)
}

// byID returns the draft of a program's id.
func (t *Table) byID(ctx context.Context, id string) (d storage.Draft, err error) {
	hash, ok := session.Hash(session.Ticket, id)
	if !ok {
		return d, storage.ErrNotFound
	}
	err = t.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		d, err = tx.Drafts().ByHash(ctx, hash)
		return err
	})
	return d, err
}

// Waiting returns the draft of a program's id, and the result once it is done; not-found for none, and for one that has ended.
func (t *Table) Waiting(ctx context.Context, id string) (d Draft, result []byte, err error) {
	if d.row, err = t.byID(ctx, id); err != nil {
		return d, nil, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "nothing waits under this id any more"))
	}
	b, err := t.bodyOf(d.row)
	if err != nil {
		return d, nil, err
	}
	d.Op, d.Args, d.link, d.url = protocol.Lookup(d.row.Op), b.Args, d.row.Link, t.Base+ConfirmPath+b.Link
	if d.row.State == storage.DraftDone {
		result, err = t.Receipts.Open(draftPurpose(d.row.Hash), d.row.Result)
	}
	return d, result, err
}

// resume answers the write of a program that sent it before: with what it did, when it was confirmed.
func (t *Table) resume(ctx context.Context, e *entry, req Request, id string, value map[string]any) (Result, error) {
	res := Result{Op: e.op, Caller: protocol.Caller{Network: req.Evidence.Network}}
	refuse := func(code protocol.Code, state, why string) (Result, error) {
		err := protocol.Errorf(code, "%s", why)
		err.Confirm = &protocol.Confirm{ID: id, State: state}
		return res, err
	}
	d, err := t.byID(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return refuse(protocol.Gone, "expired", "nobody confirmed it in time, or confirmId is not one of this node; leave confirmId out to begin again")
	case err != nil:
		return res, err
	case d.Digest != draftDigest(e.op, value):
		return refuse(protocol.Conflict, string(d.State), "confirmId belongs to other arguments; send those again, or leave confirmId out to begin anew")
	case d.State == storage.DraftRefused:
		return refuse(protocol.Forbidden, string(d.State), "the person refused; nothing was done")
	case d.State == storage.DraftDone:
		res.JSON, err = t.Receipts.Open(draftPurpose(d.Hash), d.Result)
		return res, err
	}
	b, err := t.bodyOf(d)
	if err != nil {
		return res, err
	}
	_, err = refuse(protocol.PowRequired, string(d.State), "the person has not confirmed it yet; ask again in a while, with the same arguments and confirmId")
	asks := protocol.AsError(err)
	asks.Confirm.URL, asks.Challenge = t.Base+ConfirmPath+b.Link, t.Gate.Proofs.Issue(e.op.Purpose, req.Evidence.Network)
	return res, asks
}

func (t *Table) bodyOf(d storage.Draft) (b body, err error) {
	raw, err := t.Receipts.Open(draftPurpose(d.Hash), d.Body)
	if err != nil {
		return b, err
	}
	return b, json.Unmarshal(raw, &b)
}

// Draft returns the draft of a person's link; not-found for none, and for one that has ended.
func (t *Table) Draft(ctx context.Context, link string) (d Draft, err error) {
	hash, _ := session.Hash(session.Ticket, link)
	err = t.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		d.row, err = tx.Drafts().ByLink(ctx, hash)
		return err
	})
	if err != nil {
		return d, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is nothing to confirm at this link any more: it is good for 15 minutes"))
	}
	b, err := t.bodyOf(d.row)
	d.Op, d.Args, d.link = protocol.Lookup(d.row.Op), b.Args, hash
	return d, err
}

// Confirm does what a draft waits for, by the evidence of who confirms. What is pressed twice is done once.
func (t *Table) Confirm(ctx context.Context, d *Draft, req Request) (Result, error) {
	args, err := json.Marshal(d.Args)
	if err != nil {
		return Result{}, err
	}
	req.Op, req.Args, req.Door, req.IdempotencyKey = d.Op.Name, args, "page", "confirm-"+base64.RawURLEncoding.EncodeToString(d.link[:24])
	res, err := t.Invoke(ctx, req)
	if err != nil {
		return res, err
	}
	return res, t.decide(ctx, d, storage.DraftDone, t.Receipts.Seal(draftPurpose(d.row.Hash), res.JSON))
}

// Refuse ends a draft.
func (t *Table) Refuse(ctx context.Context, d *Draft) error {
	return t.decide(ctx, d, storage.DraftRefused, nil)
}

func (t *Table) decide(ctx context.Context, d *Draft, state storage.DraftState, result []byte) error {
	err := t.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Drafts().Decide(ctx, d.link, state, result, tx.Now.Add(DraftLifetime))
	})
	if err == nil {
		d.row.State = state
	}
	if state == storage.DraftDone && errors.Is(err, storage.ErrNotFound) { // it was pressed twice
		return nil
	}
	return storage.IfMissing(err, protocol.Errorf(protocol.Conflict, "this was decided already"))
}
