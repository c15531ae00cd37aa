package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestStory walks what a newcomer does with a local world: real programs, real
// sockets, a real chain. Two nodes follow each other; what is posted on one
// shows on the other, and each checks the author itself.
func TestStory(t *testing.T) {
	t.Parallel()
	port := freePorts(t, 2)
	w := startWorld(t, t.TempDir(), port)
	a, b := w.Nodes[0].URL, w.Nodes[1].URL

	t.Run("seeded", func(t *testing.T) { seededBoards(t, w) })
	t.Run("anonymous", func(t *testing.T) {
		p := post(t, w.anonymous(0), protocol.NewPost{Kind: protocol.Offer, Title: "Old looms", Body: "Two looms, to be fetched.", Name: "Meera"})
		require.False(t, p.Author.Verified)
		require.Equal(t, protocol.AuthorProof{Level: protocol.ByNothing}, p.Author.Proof)
		require.Equal(t, "Meera", p.Author.Name)
		require.Equal(t, protocol.ByProof, p.Author.Method)

		there := arrives(t, b, p.URI, soon)
		require.False(t, there.Author.Verified)
		require.Equal(t, protocol.AuthorProof{Level: protocol.ByNothing}, there.Author.Proof)
		require.Equal(t, "Meera", there.Author.Name)
		require.Equal(t, protocol.ByFederation, there.Author.Method)
		require.NotNil(t, there.Node)
		for _, node := range []string{a, b} {
			feed, status := get[protocol.Page[protocol.FeedItem]](t, node+"/api/public/feed?types=board_post")
			require.Equal(t, 200, status)
			require.Equal(t, "Offer: Old looms", feed.Items[0].Summary)
			require.False(t, feed.Items[0].Actor.Verified)
		}
	})

	t.Run("signed by a chain identity", func(t *testing.T) {
		p := post(t, w.as(0, "asha"), protocol.NewPost{Kind: protocol.Ability, Title: "Paper", Body: "Hand-made paper to order.", Tags: []string{"paper"}})
		require.True(t, p.Author.Verified)
		require.Equal(t, protocol.BySignature, p.Author.Method)
		require.Equal(t, w.agent("asha").ERC8004, p.Author.ERC8004)
		require.Equal(t, "asha", *p.Author.Handle)

		there := arrives(t, b, p.URI, soon)
		require.True(t, there.Author.Verified, "B checked the author itself")
		for _, proof := range []protocol.AuthorProof{p.Author.Proof, there.Author.Proof} {
			require.Equal(t, protocol.ByChainKey, proof.Level)
			require.Equal(t, p.Author.ERC8004, proof.Subject)
			require.Equal(t, "eip155:"+strconv.FormatUint(w.Chain.ChainID, 10), *proof.Chain)
			require.Positive(t, *proof.Block)
			require.WithinDuration(t, time.Now(), *proof.CheckedAt, soon)
		}
		require.False(t, there.Author.Proof.CheckedAt.Before(*p.Author.Proof.CheckedAt), "B states its own check")
		require.Equal(t, w.agent("asha").ERC8004, there.Author.ERC8004)
		require.NotNil(t, findURI(board(t, b, "&verifiedOnly=true&tag=paper"), p.URI))
	})

	t.Run("written with an owner's token", func(t *testing.T) {
		c := must.Get(client.New(a, client.Options{Token: w.agent("asha").OwnerToken}))(t)
		p := post(t, c, protocol.NewPost{Kind: protocol.Announcement, Title: "Closed on Monday", Body: "Back on Tuesday."})
		require.True(t, p.Author.Verified)
		require.Equal(t, protocol.BySession, p.Author.Method)
		require.Equal(t, protocol.BySignIn, p.Author.Proof.Level)
		require.Nil(t, p.Author.Proof.Block, "no chain was asked")
		there := arrives(t, b, p.URI, soon)
		require.True(t, there.Author.Verified, "the node signed a statement with the agent's key")
		require.Equal(t, protocol.ByChainKey, there.Author.Proof.Level, "which B looked up on the chain")
	})

	t.Run("buys a slot of attention", func(t *testing.T) { buysAttention(t, w) })

	t.Run("replies travel both ways", func(t *testing.T) {
		p := post(t, w.as(0, "asha"), protocol.NewPost{Kind: protocol.QuestionPost, Title: "Who mends presses?", Body: "A book press, 1920."})
		there := arrives(t, b, p.URI, soon)
		reply := post(t, w.anonymous(1), protocol.NewPost{Kind: protocol.Resolution, Title: "I do", Body: "In Jodhpur.", InReplyTo: there.ID})
		back := arrives(t, a, reply.URI, soon)
		require.NotNil(t, back.InReplyTo)
		require.Equal(t, p.ID, *back.InReplyTo)
	})

	t.Run("taken back", func(t *testing.T) {
		p := post(t, w.as(0, "asha"), protocol.NewPost{Kind: protocol.Offer, Title: "A mistake", Body: "Forget it."})
		there := arrives(t, b, p.URI, soon)
		must.Get(w.as(0, "asha").Call(context.Background(), "delete_post", map[string]any{"id": p.ID}))(t)
		_, status := get[any](t, a+"/api/public/board/"+p.ID)
		require.Equal(t, 410, status)
		require.Eventually(t, func() bool {
			_, status := get[any](t, b+"/api/public/board/"+there.ID)
			return status == 410
		}, soon, 20*time.Millisecond)
	})

	t.Run("five reports hide", func(t *testing.T) {
		p := post(t, w.anonymous(0), protocol.NewPost{Kind: protocol.Offer, Title: "Cheap watches", Body: "Buy now."})
		arrives(t, b, p.URI, soon)
		receipts := map[bool]int{}
		for range 3 {
			res := must.Get(w.anonymous(0).Call(context.Background(), "report_post", map[string]any{"id": p.ID}))(t)
			r := must.JSON[protocol.ReportReceipt](res.Body)(t)
			receipts[r.Accepted]++
		}
		require.Equal(t, map[bool]int{true: 1, false: 2}, receipts, "one client network counts once")
		_, status := get[any](t, a+"/api/public/board/"+p.ID)
		require.Equal(t, 200, status)
	})

	t.Run("agents write to each other by A2A", func(t *testing.T) { a2aStory(t, w) })
	t.Run("refusals store nothing", func(t *testing.T) { refusals(t, w, a) })
	t.Run("moving with a chain identity", func(t *testing.T) { moveStory(t, w) })
	t.Run("identity commands", func(t *testing.T) { identityCommands(t, w) })
	t.Run("identity followed", func(t *testing.T) { identityFollowed(t, w) })
	t.Run("revoked and transferred", func(t *testing.T) { revoked(t, w) })
	t.Run("documents", func(t *testing.T) { documents(t, w) })
	t.Run("command line", func(t *testing.T) { commandLine(t, w) })
}

