package meeting

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stoa/node/out/calendar"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/protocol/schedule"
	"stoa/storage"
)

// How calendar servers are asked.
const (
	askFor        = time.Minute // for all requests of one job
	askAgain      = 15 * time.Second
	askLongest    = time.Hour
	readAll       = 6 * time.Hour // for so long a calendar whose tag is the same is not read
	readBehind    = 24 * time.Hour
	readAhead     = (protocol.MaxMeetingDays + 2) * 24 * time.Hour
	eventAttempts = 30
)

// asking is what a job asks a calendar server with: the account as it was when the job began.
type asking struct {
	*storage.CalendarAccount
	zone string
	now  time.Time
}

// account returns the account of a job, nil when there is none any more, or when the job is of an earlier
// round.
func (m *Meeting) account(ctx context.Context, s subject) (*asking, error) {
	q := &asking{}
	err := m.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if q.CalendarAccount, err = tx.Calendars().ByID(ctx, s.ID); err != nil {
			return err
		}
		settings, err := m.settingsOf(ctx, tx, q.Handle)
		if err != nil {
			return err
		}
		q.zone, q.now = settings.Rules.Complete().TimeZone, tx.Now
		notify, err := tx.Profiles().NotifySettings(ctx, q.Handle)
		q.know(notify)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) || err == nil && q.Round != s.N {
		return nil, nil
	}
	return q, err
}

// know adds the addresses by which an invitation may name the owner to those that the server told: not every server tells any.
func (q *asking) know(notify storage.NotifySettings) {
	if notify.Confirmed {
		q.Mails = append(q.Mails, strings.ToLower(notify.Mail))
	}
	if bare, err := protocol.ParseMail(q.User); err == nil {
		q.Mails = append(q.Mails, bare)
	}
	slices.Sort(q.Mails)
	q.Mails = slices.Compact(q.Mails)
}

// later runs what follows a request to a calendar server, unless the account has changed meanwhile.
func (s subject) later(do func(ctx context.Context, tx *storage.Tx, a *storage.CalendarAccount) error) func(context.Context, *storage.Tx) error {
	return func(ctx context.Context, tx *storage.Tx) error {
		a, err := lockedCalendar(ctx, tx, s.ID)
		if err != nil || a.Round != s.N {
			return storage.Missing(err, nil)
		}
		return do(ctx, tx, a)
	}
}

// Check lists the calendars of an account, and makes the one that the owner wants to have made. It may run
// again: a calendar that is there is not made twice.
func (m *Meeting) Check(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	q, err := m.account(ctx, s)
	if err != nil || q == nil || !q.Checking {
		return nil, err
	}
	ask, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	found, made, failed := m.discover(ask, q)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.later(func(ctx context.Context, tx *storage.Tx, a *storage.CalendarAccount) error {
		if failed != nil {
			return m.unchecked(ctx, tx, a, s, failed)
		}
		return m.checked(ctx, tx, a, found, made)
	}), nil
}

func (m *Meeting) discover(ctx context.Context, q *asking) (found *calendar.Found, made string, err error) {
	server, err := m.server(q.CalendarAccount, q.Address, q.zone)
	if err != nil {
		return nil, "", err
	}
	if found, err = server.Discover(ctx); err != nil || q.Create == "" {
		return found, "", err
	}
	server.URL = found.Calendars[0].URL
	if made, err = server.Make(ctx, q.ID, q.Create); err != nil {
		return nil, "", err
	}
	if !slices.ContainsFunc(found.Calendars, func(c calendar.Collection) bool { return sameAddress(c.URL, made) }) {
		found.Calendars = append(found.Calendars, calendar.Collection{URL: made, Name: q.Create})
	}
	return found, made, nil
}

