package meeting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stoa/protocol"
	"stoa/protocol/schedule"
	"stoa/storage"
)

// ownMeeting returns a request to the caller, with the profile's row locked in a writing transaction.
// Another's request, and one whose mailbox is not confirmed, is not found.
func ownMeeting(ctx context.Context, tx *storage.Tx, c protocol.Caller, id string) (*storage.StoredMeeting, *storage.StoredProfile, error) {
	r, p, err := locked(ctx, tx, id)
	if errors.Is(err, storage.ErrNotFound) || err == nil && (!r.Shown || !c.Owns(r.Handle) && c.Standing != protocol.Operator) {
		return nil, nil, protocol.Errorf(protocol.NotFound, "there is no meeting request with that id to a profile of yours")
	}
	return r, p, err
}

// ownView returns a request as the person sees it.
func (m *Meeting) ownView(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting) (protocol.OwnMeeting, error) {
	r.State = stateNow(tx, r)
	r, err := tx.Leavings().Meeting(ctx, r)
	if err != nil {
		return protocol.OwnMeeting{}, err
	}
	out := protocol.OwnMeeting{
		MeetingRequest: m.view(r), Email: protocol.OrNil(r.Mail), Confirmed: r.Confirmed, Author: r.Author, Warnings: []protocol.MeetingWarning{}, Mail: r.Sent,
	}
	if r.Attends != nil && (r.Attends.Sequence == r.Sequence || r.Attends.Answer == protocol.AnswerDeclined) {
		out.Attendance = &r.Attends.MeetingAttendance
	}
	out.Note = ownAdvice(r)
	if out.Calendar, err = calendarView(ctx, tx, r); err != nil {
		return out, err
	}
	switch r.State {
	case protocol.MeetingSubmitted:
	case protocol.MeetingApproved:
		return out, warnBusy(ctx, tx, r, &out)
	default:
		return out, nil
	}
	s, err := m.settingsOf(ctx, tx, r.Handle)
	if err != nil {
		return out, err
	}
	rules := s.Rules.Complete()
	taken, stale, err := takenBy(ctx, tx, r.Handle, rules, r.StartsAt, r.EndsAt, r.ID)
	if err != nil {
		return out, err
	}
	v, err := scheduleOf(rules).Judge(r.StartsAt, r.EndsAt.Sub(r.StartsAt), tx.Now, taken)
	for _, f := range v.Warnings {
		out.Warnings = append(out.Warnings, protocol.MeetingWarning(f))
	}
	if stale {
		out.Warnings = append(out.Warnings, protocol.WarnBusyStale)
	}
	if isDisposable(r.Mail) {
		out.Warnings = append(out.Warnings, protocol.WarnDisposable)
	}
	return out, err
}

// warnBusy warns of the busy times of calendars: of an approved meeting the person has decided on everything
// else.
func warnBusy(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting, out *protocol.OwnMeeting) error {
	busy, stale, err := busyOf(ctx, tx, r.Handle, r.StartsAt, r.EndsAt)
	if slices.ContainsFunc(busy, schedule.Interval{Start: r.StartsAt, End: r.EndsAt}.Overlaps) {
		out.Warnings = append(out.Warnings, protocol.MeetingWarning(schedule.OverlapsBusy))
	}
	if stale {
		out.Warnings = append(out.Warnings, protocol.WarnBusyStale)
	}
	return err
}

// ownAdvice tells a person what to do next.
func ownAdvice(r *storage.StoredMeeting) string {
	switch {
	case r.State == protocol.MeetingSubmitted:
		return "It waits for you: approve_meeting, decline_meeting or propose_meeting_times."
	case r.State == protocol.MeetingProposed:
		return "It waits for the requester, who takes one of your times or none."
	case r.State == protocol.MeetingApproved && r.Sent == protocol.MeetingMailBounced:
		return "Mail to the requester came back: they may not know."
	case r.State == protocol.MeetingApproved && r.Attends != nil && r.Attends.Sequence == r.Sequence && r.Attends.Answer == protocol.AnswerProposed:
		return "The requester proposes another time, as attendance says: move_meeting takes it, cancel_own_meeting ends the meeting; else it stays as it is."
	case r.State == protocol.MeetingApproved && r.Sent == protocol.MeetingMailNone:
		return "The requester got no mail from this node: tell them yourself."
	}
	return ""
}

