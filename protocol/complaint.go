package protocol

import (
	"strings"
	"time"
)

// A complaint is what anybody says to the operators of a node, without an account: about a text, a profile, a message or anything else
// here. In India the node has to acknowledge and to resolve it within a time (IT Rules 2021, rule 3(2)). Only its read token opens it.

// A ComplaintState is how far the operators are with a complaint.
type ComplaintState string

const (
	ComplaintReceived     ComplaintState = "received"     // nobody has looked at it
	ComplaintAcknowledged ComplaintState = "acknowledged" // an operator has, and the answer is to come
	ComplaintResolved     ComplaintState = "resolved"     // it was answered, and is over
)

// Bounds of complaints. Strangers fill half of those that are open together.
const (
	ComplaintsADay = 5 // of one identity or network
)

// SharedComplaints are the complaints that are not resolved. None gives way to a newer one.
var SharedComplaints = Shared{2000}

// A NewComplaint is a complaint as it is filed.
type NewComplaint struct {
	Subject  string `json:"subject" minLength:"1" maxLength:"500" doc:"What it is about: address or id of the post, profile or message, or other."`
	Kind     string `json:"kind" enum:"unlawful,privacy,abuse,fraud,copyright,other,appeal" doc:"What is wrong; appeal: with the id of your hidden post, or the handle of your suspended profile, as subject, once for each decision."`
	Text     string `json:"text" minLength:"1" maxLength:"4000" doc:"Plain text, for the operators."`
	Mail     string `json:"mail,omitempty" maxLength:"254" doc:"To be told of the answer, once its reader has confirmed that."`
	Language string `json:"language,omitempty" enum:"en,hi" doc:"Of the mails."`
	// DeleteToken shows who wrote an anonymous post; it is for appeals only.
	DeleteToken string `json:"deleteToken,omitempty" maxLength:"100" doc:"Of an anonymous post, to appeal."`
}

// Appeal is the kind of a complaint about a decision of the operators, or of reports, by whose post or profile it hid. The node checks
// who files it, what waits for an answer is read as other complaints are, and the answer can undo the decision.
const Appeal = "appeal"

// A Complaint is a complaint as its author reads it.
type Complaint struct {
	ID             string         `json:"id" pattern:"^cmp_" doc:"Its number."`
	State          ComplaintState `json:"state" enum:"received,acknowledged,resolved"`
	Subject        string         `json:"subject"`
	Kind           string         `json:"kind" enum:"unlawful,privacy,abuse,fraud,copyright,other,appeal"`
	Text           string         `json:"text"`
	CreatedAt      time.Time      `json:"createdAt"`
	AcknowledgeBy  time.Time      `json:"acknowledgeBy" doc:"By when an operator acknowledges it."`
	ResolveBy      time.Time      `json:"resolveBy" doc:"By when it is answered."`
	AcknowledgedAt *time.Time     `json:"acknowledgedAt" doc:"Null for not yet."`
	ResolvedAt     *time.Time     `json:"resolvedAt" doc:"Null for not yet."`
	Answer         *string        `json:"answer" doc:"Of the operators; null for none yet."`
	Mail           string         `json:"mail" enum:"none,asked,confirmed" doc:"Whether a mailbox is told: asked until its reader confirms that."`
	Untrusted      bool           `json:"untrusted_content" doc:"Always true."`
}

// A ComplaintReceipt is the answer to a new complaint. ReadToken is shown once.
type ComplaintReceipt struct {
	Complaint
	ReadToken string `json:"readToken" doc:"Opens the complaint: over HTTP as Authorization: Bearer, never in a URL. Shown once."`
	URL       string `json:"url" format:"uri" doc:"Its page."`
}

// A ComplaintInput names one complaint and opens it.
type ComplaintInput struct {
	ID        string `json:"id" shape:"complaint-id" doc:"Id of the complaint." example:"cmp_01k9y3v6k8e5w9q2x4z7c1m0ad"`
	ReadToken string `json:"readToken,omitempty" maxLength:"100" doc:"Returned by file_complaint; over HTTP send it as Authorization: Bearer, never in the URL."`
}

// A ComplaintConfirmation is what the link in the mail to a complainant's mailbox has.
type ComplaintConfirmation struct {
	ID     string `json:"id" shape:"complaint-id" doc:"Id of the complaint." example:"cmp_01k9y3v6k8e5w9q2x4z7c1m0ad"`
	Ticket string `json:"ticket" maxLength:"100" doc:"The end of the link in the mail."`
}

