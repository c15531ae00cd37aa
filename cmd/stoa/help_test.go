package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// typed runs a command line and gives what it printed, and its exit status.
func typed(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(stdin), &o, &e)
	return o.String(), e.String(), code
}

// What a newcomer types is answered with help.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args      string
		code      int
		out, errs []string
	}{
		{"", exitDone, []string{"Usage: stoa <command>", "serve ", "completion "}, nil},
		{"admin", exitDone, []string{"Usage: stoa admin <command>", "admin queue ", "admin peer "}, nil},
		{"admin peer", exitDone, []string{"admin peer follow"}, nil},
		{"--version", exitDone, []string{versionLine()}, nil},
		{"version", exitDone, []string{versionLine()}, nil},
		{"admn", exitUsage, nil, []string{`did you mean "admin"?`}},
		{"admin peer folow x", exitUsage, nil, []string{`did you mean "follow"?`}},
		{"serve --lisen x", exitUsage, nil, []string{`did you mean "--listen"?`}},
		{"call read_bord", exitUsage, nil, []string{`did you mean "read_board"?`, "call --list"}},
		{"call raed-board", exitUsage, nil, []string{`did you mean "read_board"?`}},
		{"call read_board --kidn offer", exitUsage, nil, []string{`did you mean "kind"?`}},
		{"call read_board --tokn x", exitUsage, nil, []string{`did you mean "token"?`}},
		{"call something_else_entirely", exitUsage, nil, []string{`there is no operation "something_else_entirely"; stoa call --list`}},
	} {
		out, errs, code := typed(t, "", strings.Fields(tt.args)...)
		require.Equal(t, tt.code, code, "%s: %s", tt.args, errs)
		for _, part := range tt.out {
			require.Contains(t, out, part, tt.args)
		}
		for _, part := range tt.errs {
			require.Contains(t, errs, part, tt.args)
		}
	}
}

// The help of a command of admin begins with what is its own, and is short.
func TestHelp_AdminShowsItsOwnFirst(t *testing.T) {
	t.Parallel()
	out, _, code := typed(t, "", "admin", "import", "--help")
	require.Equal(t, exitDone, code)
	own, node := strings.Index(out, "--dry-run"), strings.Index(out, "--data=")
	require.Positive(t, own)
	require.Greater(t, node, own)
	require.NotContains(t, out, "--base-url", "a setting that it does not look at")
	require.Less(t, strings.Count(out, "\n"), 60)
	_, errs, code := typed(t, "", "admin", "profile", "list", "--base-url", "https://n.example", "--name", "n", "--data", t.TempDir())
	require.Equal(t, exitDone, code, "it is taken all the same: %s", errs)
	serve, _, _ := typed(t, "", "serve", "--help")
	require.Contains(t, serve, "--base-url")
}

func TestConfig_FaultsTogether(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "stoa.toml")
	require.NoError(t, os.WriteFile(file, []byte("lisen = \"x\"\nbase_url = \"y\"\nlisten = \"nonsense\"\nbase-url = \"ftp://x\"\n"), 0o600))
	_, errs, code := typed(t, "", "serve", "--config", file, "--data", t.TempDir())
	require.Equal(t, exitUsage, code)
	for _, part := range []string{
		`no setting "lisen" (did you mean "listen"?)`, `no setting "base_url" (did you mean "base-url"?)`, `"nonsense" is not host:port`, `"ftp://x" is not`,
	} {
		require.Contains(t, errs, part)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		words    []string
		has, not []string
	}{
		{[]string{""}, []string{"serve", "admin", "call", "completion"}, []string{"__complete", "generate"}},
		{[]string{"se"}, []string{"serve"}, []string{"admin"}},
		{[]string{"admin", ""}, []string{"queue", "peer"}, []string{"serve"}},
		{[]string{"admin", "peer", "f"}, []string{"follow"}, []string{"list"}},
		{[]string{"admin", "--data", "x", "job", "list", "--state", ""}, []string{"waiting", "dead", "done"}, []string{"list"}},
		{[]string{"admin", "job", "list", "--"}, []string{"--state", "--data", "--json"}, []string{"--base-url"}},
		{[]string{"admin", "peer", "policy", "n.example", ""}, []string{"reject", "silence"}, nil},
		{[]string{"serve", "--lis"}, []string{"--listen"}, []string{"--data"}},
		{[]string{"serve", "--data", ""}, nil, []string{"--listen"}},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}, nil},
		{[]string{"call", "read_b"}, []string{"read_board"}, []string{"read_feed"}},
		{[]string{"call", "post_to_board", "--"}, []string{"--title", "--inReplyTo", "--token", "--json-body", "--help"}, nil},
		{[]string{"call", "--node", "http://x", "post_to_board", "--title", "t", "--kind", ""}, []string{"offer", "question"}, []string{"--title"}},
		{[]string{"call", "post_to_board", "--json", "--kind", "off"}, []string{"offer"}, []string{"question"}},
		{[]string{"nonsense", ""}, []string{"serve"}, nil},
	} {
		out, errs, code := typed(t, "", append([]string{"__complete"}, tt.words...)...)
		require.Equal(t, exitDone, code, errs)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for _, word := range tt.has {
			require.Contains(t, lines, word, "%q", tt.words)
		}
		for _, word := range tt.not {
			require.NotContains(t, lines, word, "%q", tt.words)
		}
	}
}

