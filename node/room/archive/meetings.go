package archive

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// maxMeetings is how many requests an archive holds, the newest; those that are over are deleted after a year.
const maxMeetings = 5000

// maxSteps is how many states of a request an archive holds, the newest.
const maxSteps = 200

// A meetingRecord is one line of meetings.ndjson: a meeting request that the person sees. It has nothing
// that opens it or tells where its requester is: no hash of a token, no callback address, no cookie, no
// network.
type meetingRecord struct {
	ID         string               `json:"id" shape:"meeting-id"`
	State      string               `json:"state" enum:"submitted,proposed,approved,declined,withdrawn,expired,cancelled,done,no_show"`
	Requester  string               `json:"requester" line:"true" minLength:"1" maxLength:"80" doc:"Name that the requester gave."`
	Author     authorRecord         `json:"author"`
	Email      string               `json:"email,omitempty" maxLength:"254" doc:"Of the requester; left out 30 days after the meeting."`
	Confirmed  bool                 `json:"emailConfirmed"`
	Purpose    string               `json:"purpose" minLength:"1" maxLength:"500"`
	StartsAt   time.Time            `json:"startsAt"`
	EndsAt     time.Time            `json:"endsAt"`
	TimeZone   string               `json:"timezone,omitempty" shape:"zone" maxLength:"60"`
	Language   string               `json:"language,omitempty" enum:"en,hi"`
	Proposals  []timeRecord         `json:"proposals,omitempty" maxItems:"3"`
	Location   string               `json:"location,omitempty" maxLength:"2000"`
	Answer     string               `json:"answer,omitempty" maxLength:"500"`
	GaveWay    bool                 `json:"gaveWay,omitempty"`
	Mail       protocol.MeetingMail `json:"mail,omitempty" enum:"none,queued,sent,failed,bounced" doc:"The last mail to the requester."`
	Sequence   int                  `json:"sequence" minimum:"0" maximum:"1000000"`
	Attendance *attendanceRecord    `json:"attendance,omitempty"`
	CreatedAt  time.Time            `json:"createdAt"`
	History    []stepRecord         `json:"history" minItems:"1" maxItems:"200"`
}

type timeRecord struct {
	StartsAt time.Time `json:"startsAt"`
	EndsAt   time.Time `json:"endsAt"`
}

type stepRecord struct {
	State string    `json:"state" enum:"unconfirmed,submitted,proposed,approved,declined,withdrawn,expired,cancelled,done,no_show"`
	At    time.Time `json:"at"`
	Note  string    `json:"note" maxLength:"300"`
}

type attendanceRecord struct {
	Answer   string     `json:"answer" enum:"accepted,tentative,declined,proposed"`
	At       time.Time  `json:"at"`
	StartsAt *time.Time `json:"startsAt,omitempty"`
	EndsAt   *time.Time `json:"endsAt,omitempty"`
	Comment  string     `json:"comment,omitempty" maxLength:"1000"`
}

// Check returns the faults that request_meeting finds.
func (m meetingRecord) Check() []protocol.Fault {
	faults := protocol.NewMeeting{Email: cmp.Or(m.Email, "a@example.org")}.Check()
	if length := m.EndsAt.Sub(m.StartsAt); length < 5*time.Minute || length > 240*time.Minute {
		faults = append(faults, protocol.Fault{Pointer: "/endsAt", Code: "out-of-range", Detail: "is 5 to 240 minutes after startsAt"})
	}
	if m.StartsAt.Year() < 2000 || m.StartsAt.Year() > 2200 {
		faults = append(faults, protocol.Fault{Pointer: "/startsAt", Code: "out-of-range", Detail: "is not a time of a meeting"})
	}
	return faults
}

// meetings writes the meeting requests that the person sees, newest first. Without any there is no
// member: older nodes refuse members that they do not know.
func (e *exporting) meetings(ctx context.Context) error {
	page, err := e.tx.Meetings().List(ctx, e.handle, "", protocol.MaxLimit, "")
	if err != nil || len(page.Items) == 0 {
		return err
	}
	return e.member(meetingsFile, func(line func(any) error) error {
		for n := 0; ; {
			for i := range page.Items {
				m, err := e.tx.Leavings().Meeting(ctx, &page.Items[i])
				if err == nil {
					err = line(meeting(m))
				}
				if err != nil {
					return err
				}
				if n++; n == maxMeetings {
					return nil
				}
			}
			if page.Next == nil {
				return nil
			}
			if page, err = e.tx.Meetings().List(ctx, e.handle, "", protocol.MaxLimit, *page.Next); err != nil {
				return err
			}
		}
	})
}

