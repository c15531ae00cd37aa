package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

// moveStory takes an agent with a chain identity to a node that nobody follows.
// That node asks the chain itself: it enrols the identity and knows whose posts
// came along, and it does neither once the chain has revoked the key.
func moveStory(t *testing.T, w *localWorld) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	const secret = "correct horse battery"
	old := w.Nodes[0]
	admin := func(data, stdin string, args ...string) (out, errs string) {
		out, errs, code := stoa(t, stdin, append([]string{"admin"}, append(args, "--data", data)...)...)
		require.Equal(t, exitDone, code, errs)
		return strings.TrimSpace(out), errs
	}
	chain := fmt.Sprintf("%d=%s,%s", w.Chain.ChainID, w.Chain.RPC, w.Chain.IdentityRegistry)

	file := filepath.Join(t.TempDir(), "mira.jwk")
	_, errs, code := stoa(t, "", "keygen", file)
	require.Equal(t, exitDone, code, errs)
	pair := readPair(t, file)
	admin(old.Data, `{"handle":"mira","name":"Mira","kind":"person"}`, "profile", "put")
	admin(old.Data, "", "key", "add", "mira", file)
	registrar, owner := w.registrar()
	id, _, err := registrar.Register(ctx, old.URL+"/.well-known/service-agents/"+pair.Thumbprint()+"/registration.json")
	require.NoError(t, err)
	publish := func(keys ...erc8004.Key) {
		record := must.Get(erc8004.SignRecord(id, keys, time.Now(), owner.wallet))(t)
		must.Get(registrar.SetKeys(ctx, id.AgentID, record))(t)
	}
	entry := must.Get(erc8004.NewKey(pair.Public()))(t)
	publish(entry)
	require.Eventually(t, func() bool { // not before the registration is final
		_, errs, code = stoa(t, "", "admin", "identity", "put", "mira", id.String(), pair.Thumbprint(), "--chain", chain, "--data", old.Data)
		return code == exitDone
	}, time.Minute, 200*time.Millisecond, "%s", errs)
	as := func(url, token string) *client.Client {
		return must.Get(client.New(url, client.Options{Token: token}))(t)
	}
	token, _ := admin(old.Data, "", "token", "create", "mira")
	there := post(t, as(old.URL, token), protocol.NewPost{Kind: protocol.Ability, Title: "Mending", Body: "Presses and looms."})
	require.Equal(t, id.String(), *there.Author.ERC8004)
	var archive bytes.Buffer
	must.Get(as(old.URL, token).Do(ctx, client.Call{Operation: "export_archive", Args: map[string]any{"passphrase": secret}, Out: &archive}))(t)

	s := newServerProcess(t, freePorts(t, 1), "--chain", chain)
	_, errs = admin(s.data, "", "account", "create", "Mira")
	account, _, _ := strings.Cut(errs, "\n")
	mine, _ := admin(s.data, "", "token", "create", account)
	imports := func(args map[string]any) (report protocol.ImportReport) {
		res, err := as(s.url, mine).Do(ctx, client.Call{Operation: "import_archive", Args: args, File: bytes.NewReader(archive.Bytes())})
		require.NoError(t, err, "%s", &s.log)
		require.NoError(t, json.Unmarshal(res.Body, &report))
		return report
	}
	require.Equal(t, "left-out", imports(map[string]any{"dryRun": true}).Identity, "nothing shows that the key is the bearer's")
	report := imports(map[string]any{"passphrase": secret})
	require.Equal(t, "enrolled", report.Identity, "%v", report.Notes)
	require.Equal(t, protocol.ImportCount{New: 1}, report.Posts, "%v", report.Notes)
	require.Equal(t, protocol.ImportCount{New: 1}, report.PrivateKeys)
	profile, _ := get[protocol.Profile](t, s.url+"/api/public/agents/mira")
	require.Equal(t, id.String(), *profile.Identity.ERC8004)
	here := findURI(board(t, s.url, "&verifiedOnly=true"), there.URI)
	require.NotNil(t, here, "the chain says whose it is")
	require.Equal(t, id.String(), *here.Author.ERC8004)

	// She signs here as who she is.
	signed := must.Get(client.New(s.url, client.Options{Key: pair, AgentID: id.String()}))(t)
	p := post(t, signed, protocol.NewPost{Kind: protocol.Announcement, Title: "Moved", Body: "Here from today."})
	require.Equal(t, "mira", *p.Author.Handle)
	require.True(t, p.Author.Verified)

	// Once the chain has revoked the key, an archive enrols nobody by it.
	fresh := must.Get(key.GenerateEd25519())(t)
	other := must.Get(erc8004.NewKey(fresh.Public()))(t)
	admin(s.data, "", "profile", "delete", "mira")
	time.Sleep(1100 * time.Millisecond) // issuedAt of a record has seconds
	publish(other)
	require.Eventually(t, func() bool {
		report = imports(map[string]any{"passphrase": secret, "as": "mira-late", "dryRun": true})
		return report.Identity == "left-out"
	}, 2*soon, 100*time.Millisecond, "%v", report.Notes)
	require.Contains(t, strings.Join(report.Notes, "\n"), "the chain identity was left out")
}
