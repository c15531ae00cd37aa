package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of meeting requests. Those without a source are the node's own.
const (
	MinMeetingNotice = 15                  // minutes (spec §2.13)
	MaxMeetingDays   = 90                  // days ahead (spec §2.13)
	MaxSlotRange     = 31 * 24 * time.Hour // of one question for open times

	ConfirmMeetingFor    = 24 * time.Hour      // after it an unconfirmed request is deleted
	ProposalFor          = 72 * time.Hour      // for so long proposed times wait for the requester
	ConfirmMailKnown     = time.Hour           // between two confirmation mails to one mailbox that known callers cause
	MaxWaitingOfMailbox  = 1                   // waiting requests of one confirmed mailbox to one person
	MaxWaitingOfCaller   = 3                   // of one identity or network to one person
	MaxWaitingOnNode     = 10                  // of one identity or network on the node
	DefaultMaxWaiting    = 20                  // submitted and proposed requests of one person
	MeetingMailKept      = 30 * 24 * time.Hour // after a meeting its requester's address is deleted
	MaxProposedTimes     = 3
	DefaultMeetingPerDay = 4
	DefaultMeetingZone   = "Asia/Kolkata"
)

// ConfirmMailWait is how long after the last confirmation mail to a mailbox a stranger may cause the next,
// when sent mails went there and no link of them was used.
func ConfirmMailWait(sent int) time.Duration {
	switch sent {
	case 0:
		return 0
	case 1:
		return time.Hour
	case 2:
		return 24 * time.Hour
	}
	return 7 * 24 * time.Hour
}

// MeetingWindow is a part of a local day.
type MeetingWindow struct {
	From string `json:"from" shape:"opens" doc:"HH:MM, local time." example:"10:00"`
	To   string `json:"to" shape:"until" doc:"HH:MM, local time, up to 26:00, two hours after midnight." example:"18:00"`
}

// MeetingHours are a window of one day of the week, every week.
type MeetingHours struct {
	Day string `json:"day" enum:"monday,tuesday,wednesday,thursday,friday,saturday,sunday" doc:"Day of the week, in local time."`
	MeetingWindow
}

// A MeetingOverride replaces the weekly hours of one local date.
type MeetingOverride struct {
	Date    string          `json:"date" format:"date" maxLength:"10" doc:"Local date, YYYY-MM-DD."`
	Windows []MeetingWindow `json:"windows,omitempty" maxItems:"6" doc:"Left out: nobody is met on that date."`
}

// MeetingTravel is a time zone for some local dates.
type MeetingTravel struct {
	From     string `json:"from" format:"date" maxLength:"10" doc:"First local date, YYYY-MM-DD."`
	To       string `json:"to" format:"date" maxLength:"10" doc:"Last local date, YYYY-MM-DD."`
	TimeZone string `json:"timezone" shape:"zone" maxLength:"60" doc:"IANA time zone on those dates."`
}

