package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/identity/attest"
	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A proofWorld is a chain that a test controls, and nodes that read it.
type proofWorld struct {
	t     *testing.T
	chain *nodetest.EVM
	id    erc8004.ID
	as    client.Options // signs as id
	dir   string
}

func newProofWorld(t *testing.T) *proofWorld {
	w := &proofWorld{t: t, chain: nodetest.NewEVM(t), dir: t.TempDir()}
	var err error
	w.id, _, err = w.chain.Registrar(0).Register(t.Context(), "https://agent.example/a")
	require.NoError(t, err)
	w.as = client.Options{Key: nodetest.NewPair(t), AgentID: w.id.String()}
	w.chain.Publish(0, 0, w.id, w.as.Key)
	w.chain.Do("final")
	return w
}

func (w *proofWorld) node() *nodetest.House {
	return nodetest.Start(w.t, func(c *node.Config) { c.Chain, c.Dev = []string{w.chain.Flag("")}, true })
}

func (w *proofWorld) post(h *nodetest.House, in protocol.NewPost) protocol.Post {
	return post(w.t, must.Get(client.New(h.URL, w.as))(w.t), in)
}

// save writes the proof of a post, and the key of its node, to files; block is the hash of the block in it.
func (w *proofWorld) save(h *nodetest.House, p protocol.Post) (proof, nodeKey, block string) {
	w.t.Helper()
	raw := w.fetch(p.URL + "/proof")
	proof, nodeKey = filepath.Join(w.dir, p.ID+".json"), filepath.Join(w.dir, "node.jwk")
	require.NoError(w.t, os.WriteFile(proof, raw, 0o600))
	require.NoError(w.t, os.WriteFile(nodeKey, must.Get(key.MarshalSet([]key.Public{h.Keys.Ed.Published()}))(w.t), 0o600))
	return proof, nodeKey, w.blockOf(raw)
}

// blockOf is the hash of the block in a proof.
func (w *proofWorld) blockOf(proof []byte) string {
	return must.Get(attest.Parse(proof))(w.t).Authority.BlockHash
}

func (w *proofWorld) fetch(url string) []byte {
	res := must.Get(http.Get(url))(w.t)
	defer res.Body.Close()
	require.Equal(w.t, 200, res.StatusCode)
	return must.Get(io.ReadAll(res.Body))(w.t)
}

// says runs stoa verify, compares its exit status and looks for texts in what it prints.
func says(t *testing.T, code int, args []string, texts ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	got := run(t.Context(), append([]string{"verify"}, args...), strings.NewReader(""), &out, &errs)
	all := out.String() + errs.String()
	require.Equal(t, code, got, "%v: %s", args, all)
	for _, text := range texts {
		require.Contains(t, all, text, "%v", args)
	}
	return all
}

func TestVerifyProof(t *testing.T) {
	t.Parallel()
	w := newProofWorld(t)
	a := w.node()
	p := w.post(a, protocol.NewPost{Kind: protocol.Offer, Title: "Looms", Body: "Two looms."})
	file, nodeKey, block := w.save(a, p)

	says(t, exitOpen, []string{p.URL}, "no block hash was given", "undecided")
	says(t, exitDone, []string{p.URL, "--block", block}, "verified: "+p.URI, "EIP-1186")
	says(t, exitDone, []string{p.URL, "--chain", w.chain.RPC}, "as then")
	says(t, exitOpen, []string{file}, "was not given")
	says(t, exitOpen, []string{file, "--node-key", nodeKey})
	says(t, exitProblem, []string{file, "--node-key", nodeKey, "--block", "0x" + strings.Repeat("ab", 32)}, "is not the block that was given")
	offline := []string{file, "--node-key", nodeKey, "--block", block}
	says(t, exitDone, offline)
	report := says(t, exitDone, append(offline, "--json"))
	r := must.JSON[attest.Report]([]byte(report))(t)
	require.Equal(t, attest.Verified, r.Verdict)
	var steps []string
	for _, s := range r.Steps {
		require.Equal(t, attest.Good, s.Result, "%+v", s)
		if s.Name != "log" { // there once the node has logged the post, after a moment
			steps = append(steps, s.Name)
		}
	}
	require.Equal(t, []string{"document", "node", "author", "state", "block", "record", "request"}, steps)
	w.withoutNetwork(offline)

	edited := must.Get(client.New(a.URL, w.as))(t)
	must.Get(edited.Call(t.Context(), protocol.EditPost.Name, map[string]any{"id": p.ID, "kind": "offer", "title": "Looms", "body": "Three looms."}))(t)
	says(t, exitDone, offline)
	says(t, exitDone, append(offline, "--current"), "since then: superseded: its author changed it on ")
	block = w.blockOf(w.fetch(p.URL + "/proof")) // the node may know a later one than when it saw the first version
	says(t, exitDone, []string{p.URL, "--block", block})

	must.Get(edited.Call(t.Context(), protocol.DeletePost.Name, map[string]any{"id": p.ID}))(t)
	says(t, exitDone, append(offline, "--current"), "since then: the node says: this post was deleted (410)")
	says(t, exitProblem, []string{p.URL}, "not verified: the node says: this post was deleted (410)")
	says(t, exitProblem, []string{a.URL + "/board/post_01kaa9zv6k8e5w9q2x4z7c1m0a"}, "(404)")

	w.chain.Must(w.chain.Registrar(0).Transfer(t.Context(), w.id.AgentID, w.chain.Registrar(1).Address()))
	buyer := strings.ToLower(w.chain.Accounts[1].Address)
	says(t, exitDone, []string{file, "--node-key", nodeKey, "--chain", w.chain.RPC}, "verified: ", "since then: held by another now: "+buyer)
	says(t, exitUsage, nil, "what is to be verified")
}

