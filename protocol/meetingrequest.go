package protocol

import "time"

// A NewMeeting asks a person for a meeting (spec §2.13).
type NewMeeting struct {
	Handle      string `json:"handle" shape:"handle" doc:"Handle of the person, in any case, with or without @." example:"asha"`
	Requester   string `json:"requester" line:"true" minLength:"1" maxLength:"80" doc:"Name of who wants to meet; shown as unverified."`
	Email       string `json:"email" maxLength:"254" doc:"Where the mail to confirm the request goes, and the invite."`
	Purpose     string `json:"purpose" minLength:"1" maxLength:"500" doc:"What the meeting is about; plain text for the person."`
	DurationMin int    `json:"durationMin" minimum:"5" maximum:"240" doc:"Length in minutes, one of the lengths that get_meeting_info lists."`
	StartsAt    string `json:"startsAt" shape:"moment" doc:"From 15 minutes to 90 days ahead, a whole minute: RFC 3339 with an offset, or local time with timezone." example:"2026-12-01T11:00:00+05:30"`
	TimeZone    string `json:"timezone,omitempty" shape:"zone" maxLength:"60" doc:"IANA time zone of the requester. Needed when startsAt has no offset."`
	Language    string `json:"language,omitempty" enum:"en,hi" default:"en" doc:"Language of mails to the requester: English or Hindi."`
	CallbackURL string `json:"callbackUrl,omitempty" shape:"callback" format:"uri" maxLength:"500" doc:"Public https address that is told of each change of the request, signed by this node."`
}

// Check returns the faults that tags cannot express.
func (n NewMeeting) Check() (faults []Fault) {
	if _, err := ParseMail(n.Email); err != nil {
		faults = append(faults, Fault{"/email", "not-an-address", "must be a mail address such as ravi@example.org"})
	}
	return faults
}

// A MeetingStep is one state that a request was in.
type MeetingStep struct {
	State MeetingState `json:"state" enum:"unconfirmed,submitted,proposed,approved,declined,withdrawn,expired,cancelled,done,no_show"`
	At    time.Time    `json:"at"`
	Note  string       `json:"note" doc:"Why, in words; empty for none."`
}

// A MeetingRequest is a meeting request as its requester sees it. It has no mail address.
type MeetingRequest struct {
	ID            string         `json:"id" pattern:"^mtg_"`
	Handle        string         `json:"handle" doc:"The person that is asked."`
	State         MeetingState   `json:"state" enum:"unconfirmed,submitted,proposed,approved,declined,withdrawn,expired,cancelled,done,no_show"`
	Requester     string         `json:"requester" doc:"Name that the requester gave."`
	Purpose       string         `json:"purpose"`
	DurationMin   int            `json:"durationMin" minimum:"5"`
	StartsAt      time.Time      `json:"startsAt"`
	EndsAt        time.Time      `json:"endsAt"`
	TimeZone      *string        `json:"timezone" doc:"Of the requester; null when none was given."`
	Proposals     []MeetingTime  `json:"proposals" doc:"Times that the person proposes; pick_meeting_time takes one."`
	AnswerBy      *time.Time     `json:"answerBy" doc:"When a request that waits expires; null for one that does not wait."`
	Sequence      int            `json:"sequence" minimum:"0" doc:"How often the meeting was moved or cancelled, as in the invite."`
	Location      *string        `json:"location" doc:"Once it is approved; null for none."`
	Answer        *string        `json:"answer" doc:"What the person wrote; null for nothing."`
	ICS           *string        `json:"ics" format:"uri" doc:"Address of the meeting as an iCalendar file; it shows moves and a cancellation too. Null before it is approved."`
	AddToCalendar *AddToCalendar `json:"addToCalendar,omitempty" doc:"Links that put it on a calendar; left out unless it is approved."`
	CreatedAt     time.Time      `json:"createdAt"`
	History       []MeetingStep  `json:"history" doc:"Every state, oldest first."`
	Note          string         `json:"note" doc:"What to do next, in words."`
	Untrusted     bool           `json:"untrusted_content" doc:"Always true."`
}

