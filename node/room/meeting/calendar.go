package meeting

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"stoa/node/out/calendar"
	"stoa/protocol"
	"stoa/storage"
)

// A Sealer encrypts at rest the passwords of calendar servers, and invitations that wait.
type Sealer interface {
	Seal(purpose string, secret []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// calendarLane is the lane of everything that is asked of one account: a server gets one request at a
// time, and the event of a meeting is written and deleted in the order of its moves.
func calendarLane(account string) string { return "calendar:" + account }

// lockedCalendar returns an account, with the row of the person's profile locked in a writing transaction.
func lockedCalendar(ctx context.Context, tx *storage.Tx, id string) (*storage.CalendarAccount, error) {
	a, err := tx.Calendars().ByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Profiles().ForUpdate(ctx, a.Handle); err != nil {
		return nil, err
	}
	return tx.Calendars().ByID(ctx, id)
}

// ownCalendar returns an account of the caller. Another's is not found.
func ownCalendar(ctx context.Context, tx *storage.Tx, c protocol.Caller, id string) (*storage.CalendarAccount, error) {
	a, err := lockedCalendar(ctx, tx, id)
	if errors.Is(err, storage.ErrNotFound) || err == nil && !c.Owns(a.Handle) && c.Standing != protocol.Operator {
		return nil, protocol.Errorf(protocol.NotFound, "there is no calendar account with that id of a profile of yours; list_calendars lists them")
	}
	return a, err
}

// Calendars returns the calendar accounts of a profile.
func (m *Meeting) Calendars(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.CalendarAccounts, error) {
	out := protocol.CalendarAccounts{Items: []protocol.CalendarAccount{}}
	p, err := own(ctx, tx, c, in.Owned)
	if err != nil {
		return out, err
	}
	all, err := tx.Calendars().OfProfile(ctx, p.Draft.Handle)
	if err != nil {
		return out, err
	}
	for i := range all {
		one, err := accountView(ctx, tx, &all[i])
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, one)
	}
	if _, out.BusyStale, err = busyOf(ctx, tx, p.Draft.Handle, tx.Now, tx.Now); err != nil {
		return out, err
	}
	out.FeedAt, err = tx.Meetings().FeedMade(ctx, p.Draft.Handle)
	return out, err
}

// GetCalendar returns one calendar account of the caller.
func (m *Meeting) GetCalendar(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CalendarRef) (protocol.CalendarAccount, error) {
	a, err := ownCalendar(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.CalendarAccount{}, err
	}
	return accountView(ctx, tx, a)
}

func accountView(ctx context.Context, tx *storage.Tx, a *storage.CalendarAccount) (protocol.CalendarAccount, error) {
	out := protocol.CalendarAccount{
		ID: a.ID, Handle: a.Handle, Address: a.Address, User: a.User, Checking: a.Checking, Calendars: append([]protocol.FoundCalendar{}, a.Found...),
		Reads: append([]string{}, a.Reads...), Writes: protocol.OrNil(a.Writes), LastError: protocol.OrNil(a.Failed), CreatedAt: a.CreatedAt, Untrusted: true,
	}
	if !a.OKAt.IsZero() {
		out.LastSuccess = &a.OKAt
	}
	if a.Failed != "" {
		out.LastErrorAt = &a.FailedAt
	}
	at, err := tx.Calendars().BusyReadAt(ctx, a.ID)
	if !at.IsZero() {
		out.BusyReadAt = &at
	}
	return out, err
}

// ConnectCalendar stores an account at a calendar server, and enqueues the look at it.
func (m *Meeting) ConnectCalendar(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CalendarLogin) (protocol.CalendarAccount, error) {
	p, err := own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.CalendarAccount{}, err
	}
	if why := protocol.CalendarFault(in.Address, m.Private); why != "" {
		return protocol.CalendarAccount{}, protocol.Invalid(protocol.Fault{Pointer: "/address", Code: "calendar-address", Detail: why})
	}
	all, err := tx.Calendars().OfProfile(ctx, p.Draft.Handle)
	if err != nil {
		return protocol.CalendarAccount{}, err
	}
	a := &storage.CalendarAccount{Handle: p.Draft.Handle, CalendarDoc: storage.CalendarDoc{Address: in.Address, User: in.User}}
	same := slices.IndexFunc(all, func(o storage.CalendarAccount) bool { return o.Address == in.Address && o.User == in.User })
	switch {
	case same >= 0:
		a = &all[same]
	case len(all) >= protocol.MaxCalendarAccounts:
		return protocol.CalendarAccount{}, protocol.Errorf(protocol.Conflict,
			"%d calendar servers are connected, which is the most; disconnect_calendar removes one", len(all))
	default:
		a.ID, a.CreatedAt = protocol.NewID(protocol.CalendarID, tx.Now), tx.Now
	}
	a.Sealed = m.Seal.Seal(storage.PurposeCalendar(a.ID), []byte(in.Password))
	return m.ask(ctx, tx, a)
}

