package ics

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"stoa/protocol"
)

const (
	utc     = "20060102T150405Z"
	product = "-//stoa//meetings 1//EN"
)

// Longest texts of an event, in characters. Longer ones are cut.
const (
	maxName        = 100
	maxLine        = 200
	maxDescription = 4000
)

// A Person is a name and a bare mail address. The name may be empty, and is cleaned.
type Person struct{ Name, Mail string }

// An Event is one meeting. Texts may come from anyone: they are cleaned and cut.
type Event struct {
	ID          string // of the meeting; with Node it is the UID, which never changes
	Node        string // host name of the node
	Summary     string // one line
	Description string //
	Location    string // one line; a https address is also written as CONFERENCE
	URL         string // https page of the meeting, "" for none
	Start, End  time.Time
	Stamp       time.Time // when this state of the meeting was made; the same state has the same bytes
	Sequence    int       // one more at each move, and at the end
	Organizer   Person    // an address of the node, so that answers reach it
	Attendee    Person    // who gets the invitation
	Cancelled   bool
	Alarm       time.Duration // before Start, 0 for none
}

// Request returns the invitation, METHOD:REQUEST, for the first time or after a move.
func (e Event) Request() ([]byte, error) { return object("REQUEST", "", true, e) }

// Cancel returns the cancellation, METHOD:CANCEL.
func (e Event) Cancel() ([]byte, error) {
	e.Cancelled = true
	return object("CANCEL", "", true, e)
}

// Stored returns the copy for a calendar server: it has no METHOD (RFC 4791 §4.1), and no
// people, since a server that sends invitations itself would send a second one.
func (e Event) Stored() ([]byte, error) { return object("", "", false, e) }

// Feed returns a calendar for subscribers, METHOD:PUBLISH, with its name. They are told to read it
// again every 15 minutes. Without events it holds none, which readers accept.
func Feed(name string, events []Event) ([]byte, error) {
	return object("PUBLISH", name, false, events...)
}

func object(method, name string, people bool, events ...Event) ([]byte, error) {
	var w writer
	w.line("BEGIN", "VCALENDAR")
	w.line("VERSION", "2.0")
	w.line("PRODID", product)
	w.line("CALSCALE", "GREGORIAN")
	if method != "" {
		w.line("METHOD", method)
	}
	if method == "PUBLISH" {
		w.text("NAME", line(name, maxLine))
		w.text("X-WR-CALNAME", line(name, maxLine))
		w.line("REFRESH-INTERVAL;VALUE=DURATION", "PT15M")
		w.line("X-PUBLISHED-TTL", "PT15M")
	}
	for _, e := range events {
		if err := e.write(&w, people); err != nil {
			return nil, err
		}
	}
	w.line("END", "VCALENDAR")
	return []byte(w.String()), nil
}

func (e Event) write(w *writer, people bool) error {
	if !word(e.ID) || !word(e.Node) {
		return fmt.Errorf("id %q and node %q do not make a UID", e.ID, e.Node)
	}
	if !e.Start.Before(e.End) {
		return fmt.Errorf("event %s does not end after its start", e.ID)
	}
	w.line("BEGIN", "VEVENT")
	w.line("UID", UID(e.ID, e.Node))
	w.line("DTSTAMP", e.Stamp.UTC().Format(utc))
	w.line("DTSTART", e.Start.UTC().Format(utc))
	w.line("DTEND", e.End.UTC().Format(utc))
	w.line("SEQUENCE", strconv.Itoa(e.Sequence))
	status, transparency := "CONFIRMED", "OPAQUE"
	if e.Cancelled {
		status, transparency = "CANCELLED", "TRANSPARENT"
	}
	w.line("STATUS", status)
	w.line("TRANSP", transparency)
	if people {
		if err := e.people(w); err != nil {
			return err
		}
	}
	w.text("SUMMARY", line(e.Summary, maxLine))
	w.text("DESCRIPTION", protocol.Shorten(protocol.CleanText(e.Description), maxDescription))
	w.text("LOCATION", line(e.Location, maxLine))
	if at, ok := address(e.Location); ok {
		w.line("CONFERENCE;VALUE=URI;FEATURE=VIDEO", at)
	}
	if at, ok := address(e.URL); ok {
		w.line("URL", at)
	}
	if e.Alarm > 0 && !e.Cancelled {
		w.line("BEGIN", "VALARM")
		w.line("ACTION", "DISPLAY")
		w.line("DESCRIPTION", "Reminder")
		w.line("TRIGGER", "-PT"+strconv.Itoa(int(e.Alarm/time.Minute))+"M")
		w.line("END", "VALARM")
	}
	w.line("END", "VEVENT")
	return nil
}

// people writes who meets. Mail programs show buttons to answer only when both addresses begin with
// mailto: and the attendee's is that of the recipient.
func (e Event) people(w *writer) error {
	organizer, err := mailto(e.Organizer.Mail)
	if err != nil {
		return fmt.Errorf("organizer: %w", err)
	}
	attendee, err := mailto(e.Attendee.Mail)
	if err != nil {
		return fmt.Errorf("attendee: %w", err)
	}
	w.line("ORGANIZER"+named(e.Organizer.Name), organizer)
	answer := ";PARTSTAT=NEEDS-ACTION;RSVP=TRUE"
	if e.Cancelled {
		answer = ""
	}
	w.line("ATTENDEE"+named(e.Attendee.Name)+";CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT"+answer, attendee)
	return nil
}

// UID returns the UID of a meeting's event.
func UID(id, node string) string { return id + "@" + node }

// named returns a CN parameter, "" without a name. A quoted value has no escapes: a double quote
// becomes an apostrophe (RFC 6868 has an escape, which many programs show as it is).
func named(name string) string {
	if name = strings.ReplaceAll(line(name, maxName), `"`, "'"); name == "" {
		return ""
	}
	return `;CN="` + name + `"`
}

// mailto returns an address as a URI (RFC 6068).
func mailto(address string) (string, error) {
	bare, err := protocol.ParseMail(address)
	if err != nil {
		return "", err
	}
	return "mailto:" + mailEscaped.Replace(bare), nil
}

var mailEscaped = strings.NewReplacer("%", "%25", "?", "%3F", "&", "%26", "#", "%23")

// address returns a https address that is safe as a property's value.
func address(s string) (string, bool) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Scheme != "https" || u.Host == "" || len(s) > 2000 {
		return "", false
	}
	out := u.String()
	return out, !strings.ContainsFunc(out, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// word reports whether s can be a part of a UID.
func word(s string) bool {
	return s != "" && len(s) <= 253 && !strings.ContainsFunc(s, func(r rune) bool {
		return r >= 0x7f || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:[]", r)
	})
}

// line returns a text as one clean line.
func line(s string, most int) string {
	return protocol.Shorten(protocol.OneLine(protocol.CleanText(s)), most)
}
