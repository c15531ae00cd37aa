// Package complaint is the complaints to the operators of a node, from anybody, without an account: their number and due dates, the
// answer, and the mail that tells of it.
package complaint

import (
	"cmp"
	"context"
	"errors"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// Times are within what an operator acts, and how long a complaint is kept after that.
type Times struct{ Acknowledge, Resolve, Kept time.Duration }

// A Send sends a letter. After a final *protocol.Error it must not be retried.
type Send func(ctx context.Context, id, to, subject, text string) error

// Complaints keeps the complaints of one node.
type Complaints struct {
	Base string // public address of the node, without a slash at the end
	Name string // what the operator calls it
	DB   *storage.DB
	// Words has the texts of letters; see [hall.House].
	Words func(language string) hall.Words
	Times
	LinkKey    []byte      // makes the tickets of links in mails, and the names of mailboxes
	PerHour    int         // mails of the node within an hour that ask a mailbox, shared with those about meetings
	LettersVia func() Send // what it returns is nil on a node that sends no mail
	Appeals
}

// New makes the room; the parameters are the fields of Complaints.
func New(h hall.House, name string, times Times, linkKey []byte, perHour int, via func() Send, appeals Appeals) *Complaints {
	return &Complaints{Base: h.Base, Name: name, DB: h.DB, Words: h.Words, Times: times, LinkKey: linkKey, PerHour: perHour, LettersVia: via,
		Appeals: appeals}
}

// Bind binds the operations of the room.
func (c *Complaints) Bind(t *hall.Table) {
	hall.Bind(t, protocol.FileComplaint, c.File)
	hall.Bind(t, protocol.ReadComplaint, c.Read)
	hall.Bind(t, protocol.ConfirmComplaintMail, c.Confirm)
	hall.Bind(t, protocol.ListComplaints, c.List)
	hall.Bind(t, protocol.AnswerComplaint, c.Answer)
}

// Jobs are the handlers of the room's jobs.
func (c *Complaints) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{storage.ComplaintMailJob: storage.HandlerOf(c.Letter)}
}

// File stores a new complaint.
func (c *Complaints) File(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.NewComplaint) (protocol.ComplaintReceipt, error) {
	var out protocol.ComplaintReceipt
	if in.Mail != "" {
		mail, err := protocol.ParseMail(in.Mail)
		if err != nil {
			return out, err
		}
		if in.Mail = mail; c.LettersVia() == nil {
			return out, protocol.Invalid(protocol.Fault{Pointer: "/mail", Code: "no-mail", Detail: "this node sends no mail; leave it out, and keep the read token"})
		}
	}
	var against decision
	if in.Kind == protocol.Appeal {
		var err error
		if against, err = c.appealed(ctx, tx, by, in); err != nil {
			return out, err
		}
	}
	if err := c.admit(ctx, tx, by); err != nil {
		return out, err
	}
	token := protocol.NewReadToken()
	s := &storage.StoredComplaint{
		ID: protocol.NewID(protocol.ComplaintID, tx.Now), State: protocol.ComplaintReceived, DueAt: tx.Now.Add(c.Acknowledge), Complainant: by.ID(),
		Known: by.Known(), TokenHash: protocol.SecretHash(token), CreatedAt: tx.Now, Appeal: against.id,
		ComplaintDoc: storage.ComplaintDoc{Subject: cmp.Or(against.subject, in.Subject), Kind: in.Kind, Text: in.Text, Mail: in.Mail, Language: in.Language,
			AcknowledgeBy: tx.Now.Add(c.Acknowledge), ResolveBy: tx.Now.Add(c.Resolve), Handle: against.handle, Reason: against.reason},
	}
	switch err := tx.Complaints().Insert(ctx, s); {
	case errors.Is(err, storage.ErrExists):
		return out, protocol.Errorf(protocol.Conflict, "there is an appeal against this decision already; each is appealed once")
	case err != nil:
		return out, err
	}
	if in.Mail != "" {
		if err := c.write(ctx, tx, letter{ID: s.ID, What: asks}, tx.Now); err != nil {
			return out, err
		}
	}
	return protocol.ComplaintReceipt{Complaint: view(s), ReadToken: token, URL: c.Base + "/complaints/" + s.ID}, nil
}

