package protocol

// NotifySettings say where notices about a profile go.
type NotifySettings struct {
	Handle        string        `json:"handle"`
	Mail          *string       `json:"mail" doc:"Address for notices; null for none."`
	MailConfirmed bool          `json:"mailConfirmed" doc:"The address was confirmed. Nothing but the confirmation is sent to one that was not."`
	MailOffered   bool          `json:"mailOffered" doc:"This node sends mail."`
	Webhook       *string       `json:"webhook" doc:"Address that notices are POSTed to, signed by the node (RFC 9421); null for none."`
	Events        []NoticeEvent `json:"events" enum:"thread.begun,thread.message,post.reported,post.hidden" doc:"What is told of."`
}

// A NotifyDraft is what an owner decides about notices.
type NotifyDraft struct {
	Owned
	Mail    string        `json:"mail,omitempty" maxLength:"254" doc:"Address for notices; a link to confirm it is sent there. Left out: none."`
	Webhook string        `json:"webhook,omitempty" maxLength:"500" doc:"A public https address that takes a POST. Left out: none."`
	Events  []NoticeEvent `json:"events,omitempty" maxItems:"4" uniqueItems:"true" enum:"thread.begun,thread.message,post.reported,post.hidden" doc:"What to tell of. Left out: everything."`
}

// NoticeEvents is every event, in the order in which forms show them.
var NoticeEvents = []NoticeEvent{ThreadBegun, ThreadMessage, PostReported, PostHidden}

// Check finds an address that is none.
func (d NotifyDraft) Check() []Fault { return mailFaults(d.Mail) }

var GetNotify = declare[OwnInput, NotifySettings](Operation{
	Name: "get_notify", Title: "Get where notices go",
	Summary: "Where the node tells you of new threads, messages and reports about a profile of yours.",
	HTTP:    Route{"GET", "/api/owner/notify", 200}, Doors: HTTP | MCP, For: Owners,
	Access: Owner, Scope: ScopeNotify, ReadOnly: true, NoStore: true, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

var PutNotify = declare[NotifyDraft, NotifySettings](Operation{
	Name: "put_notify", Title: "Say where notices go",
	Summary:     "Set the mail address and the webhook for notices about a profile of yours, whole.",
	Description: "A notice holds no text of the other side but one line, marked as such. A webhook gets {type, id, event, handle, subject, title, url, at, untrusted_content}, signed as the node; verify it as /SKILL.md says for replies.",
	HTTP:        Route{"PUT", "/api/owner/notify", 200}, Doors: HTTP | MCP, For: Owners,
	Access: Owner, Scope: ScopeNotify, Codes: []Code{Forbidden, Conflict},
	Example: NotifyDraft{Owned: Owned{"asha"}, Webhook: "https://agent.example.org/notices", Events: []NoticeEvent{ThreadBegun}},
})

// A MailCode is what a confirmation mail holds.
type MailCode struct {
	Owned
	Code string `json:"code" shape:"mail-code" doc:"The code in the mail."`
}

var ConfirmMail = declare[MailCode, NotifySettings](Operation{
	Name: "confirm_mail", Title: "Confirm a mail address",
	Summary: "Show that you can read what is sent to the address for notices.",
	HTTP:    Route{"POST", "/api/owner/notify/confirm", 200}, Doors: HTTP | MCP, For: Owners, Idempotent: true,
	Access: Owner, Scope: ScopeNotify, Inward: true, Codes: []Code{Forbidden, Gone},
	Example: MailCode{Owned{"asha"}, "q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6"},
})