// The scripts are taken by the shells that are installed, and bash completes.
func TestCompletion_Scripts(t *testing.T) {
	t.Parallel()
	dir := bin(t)
	for shell := range completions {
		script, errs, code := typed(t, "", "completion", shell)
		require.Equal(t, exitDone, code, errs)
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		if shell == "bash" {
			script += "COMP_WORDS=(stoa admin job list --state w); COMP_CWORD=5; _stoa; echo \"${COMPREPLY[@]}\"\n"
		}
		command := exec.Command(path, "-c", script)
		if shell == "zsh" {
			command.Args = []string{path, "-c", "autoload -U compinit && compinit -D\n" + script}
		}
		command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s: %s", shell, out)
		if shell == "bash" {
			require.Equal(t, "waiting\n", string(out))
		}
	}
}

// far is a node that keeps what it was asked and answers the same to all.
func far(t *testing.T, status int, answer string) (url string, asked func() (line, body string)) {
	var line, body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		line, body = r.Method+" "+r.URL.RequestURI(), string(raw)
		w.Header().Set("Content-Type", "application/json")
		if status >= 400 {
			w.Header().Set("Content-Type", "application/problem+json")
		}
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() (string, string) { return line, body }
}

func TestCall_Fields(t *testing.T) {
	t.Parallel()
	fields := filepath.Join(t.TempDir(), "fields.json")
	require.NoError(t, os.WriteFile(fields, []byte(`{"message":"Hello","kind":"question"}`), 0o600))
	for _, tt := range []struct {
		name, stdin string
		args        []string
		line, body  string
	}{
		{"the id by position", "", []string{"get_board_post", "post_x"}, "GET /api/public/board/post_x", ""},
		{"the id by position and a field", "", []string{"get_board_post", "post_x", "--limit", "3"}, "GET /api/public/board/post_x?limit=3", ""},
		{"options first", "", []string{"--json", "get_board_post", "post_x"}, "GET /api/public/board/post_x", ""},
		{"required fields by position", "", []string{"answer_thread", "thr_x", "Yes.", "--token", "stoa_t"}, "POST /api/owner/threads/thr_x/messages",
			`{"message":"Yes."}`},
		{"given by name, the next by position", "", []string{"answer_thread", "--threadId", "thr_x", "Yes.", "--token", "stoa_t"},
			"POST /api/owner/threads/thr_x/messages", `{"message":"Yes."}`},
		{"fields as JSON", "", []string{"answer_thread", "thr_x", "--json-body", `{"message":"Yes."}`, "--token", "stoa_t"},
			"POST /api/owner/threads/thr_x/messages", `{"message":"Yes."}`},
		{"from standard input", `{"threadId":"thr_x","message":"Yes."}`, []string{"answer_thread", "--json-body", "-", "--token", "stoa_t"},
			"POST /api/owner/threads/thr_x/messages", `{"message":"Yes."}`},
		{"from a file, a flag wins", "", []string{"answer_thread", "thr_x", "--json-body", "@" + fields, "--message", "No.", "--token", "stoa_t"},
			"POST /api/owner/threads/thr_x/messages", `{"kind":"question","message":"No."}`},
		{"a file from standard input", "not really gzip", []string{"import_archive", "--file", "-", "--token", "stoa_t", "--dryRun", "true"},
			"POST /api/owner/import?dryRun=true", "not really gzip"},
	} {
		node, asked := far(t, protocol.Lookup(operationOf(tt.args)).HTTP.Status, `{}`)
		_, errs, code := typed(t, tt.stdin, append([]string{"call", "--node", node}, tt.args...)...)
		require.Equal(t, exitDone, code, "%s: %s", tt.name, errs)
		line, body := asked()
		require.Equal(t, tt.line, line, tt.name)
		if strings.HasPrefix(tt.body, "{") {
			require.JSONEq(t, tt.body, body, tt.name)
		} else {
			require.Equal(t, tt.body, body, tt.name)
		}
	}
	for _, args := range [][]string{
		{"get_board_post", "post_x", "post_y"}, {"answer_thread", "--json-body", "[1]"}, {"answer_thread", "--json-body", `{"a"`}, {"read_board", "what"},
	} {
		_, errs, code := typed(t, "", append([]string{"call"}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, errs)
	}
}

func operationOf(args []string) string {
	if args[0] == "--json" {
		return args[1]
	}
	return args[0]
}

// A refusal says each fault once.
func TestCall_FaultsOnce(t *testing.T) {
	t.Parallel()
	for _, faults := range [][]protocol.Fault{
		{{Pointer: "/kind", Code: "enum", Detail: "is none of these"}},
		{{Pointer: "/kind", Code: "enum", Detail: "is none of these"}, {Pointer: "/title", Code: "required", Detail: "is required"}},
	} {
		e := protocol.Invalid(faults...)
		raw := must.Get(json.Marshal(map[string]any{"code": e.Code, "detail": e.Detail, "errors": e.Faults, "status": 422}))(t)
		node, _ := far(t, 422, string(raw))
		_, errs, code := typed(t, "", "call", "read_board", "--node", node)
		require.Equal(t, exitProblem, code)
		for _, f := range faults {
			require.Equal(t, 1, strings.Count(errs, f.Detail), errs)
			require.Contains(t, errs, f.Pointer+": "+f.Detail)
		}
	}
}

func TestCall_List(t *testing.T) {
	t.Parallel()
	out, _, code := typed(t, "", "call", "--list")
	require.Equal(t, exitDone, code)
	everybody, owners, operators := strings.Index(out, "For everybody:"), strings.Index(out, "For owners"), strings.Index(out, "For operators")
	require.Zero(t, everybody)
	for name, between := range map[string][2]int{"read_board": {everybody, owners}, "answer_thread": {owners, operators}, "hide_post": {operators, len(out)}} {
		at := strings.Index(out, "  "+name+" ")
		require.Greater(t, at, between[0], name)
		require.Less(t, at, between[1], name)
	}
	for _, op := range protocol.Operations() {
		if op.Doors&protocol.HTTP != 0 {
			require.Equal(t, 1, strings.Count(out, "\n  "+op.Name+" "), op.Name)
		}
	}
	for name, want := range map[string]struct{ has, not []string }{
		"import_archive": {[]string{"--file", "--token", "--node", "--dryRun"}, []string{"--key "}},
		"post_to_board":  {[]string{"--key", "--agent", "--token", "--node", "--json-body", "--idempotency-key"}, []string{"--file"}},
		"read_board":     {[]string{"--node", "--json"}, []string{"--file", "--idempotency-key"}},
	} {
		out, _, code := typed(t, "", "call", name, "--help")
		require.Equal(t, exitDone, code)
		for _, option := range want.has {
			require.Contains(t, out, "  "+option, name)
		}
		for _, option := range want.not {
			require.NotContains(t, out, "  "+option, name)
		}
	}
}
