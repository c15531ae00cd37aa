// Package meeting is the meeting requests to persons (spec §2.13, contract §5): when a person can be
// met, and the requests, on which the person decides before anything is on a calendar.
package meeting

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/schedule"
	"stoa/storage"
)

// A Meeting keeps the meeting requests of one node.
type Meeting struct {
	Base    string // public address of the node, without a slash at the end
	Private bool   // a callbackUrl may be on this machine: development
	PerHour int    // confirmation mails of the node within an hour; 0: the default
	DB      *storage.DB
	Words   func(language string) hall.Words // see [hall.House]
	Webhook Sender
	LinkKey []byte        // makes the tickets of links in mails, and the names of mailboxes
	Mail    func() Mailer // what it returns is nil on a node that sends no mail
	Seal    Sealer
	// CalendarClient asks calendar servers; it has the limits of package calendar.
	CalendarClient *http.Client
}

// person returns the person that is asked for a meeting.
func person(ctx context.Context, tx *storage.Tx, handle string) (*storage.StoredProfile, error) {
	p, err := tx.Profiles().ByHandle(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, protocol.NoAgent(handle)
	}
	if err == nil && p.Draft.Kind != protocol.Person {
		return nil, protocol.Errorf(protocol.NotFound, "@%s is not a person; only persons take meeting requests", p.Draft.Handle)
	}
	return p, err
}

// own returns the person that the caller acts as. In a writing transaction its row is locked.
func own(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned) (*storage.StoredProfile, error) {
	p, err := hall.Own(ctx, tx, c, in)
	if err == nil && p.Draft.Kind != protocol.Person {
		return nil, protocol.Errorf(protocol.Forbidden, "@%s is not a person; only persons take meeting requests", p.Draft.Handle)
	}
	return p, err
}

// GetSettings returns the settings of a profile.
func (m *Meeting) GetSettings(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.MeetingSettings, error) {
	p, err := own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.MeetingSettings{}, err
	}
	s, err := tx.Meetings().Settings(ctx, p)
	return settings(s), err
}

// PutSettings replaces the settings of a profile.
func (m *Meeting) PutSettings(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingDraft) (protocol.MeetingSettings, error) {
	p, err := own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.MeetingSettings{}, err
	}
	s := storage.MeetingSettings{Handle: p.Draft.Handle, Open: in.Accepting, Rules: in.MeetingRules}
	if err := tx.Meetings().PutSettings(ctx, &s); err != nil {
		return protocol.MeetingSettings{}, err
	}
	return settings(s), nil
}

func settings(s storage.MeetingSettings) protocol.MeetingSettings {
	out := protocol.MeetingSettings{Handle: s.Handle, Accepting: s.Open, MeetingRules: s.Rules.Complete()}
	if !s.UpdatedAt.IsZero() {
		out.UpdatedAt = &s.UpdatedAt
	}
	return out
}

// scheduleOf returns rules in the form that lays open times.
func scheduleOf(in protocol.MeetingRules) schedule.Rules {
	in = in.Complete()
	r := schedule.Rules{
		TimeZone: in.TimeZone, Durations: in.Durations, SlotStep: in.SlotStep, BufferBefore: in.BufferBefore, BufferAfter: in.BufferAfter,
		MinNotice: in.MinNoticeMin, MaxDaysAhead: in.MaxDaysAhead, MaxPerDay: in.MaxPerDay, MaxPerWeek: in.MaxPerWeek,
	}
	for _, h := range in.UsualHours {
		day := protocol.Weekday(h.Day)
		r.Weekly[day] = append(r.Weekly[day], window(h.MeetingWindow))
	}
	for _, o := range in.DateOverrides {
		over := schedule.Override{Date: o.Date, Windows: []schedule.Window{}}
		for _, w := range o.Windows {
			over.Windows = append(over.Windows, window(w))
		}
		r.Overrides = append(r.Overrides, over)
	}
	for _, t := range in.Travel {
		r.Travel = append(r.Travel, schedule.Travel{From: t.From, To: t.To, TimeZone: t.TimeZone})
	}
	return r
}

