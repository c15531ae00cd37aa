package protocol

import "time"

// What a person does with meeting requests.

// A MeetingWarning is one thing that the person should know about a request. It refuses nothing.
type MeetingWarning string

const (
	WarnOutsideHours MeetingWarning = "outside-hours"
	WarnOverlaps     MeetingWarning = "overlaps"      // another meeting, or a request that waits
	WarnOverlapsBusy MeetingWarning = "overlaps-busy" // busy time of a calendar
	WarnInBuffer     MeetingWarning = "in-buffer"
	WarnDayFull      MeetingWarning = "day-full"
	WarnWeekFull     MeetingWarning = "week-full"
	WarnBusyStale    MeetingWarning = "busy-stale" // a calendar could not be read for a while
	WarnDisposable   MeetingWarning = "disposable-mail"
)

// A MeetingMail is how far the mail of a meeting to its requester is.
type MeetingMail string

const (
	MeetingMailNone    MeetingMail = "none"    // the node sends no mail, or the mailbox takes none
	MeetingMailQueued  MeetingMail = "queued"  // to be sent
	MeetingMailSent    MeetingMail = "sent"    // the mail server has taken it
	MeetingMailFailed  MeetingMail = "failed"  // given up
	MeetingMailBounced MeetingMail = "bounced" // it came back: the mailbox does not exist, or takes no mail
)

// A MeetingAnswer is what a requester's calendar answered to the invitation.
type MeetingAnswer string

const (
	AnswerAccepted  MeetingAnswer = "accepted"
	AnswerTentative MeetingAnswer = "tentative"
	AnswerDeclined  MeetingAnswer = "declined" // the meeting is cancelled by it, when it is verified
	AnswerProposed  MeetingAnswer = "proposed" // another time
)

// A MeetingAttendance is an answer to the invitation, by mail.
type MeetingAttendance struct {
	Answer   MeetingAnswer `json:"answer" enum:"accepted,tentative,declined,proposed" doc:"proposed: the requester would rather meet at startsAt, and the meeting stays as it is until you move it."`
	At       time.Time     `json:"at" doc:"When it came."`
	Verified bool          `json:"verified" doc:"It came from the invited mailbox. Other answers change nothing."`
	StartsAt *time.Time    `json:"startsAt" doc:"Time that is proposed; null for none, or one that cannot be read."`
	EndsAt   *time.Time    `json:"endsAt"`
	Comment  string        `json:"comment" doc:"What the requester wrote with it; empty for nothing."`
}

// An OwnMeeting is a request to the caller.
type OwnMeeting struct {
	MeetingRequest
	Email     *string          `json:"email" doc:"Of the requester, confirmed by a mail; null once it is deleted, 30 days after the meeting."`
	Confirmed bool             `json:"emailConfirmed" doc:"Whoever reads the mailbox has confirmed the request. False on a node that sends no mail."`
	Author    Author           `json:"author" doc:"Who sent the request."`
	Warnings  []MeetingWarning `json:"warnings" enum:"outside-hours,overlaps,overlaps-busy,in-buffer,day-full,week-full,busy-stale,disposable-mail" doc:"What is to be known about the time of a request that waits for you; of an approved meeting the two of calendars. overlaps: another meeting, or a request that waits. overlaps-busy: busy time of a calendar. busy-stale: a calendar could not be read for a while. disposable-mail: the mailbox is at a domain where anyone has one for some minutes."`
	Mail      MeetingMail      `json:"mail" enum:"none,queued,sent,failed,bounced" doc:"The last mail to the requester."`
	Calendar  MeetingCalendar  `json:"calendar" doc:"Whether it is on your calendar."`

	Attendance *MeetingAttendance `json:"attendance,omitempty" doc:"What the requester's calendar answered to the invitation as it is now. Left out: nothing, or the node reads no answers."`
}