// MeetingRules say when and how long a person can be met. They are stored as they are sent.
type MeetingRules struct {
	TimeZone          string            `json:"timezone,omitempty" shape:"zone" maxLength:"60" default:"Asia/Kolkata" doc:"IANA time zone of the hours."`
	Durations         []int             `json:"durations,omitempty" maxItems:"6" uniqueItems:"true" doc:"Allowed lengths in minutes, 5 to 240. Left out: 15 and 30."`
	UsualHours        []MeetingHours    `json:"usualHours,omitzero" maxItems:"42" doc:"Hours of the week, six windows a day at most; an empty list for none. Left out: Monday to Friday, 10:00 to 18:00."`
	DateOverrides     []MeetingOverride `json:"dateOverrides,omitempty" maxItems:"200" doc:"Dates with other hours, or without any."`
	Travel            []MeetingTravel   `json:"travel,omitempty" maxItems:"20" doc:"Dates on which the hours are of another time zone."`
	SlotStep          int               `json:"slotStep,omitempty" minimum:"5" maximum:"60" doc:"Minutes from one open time to the next. Left out: the shortest length, 60 at most."`
	BufferBefore      int               `json:"bufferBefore,omitempty" minimum:"0" maximum:"120" default:"0" doc:"Minutes kept free before what is taken."`
	BufferAfter       int               `json:"bufferAfter,omitempty" minimum:"0" maximum:"120" default:"0" doc:"Minutes kept free after what is taken."`
	MinNoticeMin      int               `json:"minNoticeMin,omitempty" minimum:"15" maximum:"20160" default:"15" doc:"Least minutes from the request to the meeting."`
	MaxDaysAhead      int               `json:"maxDaysAhead,omitempty" minimum:"1" maximum:"90" default:"90" doc:"Most days from the request to the meeting."`
	MaxPerDay         int               `json:"maxPerDay,omitempty" minimum:"1" maximum:"100" default:"4" doc:"Meetings that begin on one local date; above it times are not open, and a request is marked."`
	MaxPerWeek        int               `json:"maxPerWeek,omitempty" minimum:"1" maximum:"500" doc:"The same from Monday to Sunday. Left out: no limit."`
	PendingBlocksSlot *bool             `json:"pendingBlocksSlot,omitempty" default:"true" doc:"Whether a request that waits for you, or for the requester, takes its time from the open times."`
	OutsideHours      string            `json:"outsideHours,omitempty" enum:"mark,refuse" default:"mark" doc:"mark: a request for a time that is not open reaches you, and says so. refuse: it is refused."`
	MaxWaiting        int               `json:"maxWaiting,omitempty" minimum:"1" maximum:"100" default:"20" doc:"Requests that may wait for you or for their requesters at a time."`
	VerifiedDomain    bool              `json:"requireVerifiedDomain,omitempty" doc:"Only requests signed by an agent whose key directory is at the domain of the mail address. All others are refused."`
	ShowSlots         bool              `json:"showSlots,omitempty" doc:"Whether get_meeting_info shows open times: they tell everybody the shape of your calendar."`
	Location          string            `json:"location,omitempty" line:"true" maxLength:"300" doc:"An address, a room, a telephone number, or the address of a video call. {slug} in it becomes another random name for each meeting."`
	Reminders         *bool             `json:"reminders,omitempty" default:"true" doc:"Whether both sides are told a day and an hour before a meeting: the requester by mail, you by your notices."`
	Questions         []string          `json:"questions,omitempty" line:"true" maxItems:"3" doc:"What you want to read in the purpose, at most 200 characters each."`
	Policy            string            `json:"policy,omitempty" visible:"true" maxLength:"1000" doc:"What you meet people for; plain text for requesters."`
}

// Complete returns the rules with the defaults of everything that is left out.
func (r MeetingRules) Complete() MeetingRules {
	r.TimeZone = FoldZone(cmp.Or(r.TimeZone, DefaultMeetingZone))
	r.Travel = slices.Clone(r.Travel)
	for i := range r.Travel {
		r.Travel[i].TimeZone = FoldZone(r.Travel[i].TimeZone)
	}
	if len(r.Durations) == 0 {
		r.Durations = []int{15, 30}
	}
	r.Durations = slices.Sorted(slices.Values(r.Durations))
	if r.UsualHours == nil {
		for _, day := range weekdays[1:6] {
			r.UsualHours = append(r.UsualHours, MeetingHours{day, MeetingWindow{"10:00", "18:00"}})
		}
	}
	r.SlotStep = cmp.Or(r.SlotStep, min(60, r.Durations[0]))
	r.MinNoticeMin = cmp.Or(r.MinNoticeMin, MinMeetingNotice)
	r.MaxDaysAhead = cmp.Or(r.MaxDaysAhead, MaxMeetingDays)
	r.MaxPerDay = cmp.Or(r.MaxPerDay, DefaultMeetingPerDay)
	r.MaxWaiting = cmp.Or(r.MaxWaiting, DefaultMaxWaiting)
	r.OutsideHours = cmp.Or(r.OutsideHours, "mark")
	if r.PendingBlocksSlot == nil {
		r.PendingBlocksSlot = new(true)
	}
	if r.Reminders == nil {
		r.Reminders = new(true)
	}
	return r
}