// admit decides whether there is room for a complaint. None gives way to a newer one, since each has to be answered.
func (c *Complaints) admit(ctx context.Context, tx *storage.Tx, by protocol.Caller) error {
	if err := tx.Complaints().Lock(ctx); err != nil {
		return err
	}
	n, err := tx.Complaints().Since(ctx, by.ID(), tx.Now.Add(-24*time.Hour))
	if err != nil {
		return err
	}
	if n >= protocol.ComplaintsADay {
		e := protocol.Errorf(protocol.RateLimited, "%d complaints came from you, or from your network, within a day, which is the most", n)
		e.RetryAfter = 24 * time.Hour
		return e
	}
	open, err := tx.Complaints().Open(ctx)
	if err != nil {
		return err
	}
	if protocol.SharedComplaints.Full(by.Known(), open) {
		return protocol.Errorf(protocol.Conflict, "too many complaints wait for the operators; write to the contact of this node, or sign in")
	}
	return protocol.Price(by, protocol.SharedComplaints.Steps(open.Strangers))
}

// view is a complaint as its author reads it.
func view(s *storage.StoredComplaint) protocol.Complaint {
	out := protocol.Complaint{ID: s.ID, State: s.State, Subject: s.Subject, Kind: s.Kind, Text: s.Text, CreatedAt: s.CreatedAt,
		AcknowledgeBy: s.AcknowledgeBy, ResolveBy: s.ResolveBy, AcknowledgedAt: s.AcknowledgedAt, ResolvedAt: s.ResolvedAt,
		Mail: "none", Untrusted: true}
	if s.Answer != "" {
		out.Answer = &s.Answer
	}
	switch {
	case s.Confirmed:
		out.Mail = "confirmed"
	case s.Mail != "":
		out.Mail = "asked"
	}
	return out
}

func notFound() error {
	return protocol.Errorf(protocol.NotFound, "there is no complaint with that id that you may read; send its read token")
}

// Read returns a complaint to who has its read token, or the link of a mail to its confirmed mailbox, and an appeal to the owner of the
// profile that it is about; for everyone else it is not found.
func (c *Complaints) Read(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.ComplaintInput) (protocol.Complaint, error) {
	token := cmp.Or(in.ReadToken, by.ReadToken)
	if token == "" && !by.Known() {
		return protocol.Complaint{}, protocol.Errorf(protocol.Unauthorized, "send the read token of the complaint as Authorization: Bearer")
	}
	s, err := tx.Complaints().ByID(ctx, in.ID)
	if err != nil {
		return protocol.Complaint{}, storage.IfMissing(err, notFound())
	}
	if !protocol.SecretMatches(token, s.TokenHash) && !(s.Confirmed && c.isTicket(s, token)) && !appellant(by, s) {
		return protocol.Complaint{}, notFound()
	}
	return view(s), nil
}

// Confirm lets the mailbox of a complaint be told, by the link that was sent to it.
func (c *Complaints) Confirm(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.ComplaintConfirmation) (protocol.None, error) {
	s, err := tx.Complaints().ByID(ctx, in.ID)
	if err == nil && !c.isTicket(s, cmp.Or(in.Ticket, by.ReadToken)) {
		err = storage.ErrNotFound
	}
	if err != nil || s.Confirmed {
		return protocol.None{}, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "this link is not of a complaint, or the complaint is deleted"))
	}
	s.Confirmed = true
	if err := tx.Complaints().Update(ctx, s); err != nil {
		return protocol.None{}, err
	}
	if s.Answer != "" || s.AcknowledgedAt != nil {
		return protocol.None{}, c.write(ctx, tx, letter{ID: s.ID, What: tells, State: s.State}, tx.Now)
	}
	return protocol.None{}, nil
}