// signedRequest is a good signed post, ready to be spoiled.
func signedRequest(t *testing.T, w *localWorld, node string, o httpsig.SignOptions) *http.Request {
	t.Helper()
	a := w.agent("asha")
	raw := must.Get(os.ReadFile(*a.Key))(t)
	pair := must.Get(key.ParsePair(raw))(t)
	body := []byte(`{"kind":"offer","title":"Spoiled","body":"Never stored."}`)
	r := must.Get(http.NewRequest("POST", node+"/api/public/board", bytes.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Agent-Identity", *a.ERC8004)
	target := must.Get(httpsig.ParseTarget(node))(t)
	if o.Key == nil {
		o.Key = pair.Signer()
	}
	require.NoError(t, httpsig.SignRequest(r, target, body, o))
	return r
}

func problemOf(t *testing.T, r *http.Request) (int, protocol.Code, http.Header) {
	t.Helper()
	res := must.Get(http.DefaultClient.Do(r))(t)
	defer res.Body.Close()
	raw := must.Get(io.ReadAll(res.Body))(t)
	var p struct{ Code protocol.Code }
	if res.StatusCode >= 400 {
		require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"), "%s", raw)
		require.NoError(t, json.Unmarshal(raw, &p))
	}
	return res.StatusCode, p.Code, res.Header
}

func refusals(t *testing.T, w *localWorld, node string) {
	stranger := must.Get(key.GenerateEd25519())(t)
	before := len(board(t, node, "&q=Spoiled"))
	tests := []struct {
		name string
		make func() *http.Request
		code protocol.Code
	}{
		{"tampered body", func() *http.Request {
			r := signedRequest(t, w, node, httpsig.SignOptions{})
			r.Body = io.NopCloser(strings.NewReader(`{"kind":"offer","title":"Spoiled","body":"Never stored!"}`))
			return r
		}, protocol.SignatureInvalid},
		{"wrong digest", func() *http.Request {
			r := signedRequest(t, w, node, httpsig.SignOptions{})
			r.Header.Set("Content-Digest", httpsig.ContentDigest([]byte("other")))
			return r
		}, protocol.SignatureInvalid},
		{"stale created", func() *http.Request {
			return signedRequest(t, w, node, httpsig.SignOptions{Created: time.Now().Add(-10 * time.Minute)})
		}, protocol.SignatureExpired},
		{"created in the future", func() *http.Request {
			return signedRequest(t, w, node, httpsig.SignOptions{Created: time.Now().Add(10 * time.Minute)})
		}, protocol.SignatureExpired},
		{"window too long", func() *http.Request {
			return signedRequest(t, w, node, httpsig.SignOptions{TTL: time.Hour})
		}, protocol.SignatureInvalid},
		{"unknown key", func() *http.Request {
			return signedRequest(t, w, node, httpsig.SignOptions{Key: stranger.Signer()})
		}, protocol.KeyUnknown},
		{"stripped in half", func() *http.Request {
			r := signedRequest(t, w, node, httpsig.SignOptions{})
			r.Header.Del("Signature")
			return r
		}, protocol.SignatureInvalid},
		{"signed for another node", func() *http.Request {
			r := signedRequest(t, w, w.Nodes[1].URL, httpsig.SignOptions{})
			u := *r.URL
			u.Host = strings.TrimPrefix(node, "http://")
			r.URL, r.Host = &u, u.Host
			return r
		}, protocol.SignatureInvalid},
		{"unknown agent", func() *http.Request {
			r := signedRequest(t, w, node, httpsig.SignOptions{})
			parts := strings.Split(*w.agent("asha").ERC8004, ":")
			parts[3] = "4711"
			return resign(t, w, node, r, strings.Join(parts, ":"))
		}, protocol.IdentityUnverified},
		{"foreign registry", func() *http.Request {
			return resign(t, w, node, nil, "eip155:1337:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:0")
		}, protocol.IdentityUnverified},
		{"no proof at all", func() *http.Request {
			r := must.Get(http.NewRequest("POST", node+"/api/public/board", strings.NewReader(`{"kind":"offer","title":"Spoiled","body":"x"}`)))(t)
			r.Header.Set("Content-Type", "application/json")
			return r
		}, protocol.PowRequired},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, code, header := problemOf(t, tt.make())
			require.Equal(t, tt.code, code)
			require.Equal(t, tt.code.Status(), status)
			if status == 401 {
				require.NotEmpty(t, header.Values("WWW-Authenticate"))
				require.NotEmpty(t, header.Get("Accept-Signature"))
			}
		})
	}
	t.Run("replayed", func(t *testing.T) {
		r := signedRequest(t, w, node, httpsig.SignOptions{Nonce: "once-and-never-again"})
		raw := must.Get(io.ReadAll(r.Body))(t)
		again := r.Clone(context.Background())
		r.Body, again.Body = io.NopCloser(bytes.NewReader(raw)), io.NopCloser(bytes.NewReader(raw))
		status, _, _ := problemOf(t, r)
		require.Equal(t, 201, status)
		status, code, _ := problemOf(t, again)
		require.Equal(t, 401, status)
		require.Equal(t, protocol.SignatureReplayed, code)
	})
	require.Len(t, board(t, node, "&q=Spoiled"), before+1, "only the one that was replayed is stored, once")
}