// withoutNetwork runs the program in a network namespace without any route, where the system allows one, and otherwise behind an address
// that refuses every connection.
func (w *proofWorld) withoutNetwork(args []string) {
	w.t.Helper()
	program := filepath.Join(bin(w.t), "stoa")
	command := append([]string{program, "verify"}, args...)
	if exec.Command("unshare", "-rn", "true").Run() == nil {
		command = append([]string{"unshare", "-rn"}, command...)
		out := must.Get(exec.Command("unshare", "-rn", "cat", "/proc/net/route").Output())(w.t)
		require.Len(w.t, strings.Split(strings.TrimSpace(string(out)), "\n"), 1, "there is a route")
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = append(os.Environ(), "http_proxy=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9")
	out, err := c.CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	require.Contains(w.t, string(out), "verified: ")
}

// TestVerifyProof_Reorganised: an author is verified at a block that the chain then replaces.
func TestVerifyProof_Reorganised(t *testing.T) {
	t.Parallel()
	w := newProofWorld(t)
	w.chain.Do("mine 2")
	a := w.node()
	p := w.post(a, protocol.NewPost{Kind: protocol.Offer, Title: "Looms", Body: "Two looms."})
	file, nodeKey, block := w.save(a, p)
	says(t, exitDone, []string{file, "--node-key", nodeKey, "--chain", w.chain.RPC})
	w.chain.Do("fork 2")
	says(t, exitProblem, []string{file, "--node-key", nodeKey, "--chain", w.chain.RPC}, "was replaced, or never was of this chain")
	says(t, exitProblem, []string{file, "--node-key", nodeKey, "--chain", w.chain.RPC, "--block", block}, "was replaced, or never was of this chain")
}

// TestVerifyProof_TwoNodesAway: b shows a copy of a post of a, and c, which follows only a, a copy of b's reply to it. Each proves it with what the
// author signed, without its home.
func TestVerifyProof_TwoNodesAway(t *testing.T) {
	t.Parallel()
	w := newProofWorld(t)
	a, b, c := w.node(), w.node(), w.node()
	require.NoError(t, b.Follow(t.Context(), a.Base))
	require.NoError(t, c.Follow(t.Context(), a.Base))
	p := w.post(a, protocol.NewPost{Kind: "question", Title: "Looms?", Body: "Who has looms?"})
	copied := arrives(t, b.URL, p.URI, soon)
	reply := w.post(b, protocol.NewPost{Kind: protocol.Offer, Title: "Looms", Body: "Two looms.", InReplyTo: copied.ID})
	far := arrives(t, c.URL, reply.URI, soon)
	for _, row := range []struct {
		shows *nodetest.House
		copy  protocol.Post
	}{{b, copied}, {c, far}} {
		require.True(t, strings.HasPrefix(row.copy.URL, row.shows.Base))
		require.NotNil(t, row.copy.Node)
		file, nodeKey, block := w.save(row.shows, row.copy)
		says(t, exitDone, []string{row.copy.URL, "--block", block}, "verified: "+row.copy.URI, row.shows.Base+" saw it on ")
		w.withoutNetwork([]string{file, "--node-key", nodeKey, "--block", block})
		_, home, _ := w.save(a, p)
		says(t, exitProblem, []string{file, "--node-key", home, "--block", block}, "not in the set")
	}
}
