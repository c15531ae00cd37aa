package node

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/node/door/a2aapi"
	"stoa/node/room/credential"
	"stoa/protocol/a2a"
	"stoa/storage"
)

// nodeDirectory is where the node's own keys are published.
const nodeDirectory = "/.well-known/http-message-signatures-directory"

// a2a mounts the A2A door.
func (n *Node) a2a(m *mux, network func(*http.Request) string, fail func(http.ResponseWriter, *http.Request, error)) {
	name := n.Config.Name
	if name == "" {
		_, name, _ = strings.Cut(n.Base, "://")
	}
	door := a2aapi.New(a2aapi.Config{
		Table: n.Table, Base: n.Base, Name: name, Software: n.Config.Version, Chains: chainNames(n.Config),
		Callers: a2a.Callers(n.Config.A2ACallers), Wait: time.Duration(n.Config.A2AWait) * time.Second,
		Limits: n.Config.threadLimits(), Network: network, Changes: n.DB.Version, Keys: n.cardKeys, Fail: fail,
	})
	n.cards, n.agentStreams, m.spoken["a2a"] = door.Card, &door.Streams, door.Refuse
	for _, r := range door.Routes() {
		m.handle(r.Method, r.Pattern, r.Handler)
	}
}

// chainNames are the chains whose identities this node accepts (CAIP-2).
func chainNames(c Config) []string {
	var names []string
	for _, s := range c.Chain {
		id, _, _ := strings.Cut(s, "=")
		names = append(names, "eip155:"+id)
	}
	return names
}

// registryNames are the registries whose identities this node accepts.
func registryNames(c Config) []string {
	var names []string
	for _, s := range c.Chain {
		chain, err := erc8004.ParseChain(s)
		if err != nil {
			continue // credential.NewChain refuses the setting
		}
		for _, r := range chain.Registries {
			names = append(names, fmt.Sprintf("eip155:%d:%s", chain.ID, strings.ToLower(r.Identity.Hex())))
		}
	}
	return names
}

// cardKeys are the keys that sign a card: the agent's own, if this node has it, and
// the node's, which proves only where the card is served.
func (n *Node) cardKeys(ctx context.Context, handle string) ([]a2aapi.CardKey, error) {
	var keys []a2aapi.CardKey
	add := func(p key.Pair, path string) {
		keys = append(keys, a2aapi.CardKey{Pair: p, ID: p.Thumbprint(), JKU: n.Base + path})
	}
	if handle != "" {
		err := n.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			pair, err := (&credential.Signer{Keys: n.Keys}).Hosted(ctx, tx, handle, false)
			if err == nil && !pair.IsZero() {
				add(pair, "/.well-known/service-agents/"+pair.Thumbprint()+"/jwks.json")
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("key of @%s: %w", handle, err)
		}
	}
	add(n.Keys.Ed, nodeDirectory)
	add(n.Keys.P256, nodeDirectory)
	return keys, nil
}
