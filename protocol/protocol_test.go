package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func TestNewID(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var ids []string
	for i := range 50 {
		id := NewID(PostID, at.Add(time.Duration(i)*time.Millisecond))
		require.True(t, IsID(PostID, id), id)
		require.Len(t, id, len("post_")+26)
		ids = append(ids, id)
	}
	require.True(t, slices.IsSorted(ids), "ids sort by the millisecond they were made for")
	var c idCounter
	var within []uint16
	for range 2049 {
		within = append(within, c.next(7, 0x0fff))
	}
	require.True(t, slices.IsSorted(within), "and as they were made")
	require.EqualValues(t, 0x07ff, within[0], "from a random number")
	require.EqualValues(t, 0x0fff, within[2048])
	require.EqualValues(t, 5, c.next(7, 0xf005), "there is no number left")
	require.EqualValues(t, 3, c.next(8, 0x0803))
	require.EqualValues(t, 6, c.next(6, 6))
	require.EqualValues(t, 4, c.next(8, 0), "also when an earlier time came between")
	for _, bad := range []string{
		"", "post_", "post_01k9y3v6k8e5w9q2x4z7c1m0a", "post_81k9y3v6k8e5w9q2x4z7c1m0ad", "post_01K9Y3V6K8E5W9Q2X4Z7C1M0AD",
		"post_01k9y3v6k8e5w9q2x4z7c1m0al", "thr_01k9y3v6k8e5w9q2x4z7c1m0ad",
	} {
		require.False(t, IsID(PostID, bad), bad)
	}
}

func TestHandle(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"asha", "rao-tiffins", "a1", "0x", strings.Repeat("a", 39)} {
		require.True(t, IsHandle(good), good)
	}
	for _, bad := range []string{"", "a", "-a", "a-", "Asha", "a_b", "a.b", "अशा", "a b", strings.Repeat("a", 40)} {
		require.False(t, IsHandle(bad), bad)
	}
	require.Equal(t, "asha", CleanHandle(" @Asha "))
	require.True(t, ReservedHandle("board"))
}

