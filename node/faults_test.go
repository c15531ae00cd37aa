package node_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// faulty are requests with thousands of members that no operation has, one a
// door, as large as the doors take.
func faulty(h *nodetest.House) map[string]func() *http.Request {
	members := make([]string, 4000)
	names := make([]string, 3500)
	for i := range members {
		members[i] = fmt.Sprintf(`"x~%d":1`, i)
	}
	for i := range names {
		names[i] = fmt.Sprintf("x%d=1", i)
	}
	object := "{" + strings.Join(members, ",") + "}"
	request := func(method, path, body string) func() *http.Request {
		return func() *http.Request { return h.Request(method, path, body, "Content-Type", "application/json") }
	}
	return map[string]func() *http.Request{
		"body":  request("POST", "/ard/search", object),
		"query": request("GET", "/api/public/board?"+strings.Join(names, "&"), ""),
		"known": request("POST", "/ard/search?"+strings.Join(names, "&"), `{"query":{"text":"x"}}`),
		"page":  request("GET", "/board?"+strings.Join(names, "&"), ""),
		"MCP":   request("POST", "/mcp/public", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_board","arguments":`+object+`}}`),
	}
}

// TestFaults: what breaks thousands of rules is answered shortly, at every door.
func TestFaults(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	const many = "errors lists 50 of them, and there are "
	for name, want := range map[string]struct {
		status int
		detail string
	}{
		"body":  {400, many + "3951 more"}, // and what is missing
		"MCP":   {200, many + "3950 more"},
		"query": {400, "more than 250 parameters"}, "known": {400, "more than 250 parameters"}, "page": {400, "more than 250 parameters"},
	} {
		w := h.Serve(faulty(h)[name]()).Is(want.status)
		require.Contains(t, w.Body.String(), want.detail, name)
		require.Less(t, w.Body.Len(), 8<<10, name)
	}
	names := make([]string, 200)
	for i := range names {
		names[i] = fmt.Sprintf("x%%7e%%2f%d=1", i)
	}
	for _, path := range []string{"/api/public/board?", "/ard/search?"} { // the query is the input, or has no place
		method, body := "GET", ""
		if path == "/ard/search?" {
			method, body = "POST", `{"query":{"text":"x"}}`
		}
		a := h.Ask(method, path+strings.Join(names, "&"), body)
		p := a.Problem()
		require.Len(t, p.Errors, protocol.MaxFaults, path)
		require.Contains(t, a.Body.String(), many+"150 more", path)
		for _, f := range p.Errors {
			require.Equal(t, "unknown-member", f.Code, path)
			require.Regexp(t, `^/x~0~1\d+$`, f.Pointer, path)
		}
	}
	a := h.Ask("GET", "/board?"+strings.Join(names, "&"), "", "Accept", nodetest.Accept).Is(422)
	require.Less(t, a.Body.Len(), 64<<10)
}

// BenchmarkFaults is what a request costs that breaks thousands of rules.
func BenchmarkFaults(b *testing.B) {
	h := nodetest.New(b)
	for name, request := range faulty(h) {
		b.Run(name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = h.Serve(request()).Body.Len()
			}
			b.ReportMetric(float64(size), "B/answer")
		})
	}
}

// TestFaults_Repeated: a list of equal items breaks the rule once.
func TestFaults_Repeated(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	var problem struct{ Errors []protocol.Fault }
	tags := strings.Repeat(`"paper",`, 39) + `"paper"`
	h.Ask("POST", "/api/public/board", `{"kind":"question","title":"t","body":"b","tags":[`+tags+`]}`).Into(&problem)
	require.Equal(t, []protocol.Fault{{Pointer: "/tags", Code: "too-many", Detail: "at most 12 items"},
		{Pointer: "/tags", Code: "repeated", Detail: "items must differ"}}, problem.Errors)
}