// A MeetingReceipt is the answer to a new request. StatusToken is shown once.
type MeetingReceipt struct {
	Request     MeetingRequest `json:"request"`
	StatusURL   string         `json:"statusUrl" format:"uri" doc:"Where the state of the request is read."`
	StatusToken string         `json:"statusToken" doc:"Opens the request: over HTTP as Authorization: Bearer, never in a URL. Shown once. Not needed with the requester's signature."`
}

// A MeetingUpdate is the document that is sent to a request's callbackUrl for each change of its
// state.
type MeetingUpdate struct {
	Type      string         `json:"type" enum:"meeting.updated"`
	ID        string         `json:"id" doc:"Of the update, and of the delivery: the value of Webhook-Id."`
	MeetingID string         `json:"meetingId" pattern:"^mtg_"`
	Handle    string         `json:"handle" doc:"The person that is asked."`
	State     MeetingState   `json:"state" enum:"unconfirmed,submitted,proposed,approved,declined,withdrawn,expired,cancelled,done,no_show"`
	CreatedAt time.Time      `json:"createdAt" doc:"When the state changed."`
	Request   MeetingRequest `json:"request" doc:"The request now, which may have changed again."`
}

// A MeetingInput names one request of the caller.
type MeetingInput struct {
	ID          string `json:"id" shape:"meeting-id" doc:"Id of the request." example:"mtg_01k9y3v6k8e5w9q2x4z7c1m0ad"`
	StatusToken string `json:"statusToken,omitempty" maxLength:"100" doc:"Of request_meeting. Not needed with the requester's signature or token; over HTTP as Authorization: Bearer, never in the URL."`
}

const exampleMeetingID = "mtg_01k9y3v6k8e5w9q2x4z7c1m0ad"

var RequestMeeting = declare[NewMeeting, MeetingReceipt](Operation{
	Name: "request_meeting", Title: "Ask for a meeting",
	Summary: "Requests a meeting with no account; the owner approves first; the invite goes to the given email.",
	Description: "The mailbox gets a mail first, and its link must be used within 24 hours before the person sees the request. " +
		"get_meeting reads the state.",
	HTTP: Route{"POST", "/api/public/agents/{handle}/meetings", 201}, Doors: Everywhere,
	Access: OwnerOrProof, Scope: ScopePost, Confirm: true, Purpose: "meeting", Visitor: true, Codes: []Code{NotFound, Forbidden, ContactRefused, Conflict},
	Delivers: &Delivery{"meeting_updated", "callbackUrl", MeetingUpdate{}},
	Example: NewMeeting{Handle: "asha", Requester: "Ravi Iyer", Email: "ravi@example.org", Purpose: "Prices for 40 kg of yarn.", DurationMin: 30,
		StartsAt: "2026-12-01T11:00:00+05:30", TimeZone: "Asia/Kolkata"},
})

var GetMeeting = declare[MeetingInput, MeetingRequest](Operation{
	Name: "get_meeting", Title: "Read a meeting request",
	Summary: "The state of a request made with request_meeting, by its status token.",
	HTTP:    Route{"GET", "/api/public/meetings/{id}", 200}, Doors: Everywhere, ReadOnly: true,
	NoStore: true, Secret: "statusToken", Visitor: true, Codes: []Code{NotFound, Unauthorized},
	Example: MeetingInput{ID: exampleMeetingID},
})

var CancelMeeting = declare[MeetingInput, MeetingRequest](Operation{
	Name: "cancel_meeting", Title: "Cancel a meeting request",
	Summary:     "The requester withdraws a request that waits, or cancels a meeting that was approved.",
	Description: "A cancelled meeting is taken off the calendar, and the person is told.",
	HTTP:        Route{"POST", "/api/public/meetings/{id}/cancel", 200}, Doors: Everywhere, Idempotent: true,
	Secret: "statusToken", Visitor: true, Codes: []Code{NotFound, Unauthorized, Conflict},
	Example: MeetingInput{ID: exampleMeetingID},
})

// A MeetingPick takes one of the proposed times.
type MeetingPick struct {
	MeetingInput
	StartsAt time.Time `json:"startsAt" doc:"One of proposals." example:"2026-12-01T11:00:00Z"`
}

