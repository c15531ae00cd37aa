package directory

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// TestInterfaces_Rooms: the address of a room is there while the room is open, null
// while it is not, and absent for the kind that cannot have it (spec §2.4).
func TestInterfaces_Rooms(t *testing.T) {
	t.Parallel()
	d := New("https://node.example", nil)
	for _, c := range []struct {
		kind protocol.ProfileKind
		open protocol.Rooms
		want string
	}{
		{protocol.Person, protocol.Rooms{}, `{"meetings":null,"meetingPage":null,"attentionBoard":null}`},
		{protocol.Person, protocol.Rooms{Meetings: true},
			`{"meetings":"https://node.example/api/public/agents/asha/meetings","meetingPage":"https://node.example/@asha/meet","attentionBoard":null}`},
		{protocol.Person, protocol.Rooms{AttentionBoard: true}, `{"meetings":null,"meetingPage":null,"attentionBoard":"https://node.example/@asha/board"}`},
		{protocol.Business, protocol.Rooms{}, `{"catalog":null}`},
		{protocol.Business, protocol.Rooms{Catalog: true, Meetings: true}, `{"catalog":"https://node.example/api/ucp/catalog/search"}`},
	} {
		raw := must.Get(json.Marshal(d.interfaces(protocol.ProfileDraft{Handle: "asha", Kind: c.kind}, c.open)))(t)
		all := must.JSON[map[string]any](raw)(t)
		for _, name := range []string{"page", "profile", "a2a", "agentCard", "publicContact", "publicMcp", "board"} {
			require.Contains(t, all, name)
			delete(all, name)
		}
		require.JSONEq(t, c.want, string(must.Get(json.Marshal(all))(t)))
	}
}
