package meeting

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"strings"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// A Letter is a mail to one person.
type Letter struct {
	ID                string    // unique; the same at each attempt
	To, Subject, Text string    // Text says everything that HTML and Calendar say
	HTML              string    // "" for none
	From              string    // name of the sender; "" for the node's
	Bounce            string    // what comes back with a bounce
	Date              time.Time // the same at each attempt
	Method            string    // of Calendar, REQUEST or CANCEL; "" for no calendar
	Calendar          []byte    // iCalendar
}

// A Mailer sends letters. After a final *protocol.Error a letter must not be retried; ErrMailbox is in
// one about a mailbox that takes no mail at all. Errors and log lines must not contain the address.
type Mailer interface {
	// Answers returns the address to which a calendar sends its answer to the invitation with a
	// Letter.Bounce; "" when letters have no calendars.
	Answers(id string) string
	// Compose returns a letter as it is sent.
	Compose(l Letter) ([]byte, error)
	// Send sends what Compose returned; with nil it composes.
	Send(ctx context.Context, l Letter, raw []byte) error
}

// subjects of letters. Their arguments are the person's name, the time, the minutes and the node.
var subjects = map[protocol.MeetingState]string{
	protocol.MeetingUnconfirmed: hall.Key("Confirm your meeting request on %[4]s"),
	protocol.MeetingApproved:    hall.Key("Invitation: %[3]d min with %[1]s, %[2]s"),
	protocol.MeetingProposed:    hall.Key("Other times for your meeting with %[1]s"),
	protocol.MeetingDeclined:    hall.Key("Your meeting request to %[1]s was declined"),
	protocol.MeetingCancelled:   hall.Key("Cancelled: meeting with %[1]s, %[2]s"),
	protocol.MeetingExpired:     hall.Key("Your meeting request to %[1]s has expired"),
	moved:                       hall.Key("Moved: %[3]d min with %[1]s, %[2]s"),
	reminder:                    hall.Key("Reminder: %[3]d min with %[1]s, %[2]s"),
}

// Letters that are not about the change to a state.
const (
	moved    protocol.MeetingState = "moved"
	reminder protocol.MeetingState = "reminder"
)

// A side is what letters about a meeting say of the person, in the language of their reader.
type side struct {
	name  string // cleaned
	who   string // name, handle and node
	zone  string // of the person
	rules protocol.MeetingRules
	words hall.Words
}

func (m *Meeting) side(ctx context.Context, tx *storage.Tx, handle, language string) (side, error) {
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return side{}, err
	}
	s, err := tx.Meetings().Settings(ctx, p)
	rules := s.Rules.Complete()
	name := protocol.OneLine(protocol.CleanText(p.Draft.Name))
	l := m.Words(language)
	return side{name, l.Text("%s (@%s at %s)", name, handle, m.host()), rules.TimeZone, rules, l}, err
}

// letter returns the mail about the last move of a request to its confirmed mailbox.
func (m *Meeting) letter(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting) (Letter, error) {
	p, err := m.side(ctx, tx, r.Handle, r.Language)
	if err != nil {
		return Letter{}, err
	}
	l := p.words
	when := times(l, protocol.MeetingTime{StartsAt: r.StartsAt, EndsAt: r.EndsAt}, cmp.Or(r.TimeZone, p.zone), p.zone)
	about, text := r.State, []string{}
	switch r.State {
	case protocol.MeetingApproved:
		text = append(text, l.Text("%s has approved your meeting:", p.who), when)
		if r.Sequence > 0 {
			about, text[0] = moved, l.Text("%s has moved your meeting. It is now:", p.who)
		}
	case protocol.MeetingProposed:
		text = append(text, l.Text("%s cannot meet you at the time that you asked for, and proposes:", p.who))
		for _, t := range r.Proposals {
			text = append(text, times(l, t, cmp.Or(r.TimeZone, p.zone), p.zone))
		}
		text = append(text, l.Text("Take one of them, or withdraw your request, on this page until %s:", worded(l, r.DueAt, cmp.Or(r.TimeZone, p.zone))),
			m.pageOf(r))
	case protocol.MeetingDeclined:
		text = append(text, l.Text("%s has declined your request for a meeting:", p.who), when)
	case protocol.MeetingCancelled:
		text = append(text, l.Text("This meeting with %s was cancelled:", p.who), when)
	case protocol.MeetingExpired:
		text = append(text, l.Text("Nobody decided in time, so your request for a meeting with %s has expired:", p.who), when,
			l.Text("Ask again for another time:"), m.Base+"/@"+r.Handle+"/meet")
	default:
		return Letter{}, nil
	}
	out := m.complete(r, p, about, text)
	out.ID = letterID(r.ID, r.Moves)
	return out, m.invite(&out, r, p)
}

func letterID(id string, n int) string { return fmt.Sprintf("%s.%d", id, n) }

// complete returns the rest of a letter: what every letter says of a meeting, and its subject.
func (m *Meeting) complete(r *storage.StoredMeeting, p side, about protocol.MeetingState, text []string) Letter {
	l, zone := p.words, cmp.Or(r.TimeZone, p.zone)
	if r.State == protocol.MeetingApproved {
		if r.Location != "" {
			text = append(text, l.Text("Where: %s", r.Location))
		}
		text = append(text, l.Text("You asked for this on %s. This page shows the meeting; cancel it there if you cannot come, or if it was not you:",
			worded(l, r.AskedAt, zone)), m.pageOf(r))
	}
	if r.Answer != "" && r.State != protocol.MeetingUnconfirmed && about != reminder {
		text = append(text, l.Text("From %s:", p.name), "    | "+strings.ReplaceAll(r.Answer, "\n", "\n    | "))
	}
	text = append(text, l.Text("To get no more mail about meetings from %s: %s", m.host(), m.linkTo(m.stopTicket(r.Mailbox))))
	return Letter{
		To: r.Mail, Date: r.MovedAt, Bounce: strings.TrimPrefix(r.ID, protocol.MeetingID+"_"),
		Subject: l.Text(subjects[about], p.name, l.Time(r.StartsAt.In(zoneOr(zone)), "Mon 2 Jan 2006, 15:04 (MST)"), minutes(r), m.host()),
		Text:    strings.Join(text, "\n\n") + "\n",
	}
}

func minutes(r *storage.StoredMeeting) int { return int(r.EndsAt.Sub(r.StartsAt).Minutes()) }

// page returns a text as HTML. Only the node's own links can be followed: other addresses in it may be
// of a stranger.
func (m *Meeting) page(text string) string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"></head><body>\n")
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		b.WriteString(`<p dir="auto">`)
		for i, line := range strings.Split(paragraph, "\n") {
			if i > 0 {
				b.WriteString("<br>\n")
			}
			before, link, found := strings.Cut(line, m.Base+"/")
			b.WriteString(html.EscapeString(before))
			if found {
				link = html.EscapeString(m.Base + "/" + link)
				b.WriteString(`<a href="` + link + `">` + link + `</a>`)
			}
		}
		b.WriteString("</p>\n")
	}
	return b.String() + "</body></html>\n"
}

func (m *Meeting) host() string {
	return strings.TrimPrefix(strings.TrimPrefix(m.Base, "https://"), "http://")
}
