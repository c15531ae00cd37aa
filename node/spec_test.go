package node

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	want         []string // path=JSON in the answer; path alone: it is there; !path: it is not
}

// TestSpecification walks the rows of spec §2, §3, §4 and §8 through the HTTP
// door: every field, limit (at its edge and one past it), filter, state, path and
// tool. What comes in later rooms is shown to be absent.
func TestSpecification(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, change func(*Config)) {
		s := newSpec(t, change)
		for _, subject := range []struct {
			name string
			rows func(*spec) []specRow
		}{
			{"profile", profileRows}, {"profile limits", profileLimits}, {"profile parts", partLimits}, {"board", boardRows},
			{"threads", threadRows}, {"states", stateRows}, {"paths", pathRows}, {"tools", toolRows}, {"listings", listingRows}, {"later", laterRows},
		} {
			t.Run(subject.name, func(t *testing.T) {
				rows := subject.rows(s)
				require.NotEmpty(t, rows)
				for _, row := range rows {
					s.check(t, row)
				}
			})
		}
	})
}

// spec is the node that the rows are tried on.
type spec struct {
	*house
	tokens map[string]string
	post   protocol.Post
	thread protocol.ContactReceipt
}

func newSpec(t *testing.T, change func(*Config)) *spec {
	s := &spec{house: newHouse(t, change), tokens: map[string]string{}}
	for handle, kind := range map[string]protocol.ProfileKind{"asha": protocol.Person, "bazaar": protocol.Business} {
		putOpen(t, s.Node, handle, func(d *protocol.ProfileDraft) {
			d.Handle, d.Name, d.Kind, d.Capabilities = handle, strings.ToUpper(handle[:1])+handle[1:], kind, nil
		})
		s.tokens[handle] = ownerToken(t, s.Node, handle)
	}
	_, err := s.Admin().PutMerchant(t.Context(), "bazaar", []byte(`{"category":"books","city":"Mumbai"}`))
	require.NoError(t, err)
	s.ask("POST", "/api/public/board", `{"kind":"question","title":"Who binds books?","body":"Ten of them, in cloth.","tags":["books","cloth"]}`, "Authorization", "Bearer "+s.tokens["asha"]).into(&s.post)
	s.ask("POST", "/api/public/agents/asha/contact", `{"message":"Do you deliver?"}`, "Proof-Of-Work", s.proof("contact")).into(&s.thread)
	return s
}

// check makes the request of a row and compares.
func (s *spec) check(t *testing.T, row specRow) {
	t.Helper()
	h := &house{s.Node, t}
	var headers []string
	switch row.as {
	case "":
	case "pow":
		headers = []string{"Proof-Of-Work", h.proof("contact")}
	case "read":
		headers = []string{"Authorization", "Bearer " + s.thread.ReadToken}
	default:
		headers = []string{"Authorization", "Bearer " + s.tokens[row.as]}
	}
	a := h.ask(cmp.Or(row.method, "GET"), row.path, row.body, headers...)
	about := fmt.Sprintf("spec %s: %s %s: %.1500s", row.row, row.method, row.path, a.Body)
	if row.fault != "" {
		require.Equal(t, http.StatusUnprocessableEntity, a.Code, about)
		require.Contains(t, pointers(a.problem().Errors), row.fault, about)
		return
	}
	require.Equal(t, cmp.Or(row.status, 200), a.Code, about)
	var v any
	if len(row.want) > 0 {
		require.NoError(t, json.Unmarshal(a.Body.Bytes(), &v), about)
	}
	for _, want := range row.want {
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

// dig follows a path such as items.0.author.name; "#" is how many there are.
func dig(v any, path string) (any, bool) {
	for step := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
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
	return string(encoded(members))
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
