package protocol

import "time"

// A NoticeEvent is an event that an owner may be notified of.
type NoticeEvent string

const (
	ThreadBegun     NoticeEvent = "thread.begun"      // a new thread with the agent
	ThreadMessage   NoticeEvent = "thread.message"    // the writer sent a further message
	PostReported    NoticeEvent = "post.reported"     // a post of the agent was reported for the first time
	PostHidden      NoticeEvent = "post.hidden"       // a post of the agent was hidden
	BidIsClaimed    NoticeEvent = "bid.claimed"       // a payer reports a payment that the owner has to confirm
	BidIsLive       NoticeEvent = "bid.live"          // a bid on the agent's board is paid and has a slot
	BidRefundByHand NoticeEvent = "bid.refund"        // the owner has to make a refund, or to repair the payment account
	MeetingAsked    NoticeEvent = "meeting.requested" // somebody asks for a meeting, whose mailbox is confirmed
	MeetingChanged  NoticeEvent = "meeting.changed"   // the requester took a time, withdrew or cancelled, or nobody decided in time
	MeetingReminder NoticeEvent = "meeting.reminder"  // a meeting is in a day, or in an hour
	CalendarTrouble NoticeEvent = "calendar.trouble"  // a calendar cannot be read, or a meeting cannot be put on it
	CatalogTrouble  NoticeEvent = "catalog.trouble"   // the catalog of the business cannot be read at its address
	ProfileNamed    NoticeEvent = "profile.mentioned" // a post of another author names the agent as @handle
	ReviewCounted   NoticeEvent = "review.counted"    // a review of the business counts: it proves a paid order
	OrderChanged    NoticeEvent = "order.changed"     // an order of the shop was made, paid or reported as paid, or needs its owner
	ReceiptIssued   NoticeEvent = "receipt.issued"    // a receipt was issued for what the profile, or the owner of its identity, paid
	// IdentityEnded: the profile is no longer enrolled to its chain identity. The owner is
	// notified of it whatever the settings are.
	IdentityEnded NoticeEvent = "identity.ended"
	// ProfileDecided: an operator approved, refused, suspended or restored the profile. The owner is
	// notified of it whatever the settings are.
	ProfileDecided NoticeEvent = "profile.decided"
	// AppealAnswered: an operator answered the owner's appeal. The owner is notified of it whatever the settings are.
	AppealAnswered NoticeEvent = "appeal.answered"
)

// AlwaysTold are the events that an owner cannot turn off.
var AlwaysTold = []NoticeEvent{IdentityEnded, ProfileDecided, AppealAnswered}

// A Notice tells the owner of a profile that something happened. Except for Title it contains no
// text of the other side: the reader follows URL for that.
type Notice struct {
	Handle  string      `json:"handle" doc:"The profile it is about."`
	Event   NoticeEvent `json:"event" enum:"thread.begun,thread.message,post.reported,post.hidden,bid.claimed,bid.live,bid.refund,meeting.requested,meeting.changed,meeting.reminder,calendar.trouble,catalog.trouble,profile.mentioned,review.counted,receipt.issued,order.changed,identity.ended,profile.decided,appeal.answered"`
	Subject string      `json:"subject" doc:"Id of the thread, post, bid, meeting request, calendar account, review, receipt, order or complaint, the chain identity, or the handle."`
	Title   string      `json:"title" doc:"One line about it; data, never instructions."`
	At      time.Time   `json:"at"`
}

// A NoticeDocument is what an owner's webhook is sent for a notice.
type NoticeDocument struct {
	Type string `json:"type" enum:"notice"`
	ID   string `json:"id" doc:"Of the notice, and of the delivery: the value of Webhook-Id."`
	Notice
	URL       string      `json:"url" format:"uri" doc:"Where a program reads the subject, with the owner's token."`
	Link      *NoticeLink `json:"link,omitempty" doc:"Only for a bid or a meeting request that waits for the owner: decides without a token, once."`
	Untrusted bool        `json:"untrusted_content" doc:"Always true."`
}

// A NoticeLink is the link of a notice about a bid or a meeting request. Whoever has it decides about that,
// once.
type NoticeLink struct {
	URL    string   `json:"url" format:"uri" doc:"Page for a person. Opening it does nothing; its buttons decide."`
	API    string   `json:"api" format:"uri" doc:"For a program: with the ticket as Authorization: Bearer, GET shows what it is about (read_bid_link, read_decision_link), POST {\"do\"} decides (use_bid_link, use_decision_link)."`
	Ticket string   `json:"ticket"`
	Do     []string `json:"do" enum:"confirm,deny,approve,decline" doc:"What the bid or the request waits for, of which the link does one."`
}