// List lists the requests to a profile of the caller.
func (m *Meeting) List(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnMeetingQuery) (protocol.Page[protocol.OwnMeeting], error) {
	out := protocol.Page[protocol.OwnMeeting]{Items: []protocol.OwnMeeting{}}
	p, err := own(ctx, tx, c, in.Owned)
	if err != nil {
		return out, err
	}
	var found protocol.Page[storage.StoredMeeting]
	if from, to, ok, _ := in.Range(); ok {
		found, err = tx.Meetings().Agenda(ctx, p.Draft.Handle, from, to, in.Size(), in.After)
	} else {
		found, err = tx.Meetings().List(ctx, p.Draft.Handle, in.State, in.Size(), in.After)
	}
	if err != nil {
		return out, err
	}
	out.Next = found.Next
	for i := range found.Items {
		one, err := m.ownView(ctx, tx, &found.Items[i])
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, one)
	}
	return out, nil
}

// GetOwn returns one request to a profile of the caller.
func (m *Meeting) GetOwn(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnMeetingRef) (protocol.OwnMeeting, error) {
	r, _, err := ownMeeting(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.OwnMeeting{}, err
	}
	return m.ownView(ctx, tx, r)
}

// decide moves a request of the caller to a state, unless it is there already. Other states than may are
// a conflict.
func (m *Meeting) decide(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingDecision, to protocol.MeetingState, note string,
	before func(*storage.StoredMeeting) error, may ...protocol.MeetingState) (protocol.OwnMeeting, error) {
	r, p, err := ownMeeting(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.OwnMeeting{}, err
	}
	state := stateNow(tx, r)
	if state == to && to != protocol.MeetingProposed {
		return m.ownView(ctx, tx, r)
	}
	if !contains(may, state) {
		return protocol.OwnMeeting{}, protocol.Errorf(protocol.Conflict, "the request is %s; it cannot become %s", state, to)
	}
	if state != r.State { // done, and the job has not said so yet
		if err := m.move(ctx, tx, r, change{to: state}); err != nil {
			return protocol.OwnMeeting{}, err
		}
	}
	if before != nil {
		if err := before(r); err != nil {
			return protocol.OwnMeeting{}, err
		}
	}
	if in.Answer != "" {
		r.Answer = in.Answer
	}
	if err := m.move(ctx, tx, r, change{to: to, note: note, byPerson: true, person: p}); err != nil {
		return protocol.OwnMeeting{}, err
	}
	return m.ownView(ctx, tx, r)
}

func contains(list []protocol.MeetingState, s protocol.MeetingState) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

// Approve approves a request at its time.
func (m *Meeting) Approve(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingDecision) (protocol.OwnMeeting, error) {
	return m.decide(ctx, tx, c, in, protocol.MeetingApproved, "approved", func(r *storage.StoredMeeting) error {
		return free(ctx, tx, r, protocol.MeetingTime{StartsAt: r.StartsAt, EndsAt: r.EndsAt})
	}, protocol.MeetingSubmitted)
}

// Decline declines a request that waits.
func (m *Meeting) Decline(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingRefusal) (protocol.OwnMeeting, error) {
	out, err := m.decide(ctx, tx, c, in.MeetingDecision, protocol.MeetingDeclined, "declined", nil, protocol.MeetingSubmitted, protocol.MeetingProposed)
	if err != nil || in.Block != protocol.BlockMailbox && in.Block != protocol.BlockDomain {
		return out, err
	}
	return out, m.block(ctx, tx, in.ID, in.Block)
}

// CancelOwn cancels an approved meeting.
func (m *Meeting) CancelOwn(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingDecision) (protocol.OwnMeeting, error) {
	return m.decide(ctx, tx, c, in, protocol.MeetingCancelled, "cancelled by @"+handleOf(c), nil, protocol.MeetingApproved)
}