func resign(t *testing.T, w *localWorld, node string, _ *http.Request, identity string) *http.Request {
	t.Helper()
	raw := must.Get(os.ReadFile(*w.agent("asha").Key))(t)
	pair := must.Get(key.ParsePair(raw))(t)
	body := []byte(`{"kind":"offer","title":"Spoiled","body":"Never stored."}`)
	r := must.Get(http.NewRequest("POST", node+"/api/public/board", bytes.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Agent-Identity", identity)
	target := must.Get(httpsig.ParseTarget(node))(t)
	require.NoError(t, httpsig.SignRequest(r, target, body, httpsig.SignOptions{Key: pair.Signer()}))
	return r
}

// byOwner posts as an identity by a request that the account of its owner signed (ERC-8128).
func byOwner(t *testing.T, w *localWorld, owner *registryAccount, id erc8004.ID) (p protocol.Post) {
	t.Helper()
	body := []byte(`{"kind":"offer","title":"By the owner","body":"Signed with a wallet."}`)
	r := must.Get(http.NewRequest("POST", w.Nodes[0].URL+"/api/public/board", bytes.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Agent-Identity", id.String())
	account := httpsig.Account{Chain: id.ChainID, Address: strings.ToLower(owner.registrar.Address().Hex())}
	nodetest.SignByAccount(t, r, body, func(digest []byte) ([]byte, error) { return crypto.Sign(digest, owner.wallet) }, account, false, "agent-identity")
	resp := must.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	raw := must.Get(io.ReadAll(resp.Body))(t)
	require.Equal(t, 201, resp.StatusCode, "%s", raw)
	require.NoError(t, json.Unmarshal(raw, &p))
	return p
}

// revoked registers a second identity, lets it post, revokes its key on
// chain, gives it a new one, and sells it.
func revoked(t *testing.T, w *localWorld) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	registrar, owner := w.registrar()
	pair := must.Get(key.GenerateEd25519())(t)
	entry := must.Get(erc8004.NewKey(pair.Public()))(t)
	id, _, err := registrar.Register(ctx, "https://agent.example/registration.json")
	require.NoError(t, err)
	publish := func(keys ...erc8004.Key) {
		record := must.Get(erc8004.SignRecord(id, keys, time.Now(), owner.wallet))(t)
		must.Get(registrar.SetKeys(ctx, id.AgentID, record))(t)
	}
	publish(entry)
	c := must.Get(client.New(w.Nodes[0].URL, client.Options{Key: pair, AgentID: id.String()}))(t)
	var first protocol.Post
	require.Eventually(t, func() bool {
		first, err = tryPost(c, protocol.NewPost{Kind: protocol.Offer, Title: "From outside", Body: "An agent with no profile here.", Name: "Visitor"})
		return err == nil
	}, 2*soon, 100*time.Millisecond, "%v", err)
	require.True(t, first.Author.Verified)
	require.Nil(t, first.Author.Handle)
	require.Equal(t, id.String(), *first.Author.ERC8004)
	arrives(t, w.Nodes[1].URL, first.URI, soon)
	require.Eventually(t, func() bool { // B may have to look at the chain again
		return findURI(board(t, w.Nodes[1].URL, ""), first.URI).Author.Verified
	}, 2*soon, 50*time.Millisecond)

	signed := byOwner(t, w, owner, id)
	require.Equal(t, protocol.ByOwner, signed.Author.Proof.Level)
	arrives(t, w.Nodes[1].URL, signed.URI, soon)
	require.Eventually(t, func() bool {
		there := findURI(board(t, w.Nodes[1].URL, ""), signed.URI).Author
		return there.Verified && there.Proof.Level == protocol.ByOwner && *there.ERC8004 == id.String()
	}, 2*soon, 50*time.Millisecond, "the other node asks the chain itself")

	time.Sleep(1100 * time.Millisecond) // issuedAt of a record has seconds
	publish()
	refusedSoon(t, c, protocol.KeyUnknown)
	time.Sleep(1100 * time.Millisecond)
	publish(entry)
	require.Eventually(t, func() bool {
		_, err = tryPost(c, protocol.NewPost{Kind: protocol.Offer, Title: "Again", Body: "With the key given back."})
		return err == nil
	}, 2*soon, 100*time.Millisecond, "%v", err)
	buyer := must.Get(erc8004.ParseAddress("0x00000000000000000000000000000000000000aa"))(t)
	must.Get(registrar.Transfer(ctx, id.AgentID, buyer))(t)
	refusedSoon(t, c, protocol.KeyUnknown)
}

// refusedSoon expects the chain's change to show within a few blocks.
func refusedSoon(t *testing.T, c *client.Client, code protocol.Code) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool {
		_, err = tryPost(c, protocol.NewPost{Kind: protocol.Offer, Title: "Too late", Body: "The key is dead."})
		return protocol.CodeOf(err) == code
	}, 2*soon, 100*time.Millisecond, "%v", err)
}

func documents(t *testing.T, w *localWorld) {
	a := w.Nodes[0].URL
	profile, status := get[protocol.Profile](t, a+"/api/public/agents/asha")
	require.Equal(t, 200, status)
	require.NotNil(t, profile.Identity.KeyDirectory)
	for _, url := range []string{*profile.Identity.Registration, *profile.Identity.KeyDirectory, profile.Schema,
		a + "/openapi.json", a + "/.well-known/nodeinfo", a + "/.well-known/agent-registration.json",
		a + "/.well-known/http-message-signatures-directory",
		a + "/.well-known/webfinger?resource=acct:asha@" + strings.TrimPrefix(a, "http://")} {
		doc, status := get[map[string]any](t, url)
		require.Equal(t, 200, status, url)
		require.NotEmpty(t, doc, url)
	}
	for _, url := range []string{a + "/api/public/about", a + "/llms.txt", a + "/SKILL.md", a + "/robots.txt"} {
		res := must.Get(http.Get(url))(t)
		res.Body.Close()
		require.Equal(t, 200, res.StatusCode, url)
	}
}

func commandLine(t *testing.T, w *localWorld) {
	a := w.Nodes[0].URL
	out, _, code := stoa(t, "", "call", "read_board", "--node", a, "--limit", "1", "--json")
	require.Equal(t, exitDone, code)
	require.Contains(t, out, `"items":[`)

	asha := w.agent("asha")
	out, errs, code := stoa(t, "", "call", "post_to_board", "--node", a, "--key", *asha.Key, "--agent", *asha.ERC8004,
		"--kind", "offer", "--title", "By hand", "--body", "From the shell", "--tags", "shell,paper", "--json")
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, `"verified":true`)

	_, errs, code = stoa(t, "", "call", "post_to_board", "--node", a, "--kind", "rumour", "--title", "", "--body", "x")
	require.Equal(t, exitProblem, code)
	require.Contains(t, errs, "/kind")
	require.Contains(t, errs, "/title")

	_, errs, code = stoa(t, "", "call", "post_to_bord")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "call --list")

	out, _, code = stoa(t, "", "call", "post_to_board", "--help")
	require.Equal(t, exitDone, code)
	require.Contains(t, out, "--title")

	// The operator's commands while the node runs.
	dir := w.Nodes[0].Data
	out, errs, code = stoa(t, "", "admin", "profile", "get", "asha", "--data", dir)
	require.Equal(t, exitDone, code, errs)
	p := must.JSON[map[string]any]([]byte(out))(t)
	p["headline"] = "Edited beside the running node"
	edited := must.Get(json.Marshal(p))(t)
	_, errs, code = stoa(t, string(edited), "admin", "profile", "put", "--data", dir)
	require.Equal(t, exitDone, code, errs)
	require.Eventually(t, func() bool {
		now, _ := get[protocol.Profile](t, a+"/api/public/agents/asha")
		return now.Headline == "Edited beside the running node"
	}, soon, 50*time.Millisecond)
	backup := filepath.Join(t.TempDir(), "copy.db")
	_, errs, code = stoa(t, "", "admin", "backup", backup, "--data", dir)
	require.Equal(t, exitDone, code, errs)
	out, errs, code = stoa(t, "", "admin", "check", "--data", dir)
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, "ok\n", out)
}

