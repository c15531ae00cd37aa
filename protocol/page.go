package protocol

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// ShortAnswer is how many bytes of JSON an answer with a list in it has at most when the caller does
// not say how much of the list it wants (contract §8).
const ShortAnswer = 8000

// Short returns the first elements of a list that fit into a short answer next to the rest of it,
// and at least one.
func Short[T any](list []T, rest any) []T {
	const next = 160 // what the cursor for the others takes
	room := ShortAnswer - next - size(rest)
	for i := range list {
		if room -= size(list[i]) + 1; room < 0 {
			return list[:max(i, 1)]
		}
	}
	return list
}

// size is how many bytes a value has as JSON.
func size(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		return ShortAnswer // what cannot be encoded fails later, with its reason
	}
	return len(raw)
}

// Limits of a listing (spec §4.2, contract §1).
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// A Page is one page of a listing. Next is the value of "after" for the next page, nil on the
// last.
type Page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next" doc:"after of the next page; null on the last."`
}

// Paging is embedded in the input of every listing.
type Paging struct {
	Limit int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20" doc:"Items a page holds."`
	After string `json:"after,omitempty" doc:"The next of the page before."`
}

// Size returns the wanted page size, [DefaultLimit] when none was given.
func (p Paging) Size() int {
	if p.Limit == 0 {
		return DefaultLimit
	}
	return p.Limit
}

// Cursor encodes the position of the last item of a page. It includes the name of the listing, so
// that another listing refuses it.
func Cursor(listing, position string) *string {
	s := base64.RawURLEncoding.EncodeToString([]byte(listing + "\x00" + position))
	return &s
}

// ParseCursor decodes a [Cursor]. An empty cursor is the beginning and returns "". Anything that
// this listing has not returned is an invalid-cursor error.
func ParseCursor(listing, after string) (string, error) {
	if after == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(after)
	if err == nil {
		if name, position, ok := strings.Cut(string(raw), "\x00"); ok && name == listing && position != "" && len(position) <= 120 {
			return position, nil
		}
	}
	return "", Errorf(InvalidCursor, "after is not a next value of this listing; leave it out to start from the newest item")
}
