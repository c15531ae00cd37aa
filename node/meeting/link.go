package meeting

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// The links of mails about meetings, which do what a request waits for. A ticket is its kind, the id of
// the request and a MAC of both, of how often the request has changed, and of the address that the mail
// went to. So it needs no row: it ends when it was used, since that changes the request, and when
// something else changes the request. A ticket that stops mail has the hash of the mailbox instead, and
// does not end. One that opens the request ends when the address is deleted.

// Kinds of tickets.
const (
	ofMailbox rune = 'c' // confirms a mailbox
	ofReader  rune = 'v' // opens the request, as its status token does, for the reader of the confirmed mailbox
	ofStop    rune = 's' // stops mail to a mailbox
)

const idLength = 26 // of a TypeID, without its prefix

func (m *Meeting) mac(parts ...string) string {
	h := hmac.New(sha256.New, m.LinkKey)
	h.Write([]byte(strings.Join(append([]string{"meeting link"}, parts...), "\x00")))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:24])
}

// ticket returns the ticket that confirms the mailbox of a request as it is now.
func (m *Meeting) ticket(r *storage.StoredMeeting) string {
	id := strings.TrimPrefix(r.ID, protocol.MeetingID+"_")
	return protocol.ReadTokenPrefix + string(ofMailbox) + id + m.mac(string(ofMailbox), r.ID, strconv.Itoa(r.Moves), r.Mail)
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

var errLink = protocol.Errorf(protocol.Gone, "this link was used before, or the request has changed since")

// A linked is what a ticket opens.
type linked struct {
	do      []protocol.MeetingLinkDo
	request *storage.StoredMeeting // nil with ofStop
	person  *storage.StoredProfile
	mailbox [32]byte
}

// open returns what a ticket opens.
func (m *Meeting) open(ctx context.Context, tx *storage.Tx, c protocol.Caller, ticket string) (l linked, err error) {
	ticket = cmp.Or(ticket, c.ReadToken)
	if ticket == "" {
		return l, protocol.Errorf(protocol.Unauthorized, "send the ticket of the link as Authorization: Bearer")
	}
	rest, ok := strings.CutPrefix(ticket, protocol.ReadTokenPrefix)
	if !ok || len(rest) < 1+idLength {
		return l, errLink
	}
	if rune(rest[0]) == ofStop {
		return m.openStop(rest[1:], ticket)
	}
	l.request, l.person, err = locked(ctx, tx, protocol.MeetingID+"_"+rest[1:1+idLength])
	if errors.Is(err, storage.ErrNotFound) {
		return l, errLink
	}
	if err != nil {
		return l, err
	}
	want := m.ticket(l.request)
	if stateNow(tx, l.request) != protocol.MeetingUnconfirmed || subtle.ConstantTimeCompare([]byte(ticket), []byte(want)) != 1 {
		return l, errLink
	}
	l.mailbox, l.do = l.request.Mailbox, []protocol.MeetingLinkDo{protocol.MeetingLinkConfirm, protocol.MeetingLinkStop}
	return l, nil
}

func (m *Meeting) openStop(rest, ticket string) (l linked, err error) {
	const hashLength = 43 // of 32 bytes in base64url
	if len(rest) < hashLength {
		return l, errLink
	}
	raw, err := base64.RawURLEncoding.DecodeString(rest[:hashLength])
	copy(l.mailbox[:], raw)
	if err != nil || subtle.ConstantTimeCompare([]byte(ticket), []byte(m.stopTicket(l.mailbox))) != 1 {
		return l, errLink
	}
	l.do = []protocol.MeetingLinkDo{protocol.MeetingLinkStop}
	return l, nil
}

// ReadLink returns what a link would do.
func (m *Meeting) ReadLink(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MeetingLinkInput) (protocol.MeetingLink, error) {
	l, err := m.open(ctx, tx, c, in.Ticket)
	if err != nil {
		return protocol.MeetingLink{}, err
	}
	out := protocol.MeetingLink{Do: l.do, Untrusted: true}
	if l.request == nil {
		return out, nil
	}
	out.Handle, out.Name = l.request.Handle, l.person.Draft.Name
	out.StartsAt, out.EndsAt, out.TimeZone = &l.request.StartsAt, &l.request.EndsAt, l.request.TimeZone
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
		return protocol.MeetingLinkDone{Done: in.Do}, m.stop(ctx, tx, l)
	}
	err = m.confirm(ctx, tx, l.request)
	return protocol.MeetingLinkDone{Done: in.Do, State: &l.request.State, URL: new(m.pageOf(l.request))}, err
}

// confirm submits a request whose mailbox was confirmed.
func (m *Meeting) confirm(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting) error {
	s, err := m.settingsOf(ctx, tx, r.Handle)
	if err != nil {
		return err
	}
	n, err := tx.Meetings().Count(ctx, r.Handle, r.Requester, r.Mailbox)
	switch {
	case err != nil:
		return err
	case !s.Open:
		return protocol.Errorf(protocol.Conflict, "@%s takes no meeting requests now", r.Handle)
	case n.ForPerson >= s.Rules.Complete().MaxWaiting:
		return protocol.Errorf(protocol.Conflict, "too many requests wait for @%s; try this link again later", r.Handle)
	}
	box, err := tx.Meetings().Mailbox(ctx, r.Mailbox)
	if err != nil {
		return err
	}
	box.Sent, box.Bounced = 0, false
	if err := tx.Meetings().PutMailbox(ctx, box); err != nil {
		return err
	}
	r.Confirmed, r.Sent = true, protocol.MeetingMailSent
	return m.move(ctx, tx, r, change{to: protocol.MeetingSubmitted, note: "the mailbox was confirmed"})
}

// stop ends mail about meetings to a mailbox, and the request that it did not confirm.
func (m *Meeting) stop(ctx context.Context, tx *storage.Tx, l linked) error {
	box, err := tx.Meetings().Mailbox(ctx, l.mailbox)
	if err != nil {
		return err
	}
	box.Stopped = true
	if box.SentAt.IsZero() {
		box.SentAt = tx.Now
	}
	if err := tx.Meetings().PutMailbox(ctx, box); err != nil || l.request == nil {
		return err
	}
	l.request.Mail = ""
	return m.move(ctx, tx, l.request, change{to: protocol.MeetingWithdrawn, note: "the mailbox wants no mail about meetings"})
}

// times returns the words for a time in the zones of both sides: one line where their clocks agree.
func times(t protocol.MeetingTime, zones ...string) string {
	var lines, clocks []string
	for _, name := range zones {
		zone := zoneOr(name)
		at, end := t.StartsAt.In(zone), t.EndsAt.In(zone)
		clock := at.Format(time.RFC3339) + end.Format(time.RFC3339)
		if !slices.Contains(clocks, clock) {
			clocks = append(clocks, clock)
			lines = append(lines, "    "+at.Format("Mon 2 Jan 2006, 15:04")+" to "+end.Format("15:04 MST")+" ("+zone.String()+")")
		}
	}
	return strings.Join(lines, "\n")
}