func TestCursor(t *testing.T) {
	t.Parallel()
	c := Cursor("board", "post_1")
	position := must.Get(ParseCursor("board", *c))(t)
	require.Equal(t, "post_1", position)
	position = must.Get(ParseCursor("board", ""))(t)
	require.Empty(t, position)
	for _, bad := range []string{"x", "====", *Cursor("feed", "post_1"), *Cursor("board", ""), *c + "A", strings.Repeat("A", 400)} {
		_, err := ParseCursor("board", bad)
		require.Equal(t, InvalidCursor, CodeOf(err), bad)
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add(*Cursor("board", "post_01k9y3v6k8e5w9q2x4z7c1m0ad"))
	f.Add("")
	f.Add("Ym9hcmQAeA")
	f.Fuzz(func(t *testing.T, s string) {
		position, err := ParseCursor("board", s)
		if err != nil {
			require.Equal(t, InvalidCursor, CodeOf(err))
			return
		}
		if s != "" {
			require.Equal(t, s, *Cursor("board", position), "a position has one cursor")
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range Codes() {
		require.NotEmpty(t, c.Title(), c)
		require.NotEmpty(t, c.Advice(), c)
		require.GreaterOrEqual(t, c.Status(), 400, c)
	}
	cause := errors.New("disk on fire")
	e := AsError(fmt.Errorf("insert: %w", cause))
	require.Equal(t, Internal, e.Code)
	require.NotContains(t, e.Detail, "disk")
	require.ErrorIs(t, e, cause)
	require.Equal(t, Gone, CodeOf(fmt.Errorf("wrapped: %w", Errorf(Gone, "hidden"))))
	require.Empty(t, CodeOf(nil))
	require.Equal(t, 500, Code("made-up").Status())
}

func TestProfileDraft_Check(t *testing.T) {
	t.Parallel()
	amount := 3.0
	draft := ProfileDraft{
		Handle: "board", Kind: Business, Agent: &AssistantAgent{}, Timezone: "Mars/Olympus",
		Capabilities: []Capability{{ID: "a", Pricing: &Pricing{Model: Fixed, Amount: &amount}}, {ID: "a"}},
		Needs:        []Need{{ID: "n"}, {ID: "n"}},
	}
	var at []string
	for _, f := range draft.Check() {
		at = append(at, f.Pointer)
	}
	require.ElementsMatch(t, []string{"/handle", "/agent", "/timezone", "/capabilities/0/pricing/currency", "/capabilities/1/id", "/needs/1/id"}, at)
	require.Empty(t, ProfileDraft{Handle: "asha", Kind: Person, Timezone: "Asia/Kolkata"}.Check())
	require.Len(t, ProfileDraft{Handle: "asha", Kind: Person, Returns: &ReturnsPolicy{}}.Check(), 1)
}

func TestCaller_ID(t *testing.T) {
	t.Parallel()
	require.Equal(t, "agent:eip155:1:0x:1@0xa", Caller{Agent: "eip155:1:0x:1", Owner: "0xa", Account: "acc", Network: "n"}.ID())
	require.Equal(t, "account:acc", Caller{Agent: "eip155:1:0x:1", Account: "acc", Network: "n"}.ID(), "of an enrolment that does not say whose it is")
	require.Equal(t, "account:acc", Caller{Account: "acc", Handle: "asha", Network: "n"}.ID())
	require.Equal(t, "key:k", Caller{KeyID: "k", Network: "n"}.ID())
	require.Equal(t, "net:n", Caller{Network: "n"}.ID())
	require.Equal(t, "operator", Caller{Standing: Operator, Network: "n"}.ID())
}

// TestOperations holds the declarations to what every door relies on.
func TestOperations(t *testing.T) {
	t.Parallel()
	all := Operations()
	require.NotEmpty(t, all)
	routes := map[string]string{}
	for _, op := range all {
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, op.Name)
		require.NotEmpty(t, op.Title, op.Name)
		require.True(t, strings.HasSuffix(op.Summary, "."), "%s: the summary is a sentence", op.Name)
		require.Same(t, op, Lookup(op.Name))
		if op.Doors == 0 { // a door does it under a name of its own
			require.Zero(t, op.HTTP, op.Name)
			continue
		}
		route := op.HTTP.Method + " " + op.HTTP.Path
		require.Empty(t, routes[route], "%s and %s share %s", op.Name, routes[route], route)
		routes[route] = op.Name
		require.Equal(t, op.Access&Proof != 0, op.Purpose != "", "%s: a purpose goes with a proof", op.Name)
		if !op.ReadOnly && op.Secret == "" {
			require.NotEqual(t, Anonymous, op.Access, "%s: writing costs something, or takes a secret", op.Name)
		}
		must.Get(json.Marshal(op.Example))(t)
	}
	require.Nil(t, Lookup("nothing"))
}

func TestCallbackFault(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"https://a.example", "https://a.example:443/hook?for=me&q=%E0%A4%A8", "HTTPS://xn--r8jz45g.example/a%20b", "https://8.8.8.8/", "https://a.example./",
	} {
		require.Empty(t, CallbackFault(good, false), good)
	}
	for raw, want := range map[string]string{
		"/hook": "absolute", "https:///x": "absolute", "http://a.example/": "https", "https://a.example:8443/": "port 443",
		"https://u:p@a.example/": "user name", "https://a.example/#x": "fragment", "https://127.0.0.1/": "public", "https://[::1]/": "public",
		"https://例え.example/": "xn--", "https://a.example/é": "percent-encode", "https://a.example/?q=é": "percent-encode", "https://a.example/a b": "without spaces",
		"https://localhost/": "public host", "https://x.LOCALHOST./": "public host", "https://printer.local/": "public host", "https://db.internal/": "public host",
		"https://2130706433/": "usual form", "https://127.1/": "usual form", "https://0x7f000001/": "usual form", "https://0177.0.0.1/": "usual form",
		"https://127.0.0.1./": "usual form", "https://intranet/": "domain",
		"https://100.64.0.1/": "public", "https://192.0.2.1/": "public", "https://198.18.0.1/": "public", "https://0.0.0.0/": "public",
		"https://240.0.0.1/":         "public",
		"https://[64:ff9b::7f00:1]/": "public", "https://[::ffff:127.0.0.1]/": "public", "https://[2001:db8::1]/": "public", "https://[2002:7f00:1::]/": "public",
		"https://[fd00:ec2::254]/": "public", "https://[fe80::1%25eth0]/": "public",
	} {
		require.Contains(t, CallbackFault(raw, false), want, raw)
	}
	require.Empty(t, CallbackFault("http://127.0.0.1:8080/hook", true))
	require.NotEmpty(t, CallbackFault("http://127.0.0.1:8080/hook", false))

	var at []string // every fault of an input at once, contract §1
	for _, f := range CheckLimits("", NewContact{Handle: "asha", Name: " ", Message: "Hello", CallbackURL: "http://a.example/"}) {
		at = append(at, f.Pointer)
	}
	require.ElementsMatch(t, []string{"/name", "/callbackUrl"}, at)
}

func TestError_Text(t *testing.T) {
	t.Parallel()
	require.Equal(t, "gone", (&Error{Code: Gone}).Error())
	require.Equal(t, "gone: for good", (&Error{Code: Gone, Detail: "for good"}).Error())
	require.Equal(t, "key-unknown: no such key", (&Error{Code: KeyUnknown, Detail: "key-unknown: no such key"}).Error(), "the code once")
}
