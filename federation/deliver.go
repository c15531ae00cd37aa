package federation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/netx"
	"stoa/protocol/trace"
	"stoa/storage"
)

// maxRetryAfter is the longest Retry-After of a peer that is obeyed.
const maxRetryAfter = 24 * time.Hour

// An outcome is the result of one delivery.
type outcome struct {
	status     int           // 0: no answer
	retryAfter time.Duration // the peer's Retry-After, 0 if it sent none
	err        error         // nil: delivered
}

// done reports whether the peer accepted the activity.
func (o outcome) done() bool { return o.err == nil }

// permanent reports whether the peer will never accept this activity; it may accept
// others.
func (o outcome) permanent() bool {
	switch o.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// gone reports whether the inbox no longer exists.
func (o outcome) gone() bool { return o.status == http.StatusGone }

// sendEntry sends the activity of an entry of the log. The delivery is a trace of its own, linked to the request that made the entry.
func (f *Federation) sendEntry(ctx context.Context, actor, inbox string, e storage.LogEntry, body []byte) outcome {
	start := f.now()
	traced, span := f.c.Traces.Begin(protocol.WithRequestID(ctx, e.Request), "delivery", trace.Producer, trace.Context{}, trace.Stored(e.Trace))
	o := f.send(traced, actor, inbox, body)
	span.Set(trace.Text("stoa.request.id", e.Request))
	span.End()
	if f.log.Enabled(ctx, slog.LevelDebug) {
		f.log.Debug("delivery", "rid", e.Request, "trace", trace.ID(traced), "host", hostOf(inbox), "entry", e.Seq, "dur", f.now().Sub(start), "err", o.err)
	}
	return o
}

// send signs and posts one activity. When the answer is 401, it tries again
// with other signature schemes.
func (f *Federation) send(ctx context.Context, actor, inbox string, body []byte) outcome {
	u, err := f.parseID(inbox)
	if err != nil {
		return outcome{status: http.StatusBadRequest, err: fmt.Errorf("inbox %s: %w", inbox, err)}
	}
	if f.isLocal(inbox) {
		return outcome{status: http.StatusBadRequest, err: errors.New("inbox on this node")}
	}
	release, err := f.hosts.take(ctx, u.Host)
	if err != nil {
		return outcome{err: err}
	}
	defer release()
	leave := f.prepare(ctx, false)
	err = f.admits(ctx, u.Host)
	scheme := f.schemeOf(ctx, u.Host)
	leave()
	if err != nil {
		return outcome{status: http.StatusForbidden, err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	ctx, span := trace.Start(ctx, "send", trace.Producer)
	var o outcome
	for _, s := range f.schemesFrom(scheme) {
		if o = f.post(ctx, actor, inbox, body, s); o.status == http.StatusUnauthorized {
			continue
		}
		if o.done() && s != scheme {
			f.rememberScheme(context.WithoutCancel(ctx), u.Host, s)
		}
		break
	}
	if span != nil {
		span.Set(trace.Text("server.address", u.Hostname()))
		if !o.done() {
			span.Fail()
		}
		span.End()
	}
	f.observe("delivery", u.Host, o.err)
	return o
}

func (f *Federation) post(ctx context.Context, actor, inbox string, body []byte, scheme string) outcome {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, inbox, bytes.NewReader(body))
	if err != nil {
		return outcome{err: err}
	}
	r.Header.Set("Content-Type", activity.MediaType)
	r.Header.Set("Accept", activity.MediaType)
	r.Header.Set("User-Agent", f.userAgent())
	leave := f.prepare(ctx, false)
	err = f.sign(r, body, actor, scheme)
	leave()
	if err != nil {
		return outcome{err: err}
	}
	res, err := f.client.Do(r)
	if err != nil {
		return outcome{err: err}
	}
	defer closeBody(res)
	o := outcome{status: res.StatusCode}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		o.err = fmt.Errorf("%s answered %d", r.URL.Host, res.StatusCode)
		o.retryAfter = netx.RetryAfter(res.Header.Get("Retry-After"), f.now(), maxRetryAfter)
	}
	return o
}

// deliverArgs are the arguments of a deliver job: one activity for one inbox.
type deliverArgs struct {
	Actor string          `json:"actor"`
	Inbox string          `json:"inbox"`
	Body  json.RawMessage `json:"body"`
	Board string          `json:"board,omitempty"` // of a Follow of ours
	retryState
}

// enqueueDelivery queues one activity that is not in the log, such as the answer to
// a Follow.
func (f *Federation) enqueueDelivery(ctx context.Context, tx *storage.Tx, actor, inbox string, o activity.Object) error {
	body, err := o.Bytes()
	if err != nil {
		return err
	}
	return f.enqueueDeliverJob(ctx, tx, deliverArgs{Actor: actor, Inbox: inbox, Body: body})
}

func (f *Federation) enqueueDeliverJob(ctx context.Context, tx *storage.Tx, p deliverArgs) error {
	args, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.DeliverJob, Lane: laneTo(p.Inbox), Args: args})
}

// laneTo is the lane of deliveries to an inbox.
func laneTo(inbox string) string { return "to:" + hostOf(inbox) }