// Weekday returns the day of the week of a name in MeetingHours.
func Weekday(day string) time.Weekday { return time.Weekday(slices.Index(weekdays, day)) }

// Minutes returns HH:MM as minutes after midnight, -1 for another text.
func Minutes(text string) int {
	hours, minutes, ok := strings.Cut(text, ":")
	h, err := strconv.Atoi(hours)
	m, again := strconv.Atoi(minutes)
	if !ok || err != nil || again != nil || h < 0 || h > 26 || m < 0 || m > 59 || h == 26 && m > 0 {
		return -1
	}
	return h*60 + m
}

// Check returns the faults that tags cannot express.
func (r MeetingRules) Check() (faults []Fault) {
	add := func(at, code, detail string) { faults = append(faults, Fault{at, code, detail}) }
	zone := func(at, name string) {
		if _, ok := Zone(name); !ok || !strings.Contains(name, "/") && name != "UTC" {
			add(at, "unknown-zone", "is "+unknownZone)
		}
	}
	zone("/timezone", cmp.Or(r.TimeZone, DefaultMeetingZone))
	for i, d := range r.Durations {
		if d < 5 || d > 240 {
			add("/durations/"+strconv.Itoa(i), "out-of-range", "is 5 to 240 minutes")
		}
	}
	days := map[string][]MeetingWindow{}
	for i, h := range r.UsualHours {
		at := "/usualHours/" + strconv.Itoa(i)
		faults = append(faults, windowFaults(at, days[h.Day], h.MeetingWindow)...)
		if days[h.Day] = append(days[h.Day], h.MeetingWindow); len(days[h.Day]) == 7 {
			add(at, "too-many", "a day has at most six windows")
		}
	}
	seen := map[string]bool{}
	for i, o := range r.DateOverrides {
		at := "/dateOverrides/" + strconv.Itoa(i)
		switch {
		case dateOf(o.Date).IsZero():
			add(at+"/date", "wrong-shape", "is not a date such as 2026-11-08")
		case seen[o.Date]:
			add(at+"/date", "duplicate", "is there twice")
		}
		seen[o.Date] = true
		for n, w := range o.Windows {
			faults = append(faults, windowFaults(fmt.Sprintf("%s/windows/%d", at, n), o.Windows[:n], w)...)
		}
	}
	for i, t := range r.Travel {
		at := "/travel/" + strconv.Itoa(i)
		zone(at+"/timezone", t.TimeZone)
		from, to := dateOf(t.From), dateOf(t.To)
		switch {
		case from.IsZero():
			add(at+"/from", "wrong-shape", "is not a date such as 2026-11-08")
		case to.IsZero():
			add(at+"/to", "wrong-shape", "is not a date such as 2026-11-08")
		case to.Before(from):
			add(at+"/to", "out-of-range", "must not be before from")
		case slices.ContainsFunc(r.Travel[:i], func(o MeetingTravel) bool { return o.From <= t.To && t.From <= o.To }):
			add(at, "overlap", "overlaps another journey")
		}
	}
	for i, q := range r.Questions {
		at := "/questions/" + strconv.Itoa(i)
		if len([]rune(q)) > 200 || strings.TrimSpace(q) == "" {
			add(at, "out-of-range", "has 1 to 200 characters")
		}
	}
	return faults
}

// windowFaults checks a window against those before it of the same day.
func windowFaults(at string, before []MeetingWindow, w MeetingWindow) []Fault {
	from, to := Minutes(w.From), Minutes(w.To)
	if from < 0 || to < 0 { // which the schema reports
		return nil
	}
	if from >= to {
		return []Fault{{at + "/to", "empty-window", "must be after from"}}
	}
	if slices.ContainsFunc(before, func(o MeetingWindow) bool { return Minutes(o.From) < to && from < Minutes(o.To) }) {
		return []Fault{{at, "overlap", "overlaps another window of the day"}}
	}
	return nil
}