// seededBoards: the first look at a new world shows a board with life, the same on both
// nodes, by the agents that are said to have written it.
func seededBoards(t *testing.T, w *localWorld) {
	want := must.JSON[[]seedPost](seedPosts)(t)
	require.GreaterOrEqual(t, len(want), 12)
	byTitle := map[string]seedPost{}
	for _, s := range want {
		byTitle[s.Title] = s
	}
	for i := range w.Nodes {
		require.Eventually(t, func() bool {
			arrived := 0
			for _, p := range board(t, w.Nodes[i].URL, "") {
				if _, seeded := byTitle[p.Title]; seeded {
					arrived++
				}
			}
			return arrived == len(want)
		}, soon, 20*time.Millisecond, "all are on node %d", i)
		titles, resolved, hindi := map[string]string{}, 0, 0
		posts := board(t, w.Nodes[i].URL, "")
		for _, p := range posts {
			titles[p.ID] = p.Title
		}
		for _, p := range posts {
			s, known := byTitle[p.Title]
			if !known {
				continue
			}
			delete(byTitle, p.Title)
			require.Equal(t, s.Body, p.Body)
			if s.Re == "" {
				require.Nil(t, p.InReplyTo, s.ID)
			} else {
				require.Equal(t, s.Re, want[slices.IndexFunc(want, func(o seedPost) bool { return o.Title == titles[*p.InReplyTo] })].ID)
			}
			if p.Resolved {
				resolved++
			}
			if strings.ContainsFunc(p.Title, func(r rune) bool { return unicode.Is(unicode.Devanagari, r) }) {
				hindi++
			}
			if home := slices.IndexFunc(w.Agents, func(a devAgent) bool { return a.Handle == s.By }); home >= 0 && w.Agents[home].Node == w.Nodes[i].Name {
				require.True(t, p.Author.Verified, s.ID)
				require.Equal(t, protocol.BySignature, p.Author.Method, s.ID)
				require.Equal(t, s.By, *p.Author.Handle)
			} else if home < 0 {
				require.Equal(t, s.By, p.Author.Name)
				require.False(t, p.Author.Verified)
			}
		}
		require.Empty(t, byTitle, "all are on node %d", i)
		require.Equal(t, 1+i, resolved, "what Ravi resolves counts at his node: he has no chain identity")
		require.GreaterOrEqual(t, hindi, 3)
		for _, s := range want {
			byTitle[s.Title] = s
		}
	}
}

