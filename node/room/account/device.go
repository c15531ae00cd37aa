package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"stoa/node/hall"
	"stoa/node/out/push"
	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/storage"
)

// An Opens returns the reader name of a thread, bid or meeting request, when the caller may read it with a token.
type Opens func(ctx context.Context, tx *storage.Tx, c protocol.Caller, id, token string) (reader string, err error)

// AddDevice stores the subscription of a browser, of the account or of one thing that the caller may read.
func (a *Accounts) AddDevice(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewDevice) (protocol.Device, error) {
	if why := protocol.CallbackFault(in.Endpoint, a.Private); why != "" {
		return protocol.Device{}, protocol.Invalid(protocol.Fault{Pointer: "/endpoint", Code: "not-public", Detail: why})
	}
	d := storage.Device{ID: protocol.NewID(protocol.DeviceID, tx.Now), Endpoint: in.Endpoint, Language: cmp.Or(in.Language, "en"),
		Program: plain(in.Program, 160), CreatedAt: tx.Now}
	d.P256dh, d.Auth = in.Keys()
	most := protocol.MaxDevices
	if kind, _, ok := strings.Cut(in.Of, "_"); ok && a.Opens[kind] != nil {
		reader, err := a.Opens[kind](ctx, tx, c, in.Of, in.Token)
		if err != nil {
			return protocol.Device{}, err
		}
		d.Reader, d.EndsAt, most = reader, tx.Now.Add(protocol.VisitorDeviceFor), protocol.MaxVisitorDevices
	} else if in.Of != "" {
		return protocol.Device{}, protocol.Errorf(protocol.NotFound, "there is no thread, bid or meeting request with that id")
	} else if in.Former != "" { // whoever knows the address of a subscription has it
		return device(d), tx.Devices().Renew(ctx, in.Former, d)
	} else if !protocol.IsID(protocol.SessionID, c.Secret) { // a token for less than the account would be told of all of it
		return protocol.Device{}, protocol.Errorf(protocol.Unauthorized, "sign in with the browser that is to be notified")
	} else {
		d.Reader = c.Account
	}
	return device(d), tx.Devices().Put(ctx, d, most)
}

func device(d storage.Device) protocol.Device {
	out := protocol.Device{ID: d.ID, Program: d.Program, Language: d.Language, CreatedAt: d.CreatedAt}
	if u, err := url.Parse(d.Endpoint); err == nil {
		out.Service = u.Host
	}
	return out
}

// Devices lists the devices of the account.
func (a *Accounts) Devices(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.Devices, error) {
	found, err := tx.Devices().Of(ctx, c.Account)
	out := protocol.Devices{Items: make([]protocol.Device, 0, len(found)), Key: a.Push.Key.Public()}
	for _, d := range found {
		out.Items = append(out.Items, device(d))
	}
	return out, err
}

// DeleteDevice removes a device of the account.
func (a *Accounts) DeleteDevice(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.DeviceRef) (protocol.None, error) {
	return protocol.None{}, missing(tx.Devices().Delete(ctx, c.Account, in.ID), "the account has no device with that id")
}

// pushing is the arguments of PushJob.
type pushing struct {
	storage.Push
	trial
}

// A pushed is a message as static/notices.js shows it.
type pushed struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	URL   string `json:"url"` // path of the page that it is about
	Tag   string `json:"tag"` // one with the same tag replaces it
}

// toldVisitor are what happened, for the reader of a thread, bid or meeting request, by kinds of news.
var toldVisitor = map[string]string{
	storage.NewsAnswer:  hall.Key("Your message was answered"),
	storage.NewsClosed:  hall.Key("Your conversation was closed"),
	storage.NewsBid:     hall.Key("Your bid has changed"),
	storage.NewsMeeting: hall.Key("Your meeting request has changed"),
}

// readerPaths are the pages of what a reader name is for.
var readerPaths = map[string]string{"thread": "/threads/", "bid": "/bids/", "meeting": "/meetings/"}

// message returns what a device is told. It has no more of the other side's text than a notice mail.
func (a *Accounts) message(d storage.Device, p storage.Push) (m pushed, err error) {
	l := a.Words(d.Language)
	if len(p.Notice) == 0 {
		kind, id, _ := strings.Cut(d.Reader, ":")
		return pushed{l.Text(toldVisitor[p.Kind]), a.Name, readerPaths[kind] + id, p.Kind + " " + id}, nil
	}
	var n protocol.Notice
	err = json.Unmarshal(p.Notice, &n)
	return pushed{l.Text(happened[n.Event], n.Handle), plain(n.Title, 140), strings.TrimPrefix(a.readAt(n), a.Base), string(n.Event) + " " + n.Subject}, err
}

// SendPush is the handler of PushJob. A subscription that its push service has ended is deleted.
func (a *Accounts) SendPush(ctx context.Context, j storage.Job, in pushing) (func(context.Context, *storage.Tx) error, error) {
	var d storage.Device
	err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		d, err = tx.Devices().ByID(ctx, in.Device)
		return err
	})
	if err != nil {
		return nil, storage.IfMissing(err, nil)
	}
	m, err := a.message(d, in.Push)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	err = a.Push.Send(ctx, push.Subscription{Endpoint: d.Endpoint, P256dh: d.P256dh, Auth: d.Auth}, m.Tag, raw)
	f, failed := errors.AsType[*webhook.Failure](err)
	switch {
	case err == nil:
		return nil, nil
	case failed && f.Kind == webhook.ErrGone:
		return func(ctx context.Context, tx *storage.Tx) error { return tx.Devices().Drop(ctx, d.Endpoint) }, nil
	case failed && f.Kind == webhook.ErrRetry:
		err = &protocol.Error{Code: protocol.Overloaded, Detail: f.Text, RetryAfter: f.RetryAfter, Err: err}
		return retry(j, forADay, &in.trial, &in, err)
	}
	return nil, protocol.Errorf(protocol.InvalidRequest, "a device: %w", err)
}
