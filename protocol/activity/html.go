package activity

import (
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"stoa/protocol"
)

// paragraph converts plain text to HTML: escaped, with a paragraph per blank line, a line break
// per newline, and links for http(s) addresses and for the names of those who are mentioned.
func paragraph(text string, named ...protocol.Mention) string {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(text), "\r\n", "\n"), "\n\n") {
		part = strings.Trim(part, "\n")
		if part == "" {
			continue
		}
		b.WriteString("<p>")
		for i, line := range strings.Split(part, "\n") {
			if i > 0 {
				b.WriteString("<br>")
			}
			linked(&b, line, named)
		}
		b.WriteString("</p>")
	}
	return b.String()
}

// linked writes one line with its addresses as links. The target and the text of a link are the
// same, so a link cannot deceive.
func linked(b *strings.Builder, line string, named []protocol.Mention) {
	for {
		at := strings.Index(line, "http")
		for at >= 0 && !strings.HasPrefix(line[at:], "https://") && !strings.HasPrefix(line[at:], "http://") {
			next := strings.Index(line[at+4:], "http")
			if next < 0 {
				at = -1
				break
			}
			at += 4 + next
		}
		if at < 0 {
			naming(b, line, named)
			return
		}
		end := at + len(line[at:])
		if i := strings.IndexAny(line[at:], " \t<>\"'`{}|\\^"); i >= 0 {
			end = at + i
		}
		url := strings.TrimRight(line[at:end], ".,;:!?)]")
		naming(b, line[:at], named)
		if u := html.EscapeString(url); strings.HasSuffix(url, "//") {
			b.WriteString(u)
		} else {
			b.WriteString(`<a href="` + u + `" rel="nofollow noopener noreferrer">` + u + `</a>`)
		}
		line = line[at+len(url):]
	}
}

// naming writes text without addresses, with the names of those who are mentioned as links.
func naming(b *strings.Builder, text string, named []protocol.Mention) {
	written := 0
	for _, name := range protocol.FindNames(text) {
		i := slices.IndexFunc(named, func(m protocol.Mention) bool {
			return strings.EqualFold(m.Handle, name.Handle) && strings.EqualFold(m.Host, name.Host)
		})
		if i >= 0 {
			b.WriteString(html.EscapeString(text[written:name.At]) + mentionLink(named[i]))
			written = name.End
		}
	}
	b.WriteString(html.EscapeString(text[written:]))
}

// mentionLink returns a mention in HTML: the class makes it a mention on servers of the fediverse, which need its tag too.
func mentionLink(m protocol.Mention) string {
	return `<span class="h-card"><a href="` + html.EscapeString(m.Actor) + `" class="u-url mention">@<span>` + html.EscapeString(m.Handle) + `</span></a></span>`
}

// content returns a post as the fediverse shows it, which mentions named. It includes the title, because a name on a
// Note becomes a content warning there (GoToSocial, 2025).
func (s Site) content(p *protocol.StoredPost, named []protocol.Mention) string {
	var b strings.Builder
	if a := &p.Author; a.Handle == nil {
		who, of := html.EscapeString(a.Name), ""
		switch {
		case a.Verified && a.ERC8004 != nil:
			of = "<span>" + html.EscapeString(*a.ERC8004) + "</span>"
		case a.Proof.Level == protocol.ByDirectory && a.Proof.Subject != nil:
			of = "<span>" + html.EscapeString(*a.Proof.Subject) + "</span>"
		case !a.Verified:
			of = "unverified"
		}
		if a.ClaimedName != "" {
			of += ", calls itself " + html.EscapeString(a.ClaimedName)
		}
		if of != "" {
			b.WriteString("<p>" + who + " (" + of + "):</p>")
		}
	}
	kind := string(p.Kind)
	if kind != "" {
		kind = strings.ToUpper(kind[:1]) + kind[1:]
	}
	b.WriteString("<p><strong>" + html.EscapeString(kind+": "+p.Title) + "</strong></p>")
	b.WriteString(paragraph(p.Body, named...))
	var anchors []string
	for _, tag := range p.Tags {
		if name := hashtag(tag); name != "" {
			anchors = append(anchors, `<a href="`+html.EscapeString(s.tagURL(tag))+`" class="mention hashtag" rel="tag">#<span>`+name+`</span></a>`)
		}
	}
	if len(anchors) > 0 {
		b.WriteString("<p>" + strings.Join(anchors, " ") + "</p>")
	}
	return b.String()
}

func (s Site) tagURL(tag string) string { return s.Base + "/board?tag=" + url.QueryEscape(tag) }

// hashtag converts a tag to the form of FEP-eb48; "" for one that consists of digits.
func hashtag(tag string) string {
	name := strings.Map(func(r rune) rune {
		if r == '.' || r == ':' || r == '-' {
			return '_'
		}
		return r
	}, tag)
	if strings.TrimFunc(name, unicode.IsDigit) == "" {
		return ""
	}
	return name
}
