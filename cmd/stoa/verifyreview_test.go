package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"stoa/identity/attest"
	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestVerifyProof_Review: with --chain the feedback that a review names is looked up: one that the chain has otherwise, or not, is refused.
func TestVerifyProof_Review(t *testing.T) {
	t.Parallel()
	w := newProofWorld(t)
	client := w.chain.Registrar(2)
	reputation := common.HexToAddress(w.chain.Reputation)
	given := must.Get(client.Send(t.Context(), &reputation, erc8004.GiveFeedbackCall(w.id.AgentID, 905, 1, "data:,x", [32]byte{})))(t)
	node, nodeKey := nodetest.NewPair(t), filepath.Join(w.dir, "node.jwk")
	require.NoError(t, os.WriteFile(nodeKey, must.Get(key.MarshalSet([]key.Public{node.Published()}))(t), 0o600))
	verify := func(code int, change func(*protocol.Review), texts ...string) {
		t.Helper()
		r := protocol.Review{ID: "rev_1", Agent: w.id.String(), Client: strings.ToLower(client.Address().Hex()), At: time.Now(), Rating: new(90.5),
			Evidence: protocol.ReviewEvidence{Registry: fmt.Sprintf("eip155:%d:%s", w.chain.ChainID, strings.ToLower(w.chain.Reputation)),
				Transaction: given.TxHash.Hex(), Block: uint64(given.Block), Index: 1}}
		change(&r)
		doc := attest.Document{Authority: attest.Authority{Kind: attest.OfNobody}, Subject: attest.Subject{Kind: attest.KindReview,
			ID: "https://n1.example/api/public/agents/rao/reviews/rev_1", URL: "https://n1.example/api/public/agents/rao/reviews/rev_1",
			Object: must.Get(json.Marshal(r))(t)}}
		raw := must.Get(attest.Seal(doc, "https://n1.example", time.Now(), protocol.ByNothing, protocol.AuthorProof{Level: protocol.ByNothing}, node))(t)
		file := filepath.Join(w.dir, "review.json")
		require.NoError(t, os.WriteFile(file, raw, 0o600))
		says(t, exitDone, []string{file, "--node-key", nodeKey})
		says(t, code, []string{file, "--node-key", nodeKey, "--chain", w.chain.RPC}, texts...)
	}
	verify(exitDone, func(*protocol.Review) {}, "verified: ", fmt.Sprintf("in block %d; whether it counts is the node's word", given.Block))
	for _, change := range []func(*protocol.Review){
		func(r *protocol.Review) { r.Rating = new(100.0) },
		func(r *protocol.Review) { r.Rating = nil },
		func(r *protocol.Review) { r.Client = strings.ToLower(w.chain.Accounts[5].Address) },
		func(r *protocol.Review) { r.Evidence.Index = 2 },
		func(r *protocol.Review) { r.Evidence.Block++ },
	} {
		verify(exitProblem, change, "the chain has other feedback there")
	}
	for _, change := range []func(*protocol.Review){
		func(r *protocol.Review) { r.Agent = strings.TrimSuffix(r.Agent, w.id.AgentID.String()) + "77" },
		func(r *protocol.Review) { r.Evidence.LogIndex = 7 },
		func(r *protocol.Review) {
			r.Evidence.Registry = strings.ToLower(fmt.Sprintf("eip155:%d:%s", w.chain.ChainID, w.chain.Identity))
		},
	} {
		verify(exitProblem, change, "gave no such feedback")
	}
	verify(exitProblem, func(r *protocol.Review) { r.Evidence.Registry = "eip155:1:" + strings.ToLower(w.chain.Reputation) }, "names no transaction of the chain")
	verify(exitOpen, func(r *protocol.Review) { r.Evidence.Transaction = "0x" + strings.Repeat("ab", 32) }, "does not know the transaction")
}
