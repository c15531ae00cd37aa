package contact

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/storage"
)

// A Sealer encrypts the secrets of callers at rest.
type Sealer interface {
	Seal(purpose string, secret []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// pushSecrets are what is sealed of an address that is told of an exchange.
type pushSecrets struct {
	Token       string `json:"token,omitempty"`
	Credentials string `json:"credentials,omitempty"`
}

// SetPush adds an address to an exchange of the caller, which is told of what changes from now on.
func (r *Contact) SetPush(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewExchangePush) (protocol.ExchangePush, error) {
	t, e, err := r.ownExchange(ctx, tx, c, in.ExchangeInput)
	if err != nil {
		return protocol.ExchangePush{}, err
	}
	return r.setPush(ctx, tx, t, e, in.Push, "/push")
}

func (r *Contact) setPush(
	ctx context.Context, tx *storage.Tx, t *storage.StoredThread, e protocol.Exchange, in protocol.ExchangePush, at string,
) (protocol.ExchangePush, error) {
	if why := protocol.CallbackFault(in.URL, r.Private); why != "" {
		return in, protocol.Invalid(protocol.Fault{Pointer: at + "/url", Code: "callback-address", Detail: why})
	}
	if in.ID == "" {
		if in.ID = rand.Text(); in.Legacy { // whose clients have one for a task, and ask for it by the task
			in.ID = e.ID
		}
	}
	id, _ := protocol.ParseExchangeID(e.ID)
	p := &storage.StoredPush{PushKey: storage.PushKey{ThreadID: t.ID, First: id.First, ID: in.ID}, Lane: webhook.Lane(in.URL), NextAt: tx.Now}
	all, err := tx.Pushes().List(ctx, t.ID, id.First)
	if err != nil {
		return in, err
	}
	if len(all) >= protocol.MaxExchangePushes && !slices.ContainsFunc(all, func(o storage.StoredPush) bool { return o.ID == in.ID }) {
		return in, reached(protocol.LimitReached{Reason: "TOO_MANY_PUSH_CONFIGS", Of: "pushConfigs", Most: protocol.MaxExchangePushes},
			"%d addresses are told of this task; delete one", len(all))
	}
	p.PushDoc = storage.PushDoc{URL: in.URL, Legacy: in.Legacy, Scheme: in.Scheme, Told: toldOf(a2a.FromExchange(e, new(0)))}
	if in.Token != "" || in.Credentials != "" {
		raw, err := json.Marshal(pushSecrets{in.Token, in.Credentials})
		if err != nil {
			return in, err
		}
		p.Sealed = r.Seal.Seal(storage.PurposePush(p.PushKey), raw)
	}
	if e.State.Final() {
		p.EndsAt = tx.Now.Add(protocol.CallbackFor)
	}
	in.Credentials = ""
	return in, tx.Pushes().Put(ctx, p)
}

func toldOf(t a2a.Task) storage.PushTold {
	return storage.PushTold{State: string(t.Status.State), Timestamp: t.Status.Timestamp, Artifacts: len(t.Artifacts)}
}

// secrets returns what was sealed of an address.
func (r *Contact) secrets(p *storage.StoredPush) (s pushSecrets, err error) {
	if len(p.Sealed) == 0 {
		return s, nil
	}
	raw, err := r.Seal.Open(storage.PurposePush(p.PushKey), p.Sealed)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	return s, err
}

// ListPushes returns the addresses of an exchange of the caller.
func (r *Contact) ListPushes(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ExchangeInput) (protocol.ExchangePushes, error) {
	out := protocol.ExchangePushes{Items: []protocol.ExchangePush{}}
	t, _, err := r.ownExchange(ctx, tx, c, in)
	if err != nil {
		return out, err
	}
	id, _ := protocol.ParseExchangeID(in.ID)
	all, err := tx.Pushes().List(ctx, t.ID, id.First)
	for i := range all {
		secrets, wrong := r.secrets(&all[i])
		if wrong != nil {
			return out, wrong
		}
		p := &all[i]
		out.Items = append(out.Items, protocol.ExchangePush{ID: p.ID, URL: p.URL, Token: secrets.Token, Scheme: p.Scheme, Legacy: p.Legacy})
	}
	return out, err
}

// DeletePush deletes an address of an exchange of the caller, if it is there.
func (r *Contact) DeletePush(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ExchangePushRef) (protocol.None, error) {
	t, _, err := r.ownExchange(ctx, tx, c, in.ExchangeInput)
	if err != nil {
		return protocol.None{}, err
	}
	id, _ := protocol.ParseExchangeID(in.ID)
	return protocol.None{}, tx.Pushes().Delete(ctx, storage.PushKey{ThreadID: t.ID, First: id.First, ID: in.PushID})
}

// A notification is what an address is to be told next.
type notification struct {
	id   string
	body any
	told storage.PushTold // after it
}

// next returns what an address is to be told of its exchange; ErrNotFound when there is nothing to tell.
func next(ctx context.Context, tx *storage.Tx, p *storage.StoredPush) (notification, error) {
	t, err := tx.Threads().ByID(ctx, p.ThreadID)
	if err != nil {
		return notification{}, err
	}
	e, err := exchange(ctx, tx, t, p.First)
	if err != nil {
		return notification{}, err
	}
	told := a2a.Task{Artifacts: make([]a2a.Artifact, p.Told.Artifacts), Status: a2a.Status{State: a2a.State(p.Told.State), Timestamp: p.Told.Timestamp}}
	task := a2a.FromExchange(e, nil)
	if n := len(e.Messages); told.Status.State == task.Status.State && n > 0 && e.Messages[n-1].From == protocol.WriterSide {
		told.Status.Timestamp = task.Status.Timestamp // its own message is no news to the caller, who could else make the node send at will
	}
	body, id, now, changed := a2a.Notification(task, told, p.Legacy)
	if !changed {
		return notification{}, storage.ErrNotFound
	}
	return notification{id, body, toldOf(now)}, nil
}

// Tell makes one attempt to tell an address of the first thing that has changed of its exchange.
func (r *Contact) Tell(ctx context.Context, _ storage.Job, k storage.PushKey) (func(context.Context, *storage.Tx) error, error) {
	var p *storage.StoredPush
	var n notification
	err := r.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if p, err = tx.Pushes().ByID(ctx, k); err != nil {
			return err
		}
		if p.Tries > 0 && p.NextAt.After(tx.Now) { // an attempt failed since; its job comes later
			return storage.ErrNotFound
		}
		n, err = next(ctx, tx, p)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) || protocol.CodeOf(err) == protocol.NotFound && err != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tell of %s: %w", k.ThreadID, err)
	}
	body, err := json.Marshal(n.body)
	if err != nil {
		return nil, err
	}
	fields, err := r.fields(p)
	if err != nil {
		return nil, err
	}
	sent := r.Webhook.SendWith(ctx, p.URL, n.id, body, fields)
	return func(ctx context.Context, tx *storage.Tx) error { return settlePush(ctx, tx, k, p.URL, n, sent) }, nil
}

