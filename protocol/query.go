package protocol

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// MaxQueryTerms is how many words, phrases and operators a q may have.
const MaxQueryTerms = 24

// A TextQuery is a q that has been read. What it asks for must all hold.
//
//	paper jaipur      both words
//	"hand made"       these words next to each other
//	-plastic          not this word; also before a phrase, tag: and kind:
//	tag:paper         the agent has this tag
//	kind:business     the agent is of this kind
type TextQuery struct {
	Terms []Term
	Tags  []Operand
	Kinds []Operand
}

// A Term is a word or, with Phrase, words next to each other. Not excludes it.
type Term struct {
	Text        string
	Phrase, Not bool
}

// An Operand is the value of an operator.
type Operand struct {
	Value string
	Not   bool
}

var tagShape = regexp.MustCompile(TagPattern)

// ParseQuery parses a q. Faults point at /q and say what to write instead. Any other colon is part
// of the text, so that times and addresses can be searched for.
func ParseQuery(q string) (t TextQuery, faults []Fault) {
	fault := func(format string, args ...any) {
		faults = append(faults, Fault{"/q", "bad-query", fmt.Sprintf(format, args...)})
	}
	rest, n := q, 0
	for {
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		if rest == "" {
			break
		}
		if n++; n > MaxQueryTerms {
			fault("at most %d words, phrases and operators", MaxQueryTerms)
			break
		}
		not := strings.HasPrefix(rest, "-")
		rest = strings.TrimPrefix(rest, "-")
		if strings.HasPrefix(rest, `"`) {
			phrase, after, closed := strings.Cut(rest[1:], `"`)
			rest = after
			switch {
			case !closed:
				fault(`a phrase is opened with " and not closed`)
			case strings.TrimSpace(phrase) == "":
				fault(`"" holds no words`)
			default:
				t.Terms = append(t.Terms, Term{phrase, true, not})
			}
			continue
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
		if end < 0 {
			end = len(rest)
		}
		word := rest[:end]
		rest = rest[end:]
		name, value, colon := strings.Cut(word, ":")
		switch {
		case word == "":
			fault("- must be followed by a word without a space, as in -word")
		case colon && strings.EqualFold(name, "tag"):
			if value = strings.ToLower(value); !tagShape.MatchString(value) {
				fault("tag: must be followed by a tag such as tag:paper, which matches %s", TagPattern)
			}
			t.Tags = append(t.Tags, Operand{value, not})
		case colon && strings.EqualFold(name, "kind"):
			if value = strings.ToLower(value); value != string(Person) && value != string(Business) {
				fault("kind: must be followed by person or business")
			}
			t.Kinds = append(t.Kinds, Operand{value, not})
		default:
			t.Terms = append(t.Terms, Term{word, false, not})
		}
	}
	return t, faults
}