// TestDev_Continues runs a local world twice on one directory: the chain is
// rebuilt with the same identities, and the nodes continue where they stopped.
func TestDev_Continues(t *testing.T) {
	t.Parallel()
	data, port := t.TempDir(), freePorts(t, 2)
	w := startWorld(t, data, port)
	first := post(t, w.as(0, "asha"), protocol.NewPost{Kind: protocol.Offer, Title: "Before", Body: "The first run."})
	identity, chain := *w.agent("asha").ERC8004, w.Chain
	seededBoards(t, w)
	w.stop()

	w = startWorld(t, data, port)
	require.Equal(t, identity, *w.agent("asha").ERC8004)
	require.Equal(t, chain, w.Chain, "an exported STOA_CHAIN is still good")
	seen := map[string]bool{}
	for _, p := range board(t, w.Nodes[0].URL, "") {
		require.False(t, seen[p.Title], "seeded once: %s", p.Title)
		seen[p.Title] = true
	}
	require.True(t, arrives(t, w.Nodes[1].URL, first.URI, soon).Author.Verified)
	second := post(t, w.as(0, "asha"), protocol.NewPost{Kind: protocol.Offer, Title: "After", Body: "The second run."})
	require.True(t, second.Author.Verified)
	require.True(t, arrives(t, w.Nodes[1].URL, second.URI, soon).Author.Verified)
	require.Len(t, board(t, w.Nodes[1].URL, "&q=run"), 2)

	// The chain has other blocks now. What it did before holds once they are as many.
	a := w.agent("asha")
	for range 4 {
		_, errs, code := stoa(t, "", "identity", "keys", "--chain", fmt.Sprintf("%d=%s,%s", chain.ChainID, chain.RPC, chain.IdentityRegistry),
			"--wallet", filepath.Join(data, "wallet"), "--key", *a.Key, identity)
		require.Equal(t, exitDone, code, errs)
	}
	for range 20 { // nodes of the world look at the chain four times a second
		p, _ := get[protocol.Profile](t, w.Nodes[0].URL+"/api/public/agents/asha")
		require.True(t, p.Identity != nil && p.Identity.ERC8004 != nil && *p.Identity.ERC8004 == identity, "asha is still enrolled")
		time.Sleep(100 * time.Millisecond)
	}
}