func window(w protocol.MeetingWindow) schedule.Window {
	return schedule.Window{From: protocol.Minutes(w.From), To: protocol.Minutes(w.To)}
}

// Info returns how a person takes meetings.
func (m *Meeting) Info(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.MeetingQuery) (protocol.MeetingInfo, error) {
	p, err := person(ctx, tx, in.Handle)
	if err != nil {
		return protocol.MeetingInfo{}, err
	}
	s, err := tx.Meetings().Settings(ctx, p)
	if err != nil {
		return protocol.MeetingInfo{}, err
	}
	r := s.Rules.Complete()
	out := protocol.MeetingInfo{
		Handle: p.Draft.Handle, Name: p.Draft.Name, Accepting: s.Open, Durations: r.Durations, TimeZone: r.TimeZone, UsualDays: []string{},
		UsualHours: append([]protocol.MeetingHours{}, r.UsualHours...), OutsideHours: r.OutsideHours, MinNoticeMin: r.MinNoticeMin,
		MaxDaysAhead: r.MaxDaysAhead, Approval: "owner", ConfirmsMail: m.Mail() != nil, NeedsDomain: r.VerifiedDomain,
		Questions: append([]string{}, r.Questions...), Policy: r.Policy,
		ShowsSlots: r.ShowSlots && s.Open, Untrusted: true,
	}
	for _, h := range r.UsualHours {
		if !slices.Contains(out.UsualDays, h.Day) {
			out.UsualDays = append(out.UsualDays, h.Day)
		}
	}
	from, to, faults := in.Range(tx.Now)
	if len(faults) > 0 {
		return out, protocol.Invalid(faults...)
	}
	length := r.Durations[0]
	if in.DurationMin != 0 {
		length = in.DurationMin
	}
	if !slices.Contains(r.Durations, length) {
		return out, notAllowed(r)
	}
	if out.ShowsSlots {
		var open []protocol.MeetingTime
		if open, out.BusyStale, err = m.slots(ctx, tx, p.Draft.Handle, r, from, to, time.Duration(length)*time.Minute); err != nil {
			return out, err
		}
		in.Local(open)
		first := open[:min(len(open), cmp.Or(in.Limit, protocol.Slots))]
		if in.Limit == 0 {
			first = protocol.Short(first, out)
		}
		out.Slots = first
		if len(out.Slots) < len(open) {
			out.Next = new(open[len(out.Slots)].StartsAt.Format(time.RFC3339))
		}
	}
	return out, nil
}

func notAllowed(r protocol.MeetingRules) error {
	return protocol.Invalid(protocol.Fault{Pointer: "/durationMin", Code: "not-allowed", Detail: lengths(r)})
}

// slots returns the open times of a range, and whether a calendar was not read for a while.
func (m *Meeting) slots(ctx context.Context, tx *storage.Tx, handle string, r protocol.MeetingRules, from, to time.Time,
	length time.Duration) (out []protocol.MeetingTime, stale bool, err error) {
	taken, stale, err := takenBy(ctx, tx, handle, r, from, to, "")
	if err != nil {
		return nil, stale, err
	}
	open, err := scheduleOf(r).Slots(from, to, length, tx.Now, taken)
	if err != nil {
		return nil, stale, err
	}
	out = make([]protocol.MeetingTime, 0, len(open))
	for _, slot := range open {
		out = append(out, protocol.MeetingTime{StartsAt: slot.Start, EndsAt: slot.End})
	}
	return out, stale, nil
}

// lengths says which lengths a person allows.
func lengths(r protocol.MeetingRules) string {
	text := "must be one of"
	for i, d := range r.Durations {
		if i > 0 {
			text += ","
		}
		text += " " + strconv.Itoa(d)
	}
	return text + " minutes"
}
