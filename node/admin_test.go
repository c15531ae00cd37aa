package node_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestAdmin_Local: what has no door is done by the operator on the machine alone, and
// the operator's account is not that.
func TestAdmin_Local(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	a := h.Admin()
	account := &protocol.Caller{Standing: protocol.Operator, Account: "acc_1"}
	for _, op := range protocol.LocalOperations() {
		for _, table := range []*hall.Table{h.Table, a.Table} {
			_, err := table.Invoke(t.Context(), hall.Request{Op: op.Name, Caller: account})
			require.ErrorContains(t, err, "no operation of that name", op.Name)
		}
		require.Nil(t, protocol.Lookup(op.Name), "no document lists it")
	}
	require.Equal(t, protocol.NotFound, protocol.CodeOf(a.DeleteProfile(t.Context(), "nobody")))
}

// TestAdmin_Commands: every operation that a command of stoa admin does is bound there too.
func TestAdmin_Commands(t *testing.T) {
	t.Parallel()
	a := nodetest.New(t).Admin()
	names := map[string]string{} // of operations, by their Go names
	declared := regexp.MustCompile(`var (\w+) = (?:declare|local)\[.*\]\(Operation\{\s*Name: "(\w+)"`)
	sources := must.Get(filepath.Glob("../protocol/*.go"))(t)
	for _, file := range sources {
		text := must.Get(os.ReadFile(file))(t)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = m[2]
		}
	}
	files := must.Get(filepath.Glob("../cmd/stoa/admin*.go"))(t)
	done := regexp.MustCompile(`(?:node\.Do\(ctx, a|operate\(w), protocol\.(\w+)|op:"(\w+)"`)
	tried := 0
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		for _, m := range done.FindAllStringSubmatch(string(text), -1) {
			name := cmp.Or(m[2], names[m[1]])
			require.NotEmpty(t, name, m[1])
			_, err := a.Table.Invoke(t.Context(), hall.Request{Op: name, Args: []byte(`{}`), Evidence: identity.Evidence{Operator: true}})
			require.NotContains(t, fmt.Sprint(err), "no operation of that name", "%s does %s", file, name)
			tried++
		}
	}
	require.Greater(t, tried, 45)
}

// TestAdmin_Rules: the operator's commands keep the rules of the operations, and the
// audit log says the same of both.
func TestAdmin_Rules(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	a, pair := h.Admin(), h.Hosted("asha")
	for range 2 {
		require.NoError(t, a.RetireKey(t.Context(), pair.Thumbprint()))
	}
	var log protocol.Page[protocol.AuditEntry]
	require.NoError(t, a.Operate(t.Context(), protocol.ReadAudit.Operation, protocol.AuditQuery{}, &log))
	retired := slices.DeleteFunc(log.Items, func(e protocol.AuditEntry) bool { return e.Action != "key retire" })
	require.Len(t, retired, 1, "once, however often")
	require.Equal(t, []string{"operator", "asha", pair.Thumbprint()}, []string{retired[0].Actor, retired[0].Subject, retired[0].Detail})
	require.Equal(t, protocol.NotFound, protocol.CodeOf(a.RetireKey(t.Context(), strings.Repeat("k", 43))))
	for n := range protocol.MaxKeys + 1 {
		err := a.AddKey(t.Context(), "asha", nodetest.NewPair(t), n%2 == 0)
		require.Equal(t, n == protocol.MaxKeys, protocol.CodeOf(err) == protocol.Conflict, n)
	}
}
