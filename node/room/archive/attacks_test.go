package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/node/room/archive"
	"stoa/protocol"
	"stoa/protocol/must"
)

// forged changes an archive as someone would who can write one: the manifest is
// true of what is in it, and the signature of the node is gone.
func forged(t testing.TB, raw []byte, edit func(name, body string) string) []byte {
	all := nodetest.MembersOf(t, raw)
	m := must.JSON[map[string]any](all[0].Body)(t)
	listed := m["members"].([]any)
	for i := range all[2:] {
		one := &all[2+i]
		one.Body = []byte(edit(one.Name, string(one.Body)))
		sum := sha256.Sum256(one.Body)
		entry := listed[i].(map[string]any)
		entry["sha256"], entry["bytes"] = hex.EncodeToString(sum[:]), len(one.Body)
		if strings.HasSuffix(one.Name, ".ndjson") {
			entry["count"] = bytes.Count(one.Body, []byte("\n"))
		}
	}
	manifest := must.Get(json.Marshal(m))(t)
	all[0].Body = []byte(edit("manifest.json", string(manifest)))
	return pack(t, all)
}

// in edits one member by replacing the first of a text.
func in(t testing.TB, member, old, with string) func(string, string) string {
	return func(name, body string) string {
		if name != member {
			return body
		}
		require.Contains(t, body, old)
		return strings.Replace(body, old, with, 1)
	}
}

// TestArchive_Hostile: what is not an archive of this form, or breaks a rule of
// fresh input, is refused, and nothing of it is left.
func TestArchive_Hostile(t *testing.T) {
	t.Parallel()
	one, two := nodetest.NewMover(t), nodetest.NewMover(t)
	settle(one)
	raw := export(one, map[string]any{"handle": "asha", "passphrase": passphrase})
	edit := func(member, old, with string) []byte { return forged(t, raw, in(t, member, old, with)) }
	moved := func(change func([]nodetest.Packed) []nodetest.Packed) []byte {
		return pack(t, change(nodetest.MembersOf(t, raw)))
	}
	link := func() []byte {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		w := tar.NewWriter(zip)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "manifest.json", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))
		require.NoError(t, errors.Join(w.Close(), zip.Close()))
		return out.Bytes()
	}
	long := strings.Repeat("अ", 2000)
	title := strings.Repeat("t", 120)
	for name, c := range map[string]struct {
		file []byte
		code protocol.Code // "" for one that is taken
	}{
		"nothing":               {[]byte{}, protocol.InvalidRequest},
		"no gzip":               {[]byte("PK\x03\x04 this is a zip"), protocol.InvalidRequest},
		"cut off":               {raw[:len(raw)/2], protocol.InvalidRequest},
		"cut at the end":        {raw[:len(raw)-4], protocol.InvalidRequest},
		"more behind the end":   {append(slices.Clone(raw), raw...), protocol.InvalidRequest},
		"another format":        {edit("manifest.json", "stoa.archive/v1", "stoa.archive/v9"), protocol.InvalidRequest},
		"a link":                {link(), protocol.InvalidRequest},
		"a path":                {moved(func(a []nodetest.Packed) []nodetest.Packed { a[2].Name = "../profile.json"; return a }), protocol.InvalidRequest},
		"two members exchanged": {moved(func(a []nodetest.Packed) []nodetest.Packed { a[2], a[3] = a[3], a[2]; return a }), protocol.InvalidRequest},
		"a member more": {moved(func(a []nodetest.Packed) []nodetest.Packed {
			return append(a, nodetest.Packed{Name: "run.sh", Body: []byte("x")})
		}), protocol.InvalidRequest},
		"a member less":         {moved(func(a []nodetest.Packed) []nodetest.Packed { return a[:len(a)-1] }), protocol.InvalidRequest},
		"a byte changed":        {moved(func(a []nodetest.Packed) []nodetest.Packed { a[2].Body[len(a[2].Body)-3] ^= 1; return a }), protocol.InvalidRequest},
		"no manifest":           {moved(func(a []nodetest.Packed) []nodetest.Packed { return a[1:] }), protocol.InvalidRequest},
		"count of members":      {edit("manifest.json", `"count":3`, `"count":2`), protocol.InvalidRequest},
		"more than it may have": {edit("manifest.json", `"count":3`, `"count":3000000`), protocol.TooLarge},
		"no address":            {edit("manifest.json", one.Base, "file:///etc"), protocol.InvalidRequest},
		"bad JSON":              {edit("posts.ndjson", `{"id"`, `{"id`), protocol.InvalidRequest},
		"a member twice":        {edit("posts.ndjson", `{"id"`, `{"kind":"offer","id"`), protocol.InvalidRequest},
		"an unknown member":     {edit("threads.ndjson", `"kind"`, `"admin":true,"kind"`), protocol.InvalidRequest},
		"deep": {edit("posts.ndjson", `"statement":{`, `"statement":{"x":`+strings.Repeat("[", 60)+strings.Repeat("]", 60)+`,`),
			protocol.InvalidRequest},
		"a long line":            {edit("posts.ndjson", "Looking for yarn.", strings.Repeat("x", 600<<10)), protocol.InvalidRequest},
		"a direction override":   {edit("profile.json", "Weaves.", "Weaves.\u202e"), protocol.InvalidRequest},
		"title at its edge":      {edit("posts.ndjson", "Who spins?", title), ""},
		"title past it":          {edit("posts.ndjson", "Who spins?", title+"t"), protocol.InvalidRequest},
		"message at its edge":    {edit("threads.ndjson", "We do.", long), ""},
		"message past it":        {edit("threads.ndjson", "We do.", long+"अ"), protocol.InvalidRequest},
		"a message missing":      {edit("threads.ndjson", `"n":2`, `"n":3`), protocol.InvalidRequest},
		"closed without a time":  {edit("threads.ndjson", `"state":"answered"`, `"state":"closed"`), protocol.InvalidRequest},
		"a reserved handle":      {forged(t, raw, func(_, body string) string { return strings.ReplaceAll(body, `"asha"`, `"admin"`) }), protocol.Validation},
		"an unknown zone":        {edit("profile.json", "Asia/Kolkata", "Mars/Olympus"), protocol.Validation},
		"two handles":            {edit("profile.json", `"asha"`, `"ravi"`), protocol.InvalidRequest},
		"a private key in clear": {edit("keys.ndjson", `"kty"`, `"d":"AAAA","kty"`), protocol.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			m := *two
			m.T = t
			report, err := m.Imports(c.file, map[string]any{"dryRun": c.code == ""})
			require.Equal(t, c.code, protocol.CodeOf(err), "%v", err)
			if c.code == "" {
				require.Equal(t, count(0, 0, 3), report.Posts, "what is not signed is nobody's")
			}
			for _, handle := range []string{"asha", "admin"} {
				require.Equal(t, protocol.NotFound, protocol.CodeOf(must.Err(m.Admin().Profile(t.Context(), handle))), "nothing is left")
			}
		})
	}
	require.Equal(t, protocol.Validation, protocol.CodeOf(must.Err(two.Imports(raw, map[string]any{"passphrase": "wrong horse battery"}))))
}

