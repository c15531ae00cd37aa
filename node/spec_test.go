package node_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// A specRow is one row of the specification, or one side of a limit in it, as a
// request and what must come of it.
type specRow struct {
	row          string // section and row
	method, path string // default GET
	body         string
	as           string   // asha or bazaar: their owner; pow: a proof of work; "": nobody
	status       int      // default 200
	fault        string   // pointer of the fault, with status 422
	want         []string // path=JSON in the answer; path~regexp; path alone: it is there; !path: it is not
	handles      []string // of the items of the list, in any order
}

// TestSpecification walks the rows of spec §2, §3, §4 and §8 through the HTTP
// door: every field, limit (at its edge and one past it), filter, state, path and
// tool.
func TestSpecification(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewSpec(t, change)
		for _, subject := range []struct {
			name string
			rows func(*nodetest.Spec) []specRow
		}{
			{"members", memberRows}, {"profile", profileRows}, {"profile limits", profileLimits}, {"profile parts", partLimits}, {"board", boardRows},
			{"threads", threadRows}, {"states", stateRows}, {"paths", pathRows}, {"tools", toolRows}, {"listings", listingRows}, {"filters", filterRows},
			{"walks", nextRows}, {"rooms", roomRows},
		} {
			t.Run(subject.name, func(t *testing.T) {
				rows := subject.rows(s)
				require.NotEmpty(t, rows)
				for _, row := range rows {
					check(s, t, row)
				}
			})
		}
	})
}

// check makes the request of a row and compares.
func check(s *nodetest.Spec, t *testing.T, row specRow) {
	t.Helper()
	h := s.On(t)
	var headers []string
	switch row.as {
	case "":
	case "pow":
		headers = []string{"Proof-Of-Work", h.Proof("contact")}
	case "read":
		headers = []string{"Authorization", "Bearer " + s.Thread.ReadToken}
	default:
		headers = []string{"Authorization", "Bearer " + s.Tokens[row.as]}
	}
	if row.method == "POST" {
		nodetest.Tick()
	}
	a := h.Ask(cmp.Or(row.method, "GET"), row.path, row.body, headers...)
	about := fmt.Sprintf("spec %s: %s %s: %.1500s", row.row, row.method, row.path, a.Body)
	if row.fault != "" {
		require.Equal(t, http.StatusUnprocessableEntity, a.Code, about)
		require.Contains(t, nodetest.Pointers(a.Problem().Errors), row.fault, about)
		return
	}
	require.Equal(t, cmp.Or(row.status, 200), a.Code, about)
	var v any
	if row.handles != nil {
		var page protocol.Page[struct{ Handle string }]
		a.Into(&page)
		got := []string{}
		for _, i := range page.Items {
			got = append(got, i.Handle)
		}
		require.ElementsMatch(t, row.handles, got, about)
	}
	if len(row.want) > 0 {
		require.NoError(t, json.Unmarshal(a.Body.Bytes(), &v), about)
	}
	for _, want := range row.want {
		if path, pattern, ok := strings.Cut(want, "~"); ok && !strings.Contains(path, "=") {
			got, there := dig(v, path)
			require.True(t, there, "%s is not there: %s", path, about)
			require.Regexp(t, pattern, got, "%s: %s", path, about)
			continue
		}
		path, value, valued := strings.Cut(want, "=")
		got, there := dig(v, strings.TrimPrefix(path, "!"))
		switch {
		case strings.HasPrefix(path, "!"):
			require.False(t, there, "%s is there: %s", path, about)
		case !valued:
			require.True(t, there, "%s is not there: %s", path, about)
		default:
			raw, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, value, string(raw), "%s: %s", path, about)
		}
	}
}

// dig follows a path such as items.0.author.name; "#" is how many there are, "{}"
// the names of the members in order.
func dig(v any, path string) (any, bool) {
	for step := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			if step == "{}" {
				return slices.Sorted(maps.Keys(at)), true
			}
			next, ok := at[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			if step == "#" {
				return len(at), true
			}
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// limit makes the two rows of a limit: at its edge, and one past it.
func limit(row specRow, edge int, fault string, body func(n int) string) []specRow {
	at, past := row, row
	at.row, at.body = row.row+" at its edge", body(edge)
	past.row, past.body, past.fault = row.row+" one past it", body(edge+1), fault
	return []specRow{at, past}
}

// with is an object with a member set: JSON in, JSON out.
func with(object, member string, value any) string {
	var members map[string]any
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		panic(err)
	}
	members[member] = value
	return string(nodetest.Encoded(members))
}

// without is an object without a member: JSON in, JSON out.
func without(object, member string) string {
	var members map[string]any
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		panic(err)
	}
	delete(members, member)
	return string(nodetest.Encoded(members))
}

// long is a text of n characters that are three bytes each.
func long(n int) string { return strings.Repeat("न", n) }

// several are n values made from their number.
func several(n int, one func(i int) any) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = one(i)
	}
	return list
}
