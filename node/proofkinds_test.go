package node_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"stoa/identity/attest"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestProofDocument_Kinds: what a node shows beside posts has a proof behind its address, with who wrote it where somebody signed; who is not
// shown the object is not shown the proof.
func TestProofDocument_Kinds(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		chain := nodetest.NewEVM(t)
		id, pair := identityOn(chain, 0)
		other, key := identityOn(chain, 1)
		s := chain.Start(change, func(c *node.Config) { c.PaySandbox = true })
		account := accountOf(s, 1, other.String())
		said := nodetest.GoodSteps("document node", "author")
		folder := &proofFolder{t: t, s: s, docs: map[string][]byte{}}
		proven := func(address, kind string, want map[string]attest.Result) []byte {
			raw := s.Proven(address, kind, want)
			folder.add(raw)
			return raw
		}
		require.Equal(t, 404, s.Ask("GET", "/board/proof", "").Code, "a log without entries")

		// A profile without identity, and one whose key an identity grants.
		owner := s.Agent("asha", nodetest.OpenPolicy)
		proven("/@asha", attest.KindProfile, said)
		s.PutProfile([]byte(`{"handle":"ravi","name":"Ravi","kind":"person"}`))
		require.NoError(t, s.Admin().AddKey(t.Context(), "ravi", pair, true))
		require.NoError(t, s.Admin().EnrolIdentity(t.Context(), "ravi", id.String(), pair.Thumbprint()))
		authority := func() string {
			return must.Get(attest.Parse(s.Ask("GET", "/@ravi/proof", "").Is(200).Body.Bytes()))(t).Authority.Kind
		}
		enrolled := nodetest.GoodSteps("document node author state block record profile")
		raw := proven("/api/public/agents/ravi", attest.KindProfile, enrolled)
		read := must.Get(attest.Parse(raw))(t).Authority
		require.ErrorIs(t, s.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Keys().StateProof(ctx, read.Identity+" "+read.BlockHash)
			return err
		}), storage.ErrNotFound, "who asks for profiles displaces no state that a post needs")
		proven("/@ravi", attest.KindProfile, enrolled)

		// Bids: by an account, by a key over MCP, by nobody.
		s.Ask("PUT", "/api/owner/attention", `{"floor":"500","slots":4,"protectHours":0,"autoApprove":false,"categories":[{"name":"Yarn","floor":"500"}]}`,
			"Authorization", owner).Is(200)
		s.Ask("PUT", "/api/owner/payment-account", `{"provider":"sandbox"}`, "Authorization", owner).Is(200)
		bids := "/api/public/agents/asha/attention/bids"
		paid := func(b protocol.BidReceipt) protocol.BidReceipt {
			proof := bids + "/" + b.Bid.ID + "/proof"
			require.Equal(t, 404, s.Ask("GET", proof, "").Code, "not paid")
			secret := "Bearer " + b.PaymentURL[strings.LastIndexByte(b.PaymentURL, '/')+1:]
			require.Eventually(t, func() bool {
				return s.Ask("POST", "/api/public/payment/sandbox", `{"button":"pay"}`, "Authorization", secret).Code == 200
			}, time.Minute, 20*time.Millisecond)
			require.Eventually(t, func() bool {
				return nodetest.As[protocol.Payment](s.Ask("GET", "/api/public/payment", "", "Authorization", secret)).State == protocol.BidLive
			}, time.Minute, 20*time.Millisecond)
			require.Equal(t, 404, s.Ask("GET", proof, "").Code, "not approved")
			s.Ask("POST", "/api/owner/bids/"+b.Bid.ID+"/approve", `{}`, "Authorization", owner).Is(200)
			return b
		}
		byAccount := paid(nodetest.As[protocol.BidReceipt](account.sends(account.request("POST", "/api/public/agents/%40Asha/attention/bids",
			`{"amount":700,"message":"Wool.","category":"yarn","name":"Meera","url":"https://wool.example/"}`, false)).Is(201)))
		tool := func(id erc8004.ID) (b protocol.BidReceipt) {
			a := s.SignedTool(key, "bid_for_attention", `{"handle":"@Asha","amount":"600.00","message":"Ink & \"paper\""}`,
				func(r *http.Request, _ *httpsig.SignOptions) { r.Header.Set("Agent-Identity", id.String()) })
			require.NoError(t, json.Unmarshal(a.Result, &struct {
				Structured *protocol.BidReceipt `json:"structuredContent"`
			}{&b}))
			return b
		}
		require.Empty(t, tool(id).Bid.ID, "an identity that does not grant the key")
		byKey := paid(tool(other))
		const callback = "https://agent.example/secret-of-the-bidder"
		called := paid(nodetest.As[protocol.BidReceipt](account.sends(account.request("POST", bids,
			`{"amount":900,"message":"Silk.","callbackUrl":"`+callback+`"}`, false)).Is(201)))
		withCallback := s.Ask("GET", bids+"/"+called.Bid.ID+"/proof", "").Is(200).Body.Bytes()
		require.NotContains(t, string(withCallback), "secret")
		require.Empty(t, must.Get(attest.Parse(withCallback))(t).Evidence, "the address is not public")
		require.Equal(t, attest.Undecided, attest.Verify(t.Context(), withCallback, s.Trusting(withCallback)).Verdict)
		byNobody := paid(nodetest.As[protocol.BidReceipt](s.Ask("POST", bids, `{"amount":500,"message":"Tea."}`, "Proof-Of-Work", s.Proof("bid")).Is(201)))
		signed := nodetest.GoodSteps("document node author state block record request")
		first := proven(bids+"/"+byAccount.Bid.ID, attest.KindBid, signed)
		second := proven(bids+"/"+byKey.Bid.ID, attest.KindBid, signed)
		proven(bids+"/"+byNobody.Bid.ID, attest.KindBid, nodetest.GoodSteps("document node author", "authority"))
		mutated := &proofFolder{t: t, s: s, docs: map[string][]byte{}}
		for name, edit := range map[string]func(*attest.Bid){
			"amount": func(b *attest.Bid) { b.Amount.Amount = "800.00" }, "message": func(b *attest.Bid) { b.Message += "!" },
			"handle": func(b *attest.Bid) { b.Handle = "ravi" }, "url": func(b *attest.Bid) { b.URL = "https://other.example/" },
			"category": func(b *attest.Bid) { b.Category = "Ink" }, "time": func(b *attest.Bid) { b.CreatedAt = b.CreatedAt.Add(time.Hour) },
		} {
			for i, raw := range [][]byte{first, second} {
				d, b := must.Get(attest.Parse(raw))(t), attest.Bid{}
				require.NoError(t, json.Unmarshal(d.Subject.Object, &b))
				edit(&b)
				d.Subject.Object = must.Get(json.Marshal(b))(t)
				forged := must.Get(attest.Seal(d, s.Base, b.LiveAt, b.Author.Proof.Level, b.Author.Proof, s.Keys.Ed))(t)
				r := attest.Verify(t.Context(), forged, s.Trusting(forged))
				require.NotEqual(t, attest.Verified, r.Verdict, "%s of bid %d, signed by the node itself", name, i)
				mutated.add(forged)
			}
		}
		require.Equal(t, 404, s.Ask("GET", "/api/public/agents/ravi/attention/bids/"+byAccount.Bid.ID+"/proof", "").Code, "of another board")

		// A decision, the cards, the head of the log.
		post := s.Post("Spam")
		require.NoError(t, s.Admin().Operate(t.Context(), protocol.HidePost.Operation, protocol.Decision{ID: post.ID, Reason: "spam"}, nil))
		page := nodetest.As[protocol.Page[protocol.ModerationEntry]](s.Ask("GET", "/api/public/moderation-log", "").Is(200))
		line := "/api/public/moderation-log/" + page.Items[0].ID
		require.Contains(t, string(proven(line, attest.KindDecision, said)), post.ID)
		require.Equal(t, 404, s.Ask("GET", line+"0/proof", "").Code)
		require.Equal(t, 404, s.Ask("GET", "/api/public/moderation-log/x/proof", "").Code)
		proven("/.well-known/agent-card.json", attest.KindCard, said)
		require.Contains(t, string(proven("/a2a/asha/agent-card.json", attest.KindCard, said)), "Agent asha")
		require.Equal(t, 404, s.Ask("GET", "/a2a/nobody/agent-card.json/proof", "").Code)
		require.Eventually(t, func() bool { return s.Ask("GET", "/board/proof", "").Code == 200 }, time.Minute, 20*time.Millisecond)
		head := proven("/board", attest.KindLog, nodetest.GoodSteps("document node log", "author"))
		d, h := must.Get(attest.Parse(head))(t), attest.Head{}
		require.NoError(t, json.Unmarshal(d.Subject.Object, &h))
		h.Size++
		d.Subject.Object = must.Get(json.Marshal(h))(t)
		forged := must.Get(attest.Seal(d, s.Base, time.Now(), protocol.ByNothing, protocol.AuthorProof{Level: protocol.ByNothing}, s.Keys.Ed))(t)
		require.Equal(t, attest.Refused, attest.Verify(t.Context(), forged, s.Trusting()).Verdict)

		// A program that follows docs/PROOF.md alone comes to the same verdicts.
		t.Run("by another program", func(t *testing.T) {
			needsCryptography(t)
			require.Equal(t, map[attest.Verdict]int{attest.Verified: len(folder.docs)}, folder.agree(true, folder.blocks...))
			require.Equal(t, map[attest.Verdict]int{attest.Refused: 12}, mutated.agree(true, mutated.blocks...))
		})

		// After a sale the profile has no identity, nor a proof of one; the proof of before stays what it was.
		s.Watch()
		buyer := common.HexToAddress(s.Chain.Accounts[5].Address)
		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), id.AgentID, buyer))
		s.Chain.Do("final")
		require.Eventually(t, func() bool { return authority() == attest.OfNobody }, time.Minute, 50*time.Millisecond)
		require.Equal(t, attest.Verified, attest.Verify(t.Context(), raw, s.Trusting(raw)).Verdict)
	})
}