func meeting(m *storage.StoredMeeting) meetingRecord {
	r := meetingRecord{
		ID: m.ID, State: string(m.State), Requester: m.Name, Author: recordOf(m.Author), Email: m.Mail, Confirmed: m.Confirmed, Purpose: m.Purpose,
		StartsAt: m.StartsAt, EndsAt: m.EndsAt, TimeZone: m.TimeZone, Language: m.Language, Location: m.Location, Answer: m.Answer, GaveWay: m.GaveWay,
		Mail: m.Sent, Sequence: m.Sequence, CreatedAt: m.AskedAt,
	}
	for _, p := range m.Proposals {
		r.Proposals = append(r.Proposals, timeRecord(p))
	}
	for _, s := range m.History[max(0, len(m.History)-maxSteps):] {
		r.History = append(r.History, stepRecord{string(s.State), s.At, s.Note})
	}
	if a := m.Attends; a != nil && (a.Sequence == m.Sequence || a.Answer == protocol.AnswerDeclined) {
		r.Attendance = &attendanceRecord{string(a.Answer), a.At, a.StartsAt, a.EndsAt, a.Comment}
	}
	return r
}

func (im *importing) meeting(r record) (in meetingRecord, err error) {
	if err := im.decode(r, &in); err != nil {
		return in, err
	}
	if im.profile.Draft.Kind == protocol.Business {
		return in, refused("only the profile of a person can have meeting requests")
	}
	if r.n > maxMeetings {
		return in, refused("an archive holds at most %d meeting requests", maxMeetings)
	}
	return in, nil
}

func (im *importing) meetingStep(r record) (step, error) {
	in, err := im.meeting(r)
	return step{begins: true, do: func(ctx context.Context, tx *storage.Tx) error { return im.storeMeeting(ctx, tx, &in) }}, err
}

// storeMeeting stores a request as a record: it is over here, nobody opens it, and nobody is told.
func (im *importing) storeMeeting(ctx context.Context, tx *storage.Tx, in *meetingRecord) error {
	switch here, err := tx.Meetings().ByID(ctx, in.ID); {
	case err == nil && here.Handle == im.handle:
		im.report.Meetings.Same++
		return nil
	case err == nil:
		im.report.Meetings.LeftOut++
		im.note("meeting requests were left out: their id is taken")
		return nil
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	m := im.overMeeting(in, tx.Now)
	rand.Read(m.TokenHash[:]) // of a token that nobody has
	im.report.Meetings.New++
	return tx.Meetings().Import(ctx, m)
}

// overMeeting returns a request as it is stored. One that is open at the other node stays there: here it has expired.
func (im *importing) overMeeting(in *meetingRecord, now time.Time) *storage.StoredMeeting {
	m := &storage.StoredMeeting{
		ID: in.ID, Handle: im.handle, State: protocol.MeetingState(in.State), Shown: true, StartsAt: in.StartsAt.UTC().Truncate(time.Millisecond),
		EndsAt: in.EndsAt.UTC().Truncate(time.Millisecond), Requester: "at:" + im.host, AskedAt: notAfter(in.CreatedAt, now), Sequence: in.Sequence,
		MeetingDoc: storage.MeetingDoc{
			Author: im.author(in.Author), Name: in.Requester, Mail: in.Email, Confirmed: in.Confirmed && im.signed, Purpose: in.Purpose, TimeZone: in.TimeZone,
			Location: in.Location, Answer: in.Answer, GaveWay: in.GaveWay, Sent: in.Mail, Language: in.Language,
		},
	}
	for _, p := range in.Proposals {
		m.Proposals = append(m.Proposals, protocol.MeetingTime(p))
	}
	for _, s := range in.History {
		m.History = append(m.History, protocol.MeetingStep{State: protocol.MeetingState(s.State), At: notAfter(s.At, now), Note: s.Note})
	}
	if a := in.Attendance; a != nil {
		m.Attends = &storage.Attendance{Sequence: in.Sequence, Stamp: notAfter(a.At, now), MeetingAttendance: protocol.MeetingAttendance{
			Answer: protocol.MeetingAnswer(a.Answer), At: notAfter(a.At, now), StartsAt: a.StartsAt, EndsAt: a.EndsAt, Comment: a.Comment}}
	}
	end := func(to protocol.MeetingState, note string) {
		m.State = to
		m.History = append(m.History, protocol.MeetingStep{State: to, At: now, Note: note})
	}
	over := !m.EndsAt.After(now)
	switch {
	case m.State == protocol.MeetingApproved && over:
		end(protocol.MeetingDone, "")
	case m.State == protocol.MeetingApproved:
		end(protocol.MeetingExpired, "it is approved at "+im.host+", which keeps it: this node has it as a record only")
		im.note("meetings that are approved and not over stay with %s: they are records here, on no calendar, and their requesters hear from there", im.host)
	case m.State.Waits():
		end(protocol.MeetingExpired, "it waits at "+im.host+", which keeps it: this node has it as a record only")
		im.note("meeting requests that wait stay with %s: decide on them there", im.host)
	case m.State == protocol.MeetingDone && !over, m.State == protocol.MeetingNoShow && m.StartsAt.After(now):
		end(protocol.MeetingExpired, "its time is not over")
	}
	m.Moves, m.MovedAt = len(m.History), m.History[len(m.History)-1].At
	// The address is deleted when the other node deletes it.
	if until := latest(notAfter(m.EndsAt, now), m.MovedAt).Add(protocol.MeetingMailKept); m.Mail != "" && until.After(now) {
		m.MailUntil = until
	} else {
		m.Mail = ""
	}
	return m
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