// An OwnMeetingQuery selects requests to the caller.
type OwnMeetingQuery struct {
	Owned
	State MeetingState `json:"state,omitempty" enum:"submitted,proposed,approved,declined,withdrawn,expired,cancelled,done,no_show" doc:"Only requests in this state. submitted: waiting for you."`
	From  string       `json:"from,omitempty" format:"date-time" maxLength:"40" doc:"Meetings from here on, RFC 3339 with an offset: those that are approved, wait for you or took place, in the order of their times. Not with state."`
	To    string       `json:"to,omitempty" format:"date-time" maxLength:"40" doc:"Meetings that begin before this, at most 31 days after from. Left out: seven days after from."`
	Paging
}

// Range returns the asked range of times; ok is false when none was asked for. The faults are of Check.
func (q OwnMeetingQuery) Range() (from, to time.Time, ok bool, faults []Fault) {
	from, to, faults = MeetingQuery{From: q.From, To: q.To}.Range(time.Time{})
	switch {
	case q.From == "" && q.To == "":
		return from, to, false, nil
	case q.From == "":
		faults = []Fault{{"/from", "required", "is needed with to"}}
	case q.State != "":
		faults = append(faults, Fault{"/state", "not-with-from", "leave it out with from"})
	}
	return from, to, true, faults
}

// Check returns the faults of the range.
func (q OwnMeetingQuery) Check() []Fault {
	_, _, _, faults := q.Range()
	return faults
}

// An OwnMeetingRef names one request to the caller.
type OwnMeetingRef struct {
	ID string `json:"id" shape:"meeting-id" doc:"Id of the request." example:"mtg_01k9y3v6k8e5w9q2x4z7c1m0ad"`
}

var exampleMeeting = OwnMeetingRef{exampleMeetingID}

var ListMeetings = declare[OwnMeetingQuery, Page[OwnMeeting]](Operation{
	Name: "list_meetings", Title: "List meeting requests",
	Summary: "The meeting requests to a profile of yours whose mailbox is confirmed, newest first; with from, the meetings of some days.",
	HTTP:    Route{"GET", "/api/owner/meetings", 200}, For: Owners, Scope: ScopeMeetings, ReadOnly: true,
	Codes:   []Code{Forbidden, NotFound, InvalidCursor},
	Example: OwnMeetingQuery{Owned: Owned{"asha"}, State: MeetingSubmitted},
})

var GetOwnMeeting = declare[OwnMeetingRef, OwnMeeting](Operation{
	Name: "get_own_meeting", Title: "Read a meeting request to you",
	Summary: "One meeting request to a profile of yours, with what is to be known about its time.",
	HTTP:    Route{"GET", "/api/owner/meetings/{id}", 200}, For: Owners, Scope: ScopeMeetings, ReadOnly: true, Codes: []Code{NotFound},
	Example: exampleMeeting,
})

// A MeetingDecision decides on a request.
type MeetingDecision struct {
	OwnMeetingRef
	Answer string `json:"answer,omitempty" visible:"true" maxLength:"500" doc:"Plain text, for the requester. Left out: none."`
}

var ApproveMeeting = declare[MeetingDecision, OwnMeeting](Operation{
	Name: "approve_meeting", Title: "Approve a meeting",
	Summary: "Approves a request at its time. The requester gets a mail.",
	Description: "It is refused with conflict when you have approved another meeting at that time; propose_meeting_times offers others. " +
		"Other warnings refuse nothing.",
	HTTP: Route{"POST", "/api/owner/meetings/{id}/approve", 200}, For: Owners, Idempotent: true, Scope: ScopeMeetings,
	Codes: []Code{NotFound, Conflict}, Example: MeetingDecision{OwnMeetingRef: exampleMeeting},
})

// MeetingBlock is whose further requests a person refuses.
type MeetingBlock string

const (
	BlockMailbox MeetingBlock = "mailbox" // the mailbox, with any +tag
	BlockDomain  MeetingBlock = "domain"  // every mailbox of the domain and its subdomains
)

// A MeetingRefusal declines a request.
type MeetingRefusal struct {
	MeetingDecision
	Block MeetingBlock `json:"block,omitempty" enum:"none,mailbox,domain" default:"none" doc:"Whose further requests are refused: of this mailbox, or of every mailbox of its domain. list_blocked_writers lists it, unblock_writer undoes it."`
}