// CheckCalendar enqueues a look at an account.
func (m *Meeting) CheckCalendar(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CalendarRef) (protocol.CalendarAccount, error) {
	a, err := ownCalendar(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.CalendarAccount{}, err
	}
	if a.Checking && a.Failures == 0 { // it is in the queue
		return accountView(ctx, tx, a)
	}
	return m.ask(ctx, tx, a)
}

// ask stores an account and enqueues the look at it. Readings that were enqueued before end.
func (m *Meeting) ask(ctx context.Context, tx *storage.Tx, a *storage.CalendarAccount) (protocol.CalendarAccount, error) {
	a.Checking = true
	a.Round++
	if err := tx.Calendars().Put(ctx, a); err != nil {
		return protocol.CalendarAccount{}, err
	}
	if err := enqueue(ctx, tx, storage.CalendarCheckJob, calendarLane(a.ID), subject{ID: a.ID, N: a.Round}, tx.Now); err != nil {
		return protocol.CalendarAccount{}, err
	}
	return accountView(ctx, tx, a)
}

// ChooseCalendars sets which calendars of an account are read and written.
func (m *Meeting) ChooseCalendars(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CalendarChoice) (protocol.CalendarAccount, error) {
	a, err := ownCalendar(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.CalendarAccount{}, err
	}
	var faults []protocol.Fault
	known := func(at, address string) {
		if !slices.ContainsFunc(a.Found, func(f protocol.FoundCalendar) bool { return f.URL == address }) {
			faults = append(faults, protocol.Fault{
				Pointer: at, Code: "not-allowed", Detail: "is not among calendars of get_calendar; check_calendar looks for new ones",
			})
		}
	}
	for i, address := range in.Reads {
		known(fmt.Sprintf("/reads/%d", i), address)
	}
	if in.Writes != "" {
		known("/writes", in.Writes)
	}
	if in.Create != "" && len(a.Found) == 0 {
		return protocol.CalendarAccount{}, protocol.Errorf(protocol.Conflict, "the server has not answered yet; wait until get_calendar shows its calendars")
	}
	if len(faults) > 0 {
		return protocol.CalendarAccount{}, protocol.Invalid(faults...)
	}
	a.Reads, a.Create, a.Tag = in.Reads, in.Create, ""
	if err := m.write(ctx, tx, a, in.Writes); err != nil {
		return protocol.CalendarAccount{}, err
	}
	if a.Create != "" {
		return m.ask(ctx, tx, a)
	}
	a.Round++
	if err := tx.Calendars().Put(ctx, a); err != nil {
		return protocol.CalendarAccount{}, err
	}
	if err := readSoon(ctx, tx, a); err != nil {
		return protocol.CalendarAccount{}, err
	}
	return accountView(ctx, tx, a)
}