func sameAddress(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// unchecked stores that a look failed, and enqueues another where one may succeed.
func (m *Meeting) unchecked(ctx context.Context, tx *storage.Tx, a *storage.CalendarAccount, s subject, failed error) error {
	if err := m.failed(ctx, tx, a, failed); err != nil {
		return err
	}
	a.Checking = errors.Is(failed, calendar.ErrTemporary)
	if !a.Checking {
		a.Create = ""
	}
	if err := tx.Calendars().Put(ctx, a); err != nil {
		return err
	}
	if !a.Checking {
		return readSoon(ctx, tx, a)
	}
	wait := netx.Jitter(netx.Backoff(askAgain, askLongest, s.Try+1))
	return enqueue(ctx, tx, storage.CalendarCheckJob, calendarLane(a.ID), subject{ID: s.ID, N: s.N, Try: s.Try + 1}, tx.Now.Add(wait))
}

// checked stores which calendars a server has. At the first time it chooses which are used.
func (m *Meeting) checked(ctx context.Context, tx *storage.Tx, a *storage.CalendarAccount, found *calendar.Found, made string) error {
	succeeded(tx, a)
	first, writes := len(a.Found) == 0, a.Writes
	a.Checking, a.Create, a.Tag, a.Mails, a.Found = false, "", "", found.Mails, nil
	for _, c := range found.Calendars {
		a.Found = append(a.Found, protocol.FoundCalendar{URL: c.URL, Name: c.Name})
	}
	if first {
		taken, err := writer(ctx, tx, a.Handle)
		if err != nil {
			return err
		}
		for _, f := range a.Found {
			if len(a.Reads) < protocol.MaxCalendarsRead {
				a.Reads = append(a.Reads, f.URL)
			}
			if taken == nil && (len(a.Found) == 1 || sameAddress(f.URL, a.Address)) {
				writes = f.URL
			}
		}
	}
	for _, f := range a.Found {
		if made != "" && sameAddress(f.URL, made) {
			writes = f.URL
		}
	}
	if err := m.write(ctx, tx, a, writes); err != nil {
		return err
	}
	if err := m.retryEvents(ctx, tx, a.ID); err != nil {
		return err
	}
	return readSoon(ctx, tx, a)
}

// writer returns the account of a person that is written, nil for none.
func writer(ctx context.Context, tx *storage.Tx, handle string) (*storage.CalendarAccount, error) {
	all, err := tx.Calendars().OfProfile(ctx, handle)
	for i := range all {
		if all[i].Writes != "" {
			return &all[i], err
		}
	}
	return nil, err
}

// readSoon enqueues the first reading of a round.
func readSoon(ctx context.Context, tx *storage.Tx, a *storage.CalendarAccount) error {
	if len(a.Reads) == 0 {
		return nil
	}
	return enqueue(ctx, tx, storage.CalendarBusyJob, calendarLane(a.ID), subject{ID: a.ID, N: a.Round}, tx.Now)
}

// ReadBusy reads when a person is busy, and enqueues the next reading.
func (m *Meeting) ReadBusy(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	q, err := m.account(ctx, s)
	if err != nil || q == nil || len(q.Reads) == 0 {
		return nil, err
	}
	ask, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	tag, spans, failed := m.read(ask, q)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.later(func(ctx context.Context, tx *storage.Tx, a *storage.CalendarAccount) error {
		wait := protocol.BusyFor
		if failed != nil {
			if err := m.failed(ctx, tx, a, failed); err != nil {
				return err
			}
			wait = netx.Jitter(netx.Backoff(protocol.BusyFor, askLongest, a.Failures))
		} else {
			succeeded(tx, a)
			if a.Tag = tag; spans != nil {
				a.Full = tx.Now
			}
			if err := tx.Calendars().PutBusy(ctx, a.ID, spans); err != nil {
				return err
			}
		}
		if err := tx.Calendars().Put(ctx, a); err != nil {
			return err
		}
		return enqueue(ctx, tx, j.Kind, j.Lane, subject{ID: s.ID, N: s.N, Try: s.Try + 1}, tx.Now.Add(wait))
	}), nil
}

// read returns the busy times of the calendars of an account; nil when none has changed since they were
// read.
func (m *Meeting) read(ctx context.Context, q *asking) (tag string, spans []byte, err error) {
	tags, complete := []string{}, true
	for _, address := range q.Reads {
		server, err := m.server(q.CalendarAccount, address, q.zone)
		if err != nil {
			return "", nil, err
		}
		one, err := server.Tag(ctx)
		if err != nil && !errors.Is(err, calendar.ErrForbidden) {
			return "", nil, err
		}
		tags, complete = append(tags, one), complete && one != ""
	}
	if complete {
		tag = strings.Join(slices.Concat([]string{q.zone}, q.Mails, tags), " ") // whatever changes what is busy
	}
	if complete && tag == q.Tag && q.now.Sub(q.Full) < readAll {
		return tag, nil, nil
	}
	var busy []schedule.Interval
	for _, address := range q.Reads {
		server, err := m.server(q.CalendarAccount, address, q.zone)
		if err != nil {
			return "", nil, err
		}
		some, err := server.Busy(ctx, q.now.Add(-readBehind), q.now.Add(readAhead))
		if err != nil {
			return "", nil, err
		}
		busy = append(busy, some...)
	}
	return tag, pack(busy), nil
}