var DeclineMeeting = declare[MeetingRefusal, OwnMeeting](Operation{
	Name: "decline_meeting", Title: "Decline a meeting",
	Summary: "Declines a request that waits. The requester gets a mail, without a reason unless you write one.",
	HTTP:    Route{"POST", "/api/owner/meetings/{id}/decline", 200}, For: Owners, Idempotent: true, Scope: ScopeMeetings,
	Codes:   []Code{NotFound, Conflict},
	Example: MeetingRefusal{MeetingDecision: MeetingDecision{OwnMeetingRef: exampleMeeting}},
})

// A MeetingProposal proposes other times.
type MeetingProposal struct {
	OwnMeetingRef
	Times    []string `json:"times" minItems:"1" maxItems:"3" uniqueItems:"true" doc:"Start times: RFC 3339 with an offset, or local times with timezone."`
	TimeZone string   `json:"timezone,omitempty" shape:"zone" maxLength:"60" doc:"IANA time zone of times without an offset."`
	Answer   string   `json:"answer,omitempty" visible:"true" maxLength:"500" doc:"Plain text, for the requester. Left out: none."`
}

var ProposeMeetingTimes = declare[MeetingProposal, OwnMeeting](Operation{
	Name: "propose_meeting_times", Title: "Propose other times",
	Summary:     "Answers a request with one to three other times. The requester takes one within 72 hours, and the meeting is approved with it.",
	Description: "Each time is from 15 minutes to 90 days ahead and does not overlap a meeting that you have approved.",
	HTTP:        Route{"POST", "/api/owner/meetings/{id}/propose", 200}, For: Owners, Scope: ScopeMeetings, Codes: []Code{NotFound, Conflict},
	Example: MeetingProposal{OwnMeetingRef: exampleMeeting, Times: []string{"2026-12-02T11:00:00+05:30"}},
})

// A MeetingMove moves an approved meeting.
type MeetingMove struct {
	OwnMeetingRef
	StartsAt    string `json:"startsAt" shape:"moment" doc:"RFC 3339 with an offset, or local time with timezone." example:"2026-12-02T11:00:00+05:30"`
	TimeZone    string `json:"timezone,omitempty" shape:"zone" maxLength:"60" doc:"IANA time zone of a startsAt without an offset."`
	DurationMin int    `json:"durationMin,omitempty" minimum:"5" maximum:"240" doc:"Another length in minutes. Left out: as it is."`
	Answer      string `json:"answer,omitempty" visible:"true" maxLength:"500" doc:"Plain text, for the requester. Left out: none."`
}

var MoveMeeting = declare[MeetingMove, OwnMeeting](Operation{
	Name: "move_meeting", Title: "Move a meeting",
	Summary: "Moves an approved meeting to another time. It stays approved, its sequence is raised, and the requester gets a mail.",
	HTTP:    Route{"POST", "/api/owner/meetings/{id}/move", 200}, For: Owners, Scope: ScopeMeetings, Codes: []Code{NotFound, Conflict},
	Example: MeetingMove{OwnMeetingRef: exampleMeeting, StartsAt: "2026-12-02T11:00:00+05:30"},
})

var CancelOwnMeeting = declare[MeetingDecision, OwnMeeting](Operation{
	Name: "cancel_own_meeting", Title: "Cancel a meeting",
	Summary: "Cancels a meeting that you have approved, before it is over. The requester gets a mail.",
	HTTP:    Route{"POST", "/api/owner/meetings/{id}/cancel", 200}, For: Owners, Idempotent: true, Scope: ScopeMeetings, Codes: []Code{NotFound, Conflict},
	Example: MeetingDecision{OwnMeetingRef: exampleMeeting},
})

var MarkNoShow = declare[OwnMeetingRef, OwnMeeting](Operation{
	Name: "mark_no_show", Title: "Mark that nobody came",
	Summary: "Says that the requester did not come to a meeting that has begun.",
	HTTP:    Route{"POST", "/api/owner/meetings/{id}/no-show", 200}, For: Owners, Idempotent: true, Scope: ScopeMeetings,
	Codes: []Code{NotFound, Conflict}, Example: exampleMeeting,
})
