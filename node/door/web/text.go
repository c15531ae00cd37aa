package web

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// A segment is a part of a text; Href is set when it is a link.
type segment struct{ Text, Href string }

// segments finds the http and https addresses in a text. Nothing else becomes a link, and the
// address itself is shown, so that no link says one thing and leads to another. An address with a
// user part stays text, since its host is not where it seems to be. After maxInvalid candidates
// that are not addresses the rest stays text, so that the total cost is bounded.
func segments(text string) []segment {
	const maxInvalid = 20
	var out []segment
	rest := text
	from := 0 // start of the text that is not in out yet
	for at, invalid := 0, 0; at < len(rest) && invalid < maxInvalid; {
		i := start(rest[at:])
		if i < 0 {
			break
		}
		i += at
		end := i + len(address(rest[i:]))
		at = end
		if u, err := url.Parse(rest[i:end]); err != nil || u.Host == "" || u.User != nil {
			at = i + len("http")
			invalid++
			continue
		}
		if from < i {
			out = append(out, segment{Text: rest[from:i]})
		}
		out = append(out, segment{Text: rest[i:end], Href: rest[i:end]})
		from = end
	}
	if from < len(rest) {
		out = append(out, segment{Text: rest[from:]})
	}
	return out
}

// start returns where the next address may begin: at a scheme that is not preceded by a letter or
// digit, -1 when there is none.
func start(s string) int {
	for from := 0; ; {
		i := strings.Index(s[from:], "http")
		if i < 0 {
			return -1
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		if tail := s[i:]; (strings.HasPrefix(tail, "https://") || strings.HasPrefix(tail, "http://")) &&
			(i == 0 || !unicode.IsLetter(before) && !unicode.IsDigit(before)) {
			return i
		}
		from = i + len("http")
	}
}

// address returns the address at the beginning of s: up to white space or a character that no URL
// contains, without the punctuation of the sentence around it.
func address(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("<>\"'`{}|\\^“”„«»‘’", r)
	}); i >= 0 {
		s = s[:i]
	}
	// How many more brackets are closed than opened. Counted once, since a text may consist only
	// of brackets.
	round, square := strings.Count(s, ")")-strings.Count(s, "("), strings.Count(s, "]")-strings.Count(s, "[")
	for {
		s = strings.TrimRightFunc(s, func(r rune) bool { return strings.ContainsRune(".,;:!?…।", r) })
		switch {
		case round > 0 && strings.HasSuffix(s, ")"):
			round--
		case square > 0 && strings.HasSuffix(s, "]"):
			square--
		default:
			return s
		}
		s = s[:len(s)-1]
	}
}

// excerpt returns the beginning of a text, at most n characters, cut at a space if there is one
// nearby.
func excerpt(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	cut := string([]rune(s)[:n])
	if i := strings.LastIndexFunc(cut, unicode.IsSpace); i > len(cut)*3/4 {
		cut = cut[:i]
	}
	return strings.TrimRightFunc(cut, unicode.IsSpace) + " …"
}

// stamp formats a time for people, in the zone of India. It does not depend on the current time, so
// that a page is unchanged until its content changes; the script of the pages writes it in the
// reader's zone, relative to now.
func stamp(ctx context.Context, t time.Time) string {
	return words.Of(ctx).Time(t.In(protocol.India), "2 Jan 2006, 15:04 IST")
}

func machineTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// word converts a word of the wire to one for people: "board_post" → "Board post".
func word[S ~string](ctx context.Context, s S) string {
	if s == "" {
		return ""
	}
	return tr(ctx, wordKey(s))
}

func wordKey[S ~string](s S) string { return initial(strings.ReplaceAll(string(s), "_", " ")) }

// initial makes the first letter a capital.
func initial(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// price returns what a capability costs, in words.
func price(ctx context.Context, p *protocol.Pricing) string {
	var parts []string
	if p.Amount != nil {
		parts = append(parts, money(p.Currency, strconv.FormatFloat(*p.Amount, 'f', -1, 64)))
	}
	switch p.Model {
	case protocol.Free:
		parts = append(parts, tr(ctx, "free"))
	case protocol.Fixed:
		parts = append(parts, tr(ctx, "fixed price"))
	case protocol.PerUse:
		parts = append(parts, tr(ctx, "per use"))
	case protocol.Quote:
		parts = append(parts, tr(ctx, "on quotation"))
	}
	if p.Amount == nil && p.Currency != "" {
		parts = append(parts, tr(ctx, "in %s##a currency", p.Currency))
	}
	return strings.Join(parts, " ")
}

// rating returns the reviews of an agent in words.
func rating(ctx context.Context, r protocol.Reputation) string {
	if r.Average != nil {
		return tr(ctx, "%d reviews, %s on average", r.Reviews, strconv.FormatFloat(*r.Average, 'f', 1, 64))
	}
	return tr(ctx, "%d reviews", r.Reviews)
}

// paidReviews says how many reviews are from orders whose payment is known in one way.
func paidReviews(ctx context.Context, k protocol.PaidReviews) string {
	average := strconv.FormatFloat(k.Average, 'f', 1, 64)
	switch k.Known {
	case protocol.KnownProvider:
		return tr(ctx, "%d from paid orders, as payment providers reported: %s on average", k.Reviews, average)
	case protocol.KnownConfirmed:
		return tr(ctx, "%d from paid orders, as buyers reported and the shop confirmed: %s on average", k.Reviews, average)
	}
	return tr(ctx, "%d with payments on the chain: %s on average", k.Reviews, average)
}

// local returns an address on this node as a path, and any other unchanged.
func (s *Web) local(address string) string {
	if path, ok := strings.CutPrefix(address, s.Base); ok && strings.HasPrefix(path, "/") {
		return path
	}
	return address
}

// query returns one field of a query string.
func query(name, value string) string { return url.Values{name: {value}}.Encode() }

// sentence makes a sentence of an error's detail.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	s = initial(s)
	switch last, _ := utf8.DecodeLastRuneInString(s); {
	case strings.ContainsRune(".!?।⟧", last):
		return s
	case unicode.Is(unicode.Devanagari, last):
		return s + "।"
	}
	return s + "."
}
