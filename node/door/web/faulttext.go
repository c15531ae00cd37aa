package web

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// Faults and refusals come in English from every room. In another language they are shown by its catalogue of
// what the rooms write (words/rooms.hi.json), or by what their code means.

// codeTexts are what the codes of faults mean.
var codeTexts = map[string]string{
	"required": english("Fill this in."), "too-long": english("This is too long."), "too-short": english("This is too short."),
	"too-many": english("These are too many."), "too-few": english("These are too few."), "out-of-range": english("This is too small or too large."),
	"wrong-shape": english("This cannot be used here."), "wrong-type": english("This cannot be used here."), "not-allowed": english("This cannot be used here."),
	"unknown-member": english("There is no such field."),
}

// forPrograms matches a text of the schema's check that means nothing to a person: a regular expression, a type.
var forPrograms = regexp.MustCompile(`^(must match|must be of type|is not a valid) `)

// detail returns the text of a fault or refusal in the language of ctx; "" when there is none, or when it is for programs.
func detail(ctx context.Context, text string) string {
	if forPrograms.MatchString(text) {
		return ""
	}
	return words.Of(ctx).OfRoom(text)
}

// faultText returns what is wrong with a field in the language of ctx.
func faultText(ctx context.Context, x protocol.Fault) string {
	if text := detail(ctx, x.Detail); text != "" {
		return text
	}
	if text := codeTexts[x.Code]; text != "" {
		return tr(ctx, text)
	}
	return tr(ctx, "This cannot be used here.")
}

// memberFault is faultText of a fault that no field shows: with the member that it is about, in words instead of a JSON Pointer.
func memberFault(ctx context.Context, x protocol.Fault) string {
	if member := strings.ReplaceAll(strings.TrimPrefix(x.Pointer, "/"), "/", " "); member != "" {
		return member + ": " + sentence(faultText(ctx, x))
	}
	return sentence(faultText(ctx, x))
}

// refusalText returns what exactly was refused, in the language of ctx; where that is not known, what to do. Of several faults it
// is the first; the detail of an error with faults has JSON Pointers, or is about a list that pages do not have.
func refusalText(ctx context.Context, e *protocol.Error) string {
	if len(e.Faults) > 0 {
		return sentence(faultText(ctx, e.Faults[0]))
	}
	return sentence(cmp.Or(detail(ctx, e.Detail), tr(ctx, e.Code.Advice())))
}

// refusalTexts are the titles and advice of error codes, which the pages show.
func refusalTexts() (texts []string) {
	for _, c := range protocol.Codes() {
		texts = append(texts, c.Title(), c.Advice())
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}
