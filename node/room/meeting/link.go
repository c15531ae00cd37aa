package meeting

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// The links of mails about meetings. A ticket needs no row: it is its kind, what it opens and a MAC. One
// that confirms requests has the hash of the mailbox, opens what waits for it, and ends after some weeks;
// one that stops mail has it too, and does not end. One that opens a request has its id, and ends when the
// address is deleted.

// Kinds of tickets.
const (
	ofMailbox rune = 'm' // confirms the requests of a mailbox
	ofReader  rune = 'v' // opens the request, as its status token does, for the reader of the confirmed mailbox
	ofStop    rune = 's' // stops mail to a mailbox
)

const idLength = 26 // of a TypeID, without its prefix

func (m *Meeting) mac(parts ...string) string {
	h := hmac.New(sha256.New, m.LinkKey)
	h.Write([]byte(strings.Join(append([]string{"meeting link"}, parts...), "\x00")))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:24])
}

func (m *Meeting) stopTicket(mailbox [32]byte) string {
	name := base64.RawURLEncoding.EncodeToString(mailbox[:])
	return protocol.ReadTokenPrefix + string(ofStop) + name + m.mac(string(ofStop), name)
}

// readerTicket returns the ticket that opens a request for the reader of its mailbox.
func (m *Meeting) readerTicket(r *storage.StoredMeeting) string {
	id := strings.TrimPrefix(r.ID, protocol.MeetingID+"_")
	return protocol.ReadTokenPrefix + string(ofReader) + id + m.mac(string(ofReader), r.ID, r.Mail)
}

func (m *Meeting) isReaders(r *storage.StoredMeeting, ticket string) bool {
	return r.Confirmed && r.Mail != "" && subtle.ConstantTimeCompare([]byte(ticket), []byte(m.readerTicket(r))) == 1
}

// pageOf returns the address of the page of a request, for the reader of its confirmed mailbox.
func (m *Meeting) pageOf(r *storage.StoredMeeting) string {
	return m.Base + "/meetings/" + r.ID + "?ticket=" + m.readerTicket(r)
}

func (m *Meeting) linkTo(ticket string) string { return m.Base + "/meeting-link?ticket=" + ticket }

var errLink = protocol.Errorf(protocol.Gone, "nothing waits for this link any more: it was used before, the request has ended, or the link is old")

// A linked is what a ticket opens.
type linked struct {
	do       []protocol.MeetingLinkDo
	requests []storage.StoredMeeting // that the reader of the mailbox may confirm, newest first; none with ofStop
	mailbox  [32]byte
}

// open returns what a ticket opens.
func (m *Meeting) open(ctx context.Context, tx *storage.Tx, c protocol.Caller, ticket string) (l linked, err error) {
	const hashLength = 43 // of 32 bytes in base64url
	ticket = cmp.Or(ticket, c.ReadToken)
	if ticket == "" {
		return l, protocol.Errorf(protocol.Unauthorized, "send the ticket of the link as Authorization: Bearer")
	}
	rest, ok := strings.CutPrefix(ticket, protocol.ReadTokenPrefix)
	if !ok || len(rest) < 1+hashLength {
		return l, errLink
	}
	raw, err := base64.RawURLEncoding.DecodeString(rest[1 : 1+hashLength])
	copy(l.mailbox[:], raw)
	is := func(want string) bool { return subtle.ConstantTimeCompare([]byte(ticket), []byte(want)) == 1 }
	switch {
	case err != nil:
		return l, errLink
	case is(m.stopTicket(l.mailbox)):
		l.do = []protocol.MeetingLinkDo{protocol.MeetingLinkStop}
		return l, nil
	case !is(m.mailboxTicket(l.mailbox, tx.Now)) && !is(m.mailboxTicket(l.mailbox, tx.Now.Add(-ticketFor))):
		return l, errLink
	}
	l.do = []protocol.MeetingLinkDo{protocol.MeetingLinkConfirm, protocol.MeetingLinkStop}
	if l.requests, err = waiting(ctx, tx, l.mailbox); err == nil && len(l.requests) == 0 {
		err = errLink
	}
	return l, err
}

// ReadLink returns what a link would do.
func (m *Meeting) ReadLink(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingLinkInput) (protocol.MeetingLink, error) {
	l, err := m.open(ctx, tx, c, in.Ticket)
	if err != nil {
		return protocol.MeetingLink{}, err
	}
	out := protocol.MeetingLink{Do: l.do, Requests: []protocol.MeetingLinkRequest{}, Untrusted: true}
	for _, r := range l.requests {
		p, err := tx.Profiles().Own(ctx, r.Handle)
		if err != nil {
			return protocol.MeetingLink{}, err
		}
		out.Requests = append(out.Requests, protocol.MeetingLinkRequest{
			ID: r.ID, Handle: r.Handle, Name: p.Draft.Name, StartsAt: r.StartsAt, EndsAt: r.EndsAt, TimeZone: r.TimeZone,
		})
	}
	return out, nil
}

// UseLink does what a link is for.
func (m *Meeting) UseLink(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingLinkUse) (protocol.MeetingLinkDone, error) {
	l, err := m.open(ctx, tx, c, in.Ticket)
	if err != nil {
		return protocol.MeetingLinkDone{}, err
	}
	if !slices.Contains(l.do, in.Do) {
		return protocol.MeetingLinkDone{}, protocol.Errorf(protocol.Conflict, "this link cannot %s", in.Do)
	}
	if in.Do == protocol.MeetingLinkStop {
		return protocol.MeetingLinkDone{Done: in.Do}, stop(ctx, tx, l.mailbox)
	}
	at := slices.IndexFunc(l.requests, func(r storage.StoredMeeting) bool { return r.ID == in.ID })
	switch {
	case in.ID == "" && len(l.requests) == 1:
		at = 0
	case in.ID == "":
		return protocol.MeetingLinkDone{}, protocol.Invalid(protocol.Fault{Pointer: "/id", Code: "required", Detail: "name one of the requests of the link"})
	case at < 0:
		return protocol.MeetingLinkDone{}, errLink
	}
	r, err := m.confirm(ctx, tx, l.requests[at].ID)
	if err != nil {
		return protocol.MeetingLinkDone{}, err
	}
	return protocol.MeetingLinkDone{Done: in.Do, State: &r.State, URL: new(m.pageOf(r))}, nil
}

// stop ends mail about meetings to a mailbox. Requests that it did not confirm stay until they are deleted
// for that: who named the mailbox learns nothing of it.
func stop(ctx context.Context, tx *storage.Tx, mailbox [32]byte) error {
	box, err := tx.Meetings().LockMailbox(ctx, mailbox)
	if err != nil {
		return err
	}
	box.Stopped = true
	if box.SentAt.IsZero() {
		box.SentAt = tx.Now
	}
	return tx.Meetings().PutMailbox(ctx, box)
}

// times returns the words for a time in the zones of both sides: one line where their clocks agree.
func times(l hall.Words, t protocol.MeetingTime, zones ...string) string {
	var lines, clocks []string
	for _, name := range zones {
		zone := zoneOr(name)
		at, end := t.StartsAt.In(zone), t.EndsAt.In(zone)
		clock := at.Format(time.RFC3339) + end.Format(time.RFC3339)
		if !slices.Contains(clocks, clock) {
			clocks = append(clocks, clock)
			lines = append(lines, "    "+l.Text("%s to %s", l.Time(at, "Mon 2 Jan 2006, 15:04"), end.Format("15:04 MST"))+" ("+zone.String()+")")
		}
	}
	return strings.Join(lines, "\n")
}