var PickMeetingTime = declare[MeetingPick, MeetingRequest](Operation{
	Name: "pick_meeting_time", Title: "Take a proposed time",
	Summary:     "The requester takes one of the times that the person proposes; the meeting is approved with it.",
	Description: "It is refused with conflict when the person has another meeting at that time by now.",
	HTTP:        Route{"POST", "/api/public/meetings/{id}/pick", 200}, Doors: Everywhere, Idempotent: true,
	Secret: "statusToken", Visitor: true, Codes: []Code{NotFound, Unauthorized, Conflict},
	Example: MeetingPick{MeetingInput{ID: exampleMeetingID}, time.Date(2026, 12, 1, 11, 0, 0, 0, time.UTC)},
})

// MeetingLinkDo is what the link of a mail about a meeting can do.
type MeetingLinkDo string

// What a link can do.
const (
	MeetingLinkConfirm MeetingLinkDo = "confirm" // whoever reads the mailbox asked for the meeting
	MeetingLinkStop    MeetingLinkDo = "stop"    // this node sends the mailbox no mail about meetings any more
)

// A MeetingLinkInput is the ticket of a link.
type MeetingLinkInput struct {
	Ticket string `json:"ticket,omitempty" maxLength:"120" doc:"What the address in the mail has after ticket=; over HTTP send it as Authorization: Bearer."`
}

// A MeetingLink is what a link would do. It has nothing that the requester wrote.
type MeetingLink struct {
	Do        []MeetingLinkDo      `json:"do" enum:"confirm,stop" doc:"Of which use_meeting_link does one."`
	Requests  []MeetingLinkRequest `json:"requests" doc:"What waits for the reader of the mailbox, newest first; empty for a link that only stops mail."`
	Untrusted bool                 `json:"untrusted_content" doc:"Always true."`
}

// A MeetingLinkRequest is a request that a link can confirm.
type MeetingLinkRequest struct {
	ID       string    `json:"id"`
	Handle   string    `json:"handle" doc:"The person that is asked."`
	Name     string    `json:"name" doc:"Name of the person."`
	StartsAt time.Time `json:"startsAt"`
	EndsAt   time.Time `json:"endsAt"`
	TimeZone string    `json:"timezone" doc:"Of the requester; empty for none."`
}

var ReadMeetingLink = declare[MeetingLinkInput, MeetingLink](Operation{
	Name: "read_meeting_link", Title: "Read the link of a mail about a meeting",
	Summary: "What the link of a mail about a meeting would do. Nothing is done.",
	HTTP:    Route{"GET", "/api/public/meeting-link", 200}, Doors: HTTP, ReadOnly: true,
	NoStore: true, Secret: "ticket", Codes: []Code{Unauthorized, Gone},
	Example: MeetingLinkInput{},
})

// A MeetingLinkUse uses a link.
type MeetingLinkUse struct {
	MeetingLinkInput
	ID string        `json:"id,omitempty" shape:"meeting-id" doc:"With confirm: which of requests. Not needed for the only one."`
	Do MeetingLinkDo `json:"do" enum:"confirm,stop" doc:"confirm: you asked for this meeting. stop: this node sends you no mail about meetings any more."`
}

// A MeetingLinkDone is what a link has done.
type MeetingLinkDone struct {
	Done  MeetingLinkDo `json:"done" enum:"confirm,stop"`
	State *MeetingState `json:"state" enum:"unconfirmed,submitted,proposed,approved,declined,withdrawn,expired,cancelled,done,no_show" nullable:"true" doc:"State of the request now; null when mail was stopped."`
	URL   *string       `json:"url" format:"uri" doc:"Page of the request, for whoever reads its mailbox; null when mail was stopped."`
}

var UseMeetingLink = declare[MeetingLinkUse, MeetingLinkDone](Operation{
	Name: "use_meeting_link", Title: "Use the link of a mail about a meeting",
	Summary:     "Confirms the mailbox of a meeting request, or stops mail to it, by the link of a mail.",
	Description: "A request is confirmed once. The link shows what waits for the mailbox when it is opened.",
	HTTP:        Route{"POST", "/api/public/meeting-link", 200}, Doors: HTTP,
	Secret: "ticket", Codes: []Code{Unauthorized, Gone, Conflict},
	Example: MeetingLinkUse{Do: MeetingLinkConfirm},
})
