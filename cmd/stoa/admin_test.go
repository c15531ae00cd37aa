package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/command"
	"stoa/protocol"
)

// Every command of the operator prints a table, and with --json JSON.
func TestAdmin_Forms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	admin := func(stdin string, args ...string) (string, string) {
		t.Helper()
		out, errs, code := typed(t, stdin, append(append([]string{"admin"}, args...), "--data", dir, "--base-url", "https://n1.example")...)
		require.Equal(t, exitDone, code, "%v: %s", args, errs)
		return out, errs
	}
	admin(`{"handle":"asha","name":"Asha Menon","kind":"person","agent":{"name":"A","by":"stoa","product":"stoa","acceptingMeetingRequests":true},
		"contactPolicy":{"outsideAgentsWithIdentity":true,"anonymous":true,"kinds":["question"],"responseTime":"a day"}}`, "profile", "put")
	link, errs := admin("", "account", "create", "Asha", "--profile", "asha")
	account, _, _ := strings.Cut(errs, "\n")
	require.True(t, strings.HasPrefix(account, "acc_"), errs)
	require.Contains(t, link, "/sign-in?ticket=")
	jwk := filepath.Join(dir, "asha.jwk")
	_, errs, code := typed(t, "", "keygen", jwk)
	require.Equal(t, exitDone, code, errs)
	admin("", "key", "add", "asha", jwk)
	admin("", "token", "create", "asha", "--label", "trial")
	admin("", "peer", "policy", "bad.example", "reject", "--note", "spam")
	admin("", "note", "add", "asha", "looks", "fine")
	admin("", "block", "add", "host", "worse.example", "--why", "spam")
	archive := filepath.Join(dir, "asha.tgz")
	admin("", "export", "asha", archive)

	for _, tt := range []struct {
		args  string
		table string // a part of the table
		path  string // of the JSON, "" for an object
	}{
		{"profile list", "@asha  person", "items"},
		{"account list", "  owner  Asha", "items"},
		{"account sign-in " + account, "/sign-in?ticket=", ""},
		{"key list asha", "held by the node", "items"},
		{"token list asha", "trial", "items"},
		{"token create asha", "stoa_", ""},
		{"peer list", "policy  bad.example  reject  spam", "items"},
		{"directory list", "", "items"},
		{"job list --state waiting", "", "items"},
		{"note list", "looks fine", "items"},
		{"block list", "worse.example", "items"},
		{"queue", "", "items"},
		{"audit", "bad.example", "items"},
		{"log", "block", "items"},
		{"limit show", "readRate", ""},
		{"limit set read-rate=7", "readRate", ""},
		{"stats", "profiles", ""},
		{"check", "ok", ""},
		{"import " + archive + " --dry-run", "asha", ""},
	} {
		words := strings.Fields(tt.args)
		out, _ := admin("", words...)
		require.Contains(t, out, tt.table, tt.args)
		require.False(t, json.Valid([]byte(out)) && out != "", "%s prints a table: %s", tt.args, out)
		out, _ = admin("", append(words, "--json")...)
		var found map[string]any
		require.NoError(t, json.Unmarshal([]byte(out), &found), "%s: %s", tt.args, out)
		require.NotEmpty(t, found)
		if tt.path != "" {
			require.IsType(t, []any{}, found[tt.path], tt.args)
		}
	}
	out, _ := admin("", "stats")
	require.Less(t, strings.Count(out, "\n"), 45, "what is zero is left out")
	admin("", "directory", "follow", "https://catalog.example")
	out, _ = admin("", "directory", "list")
	require.Contains(t, out, "https://catalog.example/.well-known/ai-catalog.json  catalog  pending")
	admin("", "directory", "unfollow", "https://catalog.example")
	out, _ = admin("", "directory", "list")
	require.Empty(t, out)
	out, _ = admin("", "profile", "get", "asha")
	require.True(t, json.Valid([]byte(out)), "what put takes")
	admin(out, "profile", "put")
}

// Every command can be run; one that does an operation by its tag names one that exists, and every listing has its lines.
func TestCommands(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, op := range append(protocol.Operations(), protocol.LocalOperations()...) {
		known[op.Name] = true
	}
	n := 0
	var visit func(*command.Command)
	visit = func(at *command.Command) {
		for _, child := range at.Commands {
			visit(child)
		}
		_, runs := at.Target().(interface{ Run(*world) error })
		_, acts := at.Target().(interface{ Run(*world, *adminCmd) error })
		require.Equal(t, at.Commands == nil, runs || acts, at.Path())
		if op, does := at.Tag.Lookup("op"); does {
			require.True(t, known[op], "%s: %s", at.Path(), op)
			if at.Flag("after") != nil {
				require.NotNil(t, lineOf[op], op)
			}
			n++
		}
	}
	visit(command.New("stoa", "", &cli{}))
	require.Greater(t, n, 25)
}

// TestAdmin_DomainBlocks: a list of domain blocks of Mastodon becomes policies, none milder than before, and comes out as one.
func TestAdmin_DomainBlocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	admin := func(stdin string, args ...string) string {
		t.Helper()
		out, errs, code := typed(t, stdin, append(append([]string{"admin"}, args...), "--data", dir, "--base-url", "https://n1.example")...)
		require.Equal(t, exitDone, code, "%v: %s", args, errs)
		return out
	}
	for host, policy := range map[string]string{"friend.example": "trusted", "worse.example": "reject", "*": "silence"} {
		admin("", "peer", "policy", host, policy)
	}
	const list = "\ufeff#domain,#severity,#reject_media,#reject_reports,#public_comment,#obfuscate\n" +
		"spam.example,suspend,true,true,\"Spam, and worse\",false\nloud.example,silence,false,false,,false\nmild.example,noop,true,false,,false\n" +
		"ob*****.example,suspend,true,true,,true\nfriend.example,suspend,false,false,,false\nworse.example,silence,false,false,,false\nn1.example,suspend,,,,\n"
	before := admin("", "peer", "export")
	out := admin(list, "peer", "import", "-", "--dry-run")
	require.Contains(t, out, "spam.example")
	require.Equal(t, before, admin("", "peer", "export"))
	out = admin(list, "peer", "import", "-")
	for host, done := range map[string]string{
		"spam.example": "reject", "loud.example": "silence", "mild.example": "left out: the severity noop", `ob\*+.example`: "left out: not a host",
		"friend.example": "stays trusted", "worse.example": "stays reject", "n1.example": "left out: .*this node",
	} {
		require.Regexp(t, host+` +`+done, out)
	}
	require.Equal(t, "#domain,#severity,#reject_media,#reject_reports,#public_comment,#obfuscate\nloud.example,silence,false,false,,false\n"+
		"spam.example,suspend,false,false,\"Spam, and worse\",false\nworse.example,suspend,false,false,,false\n", admin("", "peer", "export"))
}