// fields are the header fields of what an address is sent. A2A 1.0 names none for the token: these are the ones that its clients read.
func (r *Contact) fields(p *storage.StoredPush) (http.Header, error) {
	h := http.Header{"Content-Type": {a2a.MediaType}, "A2a-Version": {a2a.Version}}
	if p.Legacy {
		h = http.Header{"A2a-Version": {a2a.Legacy}}
	}
	s, err := r.secrets(p)
	if s.Token != "" {
		h["A2a-Notification-Token"], h["X-A2a-Notification-Token"] = []string{s.Token}, []string{s.Token}
	}
	if p.Scheme != "" && s.Credentials != "" {
		h["Authorization"] = []string{p.Scheme + " " + s.Credentials}
	}
	return h, err
}

// settlePush stores the outcome of an attempt and enqueues the next. An address that cannot be told for 24 hours, that answers 410, or
// that is not public is deleted.
func settlePush(ctx context.Context, tx *storage.Tx, k storage.PushKey, url string, n notification, sent error) error {
	if _, err := tx.Threads().ByID(ctx, k.ThreadID); err != nil { // locked first, as who changes the thread does
		return storage.IfMissing(err, nil)
	}
	p, err := tx.Pushes().ByID(ctx, k)
	if err != nil || p.URL != url { // deleted or replaced meanwhile
		return storage.IfMissing(err, nil)
	}
	if sent == nil {
		p.Tries, p.NextAt, p.Until, p.Told = 0, tx.Now, time.Time{}, n.told
		switch _, more := next(ctx, tx, p); {
		case more == nil:
			err = tx.Pushes().Enqueue(ctx, p, tx.Now)
		case !errors.Is(more, storage.ErrNotFound):
			err = more
		}
		if err != nil {
			return err
		}
		return tx.Pushes().Put(ctx, p)
	}
	if p.Until.IsZero() {
		p.Until = tx.Now.Add(protocol.CallbackFor)
	}
	p.Tries++
	_, at := webhook.After(sent, p.Tries, tx.Now, p.Until)
	if at.IsZero() {
		return tx.Pushes().Delete(ctx, k)
	}
	p.NextAt = at
	if err := tx.Pushes().Put(ctx, p); err != nil {
		return err
	}
	return tx.Pushes().Enqueue(ctx, p, at)
}
