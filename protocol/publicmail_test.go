package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPublicMail(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "x", "root@localhost", "a@127.0.0.1", "a@8.8.8.8", "a@127.1", "a@0x7f000001", "a@[127.0.0.1]",
		"a@printer.local", "a@db.internal",
		"a@router.home.arpa", "root@node.example", "Root@NODE.example"} {
		_, fault := PublicMail(bad, "node.example:8443", false)
		require.NotEmpty(t, fault, bad)
	}
	for given, want := range map[string]string{"Ravi@Example.org": "ravi@example.org", "a@mail.node.example": "a@mail.node.example"} {
		got, fault := PublicMail(given, "node.example", false)
		require.Empty(t, fault)
		require.Equal(t, want, got)
	}
	_, fault := PublicMail("dev@localhost", "127.0.0.1:8080", true)
	require.Empty(t, fault)
}

// The schema refuses an empty address like none.
func TestNewMeeting_EmptyMail(t *testing.T) {
	t.Parallel()
	faults := NewMeeting{Handle: "asha", Requester: "R", Purpose: "p"}.Check()
	require.Equal(t, []Fault{{"/email", "not-an-address", "must be a mail address such as ravi@example.org"}}, faults)
}
