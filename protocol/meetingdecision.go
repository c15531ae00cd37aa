package protocol

// What the link of a notice to a person about a meeting request does: without signing in, once.

// MeetingDecides is what such a link can do.
type MeetingDecides string

const (
	DecideApprove MeetingDecides = "approve" // the meeting takes place at the requested time
	DecideDecline MeetingDecides = "decline"
)

// A DecisionLinkInput is the ticket of a link.
type DecisionLinkInput struct {
	Ticket string `json:"ticket,omitempty" maxLength:"120" doc:"What the address in the notice has after ticket=; over HTTP send it as Authorization: Bearer."`
}

// A DecisionLink is what a link would do.
type DecisionLink struct {
	Do        []MeetingDecides `json:"do" enum:"approve,decline" doc:"Of which use_decision_link does one."`
	Request   OwnMeeting       `json:"request"`
	Untrusted bool             `json:"untrusted_content" doc:"Always true."`
}

var ReadDecisionLink = declare[DecisionLinkInput, DecisionLink](Operation{
	Name: "read_decision_link", Title: "Read the link of a notice about a meeting request",
	Summary: "What the link of a notice about a meeting request to you would do. Nothing is done.",
	HTTP:    Route{"GET", "/api/owner/meeting-decision", 200}, Doors: HTTP, For: Owners, ReadOnly: true, Secret: "ticket",
	Codes: []Code{Unauthorized, Gone}, Example: DecisionLinkInput{},
})

// A DecisionLinkUse uses a link.
type DecisionLinkUse struct {
	DecisionLinkInput
	Do MeetingDecides `json:"do" enum:"approve,decline"`
}

var UseDecisionLink = declare[DecisionLinkUse, OwnMeeting](Operation{
	Name: "use_decision_link", Title: "Use the link of a notice about a meeting request",
	Summary: "Approves or declines a meeting request by the link of a mail or a webhook's notice. A link works once.",
	Description: "It ends when the request changes, and when the address for notices does; gone then says what the request is by now. " +
		"Approval is refused with conflict when another meeting is approved at that time.",
	HTTP: Route{"POST", "/api/owner/meeting-decision", 200}, Doors: HTTP, For: Owners, Secret: "ticket", Codes: []Code{Unauthorized, Gone, Conflict},
	Example: DecisionLinkUse{Do: DecideApprove},
})
