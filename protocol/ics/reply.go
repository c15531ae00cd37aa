package ics

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
)

// Bounds of a mail that is read.
const (
	MaxMail     = 1 << 20   // bytes of a mail; a longer one is refused
	maxCalendar = 256 << 10 // bytes of its calendar
	maxParts    = 40
	maxNesting  = 5
)

// Methods of answers (RFC 5546 §3.2).
const (
	MethodReply   = "REPLY"
	MethodCounter = "COUNTER"
)

// What an attendee answered (RFC 5545 §3.2.12).
const (
	Accepted  = "ACCEPTED"
	Tentative = "TENTATIVE"
	Declined  = "DECLINED"
)

// ErrNoReply means that a mail holds no answer to an invitation.
var ErrNoReply = errors.New("the mail holds no answer to an invitation")

// A Reply is the answer of a mail program to an invitation. Nothing in it is verified: its sender
// wrote all of it.
type Reply struct {
	Method   string            // MethodReply or MethodCounter
	UID      string            //
	Sequence int               // -1 when the answer has none
	Stamp    time.Time         // zero when the answer has none that can be read
	From     string            // address of the From header, as ParseMail returns it
	Answers  map[string]string // PARTSTAT by the address of each attendee in the answer; "" for none
	Start    time.Time         // of a COUNTER: the time it proposes, zero when it cannot be read
	End      time.Time         // zero when the answer has none
	Comment  string            // cleaned, at most 1000 characters
}

// ID returns the id of the meeting, ok only when the UID is of a meeting of the node.
func (r *Reply) ID(node string) (id string, ok bool) {
	id, host, found := strings.Cut(r.UID, "@")
	return id, found && strings.EqualFold(host, node) && word(id)
}

// ReadReply finds the answer in a mail: Gmail nests it in multipart/alternative and attaches it,
// outlook.com sends it next to the texts and without ORGANIZER. Zones of a proposed time are those
// of IANA or Windows. A mail without an answer is ErrNoReply.
func ReadReply(raw []byte) (*Reply, error) {
	if len(raw) > MaxMail {
		return nil, errors.New("the mail is too long")
	}
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("the mail has no headers")
	}
	from, err := mail.ParseAddressList(m.Header.Get("From"))
	if err != nil || len(from) != 1 || len(m.Header["From"]) != 1 {
		return nil, errors.New("the mail is not from one address")
	}
	sender, err := protocol.ParseMail(from[0].Address)
	if err != nil {
		return nil, err
	}
	w := walk{left: maxParts}
	w.part(m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), m.Body, 0)
	if w.found == nil {
		return nil, ErrNoReply
	}
	w.found.From = sender
	return w.found, nil
}

// A walk looks for the first answer among the parts of a mail.
type walk struct {
	left  int
	found *Reply
}

func (w *walk) part(contentType, encoding string, body io.Reader, depth int) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil { // a parameter that is there twice; the type is what matters
		kind, _, _ = strings.Cut(contentType, ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
	}
	switch {
	case strings.HasPrefix(kind, "multipart/") && depth < maxNesting:
		parts := multipart.NewReader(body, params["boundary"])
		for w.found == nil && params["boundary"] != "" {
			p, err := parts.NextRawPart()
			if w.left--; err != nil || w.left < 0 {
				return
			}
			w.part(p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p, depth+1)
		}
	case kind == "text/calendar" || kind == "application/ics":
		switch strings.ToLower(strings.TrimSpace(encoding)) {
		case "base64":
			body = base64.NewDecoder(base64.StdEncoding, body)
		case "quoted-printable":
			body = quotedprintable.NewReader(body)
		}
		text, err := io.ReadAll(io.LimitReader(body, maxCalendar+1))
		if err == nil && len(text) <= maxCalendar {
			w.found = readAnswer(string(text))
		}
	}
}

// readAnswer returns the answer in a calendar, nil when it holds none.
func readAnswer(text string) *Reply {
	calendar, err := decode(strings.TrimPrefix(text, "\ufeff"))
	if err != nil {
		return nil
	}
	r := &Reply{Method: calendar.upper("METHOD"), Sequence: -1, Answers: map[string]string{}}
	if r.Method != MethodReply && r.Method != MethodCounter {
		return nil
	}
	var event *component
	for _, c := range calendar.children {
		if c.name == "VEVENT" {
			if event != nil {
				return nil // several events answer nothing that was asked here
			}
			event = c
		}
	}
	if event == nil {
		return nil
	}
	if r.UID = strings.TrimSpace(event.text("UID")); r.UID == "" || len(r.UID) > 300 {
		return nil
	}
	if n, err := strconv.Atoi(strings.TrimSpace(event.text("SEQUENCE"))); err == nil && n >= 0 && n < 1<<31 {
		r.Sequence = n
	}
	if p := event.get("DTSTAMP"); p != nil {
		r.Stamp, _, _ = p.instant(time.UTC)
	}
	for _, p := range event.props {
		if p.name != "ATTENDEE" || len(r.Answers) == 20 {
			continue
		}
		if at, ok := mailOf(p.value); ok {
			r.Answers[at] = strings.ToUpper(p.params["PARTSTAT"])
		}
	}
	if len(r.Answers) == 0 {
		return nil
	}
	r.Comment = protocol.Shorten(protocol.CleanText(event.text("COMMENT")), 1000)
	if r.Method == MethodCounter {
		r.times(event)
	}
	return r
}

// times reads the time that a COUNTER proposes.
func (r *Reply) times(event *component) {
	start := event.get("DTSTART")
	if start == nil {
		return
	}
	at, day, ok := start.instant(nil)
	if !ok || day {
		return
	}
	r.Start = at
	if end := event.get("DTEND"); end != nil {
		if at, day, ok := end.instant(nil); ok && !day && at.After(r.Start) {
			r.End = at
		}
	} else if d, ok := duration(event.text("DURATION")); ok {
		r.End = r.Start.Add(d)
	}
}

// mailOf returns the address of a mailto: URI.
func mailOf(uri string) (string, bool) {
	uri = strings.TrimSpace(uri)
	if len(uri) < 7 || !strings.EqualFold(uri[:7], "mailto:") {
		return "", false
	}
	bare, err := url.PathUnescape(uri[7:])
	if err != nil {
		return "", false
	}
	bare, err = protocol.ParseMail(bare)
	return bare, err == nil
}
