package storage

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"stoa/protocol"
	"stoa/protocol/must"

	"github.com/stretchr/testify/require"
)

// Every listing of the inbox is served from an index in its order, so that none
// scans or sorts.
func TestThreadPlans(t *testing.T) {
	t.Parallel()
	db := must.Get(Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "stoa.db")}))(t)
	defer db.Close()
	type query struct {
		text string
		args []any
	}
	queries := map[string]query{
		"open threads of a writer": {countOpenThreads, []any{"asha", "net:x", 10}},
		"messages":                 {messageTable.from + `WHERE thread_id = ? AND n > ? ORDER BY n LIMIT ?`, []any{"x", 1, 2}},
		"blocks":                   {contactBlockTable.from + `WHERE handle = ? AND ` + onesOwn, []any{"x", "y", 2}},
		"blocked":                  {`SELECT count(*) FROM contact_block_name WHERE handle = ? AND name IN (?, ?)`, []any{"x", "y", "z"}},
		"threads of a profile":     {oldestThreads, []any{"x", 2}},
		"threads by a profile":     {disownThreads, []any{"x", 2}},
		"news of a profile":        {`SELECT n FROM news WHERE ` + leftNews, []any{"handle:x", 2}},
		"callbacks of a profile":   {`SELECT id FROM callback WHERE ` + leftCallbacks, []any{"x", 2}},
		"blocks of a profile":      {`SELECT id FROM contact_block WHERE ` + leftBlocks, []any{"x", 2}},
		"their names":              {`SELECT block_id FROM contact_block_name WHERE ` + leftNames, []any{"x", 2}},
		"waiting of a thread":      {`UPDATE callback SET state = 'gone' WHERE thread_id = ? AND state = 'waiting'`, []any{"x"}},
	}
	for _, state := range []protocol.ThreadState{"", protocol.ThreadOpen} {
		text, args := threadsQuery("asha", state)
		queries["threads "+string(state)] = query{text, append(args, "~", 21)}
	}
	for _, state := range []protocol.CallbackState{"", protocol.CallbackFailed} {
		for _, thread := range []string{"", "thr_x"} {
			text, args := callbacksQuery("asha", state, thread)
			queries[fmt.Sprint("callbacks ", state, thread)] = query{text, append(args, "~", 21)}
		}
	}
	require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
		for name, q := range queries {
			for _, step := range explain(t, ctx, tx, q.text, q.args) {
				require.False(t, strings.HasPrefix(step, "SCAN") && step != "SCAN waiting", "%s: %s", name, step)
				require.NotContains(t, step, "TEMP B-TREE", name)
			}
		}
		return nil
	}))
}