// MeetingDraft is whether and when a person takes meetings, as its owner writes it. What is left
// out gets its default.
type MeetingDraft struct {
	Owned
	Accepting bool `json:"acceptingMeetingRequests" doc:"Whether the person takes meeting requests; agent.acceptingMeetingRequests of the profile is the same switch."`
	MeetingRules
}

// MeetingSettings are the settings of a person's meetings.
type MeetingSettings struct {
	Handle    string `json:"handle"`
	Accepting bool   `json:"acceptingMeetingRequests"`
	MeetingRules
	UpdatedAt *time.Time `json:"updatedAt" doc:"When they were last written; null for never."`
}

// MeetingQuery asks how a person takes meetings.
type MeetingQuery struct {
	Handle      string `json:"handle" shape:"handle" doc:"Handle of the person, in any case, with or without @." example:"asha"`
	From        string `json:"from,omitempty" format:"date-time" maxLength:"40" doc:"Open times from here on, RFC 3339 with an offset. Left out: now."`
	To          string `json:"to,omitempty" format:"date-time" maxLength:"40" doc:"Open times before this, at most 31 days after from. Left out: seven days after from."`
	DurationMin int    `json:"durationMin,omitempty" minimum:"5" maximum:"240" doc:"Length in minutes of the open times; one of durations. Left out: the shortest."`
	TimeZone    string `json:"timezone,omitempty" shape:"zone" maxLength:"60" doc:"IANA time zone in which open times are written. Left out: UTC."`
	Limit       int    `json:"limit,omitempty" minimum:"1" maximum:"1000" doc:"How many open times. Left out: 30 at most."`
}

// Slots is how many open times a query that names no limit gets at most.
const Slots = 30

// Range returns the range of open times that the query asks for at a moment, or its faults.
func (q MeetingQuery) Range(now time.Time) (from, to time.Time, faults []Fault) {
	read := func(at, text string, otherwise time.Time) time.Time {
		t, err := time.Parse(time.RFC3339, text)
		if text == "" {
			return otherwise
		}
		if err != nil {
			faults = append(faults, Fault{at, "wrong-shape", "must be a time such as 2026-12-01T11:00:00+05:30"})
		}
		return t
	}
	from = read("/from", q.From, now)
	to = read("/to", q.To, from.Add(7*24*time.Hour))
	switch {
	case len(faults) > 0:
	case !from.Before(to):
		faults = append(faults, Fault{"/to", "out-of-range", "must be after from"})
	case to.Sub(from) > MaxSlotRange:
		faults = append(faults, Fault{"/to", "out-of-range", "at most 31 days after from"})
	}
	return from, to, faults
}

// A MeetingTime is a time for a meeting.
type MeetingTime struct {
	StartsAt time.Time `json:"startsAt"`
	EndsAt   time.Time `json:"endsAt"`
}

