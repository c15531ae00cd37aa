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
		for _, part := range p.parts {
			accountForms = append(accountForms, protocol.PutMerchant.Name+"-"+part)
		}
		for _, op := range p.forms {
			if p.parts == nil {
				accountForms = append(accountForms, op.Name)
			}
		}
	}
	// These show what was made, or how it is undone.
	shown := []string{protocol.CreateToken.Name, protocol.MakeRecoveryCodes.Name, "export_archive", "import_archive",
		"put_merchant-remove", "put_merchant-reopen"}
	for _, name := range accountForms {
		require.Equal(t, !slices.Contains(shown, name), doneWords[name] != "", name)
	}
	for name := range doneWords {
		require.Contains(t, accountForms, name)
	}
}