func handleOf(c protocol.Caller) string {
	if c.Handle == "" {
		return "the person"
	}
	return c.Handle
}

// NoShow says that the requester did not come.
func (m *Meeting) NoShow(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnMeetingRef) (protocol.OwnMeeting, error) {
	return m.decide(ctx, tx, c, protocol.MeetingDecision{OwnMeetingRef: in}, protocol.MeetingNoShow, "the requester did not come",
		func(r *storage.StoredMeeting) error {
			if r.StartsAt.After(tx.Now) {
				return protocol.Errorf(protocol.Conflict, "the meeting has not begun")
			}
			return nil
		}, protocol.MeetingApproved, protocol.MeetingDone)
}

// timeOf reads a time that the person offers, and checks its bounds and that no approved meeting is then.
func timeOf(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting, at, text, zone string, length time.Duration) (protocol.MeetingTime, error) {
	start, fault := schedule.Parse(text, zone)
	if fault != nil {
		if fault.Pointer == "/startsAt" {
			fault.Pointer = at
		}
		return protocol.MeetingTime{}, protocol.Invalid(*fault)
	}
	t := protocol.MeetingTime{StartsAt: start, EndsAt: start.Add(length)}
	if err := within(tx, at, start); err != nil {
		return t, err
	}
	return t, free(ctx, tx, r, t)
}

// within refuses a start that is not from 15 minutes to 90 days ahead (spec §2.13), on a clock that shows
// seconds.
func within(tx *storage.Tx, at string, start time.Time) error {
	now := tx.Now.Truncate(time.Second)
	if start.Before(now.Add(protocol.MinMeetingNotice*time.Minute)) || start.After(now.Add(protocol.MaxMeetingDays*24*time.Hour)) {
		return protocol.Invalid(protocol.Fault{Pointer: at, Code: "out-of-range", Detail: "must be from 15 minutes to 90 days ahead"})
	}
	return nil
}

// Propose answers a request with other times.
func (m *Meeting) Propose(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingProposal) (protocol.OwnMeeting, error) {
	decision := protocol.MeetingDecision{OwnMeetingRef: in.OwnMeetingRef, Answer: in.Answer}
	return m.decide(ctx, tx, c, decision, protocol.MeetingProposed, "other times are proposed", func(r *storage.StoredMeeting) error {
		r.Proposals = nil
		for i, text := range in.Times {
			t, err := timeOf(ctx, tx, r, fmt.Sprintf("/times/%d", i), text, in.TimeZone, r.EndsAt.Sub(r.StartsAt))
			if err != nil {
				return err
			}
			r.Proposals = append(r.Proposals, t)
		}
		return nil
	}, protocol.MeetingSubmitted)
}

// Move moves an approved meeting to another time.
func (m *Meeting) Move(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingMove) (protocol.OwnMeeting, error) {
	r, _, err := ownMeeting(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.OwnMeeting{}, err
	}
	if state := stateNow(tx, r); state != protocol.MeetingApproved {
		return protocol.OwnMeeting{}, protocol.Errorf(protocol.Conflict, "the request is %s; only an approved meeting can be moved", state)
	}
	length := r.EndsAt.Sub(r.StartsAt)
	if in.DurationMin != 0 {
		length = time.Duration(in.DurationMin) * time.Minute
	}
	t, err := timeOf(ctx, tx, r, "/startsAt", in.StartsAt, in.TimeZone, length)
	if err != nil {
		return protocol.OwnMeeting{}, err
	}
	if !t.StartsAt.Equal(r.StartsAt) || !t.EndsAt.Equal(r.EndsAt) {
		note := "moved from " + r.StartsAt.UTC().Format(time.RFC3339)
		r.StartsAt, r.EndsAt = t.StartsAt, t.EndsAt
		if in.Answer != "" {
			r.Answer = in.Answer
		}
		if err := m.move(ctx, tx, r, change{to: protocol.MeetingApproved, note: note, byPerson: true}); err != nil {
			return protocol.OwnMeeting{}, err
		}
	}
	return m.ownView(ctx, tx, r)
}
