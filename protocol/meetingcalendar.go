package protocol

import (
	"strings"
	"time"
)

// Limits of the calendars of a person. They are the node's own.
const (
	MaxCalendarAccounts = 5               // of one profile
	MaxCalendarsRead    = 10              // of one account
	BusyFor             = 5 * time.Minute // for so long busy times are not read again
	BusyKept            = 24 * time.Hour  // for so long those of a calendar that cannot be read are used
)

// A CalendarState is how far the event of a meeting on the person's calendar is.
type CalendarState string

const (
	CalendarNone    CalendarState = "none"    // nothing is to be on a calendar
	CalendarPending CalendarState = "pending" // to be written or deleted; Reason says why not yet
	CalendarWritten CalendarState = "written" // the calendar has it as it is now
	CalendarRemoved CalendarState = "removed" // the meeting was cancelled, and its event deleted
	CalendarFailed  CalendarState = "failed"  // given up
)

// A MeetingCalendar says whether a meeting is on the person's calendar.
type MeetingCalendar struct {
	State    CalendarState `json:"state" enum:"none,pending,written,removed,failed" doc:"none: it is not approved, or no calendar is chosen for writing."`
	Calendar *string       `json:"calendar" doc:"Name of the calendar, or its address if it has none; null for none."`
	Reason   *string       `json:"reason" doc:"Why the last attempt failed, and what to do; null for nothing."`
}

// A FoundCalendar is a calendar that a server has for its user.
type FoundCalendar struct {
	URL  string `json:"url" doc:"Address of the calendar."`
	Name string `json:"name" doc:"As the owner called it on the server; may be empty."`
}

// A CalendarAccount is an account at a calendar server (CalDAV). Its password is never shown.
type CalendarAccount struct {
	ID          string          `json:"id" pattern:"^cal_"`
	Handle      string          `json:"handle"`
	Address     string          `json:"address" doc:"As it was given to connect_calendar."`
	User        string          `json:"user"`
	Checking    bool            `json:"checking" doc:"The node asks the server now, or at its next attempt; ask again in some seconds."`
	Calendars   []FoundCalendar `json:"calendars" doc:"What the server had at the last check."`
	Reads       []string        `json:"reads" doc:"Addresses of the calendars whose busy times count."`
	Writes      *string         `json:"writes" doc:"Address of the calendar on which approved meetings are put; null for none of this account."`
	BusyReadAt  *time.Time      `json:"busyReadAt" doc:"When busy times were read last; null for never."`
	LastSuccess *time.Time      `json:"lastSuccess" doc:"When the server last did what it was asked; null for never."`
	LastError   *string         `json:"lastError" doc:"Why it did not, last, and what to do; null when it has done it since."`
	LastErrorAt *time.Time      `json:"lastErrorAt"`
	CreatedAt   time.Time       `json:"createdAt"`
	Untrusted   bool            `json:"untrusted_content" doc:"Always true: names are those of the server."`
}

// CalendarAccounts are the calendars of a person.
type CalendarAccounts struct {
	Items     []CalendarAccount `json:"items" doc:"The oldest first, five at most."`
	BusyStale bool              `json:"busyStale" doc:"A calendar that is read could not be read for a while: its last known times are used for 24 hours, then none."`
	FeedAt    *time.Time        `json:"feedMadeAt" doc:"When make_meeting_feed made the address of your feed; null for no feed."`
}

// A CalendarLogin connects an account at a calendar server.
type CalendarLogin struct {
	Owned
	Address  string `json:"address" format:"uri" maxLength:"500" doc:"https address of the CalDAV server, of your own place there, or of one calendar."`
	User     string `json:"user" line:"true" minLength:"1" maxLength:"200" doc:"User name at the server."`
	Password string `json:"password" line:"true" minLength:"1" maxLength:"500" doc:"An app password, where the server makes them. It is stored encrypted, and never shown."`
}

// Check refuses what cannot be sent as a user name and a password (RFC 7617 §2).
func (l CalendarLogin) Check() []Fault {
	if strings.Contains(l.User, ":") {
		return []Fault{{"/user", "not-allowed", "must have no colon"}}
	}
	return nil
}

// A CalendarRef names an account at a calendar server.
type CalendarRef struct {
	ID string `json:"id" shape:"calendar-id" doc:"Id of the account at the calendar server." example:"cal_01k9y3v6k8e5w9q2x4z7c1m0ad"`
}