// TestArchive_Bounds: an archive costs no more than its limits.
func TestArchive_Bounds(t *testing.T) {
	t.Parallel()
	one := nodetest.NewMover(t)
	settle(one)
	h := nodetest.New(t)
	file := archiveFile(t, export(one, map[string]any{"handle": "asha"}))
	order := archive.Order{By: protocol.Caller{Standing: protocol.Operator}, Limits: archive.OwnerLimits, Vouch: true}

	small := order
	small.Limits.Bytes = 3000
	_, err := h.Archive.Read(t.Context(), file, small)
	require.Equal(t, protocol.TooLarge, protocol.CodeOf(err), "%v", err)
	require.Empty(t, arrived(t, h, "asha"))

	report := must.Get(h.Archive.Read(t.Context(), file, order))(t)
	require.Equal(t, count(3, 0, 0), report.Posts)
	left := must.Get(os.ReadDir(h.Config.Data))(t)
	for _, f := range left {
		require.False(t, strings.HasPrefix(f.Name(), ".archive"), "no spool file stays")
	}
}

// TestArchive_Forger checks that a made-up archive attributes no words to others.
func TestArchive_Forger(t *testing.T) {
	t.Parallel()
	victim, evil, here := nodetest.NewMover(t), nodetest.NewMover(t), nodetest.NewMover(t)
	thread, _ := settle(victim)
	whole := export(victim, map[string]any{"handle": "asha", "passphrase": passphrase})
	bare := export(victim, map[string]any{"handle": "asha"})

	// Without the private half, a key proves nothing: the posts are the node's word.
	report := must.Get(here.Imports(bare, map[string]any{"as": "asha-two"}))(t)
	require.Equal(t, count(3, 0, 0), report.Posts)
	require.Equal(t, count(0, 0, 1), report.PrivateKeys)
	page := must.JSON[protocol.Page[protocol.Post]]([]byte(get(here, "/api/public/board?q=yarn")))(t)
	require.False(t, page.Items[0].Author.Verified)
	require.Equal(t, protocol.ByFederation, page.Items[0].Author.Method)
	require.Equal(t, "asha", *page.Items[0].Author.Handle, "under the handle it was written under")

	// An archive that names another node as its maker brings no post of it.
	settle(evil)
	own := export(evil, map[string]any{"handle": "asha", "passphrase": passphrase})
	posing := forged(t, own, func(_, body string) string { return strings.ReplaceAll(body, evil.Base, victim.Base) })
	fresh := nodetest.NewMover(t)
	report = must.Get(fresh.Imports(posing, map[string]any{"passphrase": passphrase}))(t)
	require.Equal(t, count(0, 0, 3), report.Posts)
	require.Contains(t, strings.Join(report.Notes, "\n"), "is not valid")

	// Nobody in a thread is verified, and who has a name here does not read it by it.
	m := *fresh
	m.Hosted("loud")
	loud := m.TokenOf("loud", "t")
	for _, p := range nodetest.MembersOf(t, own) {
		if p.Name != "threads.ndjson" {
			continue
		}
		for line := range strings.Lines(string(p.Body)) {
			var l struct{ Thread *struct{ ID string } }
			require.NoError(t, json.Unmarshal([]byte(line), &l))
			if l.Thread != nil {
				err := m.CallWith(loud, protocol.CheckConversation.Operation, map[string]any{"threadId": l.Thread.ID}, nil, nil)
				require.Equal(t, protocol.NotFound, protocol.CodeOf(err))
			}
		}
	}

	// A handle that is someone's is refused, and a token of one profile makes no other.
	other := nodetest.NewMover(t)
	other.Hosted("asha")
	require.Equal(t, protocol.Conflict, protocol.CodeOf(must.Err(other.Imports(whole, nil))))
	single := other.TokenOf("home", "one")
	err := other.CallWith(single, protocol.ImportArchive.Operation, map[string]any{"as": "asha-two"}, whole, nil)
	require.Equal(t, protocol.Forbidden, protocol.CodeOf(err))
	report = must.Get(other.Imports(whole, map[string]any{"as": "asha-two", "passphrase": passphrase}))(t)
	require.Equal(t, "asha-two", report.Handle)
	require.Contains(t, get(other, "/api/public/threads/"+thread.ThreadID, "Authorization", "Bearer "+thread.ReadToken), "We do.")

	// A profile that is there is replaced only on the owner's word.
	var home []byte
	require.NoError(t, victim.Call(protocol.ExportArchive.Operation, map[string]any{"handle": "home"}, nil, &home))
	edited := forged(t, home, in(t, "profile.json", `"Load"`, `"Loaded"`))
	report = must.Get(other.Imports(edited, nil))(t)
	require.Equal(t, "kept", report.Profile)
	require.Contains(t, get(other, "/api/public/agents/home"), `"Load"`)
	report = must.Get(other.Imports(edited, map[string]any{"replace": true}))(t)
	require.Equal(t, "replaced", report.Profile)
	require.Contains(t, get(other, "/api/public/agents/home"), `"Loaded"`)
}

