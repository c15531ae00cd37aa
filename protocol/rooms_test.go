package protocol

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// TestAllCapabilities shows the capability of a room while it is open, in the
// words of its owner where there are some (spec §2.8).
func TestAllCapabilities(t *testing.T) {
	t.Parallel()
	own := Capability{ID: "schedule-meeting", Name: "Meet"}
	full := make([]Capability, MaxCapabilities)
	for _, c := range []struct {
		name  string
		draft ProfileDraft
		open  Rooms
		want  []Capability
	}{
		{"nothing open", ProfileDraft{Kind: Person}, Rooms{}, []Capability{}},
		{"meetings", ProfileDraft{Kind: Person}, Rooms{Meetings: true}, []Capability{scheduleMeeting}},
		{"attention", ProfileDraft{Kind: Person}, Rooms{AttentionBoard: true}, []Capability{attentionBoard}},
		{"both", ProfileDraft{Kind: Person}, Rooms{Meetings: true, AttentionBoard: true}, []Capability{scheduleMeeting, attentionBoard}},
		{"the owner's words", ProfileDraft{Kind: Person, Capabilities: []Capability{own}}, Rooms{Meetings: true}, []Capability{own}},
		{"a business", ProfileDraft{Kind: Business}, Rooms{Meetings: true, AttentionBoard: true, Catalog: true}, []Capability{}},
		{"no space", ProfileDraft{Kind: Person, Capabilities: full}, Rooms{Meetings: true}, full},
	} {
		require.Equal(t, c.want, c.draft.AllCapabilities(c.open), c.name)
	}
	raw := must.Get(json.Marshal([]Capability{scheduleMeeting, attentionBoard}))(t)
	require.JSONEq(t, `[{"id":"schedule-meeting","name":"Schedule a meeting",
		"description":"Ask for a meeting; each request is approved by hand before anything is put on a calendar.","tags":["scheduling","calendar"],
		"pricing":{"model":"free"}},
		{"id":"attention-board","name":"Attention board",
		"description":"Bid in rupees for a slot of attention; nothing is charged unless the payment link is paid.","tags":["attention","ads"],
		"pricing":{"model":"per_use","currency":"INR"}}]`, string(raw))
}