func (f *Federation) deliverJob(ctx context.Context, j storage.Job) (after, error) {
	var p deliverArgs
	if err := j.Decode(&p); err != nil {
		return nil, err
	}
	cause := f.jobResult(f.send(ctx, p.Actor, p.Inbox, p.Body))
	if p.Board != "" {
		if cause != nil {
			f.log.Warn("follow not delivered", "board", p.Board, "tries", p.Try+1, "err", cause)
		}
		if err := f.noteFollow(ctx, p.Board, p.Try+1, cause); err != nil {
			return nil, err
		}
	}
	if cause != nil {
		return f.retry(j, &p.retryState, &p, cause)
	}
	return nil, nil
}

// jobResult converts the outcome of a delivery to the result of its job: final where a
// retry would not help.
func (f *Federation) jobResult(o outcome) error {
	switch {
	case o.done():
		return nil
	case o.permanent(), o.gone(), errors.Is(o.err, errBlocked):
		return protocol.Errorf(protocol.Forbidden, "%w", o.err)
	case o.retryAfter > 0:
		return &protocol.Error{Code: protocol.Overloaded, Detail: o.err.Error(), RetryAfter: o.retryAfter, Err: o.err}
	}
	return o.err
}

// submitArgs are the arguments of a submit job: what happened to a post of this
// node (create, update, delete, hide, restore), and the actor that is told.
type submitArgs struct {
	Post   string          `json:"post"`
	Kind   storage.LogKind `json:"kind"`
	To     string          `json:"to"`              // "" is the post's board
	At     int64           `json:"at"`              // Unix milliseconds; part of the ids of what can happen more than once
	Direct bool            `json:"direct"`          // To is a reader, and may follow our board
	Stamp  string          `json:"stamp,omitempty"` // key of To's permission to quote the post, which is revoked
	retryState
}

// submit delivers a local reply to the board of another node, or tells a reader of
// a post about it. The post is read when sending, so a post that was deleted
// meanwhile is not sent.
func (f *Federation) submit(ctx context.Context, j storage.Job) (after, error) {
	var s submitArgs
	if err := j.Decode(&s); err != nil {
		return nil, err
	}
	var author string
	var body []byte
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p, err := tx.Posts().ByID(ctx, s.Post)
		if err != nil || p == nil || p.Node != nil {
			return absent(err)
		}
		if s.To == "" {
			s.To = p.Board
		}
		if told, err := f.reachedByLog(ctx, tx, &s); err != nil || told {
			return err
		}
		author = f.site.Author(p)
		if blocked, err := tx.Peers().Blocks(ctx, s.To, author); err != nil || blocked {
			return err
		}
		body, err = f.submissionActivity(ctx, tx, p, &s)
		return err
	})
	if err != nil || body == nil {
		return nil, err
	}
	a, err := f.actorOf(ctx, s.To, actorAge)
	if err == nil && s.Direct {
		if told, err := f.readsAgent(ctx, author, inboxOf(a)); err != nil || told {
			return nil, err
		}
	}
	if err == nil {
		err = f.jobResult(f.send(ctx, author, a.Inbox.One(), body))
	}
	if err != nil {
		return f.retry(j, &s.retryState, &s, err)
	}
	return nil, nil
}

// reachedByLog reports whether the host of a reader receives the change as a
// follower of our board. A follower of the fediverse receives a boost, which
// mentions nobody; the post itself is sent to it nevertheless.
func (f *Federation) reachedByLog(ctx context.Context, tx *storage.Tx, s *submitArgs) (bool, error) {
	if !s.Direct {
		return false, nil
	}
	stoa, err := tx.Outlets().FollowingHost(ctx, f.site.Board(), hostOf(s.To))
	if err != nil {
		return false, absent(err)
	}
	return stoa || s.Kind != storage.LogCreate, nil
}

// submissionActivity is the activity that tells a reader what happened to a post,
// nil when it no longer applies. A hidden post is deleted at the servers that hold
// it, since ActivityPub has no hiding, and sent again when it is restored.
func (f *Federation) submissionActivity(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, s *submitArgs) ([]byte, error) {
	author := f.site.Author(p)
	switch {
	case s.Stamp != "":
		return f.site.Revoke(p, s.Stamp, s.To, tx.Now).Bytes()
	case s.Kind == storage.LogCreate && p.State == protocol.Visible:
		return f.createOf(ctx, tx, p)
	case s.Kind == storage.LogUpdate && p.State == protocol.Visible:
		return f.updateOf(ctx, tx, p)
	case s.Kind == storage.LogRestore && p.State == protocol.Visible:
		o, err := f.newCreate(ctx, tx, p)
		if err != nil {
			return nil, err
		}
		o["id"] = activity.CreateID(p.URI) + "#" + strconv.FormatInt(s.At, 10)
		return f.prove(o, author, p.CreatedAt)
	case s.Kind == storage.LogDelete, s.Kind == storage.LogHide && p.State == protocol.Hidden:
		o := f.site.Delete(p, tx.Now)
		if s.Kind == storage.LogHide {
			o["id"] = activity.HideID(p.URI, time.UnixMilli(s.At))
		}
		return f.prove(o, author, tx.Now)
	}
	return nil, nil
}
