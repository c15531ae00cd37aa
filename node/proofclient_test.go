package node_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/attest"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// A proofFolder is a folder of proof documents, and what a verifier of them knows.
type proofFolder struct {
	t      *testing.T
	s      *nodetest.Stage
	docs   map[string][]byte // by the name of the file
	blocks []string
}

func (f *proofFolder) add(raw []byte) {
	f.docs[fmt.Sprintf("%04d.json", len(f.docs))] = raw
	if d, err := attest.Parse(raw); err == nil && d.Authority.BlockHash != "" && !slices.Contains(f.blocks, d.Authority.BlockHash) {
		f.blocks = append(f.blocks, d.Authority.BlockHash)
	}
}

// agree compares the verdicts of the node's verifier and of clients/verify_proof.py, and counts them.
func (f *proofFolder) agree(withKey bool, blocks ...string) map[attest.Verdict]int {
	f.t.Helper()
	dir := f.t.TempDir()
	args := []string{"-X", "utf8", nodetest.Source("clients", "verify_proof.py"), "--block", strings.Join(blocks, ",")}
	o := attest.Options{Blocks: blocks}
	if withKey {
		o.Keys.Keys = []key.Public{f.s.Keys.Ed.Published()}
		file := filepath.Join(dir, "node.jwks")
		require.NoError(f.t, os.WriteFile(file, must.Get(key.MarshalSet(o.Keys.Keys))(f.t), 0o600))
		args = append(args, "--node-key", file)
	}
	ours, names := map[string]attest.Report{}, []string{}
	for name, raw := range f.docs {
		ours[name] = attest.Verify(f.t.Context(), raw, o)
		names = append(names, filepath.Join(dir, name))
		require.NoError(f.t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
	}
	slices.Sort(names)
	var errs bytes.Buffer
	command := exec.Command("python3", append(args, names...)...)
	command.Stderr = &errs
	out, err := command.Output()
	require.NoError(f.t, err, "%s", &errs)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(f.t, lines, len(f.docs))
	count := map[attest.Verdict]int{}
	for _, line := range lines {
		cells := strings.Split(line, "\t")
		r := ours[filepath.Base(cells[1])]
		require.Equal(f.t, string(r.Verdict), cells[0], "%s: %s\nours: %+v\n%s", r.Level, line, r.Steps, f.docs[filepath.Base(cells[1])])
		count[r.Verdict]++
	}
	return count
}

// spoken are texts that JSON, signatures and canonical forms write in different ways.
var spoken = []string{"Looms", `a "quoted" \ text </p>`, "हथकरघा के दो करघे", "two\nlines", "€ 😀 𝒳 \u00e9 e\u0301", "1.0 1e3 null", "a < b && c > d"}

func (f *proofFolder) body(n int, more string) string {
	text := must.Get(json.Marshal(spoken[n%len(spoken)]))(f.t)
	return fmt.Sprintf(`{"kind":"offer","title":"Number %d","body":%s,"tags":["Looms","tag-%d"]%s}`, n, text, n%7, more)
}

// needsCryptography skips a test that runs programs in Python where their one package is missing.
func needsCryptography(t *testing.T) {
	t.Helper()
	if err := exec.Command("python3", "-c", "import cryptography").Run(); err != nil {
		t.Skipf("no Python with the package cryptography (%v): make test installs it", err)
	}
}

// TestProofDocument_Client: a program that follows docs/PROOF.md alone comes to the same verdicts on up to 200 documents, whatever it is given,
// and on each of 60 documents in which one member is another, also where the node itself has signed the change.
func TestProofDocument_Client(t *testing.T) {
	t.Parallel()
	needsCryptography(t)
	chain := nodetest.NewEVM(t)
	first, pair := identityOn(chain, 0)
	second, other := identityOn(chain, 1)
	wallet := must.Get(erc8004.ParseWalletKey(chain.Accounts[2].PrivateKey))(t)
	chain.Must(chain.Registrar(0).SetAgentWallet(t.Context(), first.AgentID, chain.Registrar(2).Address(), wallet))
	s := chain.Start()
	f := &proofFolder{t: t, s: s, docs: map[string][]byte{}}
	hosted, asha := s.Hosted("asha"), s.TokenOf("asha", "test", protocol.ScopePost)
	owner, agent := accountOf(s, 0, first.String()), accountOf(s, 2, first.String())
	as := func(id erc8004.ID) func(*http.Request, *httpsig.SignOptions) {
		return func(r *http.Request, _ *httpsig.SignOptions) { r.Header.Set("Agent-Identity", id.String()) }
	}
	var last protocol.Post
	var written []string
	keep := func(p protocol.Post) { last = p; written = append(written, p.ID) }
	posted := func(a nodetest.Answer) { keep(nodetest.As[protocol.Post](a.Is(201))) }
	posts := max(30, storagetest.Rounds(t, 190)) // of each kind some
	for n := 0; len(written) < posts-1; n++ {
		reply := fmt.Sprintf(`,"inReplyTo":%q`, last.ID)
		switch n % 10 {
		case 0:
			posted(s.Signed(pair, f.body(n, ""), as(first)))
		case 1:
			posted(s.Signed(other, f.body(n, reply), as(second)))
		case 2:
			var p protocol.Post
			r := s.SignedTool(pair, "post_to_board", f.body(n, ""), as(first))
			require.NoError(t, json.Unmarshal(r.Result, &struct {
				Structured *protocol.Post `json:"structuredContent"`
			}{&p}))
			keep(p)
		case 3:
			posted(owner.sends(owner.request("POST", "/api/public/board", f.body(n, `,"name":"Ravi"`), n%20 == 3)))
		case 4:
			posted(agent.sends(agent.request("POST", "/api/public/board", f.body(n, reply), n%20 == 4)))
		case 5:
			posted(s.Signed(hosted, f.body(n, reply), nil))
		case 6:
			keep(s.Post(fmt.Sprint("From nobody ", n)))
		case 7:
			posted(s.Ask("POST", "/api/public/board", f.body(n, reply), "Authorization", "Bearer "+asha))
		case 8:
			posted(s.Signed(hosted, f.body(n, ""), nil))
			s.AskSigned(hosted, "PUT", "/api/public/board/"+last.ID, f.body(n+1, "")).Is(200)
		case 9:
			posted(s.Signed(other, f.body(n, `,"name":"Somebody"`), as(second)))
		}
	}
	alone := accountOf(s, 3, "")
	r := alone.request("POST", "/api/public/board", f.body(0, ""), false)
	r.Header.Set("Proof-Of-Work", s.Proof(protocol.PostToBoard.Purpose))
	posted(alone.sends(r))
	logged(s.House, last.ID) // the entries before it are in the tree too
	for _, id := range written {
		f.add(proofOf(s.House, id))
	}
	require.Equal(t, map[string]int{"in": posts}, f.inLog())
	whole := f.docs["0000.json"]
	d := must.Get(attest.Parse(whole))(t)
	d.Log = nil
	sample := must.Get(json.Marshal(d))(t)
	for n := range 10 {
		f.add(f.stated(sample, pair, n))
	}
	require.Equal(t, map[attest.Verdict]int{attest.Verified: posts + 10}, f.agree(true, f.blocks...))
	for name := range f.docs {
		if name >= "0020" && name < fmt.Sprintf("%04d", posts) { // the rest are alike
			delete(f.docs, name)
		}
	}
	require.Equal(t, map[attest.Verdict]int{attest.Undecided: 30}, f.agree(false))
	require.Len(t, f.agree(true), 2, "without a block, those of the chain are undecided")
	require.Len(t, f.agree(true, "0x"+strings.Repeat("ab", 32)), 2, "with another block, those of the chain are refused")

	f.docs = map[string][]byte{}
	leaves := leavesOf(sample)
	require.Greater(t, len(leaves), 40)
	for n := 0; len(f.docs) < 60; n++ {
		f.add(changed(t, sample, leaves[n%len(leaves)], n/len(leaves)))
	}
	require.Equal(t, map[attest.Verdict]int{attest.Refused: 60}, f.agree(true, f.blocks...))

	f.docs = map[string][]byte{}
	for _, path := range leaves {
		switch {
		case path[0] == "evidence" && (path[1] == "method" || path[1] == "targetUri"): // a request that is no post is undecided
		case path[0] == "evidence", path[0] == "authority" && path[1] != "kind",
			len(path) >= 3 && slices.Contains([]string{"kind", "title", "body", "tags"}, path[2]):
			f.add(f.sealed(changed(t, sample, path, 0)))
		}
	}
	require.Greater(t, len(f.docs), 25)
	require.Equal(t, map[attest.Verdict]int{attest.Refused: len(f.docs)}, f.agree(true, f.blocks...))

	f.docs = map[string][]byte{}
	for _, path := range leavesOf(whole) {
		if path[0] == "log" {
			for n := range 5 {
				f.add(changed(t, whole, path, n))
			}
		}
	}
	require.GreaterOrEqual(t, len(f.docs), 30)
	require.Equal(t, map[string]int{"refused": len(f.docs)}, f.inLog())
}

// inLog asks clients/verify_log.py whether the log has what the documents show, compares that with the node's verifier, and counts the answers.
func (f *proofFolder) inLog() map[string]int {
	f.t.Helper()
	dir := f.t.TempDir()
	keys := []key.Public{f.s.Keys.Ed.Published()}
	require.NoError(f.t, os.WriteFile(filepath.Join(dir, "node.jwks"), must.Get(key.MarshalSet(keys))(f.t), 0o600))
	args := []string{"-X", "utf8", nodetest.Source("clients", "verify_log.py"), "--node-key", filepath.Join(dir, "node.jwks")}
	for name, raw := range f.docs {
		args = append(args, filepath.Join(dir, name))
		require.NoError(f.t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
	}
	command := exec.Command("python3", args...)
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	require.NoError(f.t, err, "%s", &errs)
	count := map[string]int{}
	for line := range strings.Lines(strings.TrimSpace(string(out))) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		raw := f.docs[filepath.Base(cells[1])]
		r := attest.Verify(f.t.Context(), raw, attest.Options{Keys: key.Set{Keys: keys}})
		ours := map[attest.Result]string{attest.Good: "in", attest.Bad: "refused", "": "absent"}[nodetest.Steps(r)["log"]]
		if nodetest.Steps(r)["document"] == attest.Bad {
			ours = "refused"
		}
		require.Equal(f.t, ours, cells[0], "%s\nours: %+v\n%s", line, r.Steps, raw)
		count[cells[0]]++
	}
	return count
}

// stated is a document whose author has signed a statement instead of a request.
func (f *proofFolder) stated(sample []byte, pair key.Pair, n int) []byte {
	d := must.Get(attest.Parse(sample))(f.t)
	var p attest.Post
	require.NoError(f.t, json.Unmarshal(d.Subject.Object, &p))
	p.Title, p.Body, p.Tags = fmt.Sprint("Stated ", n), spoken[n%len(spoken)], []string{"stated"}
	home, _, _ := strings.Cut(d.Subject.ID, "/ap/posts/")
	d.Statement = must.Get(integrity.SignStatement(integrity.Statement{
		Author: *p.Author.ERC8004, Actor: home + "/ap/anon", Board: p.Board, Kind: p.Kind, Title: p.Title, Body: p.Body, Tags: p.Tags,
		Created: p.CreatedAt.Format(time.RFC3339), Nonce: "AAAAAAAAAAAAAAAAAAAAAA",
	}, pair.Signer(), p.CreatedAt))(f.t)
	d.Evidence, d.Subject.Object = nil, must.Get(json.Marshal(p))(f.t)
	return must.Get(attest.Seal(d, f.s.Base, p.CreatedAt, p.Author.Proof.Level, p.Author.Proof, f.s.Keys.Ed))(f.t)
}

// sealed is a document as the node signs it.
func (f *proofFolder) sealed(raw []byte) []byte {
	var d attest.Document
	var p attest.Post
	if json.Unmarshal(raw, &d) != nil || json.Unmarshal(d.Subject.Object, &p) != nil { // a type that no reader takes
		return raw
	}
	return must.Get(attest.Seal(d, f.s.Base, p.CreatedAt, p.Author.Proof.Level, p.Author.Proof, f.s.Keys.Ed))(f.t)
}

// leavesOf are the ways to the values of a document, and to what the node has signed.
func leavesOf(raw []byte) (all [][]string) {
	var walk func(v any, at []string)
	walk = func(v any, at []string) {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				walk(value, append(slices.Clip(at), name))
			}
		case []any:
			for i, value := range v {
				walk(value, append(slices.Clip(at), fmt.Sprint(i)))
			}
		case nil:
		default:
			all = append(all, at)
		}
	}
	var doc any
	_ = json.Unmarshal(raw, &doc)
	walk(doc, nil)
	slices.SortFunc(all, slices.Compare[[]string])
	return all
}

// changed is a document in which one value is another: of a text one character, at a place that n chooses.
func changed(t *testing.T, raw []byte, path []string, n int) []byte {
	t.Helper()
	var doc any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	require.NoError(t, d.Decode(&doc))
	var set func(v any, path []string) any
	set = func(v any, path []string) any {
		switch v := v.(type) {
		case map[string]any:
			v[path[0]] = set(v[path[0]], path[1:])
			return v
		case []any:
			var i int
			fmt.Sscan(path[0], &i)
			v[i] = set(v[i], path[1:])
			return v
		case json.Number:
			return json.Number(v + "1")
		case bool:
			return !v
		}
		text := []byte(v.(string))
		at := (len(text)/2 + 3*n) % len(text)
		if text[at] = text[at] ^ 1; text[at] < '0' || text[at] == '\\' || text[at] >= 0x7f {
			text[at] = '7'
		}
		return string(text)
	}
	out := must.Get(json.Marshal(set(doc, path)))(t)
	require.NotEqual(t, string(must.Get(json.Marshal(json.RawMessage(raw)))(t)), string(out))
	return out
}
