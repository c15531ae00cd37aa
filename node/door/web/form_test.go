package web

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// Every form says what it has done, and only forms do. A new token and new recovery codes are shown instead.
func TestAccountForms(t *testing.T) {
	t.Parallel()
	var accountForms []string
	for _, p := range accountPages {
		accountForms = append(accountForms, p.parts...)
		for _, op := range p.forms {
			if p.parts == nil {
				accountForms = append(accountForms, op.Name)
			}
		}
	}
	accountForms = append(accountForms, protocol.PutPicture.Name) // whose form has a file, and a route of its own
	// These show what was made, or how it is undone.
	shown := []string{protocol.CreateToken.Name, protocol.MakeRecoveryCodes.Name, protocol.MakeMeetingFeed.Name, protocol.CreateInvitation.Name, "export_archive",
		"remove_item-remove", "put_merchant-reopen"}
	for _, name := range accountForms {
		require.Equal(t, !slices.Contains(shown, name), doneWords[name] != "", name)
	}
	for name := range doneWords {
		require.Contains(t, accountForms, name)
	}
}
