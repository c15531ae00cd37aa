package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"stoa/cmd/stoa/client"
	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/node"
	"stoa/protocol"
)

// seedProfiles are the agents of a local world: a JSON list of seeded.
//
//go:embed seed.json
var seedProfiles []byte

// onChain is the agent that gets an on-chain identity and signs for itself; shopOnChain the business that gets
// one, so that it can be reviewed.
const onChain, shopOnChain = "asha", "rao-tiffins"

// seed creates the agents of a local world, or reads what an earlier run created. Ravi is on the
// second node if there is one, all others on the first.
func seed(ctx context.Context, nodes []*node.Node, file, keyDir string, chain *chainProcess) ([]devAgent, error) {
	if raw, err := os.ReadFile(file); err == nil {
		var agents []devAgent
		if err := json.Unmarshal(raw, &agents); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return agents, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var profiles []json.RawMessage
	if err := json.Unmarshal(seedProfiles, &profiles); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(keyDir, 0o700); err != nil {
		return nil, err
	}
	var agents []devAgent
	for _, raw := range profiles {
		var who seeded
		if err := json.Unmarshal(raw, &who); err != nil {
			return nil, err
		}
		home := 0
		if who.name() == "ravi" && len(nodes) > 1 {
			home = 1
		}
		a, err := seedAgent(ctx, nodes[home], who, keyDir, chain)
		if err != nil {
			return nil, fmt.Errorf("seed @%s: %w", who.name(), err)
		}
		a.Node = string(rune('a' + home))
		agents = append(agents, a)
	}
	raw, err := json.MarshalIndent(agents, "", "  ")
	if err != nil {
		return nil, err
	}
	return agents, os.WriteFile(file, append(raw, '\n'), 0o600)
}

// A seeded agent is a profile as an owner writes it, for a business its merchant
// record, and for a person perhaps an attention board and when it takes meetings.
type seeded struct {
	Profile   json.RawMessage `json:"profile"`
	Merchant  json.RawMessage `json:"merchant"`
	Attention map[string]any  `json:"attention"`
	Meetings  map[string]any  `json:"meetings"`
	Orders    map[string]any  `json:"orders"`
}

func (s seeded) name() string {
	var who struct {
		Handle string `json:"handle"`
	}
	_ = json.Unmarshal(s.Profile, &who) // the profile itself is parsed strictly later
	return who.Handle
}

func seedAgent(ctx context.Context, n *node.Node, who seeded, keyDir string, chain *chainProcess) (devAgent, error) {
	handle := who.name()
	a := devAgent{Handle: handle}
	admin := n.Admin()
	if _, err := putProfile(ctx, admin, who.Profile); err != nil {
		return a, err
	}
	if who.Merchant != nil {
		if _, err := putMerchant(ctx, admin, handle, who.Merchant); err != nil {
			return a, err
		}
	}
	pair, err := key.GenerateEd25519()
	if err != nil {
		return a, err
	}
	file := filepath.Join(keyDir, handle+".jwk")
	if err := writeKey(file, pair); err != nil {
		return a, err
	}
	a.Key = &file
	jwk, err := pair.MarshalPrivate()
	if err != nil {
		return a, err
	}
	if _, _, err := addKey(ctx, admin, handle, jwk); err != nil {
		return a, err
	}
	made, err := node.Do(ctx, admin, protocol.GrantToken, protocol.TokenGrant{NewToken: protocol.NewToken{Handle: handle, Name: "dev",
		Scopes: protocol.OwnerScopes}})
	if err != nil {
		return a, err
	}
	a.OwnerToken = made.Secret
	if err := openRooms(ctx, n.URL, a, who); err != nil {
		return a, err
	}
	if handle != onChain && handle != shopOnChain {
		return a, nil
	}
	id, err := register(ctx, chain, n.Base, pair)
	if err != nil {
		return a, err
	}
	identity := id.String()
	a.ERC8004 = &identity
	return a, await(ctx, "the registration of @"+handle+" is not final", func(ctx context.Context) (bool, error) {
		_, err := node.Do(ctx, admin, protocol.EnrolIdentity, protocol.NewEnrolment{HandleInput: protocol.HandleInput{Handle: handle}, ERC8004: identity,
			KeyID: pair.Thumbprint()})
		if code := protocol.CodeOf(err); code == protocol.IdentityUnverified || code.Temporary() {
			return false, nil
		}
		return err == nil, err
	})
}

// openRooms opens an agent's meetings, its attention board and its shop for orders, as its owner would. No money moves for them.
func openRooms(ctx context.Context, url string, a devAgent, who seeded) error {
	c, err := client.New(url, client.Options{Token: a.OwnerToken})
	if err == nil && who.Meetings != nil {
		_, err = c.Call(ctx, protocol.PutMeetingSettings.Name, who.Meetings)
	}
	if err == nil && (who.Attention != nil || who.Orders != nil) {
		_, err = c.Call(ctx, protocol.PutPaymentAccount.Name, map[string]any{"provider": protocol.PaySandbox})
	}
	if err == nil && who.Orders != nil {
		_, err = c.Call(ctx, protocol.PutTill.Name, who.Orders)
	}
	if err == nil && who.Attention != nil {
		_, err = c.Call(ctx, protocol.PutAttentionBoard.Name, who.Attention)
	}
	return err
}

// register mints an identity on the development chain and publishes the key.
func register(ctx context.Context, chain *chainProcess, base string, pair key.Pair) (erc8004.ID, error) {
	wallet, err := erc8004.ParseWalletKey(chain.wallet)
	if err != nil {
		return erc8004.ID{}, err
	}
	registry, err := erc8004.ParseAddress(chain.IdentityRegistry)
	if err != nil {
		return erc8004.ID{}, err
	}
	registrar, err := erc8004.NewRegistrar(erc8004.RegistrarConfig{RPC: chain.RPC, ChainID: chain.ChainID, Registry: registry, Key: wallet})
	if err != nil {
		return erc8004.ID{}, err
	}
	id, _, err := registrar.Register(ctx, base+"/.well-known/service-agents/"+pair.Thumbprint()+"/registration.json")
	if err != nil {
		return id, err
	}
	entry, err := erc8004.NewKey(pair.Public())
	if err != nil {
		return id, err
	}
	record, err := erc8004.SignRecord(id, []erc8004.Key{entry}, time.Now(), wallet)
	if err != nil {
		return id, err
	}
	_, err = registrar.SetKeys(ctx, id.AgentID, record)
	return id, err
}

// keyID returns the thumbprint of the key in a file.
func keyID(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	pair, err := key.ParsePair(raw)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return pair.Thumbprint(), nil
}

// ready reports whether a node answers.
func ready(ctx context.Context, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	res, err := loopbackClient.Do(r)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}
