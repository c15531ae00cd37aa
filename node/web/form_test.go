package web

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// Every form says what it has done, and only forms do. A new token is shown instead.
func TestAccountForms(t *testing.T) {
	t.Parallel()
	var accountForms []*protocol.Operation
	for _, p := range accountPages {
		accountForms = append(accountForms, p.forms...)
	}
	for _, op := range accountForms {
		require.Equal(t, op != protocol.CreateToken.Operation, doneWords[op.Name] != "", op.Name)
	}
	for name := range doneWords {
		require.True(t, slices.Contains(accountForms, protocol.Lookup(name)), name)
	}
}
