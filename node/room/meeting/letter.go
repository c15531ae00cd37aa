package meeting

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"strings"
	"time"

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

// subjects of letters by their language. Their arguments are the person's name, the time, the minutes and
// the node.
var subjects = map[string]map[protocol.MeetingState]string{
	"en": {
		protocol.MeetingUnconfirmed: "Confirm your meeting request on %[4]s",
		protocol.MeetingApproved:    "Invitation: %[3]d min with %[1]s, %[2]s",
		protocol.MeetingProposed:    "Other times for your meeting with %[1]s",
		protocol.MeetingDeclined:    "Your meeting request to %[1]s was declined",
		protocol.MeetingCancelled:   "Cancelled: meeting with %[1]s, %[2]s",
		protocol.MeetingExpired:     "Your meeting request to %[1]s has expired",
		moved:                       "Moved: %[3]d min with %[1]s, %[2]s",
		reminder:                    "Reminder: %[3]d min with %[1]s, %[2]s",
	},
	"hi": {
		protocol.MeetingUnconfirmed: "%[4]s पर अपनी बैठक के अनुरोध की पुष्टि करें",
		protocol.MeetingApproved:    "निमंत्रण: %[1]s के साथ %[3]d मिनट, %[2]s",
		protocol.MeetingProposed:    "%[1]s के साथ आपकी बैठक के लिए दूसरे समय",
		protocol.MeetingDeclined:    "%[1]s ने आपकी बैठक का अनुरोध अस्वीकार किया",
		protocol.MeetingCancelled:   "रद्द: %[1]s के साथ बैठक, %[2]s",
		protocol.MeetingExpired:     "%[1]s से आपकी बैठक के अनुरोध का समय समाप्त हो गया",
		moved:                       "समय बदला: %[1]s के साथ %[3]d मिनट, %[2]s",
		reminder:                    "अनुस्मारक: %[1]s के साथ %[3]d मिनट, %[2]s",
	},
}

// Letters that are not about the change to a state.
const (
	moved    protocol.MeetingState = "moved"
	reminder protocol.MeetingState = "reminder"
)

var (
	hindiDays = []string{"रविवार", "सोमवार", "मंगलवार", "बुधवार", "गुरुवार", "शुक्रवार", "शनिवार"}
	hindiMons = []string{"", "जनवरी", "फ़रवरी", "मार्च", "अप्रैल", "मई", "जून", "जुलाई", "अगस्त", "सितंबर", "अक्टूबर", "नवंबर", "दिसंबर"}
)

// dated returns a time for a subject.
func dated(language string, at time.Time, zone string) string {
	in, ok := protocol.Zone(zone)
	if !ok {
		in = time.UTC
	}
	at = at.In(in)
	day := at.Format("Mon 2 Jan 2006")
	if language == "hi" {
		day = fmt.Sprintf("%s %d %s %d", hindiDays[at.Weekday()], at.Day(), hindiMons[at.Month()], at.Year())
	}
	return day + at.Format(", 15:04 (MST)")
}

// A side is what letters about a meeting say of the person.
type side struct {
	name  string // cleaned
	who   string // name, handle and node
	zone  string // of the person
	rules protocol.MeetingRules
}

func (m *Meeting) side(ctx context.Context, tx *storage.Tx, handle string) (side, error) {
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return side{}, err
	}
	s, err := tx.Meetings().Settings(ctx, p)
	rules := s.Rules.Complete()
	name := protocol.OneLine(protocol.CleanText(p.Draft.Name))
	return side{name, name + " (@" + handle + " at " + m.host() + ")", rules.TimeZone, rules}, err
}

// letter returns the mail about the last move of a request to its confirmed mailbox.
func (m *Meeting) letter(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting) (Letter, error) {
	p, err := m.side(ctx, tx, r.Handle)
	if err != nil {
		return Letter{}, err
	}
	when := times(protocol.MeetingTime{StartsAt: r.StartsAt, EndsAt: r.EndsAt}, cmp.Or(r.TimeZone, p.zone), p.zone)
	about, text := r.State, []string{}
	switch r.State {
	case protocol.MeetingApproved:
		text = append(text, p.who+" has approved your meeting:", when)
		if r.Sequence > 0 {
			about, text[0] = moved, p.who+" has moved your meeting. It is now:"
		}
	case protocol.MeetingProposed:
		text = append(text, p.who+" cannot meet you at the time that you asked for, and proposes:")
		for _, t := range r.Proposals {
			text = append(text, times(t, cmp.Or(r.TimeZone, p.zone), p.zone))
		}
		text = append(text, "Take one of them, or withdraw your request, on this page until "+
			strings.TrimSpace(moment(r.DueAt, cmp.Or(r.TimeZone, p.zone)))+":", m.pageOf(r))
	case protocol.MeetingDeclined:
		text = append(text, p.who+" has declined your request for a meeting:", when)
	case protocol.MeetingCancelled:
		text = append(text, "This meeting with "+p.who+" was cancelled:", when)
	case protocol.MeetingExpired:
		text = append(text, "Nobody decided in time, so your request for a meeting with "+p.who+" has expired:", when,
			"Ask again for another time:", m.Base+"/@"+r.Handle+"/meet")
	default:
		return Letter{}, nil
	}
	l := m.complete(r, p, about, text)
	l.ID = letterID(r.ID, r.Moves)
	return l, m.invite(&l, r, p)
}

func letterID(id string, n int) string { return fmt.Sprintf("%s.%d", id, n) }

// complete returns the rest of a letter: what every letter says of a meeting, and its subject.
func (m *Meeting) complete(r *storage.StoredMeeting, p side, about protocol.MeetingState, text []string) Letter {
	language := cmp.Or(r.Language, "en")
	if r.State == protocol.MeetingApproved {
		if r.Location != "" {
			text = append(text, "Where: "+r.Location)
		}
		text = append(text, "You asked for this on "+moment(r.AskedAt, cmp.Or(r.TimeZone, p.zone))+
			". This page shows the meeting; cancel it there if you cannot come, or if it was not you:", m.pageOf(r))
	}
	if r.Answer != "" && r.State != protocol.MeetingUnconfirmed && about != reminder {
		text = append(text, "From "+p.name+":", "    | "+strings.ReplaceAll(r.Answer, "\n", "\n    | "))
	}
	text = append(text, "To get no more mail about meetings from "+m.host()+": "+m.linkTo(m.stopTicket(r.Mailbox)))
	return Letter{
		To: r.Mail, Date: r.MovedAt, Bounce: strings.TrimPrefix(r.ID, protocol.MeetingID+"_"),
		Subject: fmt.Sprintf(subjects[language][about], p.name, dated(language, r.StartsAt, cmp.Or(r.TimeZone, p.zone)), minutes(r), m.host()),
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
