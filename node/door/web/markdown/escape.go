package markdown

import (
	"strings"
	"unicode"
)

// Escape returns a text such that CommonMark, with the extensions of GitHub, shows it as it is: without
// meaning, on one line. Characters that cannot be seen are left out, but for those that join letters.
func Escape(s string) string {
	var b strings.Builder
	begins := true // of a line, or of a text that may begin one
	digits := false
	for _, r := range visible(s) {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
			continue
		case strings.ContainsRune("\\`*_[]<>|~#&$!{}", r), begins && strings.ContainsRune("+-=:.)", r), digits && (r == '.' || r == ')'):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		digits = (begins || digits) && r >= '0' && r <= '9'
		begins = false
	}
	return b.String()
}

// visible drops the characters that change how a text reads without being seen (UAX #9 overrides and isolates, tag
// characters, controls, zero-width spaces). ZWJ and ZWNJ stay: scripts of India and emoji need them.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r == 0x200B, r == 0x200E, r == 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F, r == 0xFEFF,
			r >= 0xE0000 && r <= 0xE007F:
			return -1
		case r == 0x2028 || r == 0x2029:
			return ' '
		}
		return r
	}, s)
}

// tidy collapses the white space of lines, and makes of each line break a hard one (CommonMark §6.7).
func tidy(s string) string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "  \n")
}

// Plain returns a text on one line, without the characters that cannot be seen.
func Plain(s string) string { return strings.Join(strings.Fields(visible(s)), " ") }