// write stores an account with the calendar that is written, "" for none. No other account of the person
// is written then, and the meetings that no calendar has yet are put there.
func (m *Meeting) write(ctx context.Context, tx *storage.Tx, a *storage.CalendarAccount, address string) error {
	a.Writes = address
	if err := tx.Calendars().Put(ctx, a); err != nil || address == "" {
		return err
	}
	all, err := tx.Calendars().OfProfile(ctx, a.Handle)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].ID != a.ID && all[i].Writes != "" {
			all[i].Writes = ""
			if err := tx.Calendars().Put(ctx, &all[i]); err != nil {
				return err
			}
		}
	}
	coming, err := tx.Meetings().Agreed(ctx, a.Handle, tx.Now)
	if err != nil {
		return err
	}
	for i := range coming {
		if _, err := tx.Meetings().Event(ctx, coming[i].ID); !errors.Is(err, storage.ErrNotFound) {
			if err != nil {
				return err
			}
			continue
		}
		if err := m.putEvent(ctx, tx, &coming[i]); err != nil {
			return err
		}
	}
	return nil
}

// DisconnectCalendar deletes an account with its password.
func (m *Meeting) DisconnectCalendar(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CalendarRef) (protocol.None, error) {
	a, err := ownCalendar(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Calendars().Delete(ctx, a.ID)
}

var errNoPassword = errors.New("the calendar account has no password")

// server returns the client of one address of an account.
func (m *Meeting) server(a *storage.CalendarAccount, address, zone string) (*calendar.CalDAV, error) {
	if len(a.Sealed) == 0 {
		return nil, errNoPassword
	}
	password, err := m.Seal.Open(storage.PurposeCalendar(a.ID), a.Sealed)
	if err != nil {
		return nil, protocol.Errorf(protocol.Forbidden, "calendar account %s: %w", a.ID, err)
	}
	loc, ok := protocol.Zone(zone)
	if !ok {
		loc, _ = protocol.Zone("UTC")
	}
	return &calendar.CalDAV{Client: m.CalendarClient, URL: address, User: a.User, Password: string(password), Zone: loc, Mails: a.Mails, Node: m.host()}, nil
}

// reason says why a calendar server did not do what it was asked, and what the owner can do.
func reason(err error) string {
	switch {
	case errors.Is(err, errNoPassword):
		return protocol.CalendarNoPassword
	case errors.Is(err, calendar.ErrTemporary):
		return "the calendar server cannot answer now; the node tries again"
	case errors.Is(err, calendar.ErrCredentials):
		return "the calendar server does not accept the user name or the password; connect it with another password, and many servers want an app password"
	case errors.Is(err, calendar.ErrForbidden):
		return "the calendar server does not allow this; give the user the right to write there, or choose another calendar"
	case errors.Is(err, calendar.ErrNotFound):
		return "there is no calendar at the address; check the server again for those that are there, and choose another"
	case errors.Is(err, calendar.ErrConflict):
		return "another event has the place of this meeting in the calendar; delete that event, and check the calendar again"
	case errors.Is(err, calendar.ErrAddress):
		return "the address is not allowed: it must be of a public server, https, at port 443, and lead to no other site"
	case errors.Is(err, calendar.ErrTooMuch):
		return "the calendar has more events than this node reads; choose others as those in which you are busy"
	}
	return "the node cannot use the calendar; disconnect the server and connect it again"
}

// failed stores in an account that its server did not do what it was asked, and tells the owner once.
func (m *Meeting) failed(ctx context.Context, tx *storage.Tx, a *storage.CalendarAccount, err error) error {
	const tell = 12 // failures in a row that may pass
	why := reason(err)
	a.Failures++
	news := a.Failures == tell || !errors.Is(err, calendar.ErrTemporary) && a.Failed != why
	a.Failed, a.FailedAt = why, tx.Now
	if !news {
		return nil
	}
	host := a.Address
	if u, err := url.Parse(a.Address); err == nil {
		host = u.Hostname()
	}
	return tx.Notify(ctx, protocol.Notice{Handle: a.Handle, Event: protocol.CalendarTrouble, Subject: a.ID, Title: "Calendar at " + host + ": " + why})
}

func succeeded(tx *storage.Tx, a *storage.CalendarAccount) {
	a.OKAt, a.Failed, a.Failures = tx.Now, "", 0
}