// MeetingInfo is how a person takes meetings (spec §2.13). What others have asked for is not in it.
type MeetingInfo struct {
	Handle       string         `json:"handle"`
	Name         string         `json:"name"`
	Accepting    bool           `json:"accepting" doc:"Whether the person takes meeting requests now."`
	Durations    []int          `json:"durations" doc:"Allowed lengths in minutes."`
	TimeZone     string         `json:"timezone" doc:"IANA time zone of usualHours."`
	UsualDays    []string       `json:"usualDays" enum:"monday,tuesday,wednesday,thursday,friday,saturday,sunday"`
	UsualHours   []MeetingHours `json:"usualHours" doc:"Local hours of the week. A request for another time is marked, or refused if outsideHours says so."`
	OutsideHours string         `json:"outsideHours" enum:"mark,refuse"`
	MinNoticeMin int            `json:"minNoticeMin" minimum:"15" doc:"Least minutes from the request to the meeting."`
	MaxDaysAhead int            `json:"maxDaysAhead" minimum:"1" doc:"Most days from the request to the meeting."`
	Approval     string         `json:"approval" enum:"owner" doc:"Each request is decided by the person; nothing is on a calendar before."`
	ConfirmsMail bool           `json:"requiresEmailVerification" doc:"The link of a mail must be used before the person sees the request."`
	NeedsDomain  bool           `json:"requiresVerifiedDomain" doc:"Only an agent that signs with a key in the key directory at the domain of its mail address may ask."`
	Questions    []string       `json:"questions" doc:"What the person wants to read in the purpose."`
	Policy       string         `json:"policy" doc:"Of the person, for requesters."`
	ShowsSlots   bool           `json:"showsSlots" doc:"Whether open times are shown."`
	Slots        []MeetingTime  `json:"slots" nullable:"true" doc:"Open times of the asked range; null where they are not shown."`
	Next         *string        `json:"next" doc:"from for the open times after these; null: no more in the range."`
	BusyStale    bool           `json:"busyStale" doc:"A calendar of the person could not be read for a while: an open time may be taken. False where open times are not shown."`
	Untrusted    bool           `json:"untrusted_content" doc:"Always true."`
}

// Check returns the faults of the range, as far as the time is not needed.
func (q MeetingQuery) Check() []Fault {
	var now time.Time
	if to, err := time.Parse(time.RFC3339, q.To); err == nil {
		now = to.Add(-time.Minute)
	}
	_, _, faults := q.Range(now)
	if _, ok := Zone(q.TimeZone); q.TimeZone != "" && !ok {
		faults = append(faults, Fault{"/timezone", "unknown-zone", "is " + unknownZone})
	}
	return faults
}

// Local writes open times in the asked zone.
func (q MeetingQuery) Local(all []MeetingTime) {
	if zone, ok := Zone(q.TimeZone); ok {
		for i, t := range all {
			all[i] = MeetingTime{StartsAt: t.StartsAt.In(zone), EndsAt: t.EndsAt.In(zone)}
		}
	}
}

var GetMeetingInfo = declare[MeetingQuery, MeetingInfo](Operation{
	Name: "get_meeting_info", Title: "Ask how a person takes meetings",
	Summary: "Whether meeting requests are taken, allowed lengths, timezone, usual days.",
	Description: "Open times are in slots only where the person shows them; from, to and durationMin select them. " +
		"An open time is reserved for nobody.",
	HTTP: Route{"GET", "/api/public/agents/{handle}/meetings", 200}, Doors: Everywhere, ReadOnly: true,
	Codes:   []Code{NotFound},
	Example: MeetingQuery{Handle: "asha"},
})

var GetMeetingSettings = declare[OwnInput, MeetingSettings](Operation{
	Name: "get_meeting_settings", Title: "Get your meeting settings",
	Summary: "Whether and when a person's profile of yours takes meetings.",
	HTTP:    Route{"GET", "/api/owner/meeting-settings", 200}, For: Owners, Scope: ScopeMeetings, ReadOnly: true, Codes: []Code{Forbidden, NotFound},
	Example: OwnInput{Owned{"asha"}},
})

var PutMeetingSettings = declare[MeetingDraft, MeetingSettings](Operation{
	Name: "put_meeting_settings", Title: "Write your meeting settings",
	Summary:     "Opens or closes meeting requests to a person's profile of yours, and replaces hours and rules: what is left out gets its default.",
	Description: "Meetings that were approved stay as they are, and so do requests that wait for you.",
	HTTP:        Route{"PUT", "/api/owner/meeting-settings", 200}, For: Owners, Scope: ScopeMeetings, Replaces: GetMeetingSettings.Operation,
	Codes:   []Code{Forbidden, NotFound},
	Example: MeetingDraft{Owned: Owned{"asha"}, Accepting: true, MeetingRules: MeetingRules{TimeZone: "Asia/Kolkata", Durations: []int{15, 30}, ShowSlots: true}},
})
