package protocol

import "time"

// A MeetingFeed is the address of a calendar that shows a person's approved meetings.
type MeetingFeed struct {
	Handle string    `json:"handle"`
	URL    string    `json:"url" format:"uri" doc:"Subscribe to it in a calendar program; whoever has it reads your meetings. Shown once."`
	MadeAt time.Time `json:"madeAt"`
}

var MakeMeetingFeed = declare[OwnInput, MeetingFeed](Operation{
	Name: "make_meeting_feed", Title: "Make the feed of your meetings",
	Summary: "Makes a secret address at which calendar programs read your approved meetings (iCalendar). A former address ends.",
	Description: "The feed has each meeting from its approval until 30 days after it, and those that were cancelled for 30 days. Programs read it every " +
		"15 minutes at best; a calendar that is connected with connect_calendar knows at once.",
	HTTP: Route{"POST", "/api/owner/meeting-feed", 201}, For: Owners, OneTime: true, Scope: ScopeMeetings, Inward: true,
	Codes: []Code{Forbidden, NotFound}, Example: OwnInput{Owned{"asha"}},
})

var DeleteMeetingFeed = declare[OwnInput, None](Operation{
	Name: "delete_meeting_feed", Title: "End the feed of your meetings",
	Summary: "The address that make_meeting_feed made shows nothing any more.",
	HTTP:    Route{"DELETE", "/api/owner/meeting-feed", 204}, For: Owners, Scope: ScopeMeetings, Inward: true, Codes: []Code{Forbidden, NotFound},
	Example: OwnInput{Owned{"asha"}},
})

// AddToCalendar are links that put a meeting on a calendar: each opens a form that a person saves.
type AddToCalendar struct {
	Google    string `json:"google" format:"uri"`
	Outlook   string `json:"outlook" format:"uri" doc:"Of a private account at Microsoft."`
	Office365 string `json:"office365" format:"uri" doc:"Of an organisation's account at Microsoft."`
}

var GetMeetingICS = declare[MeetingInput, string](Operation{
	Name: "get_meeting_ics", Title: "Download a meeting for a calendar",
	Summary: "An approved meeting as an iCalendar file, by its status token.", Description: "After a cancellation the file says so.",
	HTTP: Route{"GET", "/api/public/meetings/{id}/event.ics", 200}, Doors: HTTP, ReadOnly: true,
	NoStore: true, Secret: "statusToken", Visitor: true, Media: "text/calendar; charset=utf-8", Codes: []Code{NotFound, Unauthorized},
	Example: MeetingInput{ID: exampleMeetingID},
})