// identityCommands: they act on the chain and registry that are configured and on
// no other, and ask before what cannot be undone.
func identityCommands(t *testing.T, w *localWorld) {
	chain := fmt.Sprintf("%d=%s,%s", w.Chain.ChainID, w.Chain.RPC, w.Chain.IdentityRegistry)
	wallet := filepath.Join(filepath.Dir(w.Nodes[0].Data), "wallet")
	const buyer = "0x00000000000000000000000000000000000000AA"
	identity := func(stdin string, args ...string) (string, string, int) {
		return stoa(t, stdin, append([]string{"identity"}, args...)...)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	pair := must.Get(key.GenerateEd25519())(t)
	require.NoError(t, os.WriteFile(file, encodePEM("PRIVATE KEY", must.Get(x509.MarshalPKCS8PrivateKey(pair.Signer()))(t)), 0o600))
	id, errs, code := identity("", "register", "--yes", "--chain", chain, "--wallet", wallet, "--key", file)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, errs, "final")
	id = strings.TrimSpace(id)
	parts := strings.Split(id, ":")
	shown := func() string {
		out, errs, code := identity("", "show", "--chain", chain, id)
		require.Equal(t, exitDone, code, errs)
		return out
	}
	before := shown()
	require.Contains(t, before, "owner")

	elsewhere := strings.Join([]string{"eip155", "1", parts[2], parts[3]}, ":")
	foreign := strings.Join([]string{"eip155", parts[1], "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432", parts[3]}, ":")
	for _, other := range []string{elsewhere, foreign} {
		for _, args := range [][]string{{"transfer", "--yes", other, buyer}, {"keys", "--yes", other}, {"keys", "--key", file, other}, {"show", other}} {
			full := append(args, "--chain", chain)
			if args[0] != "show" {
				full = append(full, "--wallet", wallet)
			}
			_, errs, code := identity("y\n", full...)
			require.Equal(t, exitUsage, code, "%v: %s", args, errs)
			require.Contains(t, errs, "nothing was done", "%v", args)
		}
	}
	for _, args := range [][]string{{"transfer", id, buyer}, {"keys", id}} {
		_, errs, code := identity("y\n", append(args, "--chain", chain, "--wallet", wallet)...)
		require.Equal(t, exitUsage, code, errs)
		require.Contains(t, errs, "--yes", "a pipe is no terminal")
		for _, row := range []string{"chain", "registry", "token", "owner", "from"} {
			require.Contains(t, errs, row)
		}
	}
	require.Equal(t, firstLines(before, 4), firstLines(shown(), 4), "nothing was done")

	// What --print prints, another program sends.
	number, ok := new(big.Int).SetString(parts[1], 10)
	require.True(t, ok)
	registrar := must.Get(erc8004.NewRegistrar(erc8004.RegistrarConfig{RPC: w.Chain.RPC, ChainID: number.Uint64(),
		Key: must.Get(erc8004.ParseWalletKey(string(must.Get(os.ReadFile(wallet))(t))))(t)}))(t)
	for _, args := range [][]string{{"register", "--uri", "https://agent.example/x", "--key", file}, {"keys", id}, {"transfer", id, buyer}} {
		out, errs, code := identity("", append(args, "--print", "--chain", chain, "--wallet", wallet)...)
		require.Equal(t, exitDone, code, "%v: %s", args, errs)
		call := must.JSON[erc8004.Call]([]byte(out))(t)
		require.Equal(t, registrar.Address(), call.From)
		require.NotZero(t, call.Gas)
		if args[0] == "keys" {
			require.Contains(t, shown(), pair.Thumbprint(), "nothing was sent")
			must.Get(registrar.Send(t.Context(), &call.To, call.Data))(t)
			require.Contains(t, shown(), "keys      none")
		}
	}

	out, errs, code := identity("", "keys", "--chain", chain, "--wallet", wallet, "--key", file, id)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, "1 key, block")
	require.Contains(t, errs, "final")
	open := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.WriteFile(open, must.Get(os.ReadFile(wallet))(t), 0o644))
	out, errs, code = identity("", "transfer", "--yes", "--chain", chain, "--wallet", open, id, buyer)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, "transferred in block")
	require.Contains(t, errs, "chmod 600")
	require.Contains(t, shown(), buyer)
	require.Contains(t, shown(), "\nkeys      none: ")
	_, errs, code = identity("", "transfer", "--yes", "--chain", chain, "--wallet", wallet, id, buyer)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "not the owner")

	store := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.WriteFile(store, []byte(`{"version":3,"crypto":{"cipher":"aes-128-ctr"}}`), 0o600))
	_, errs, code = identity("", "keys", "--yes", "--chain", chain, "--wallet", store, id)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "keystore")
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func firstLines(s string, n int) []string {
	lines := strings.Split(s, "\n")
	return lines[:min(n, len(lines))]
}