// TestArchive_Secrets: private keys leave the node only for who may have them, and
// passphrases stay out of addresses.
func TestArchive_Secrets(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	h.OwnerToken("asha")
	narrow := h.AccountToken("asha", "narrow", protocol.ScopeArchive)
	ask := func(method, path, body string, headers ...string) nodetest.Answer {
		return h.Ask(method, path, body, append(headers, "Authorization", "Bearer "+narrow)...)
	}
	a := ask("POST", "/api/owner/export", `{"passphrase":"`+passphrase+`"}`)
	require.Equal(t, protocol.Forbidden, a.Problem().Code)
	a = ask("POST", "/api/owner/export", `{}`)
	require.Equal(t, http.StatusOK, a.Code)
	require.Equal(t, "application/gzip", a.Header().Get("Content-Type"))
	require.Equal(t, `attachment; filename=asha.stoa.tar.gz`, a.Header().Get("Content-Disposition"))
	require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
	require.Empty(t, a.Header().Get("Access-Control-Allow-Origin"))
	for _, short := range []string{"elevenchars", strings.Repeat("x", 129)} {
		require.Equal(t, protocol.Validation, ask("POST", "/api/owner/export", `{"passphrase":"`+short+`"}`).Problem().Code)
	}
	a = ask("POST", "/api/owner/import?passphrase=correct-horse-battery", "x", "Content-Type", "application/gzip")
	require.Equal(t, "secret-in-url", a.Problem().Errors[0].Code)
	require.Equal(t, protocol.UnsupportedMediaType, ask("POST", "/api/owner/import", "{}", "Content-Type", "application/json").Problem().Code)
	require.Equal(t, protocol.InvalidRequest, ask("POST", "/api/owner/import", "x", "Content-Type", "application/gzip").Problem().Code)
	require.Equal(t, protocol.Unauthorized, h.Ask("POST", "/api/owner/import", "x", "Content-Type", "application/gzip").Problem().Code)
}