// A CalendarChoice says which calendars of an account are used.
type CalendarChoice struct {
	CalendarRef
	Reads  []string `json:"reads,omitempty" maxItems:"10" uniqueItems:"true" doc:"Addresses among calendars whose busy times count. Left out: none."`
	Writes string   `json:"writes,omitempty" maxLength:"2000" doc:"Address among calendars on which approved meetings are put; other accounts then have none. Left out: none."`
	Create string   `json:"create,omitempty" visible:"true" line:"true" maxLength:"80" doc:"Instead of writes: name of a calendar that the node makes on the server, for meetings alone."`
}

// Check refuses a choice of two calendars to write.
func (c CalendarChoice) Check() []Fault {
	if c.Writes != "" && c.Create != "" {
		return []Fault{{"/create", "not-allowed", "give writes or create, not both"}}
	}
	return nil
}

// CalendarFault says why an address cannot be that of a calendar server, "" when it can.
func CalendarFault(address string, private bool) string {
	if why := CallbackFault(address, private); why != "" {
		return why
	}
	if strings.Contains(address, "?") {
		return "must have no query"
	}
	return ""
}

// CalendarNoPassword is the last error of an account that came with an archive, which has no passwords.
const CalendarNoPassword = "the password did not come with the archive; connect the calendar again, with the same address and user name"

var exampleCalendar = CalendarRef{"cal_01k9y3v6k8e5w9q2x4z7c1m0ad"}

var ListCalendars = declare[OwnInput, CalendarAccounts](Operation{
	Name: "list_calendars", Title: "List your calendars",
	Summary: "The calendar servers that a person's profile of yours is connected to, their calendars, and what works.",
	HTTP:    Route{"GET", "/api/owner/calendars", 200}, For: Owners, Scope: ScopeMeetings, ReadOnly: true, Codes: []Code{Forbidden, NotFound},
	Example: OwnInput{Owned{"asha"}},
})

var ConnectCalendar = declare[CalendarLogin, CalendarAccount](Operation{
	Name: "connect_calendar", Title: "Connect a calendar",
	Summary: "Connects a person's profile of yours to a calendar server (CalDAV): busy times are read there, and approved meetings written.",
	Description: "The node asks the server after the answer; get_calendar shows what it found. Every calendar found is read; the one at the address, " +
		"or the only one, is written, unless another account's is; choose_calendars changes both. The same address and user again replaces the password.",
	HTTP: Route{"POST", "/api/owner/calendars", 200}, For: Owners, Idempotent: true, Scope: ScopeMeetings, Codes: []Code{Forbidden, NotFound, Conflict},
	Example: CalendarLogin{Owned{"asha"}, "https://cloud.example.org/remote.php/dav/", "asha", "app-password"},
})

var GetCalendar = declare[CalendarRef, CalendarAccount](Operation{
	Name: "get_calendar", Title: "Read the state of a calendar",
	Summary: "One account at a calendar server: its calendars, which are used, the last success and the last error.",
	HTTP:    Route{"GET", "/api/owner/calendars/{id}", 200}, For: Owners, Scope: ScopeMeetings, ReadOnly: true, Codes: []Code{NotFound},
	Example: exampleCalendar,
})

var ChooseCalendars = declare[CalendarChoice, CalendarAccount](Operation{
	Name: "choose_calendars", Title: "Choose calendars",
	Summary:     "Sets which calendars of an account are read for busy times, and which one approved meetings are put on.",
	Description: "Meetings that are approved and not over are put on a calendar that is newly chosen, unless another calendar has them.",
	HTTP:        Route{"PUT", "/api/owner/calendars/{id}", 200}, For: Owners, Scope: ScopeMeetings, Codes: []Code{NotFound},
	Example: CalendarChoice{CalendarRef: exampleCalendar, Create: "Meetings"},
})

var CheckCalendar = declare[CalendarRef, CalendarAccount](Operation{
	Name: "check_calendar", Title: "Check a calendar",
	Summary:     "Asks a calendar server again: which calendars it has, and when you are busy. Events that were given up are tried again.",
	Description: "The node asks after the answer; get_calendar shows the result.",
	HTTP:        Route{"POST", "/api/owner/calendars/{id}/check", 200}, For: Owners, Idempotent: true, Scope: ScopeMeetings, Codes: []Code{NotFound},
	Example: exampleCalendar,
})

var DisconnectCalendar = declare[CalendarRef, None](Operation{
	Name: "disconnect_calendar", Title: "Disconnect a calendar",
	Summary:     "Deletes an account at a calendar server, with its password. Nothing is deleted on the server.",
	Description: "Events that the node has put there stay, and do not follow their meetings any more.",
	HTTP:        Route{"DELETE", "/api/owner/calendars/{id}", 204}, For: Owners, Scope: ScopeMeetings, Codes: []Code{NotFound},
	Example: exampleCalendar,
})