const exampleComplaint = "cmp_01k9y3v6k8e5w9q2x4z7c1m0ad"

var FileComplaint = declare[NewComplaint, ComplaintReceipt](Operation{
	Name: "file_complaint", Title: "File a complaint",
	Summary: "Complains to the operators of this node, without an account.", Description: "Returns a number and a read token.",
	HTTP: Route{"POST", "/api/public/complaints", 201}, Doors: Everywhere,
	Access: OwnerOrProof, Scope: ScopePost, Purpose: "report", Inward: true, Codes: []Code{Conflict, Forbidden, NotFound, Gone},
	Example: NewComplaint{Subject: "other", Kind: "privacy", Text: "A post shows my telephone number."},
})

var ReadComplaint = declare[ComplaintInput, Complaint](Operation{
	Name: "read_complaint", Title: "Read a complaint",
	Summary: "State, due dates and answer of a complaint, by its read token.",
	HTTP:    Route{"GET", "/api/public/complaints/{id}", 200}, Doors: Everywhere, ReadOnly: true, NoStore: true, Secret: "readToken",
	Codes:   []Code{NotFound, Unauthorized},
	Example: ComplaintInput{ID: exampleComplaint},
})

var ConfirmComplaintMail = declare[ComplaintConfirmation, None](Operation{
	Name: "confirm_complaint_mail", Title: "Confirm the mailbox of a complaint",
	Summary: "Lets the mailbox of a complaint be told of the answer, by the link of a mail.",
	HTTP:    Route{"POST", "/api/public/complaints/{id}/mail", 204}, Doors: HTTP, Secret: "ticket", Idempotent: true, Inward: true, OneTime: true,
	Codes:   []Code{NotFound, Gone, Unauthorized},
	Example: ComplaintConfirmation{ID: exampleComplaint, Ticket: "stoa_read_"},
})

// An OperatorComplaint is a complaint as operators read it.
type OperatorComplaint struct {
	Complaint
	By      string `json:"by" doc:"Who filed it: an identity, profile or account; empty for who neither signed nor was signed in."`
	Overdue bool   `json:"overdue" doc:"Whether a due date is over."`
	Reason  string `json:"reason" doc:"Of an appeal: why the post or profile was hidden."`
}

// A ComplaintQuery selects complaints.
type ComplaintQuery struct {
	State string `json:"state,omitempty" enum:"open,overdue,resolved" default:"open" doc:"open: those that are due first are first. resolved: the newest first."`
	Paging
}

var ListComplaints = declare[ComplaintQuery, Page[OperatorComplaint]](Operation{
	Name: "list_complaints", Title: "List complaints",
	Summary: "Complaints to the operators, the most urgent first.",
	HTTP:    Route{"GET", "/api/operator/complaints", 200}, For: Operators, ReadOnly: true, Codes: []Code{InvalidCursor},
	Example: ComplaintQuery{State: "open"},
})

// A ComplaintAnswer is what an operator says about a complaint.
type ComplaintAnswer struct {
	ID     string `json:"id" shape:"complaint-id" doc:"Id of the complaint." example:"cmp_01k9y3v6k8e5w9q2x4z7c1m0ad"`
	Answer string `json:"answer,omitempty" maxLength:"4000" doc:"For the author; plain text. May be left out to acknowledge only."`
	Done   bool   `json:"done,omitempty" doc:"Whether the complaint is over. Otherwise it is acknowledged."`
	Grant  bool   `json:"grant,omitempty" doc:"Ends an appeal, and shows the post or profile again."`
}

// Check requires words to end a complaint.
func (c ComplaintAnswer) Check() []Fault {
	if (c.Done || c.Grant) && strings.TrimSpace(c.Answer) == "" {
		return []Fault{{"/answer", "required", "say what was decided"}}
	}
	return nil
}

var AnswerComplaint = declare[ComplaintAnswer, OperatorComplaint](Operation{
	Name: "answer_complaint", Title: "Answer a complaint",
	Summary: "Acknowledges a complaint, with or without words, or answers and ends it. Its author is told. An appeal may be granted.",
	HTTP:    Route{"POST", "/api/operator/complaints/{id}/answer", 200}, For: Operators, Codes: []Code{NotFound, Conflict},
	Example: ComplaintAnswer{ID: exampleComplaint, Answer: "The post is hidden.", Done: true},
})
