package activity

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"stoa/protocol"
)

// Limits of the lines that stand for what a post of another server has beside its text.
const (
	maxExtra     = 1500 // characters of all of them
	maxAlternate = 300  // of an attachment's alternative text
	maxOption    = 100  // of one choice of a poll
	maxOptions   = 20
)

// An extra is an attachment of a post, or a choice of a poll.
type extra struct {
	Type      Types `json:"type"`
	MediaType Text  `json:"mediaType"`
	URL       URLs  `json:"url"`
	Href      URLs  `json:"href"`
	Name      Text  `json:"name"`
	Summary   Text  `json:"summary"`
}

// extras returns the choices of a poll and the attachments as lines of text: a post here has no pictures and no votes, and
// nothing is left out without a trace. Files are linked, with their alternative text, and never copied.
func (n *Note) extras() string {
	var lines []string
	for _, options := range []json.RawMessage{n.OneOf, n.AnyOf} {
		for i, o := range read(options) {
			if name := clean(string(o.Name)); name != "" && i < maxOptions {
				lines = append(lines, "- "+protocol.Shorten(name, maxOption))
			}
		}
	}
	left := 0
	for _, a := range read(n.Attachment) {
		if a.Type.Is("PropertyValue") {
			continue
		}
		if line := a.line(); line != "" && length(lines)+utf8.RuneCountInString(line) <= maxExtra {
			lines = append(lines, line)
		} else {
			left++
		}
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("(Attachments left out: %d)", left))
	}
	return strings.Join(lines, "\n")
}

// line is "[image: alternative text] https://…"; "" without an address.
func (a *extra) line() string {
	at, err := url.Parse(a.URL.Page)
	if a.URL.Page == "" {
		at, err = url.Parse(a.Href.Page)
	}
	if err != nil || at.Host == "" {
		return ""
	}
	kind, _, _ := strings.Cut(string(a.MediaType), "/")
	if kind == "" || kind == "application" {
		kind = a.Type.String()
	}
	if kind = clean(kind); kind == "" || len(kind) > 20 {
		kind = "attachment"
	}
	about := clean(string(a.Name))
	if about == "" {
		about = clean(string(a.Summary))
	}
	line := "[" + strings.ToLower(kind)
	if about != "" {
		line += ": " + protocol.Shorten(about, maxAlternate)
	}
	return line + "] " + at.String()
}

func length(lines []string) int { return utf8.RuneCountInString(strings.Join(lines, "\n")) }

// read reads one object or a list of objects; others are left out.
func read(raw json.RawMessage) (all []extra) {
	items, err := list(raw, MaxAttachments)
	if err != nil {
		return nil
	}
	for _, item := range items {
		var e extra
		if first(item) == '{' && json.Unmarshal(item, &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// withExtras returns the text of a post followed by its extras, in at most MaxText characters, of which the text is cut.
func withExtras(text, extras string) string {
	if extras == "" {
		return protocol.Shorten(text, MaxText)
	}
	text = protocol.Shorten(text, MaxText-utf8.RuneCountInString(extras)-2)
	if text == "" {
		return extras
	}
	return text + "\n\n" + extras
}
