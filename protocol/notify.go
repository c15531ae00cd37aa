package protocol

// NotifySettings say where notices about a profile go.
type NotifySettings struct {
	Handle        string        `json:"handle"`
	Mail          *string       `json:"mail" doc:"Address for notices; null for none."`
	MailConfirmed bool          `json:"mailConfirmed" doc:"The address was confirmed. To an address that was not, only the confirmation is sent."`
	MailOffered   bool          `json:"mailOffered" doc:"This node sends mail."`
	Webhook       *string       `json:"webhook" doc:"Address that notices are POSTed to, signed by the node (RFC 9421); null for none."`
	Events        []NoticeEvent `json:"events" enum:"thread.begun,thread.message,post.reported,post.hidden,bid.claimed,bid.live,bid.refund,meeting.requested,meeting.changed,meeting.reminder,calendar.trouble,catalog.trouble,profile.mentioned,review.counted,receipt.issued,order.changed" doc:"Events that are notified."`
	Links         bool          `json:"links" doc:"Notices of bids that wait for you have a link that decides. Not after a token without the scope attention has set the addresses."`
}

// A NotifyDraft is the part of the settings that an owner decides.
type NotifyDraft struct {
	Owned
	Mail    string        `json:"mail,omitempty" shape:"mail" maxLength:"254" doc:"Address for notices; a code to confirm it is sent there. Left out: none."`
	Webhook string        `json:"webhook,omitempty" maxLength:"500" doc:"A public https address that accepts a POST. Left out: none."`
	Events  []NoticeEvent `json:"events,omitempty" maxItems:"16" uniqueItems:"true" enum:"thread.begun,thread.message,post.reported,post.hidden,bid.claimed,bid.live,bid.refund,meeting.requested,meeting.changed,meeting.reminder,calendar.trouble,catalog.trouble,profile.mentioned,review.counted,receipt.issued,order.changed" doc:"Events to notify. Left out: all."`
}

// NoticeEvents is every event, in the order in which forms show them.
var NoticeEvents = []NoticeEvent{ThreadBegun, ThreadMessage, PostReported, PostHidden, BidIsClaimed, BidIsLive, BidRefundByHand, MeetingAsked, MeetingChanged,
	MeetingReminder, CalendarTrouble, CatalogTrouble, ProfileNamed, ReviewCounted, ReceiptIssued, OrderChanged}

var GetNotify = declare[OwnInput, NotifySettings](Operation{
	Name: "get_notify", Title: "Get the notice settings",
	Summary: "Where the node sends notices of new threads, messages and reports about a profile of yours.",
	HTTP:    Route{"GET", "/api/owner/notify", 200}, For: Owners, Scope: ScopeNotify, ReadOnly: true, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

var PutNotify = declare[NotifyDraft, NotifySettings](Operation{
	Name: "put_notify", Title: "Change the notice settings",
	Summary: "Replaces the mail address, webhook and events for notices about a profile of yours.",
	Description: "A notice contains one line of text of the other side at most, marked as such. A webhook gets JSON that the node signs; /skill/callbacks.md " +
		"explains how to verify it. The notice of a bid that waits for you has a link by which its reader decides about that bid, once.",
	HTTP: Route{"PUT", "/api/owner/notify", 200}, For: Owners, Scope: ScopeNotify, Replaces: GetNotify.Operation, Codes: []Code{Forbidden, Conflict},
	Delivers: &Delivery{"notice", "webhook", NoticeDocument{}},
	Example:  NotifyDraft{Owned: Owned{"asha"}, Webhook: "https://agent.example.org/notices", Events: []NoticeEvent{ThreadBegun}},
})

// A MailCode is the code in a confirmation mail.
type MailCode struct {
	Owned
	Code string `json:"code" shape:"mail-code" doc:"The code in the mail."`
}

var ConfirmMail = declare[MailCode, NotifySettings](Operation{
	Name: "confirm_mail", Title: "Confirm a mail address",
	Summary: "Confirms that you can read mail at the address for notices.",
	HTTP:    Route{"POST", "/api/owner/notify/confirm", 200}, For: Owners, Idempotent: true, Scope: ScopeNotify, Inward: true,
	Codes:   []Code{Forbidden, Gone},
	Example: MailCode{Owned{"asha"}, "q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6"},
})