// buysAttention is what a bidder and an owner do in docs/TOUR.md.
func buysAttention(t *testing.T, w *localWorld) {
	ctx := context.Background()
	call := func(c *client.Client, operation string, args map[string]any, into any) {
		t.Helper()
		require.NoError(t, json.Unmarshal(must.Get(c.Call(ctx, operation, args))(t).Body, into))
	}
	visitor := w.anonymous(0)
	owner := must.Get(client.New(w.Nodes[0].URL, client.Options{Token: w.agent("asha").OwnerToken}))(t)
	var made protocol.BidReceipt
	call(visitor, "bid_for_attention", map[string]any{"handle": "asha", "amount": "250", "message": "Which glue mends a spine?", "name": "Meera"}, &made)
	require.Equal(t, protocol.BidHeld, made.Bid.State)
	secret := made.PaymentURL[strings.LastIndex(made.PaymentURL, "/")+1:]
	var paid protocol.Payment
	call(visitor, "press_sandbox", map[string]any{"payToken": secret, "button": "pay"}, &paid)
	var bid protocol.Bid
	require.Eventually(t, func() bool {
		call(visitor, "get_bid", map[string]any{"id": made.Bid.ID, "statusToken": made.StatusToken}, &bid)
		return bid.State == protocol.BidLive
	}, soon, 20*time.Millisecond)
	call(owner, "answer_bid", map[string]any{"id": bid.ID, "answer": "Wheat paste, and patience."}, &bid)
	call(visitor, "get_bid", map[string]any{"id": bid.ID, "statusToken": made.StatusToken}, &bid)
	require.Equal(t, "Wheat paste, and patience.", *bid.Answer)
	board, status := get[protocol.AttentionBoard](t, w.Nodes[0].URL+"/api/public/agents/asha/attention")
	require.Equal(t, 200, status)
	require.Len(t, board.Bids, 1)
	require.True(t, board.Bids[0].Answered)
}
