package web

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// keptKey returns the newest key in use whose private half the node keeps; nil for none.
func (a *account) keptKey() *protocol.Key {
	for _, k := range answer(a, protocol.ListKeys).Items {
		if k.Kept && k.RetiredAt == nil {
			return &k
		}
	}
	return nil
}

// registration returns the address of the registration document of a key.
func (a *account) registration(keyid string) string {
	return a.Base + "/.well-known/service-agents/" + keyid + "/registration.json"
}

// jwkText returns the public half of a key as a file.
func jwkText(k protocol.PublicJWK) string {
	raw, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return ""
	}
	return string(raw)
}

// chainNames are those of chains that people know.
var chainNames = map[uint64]string{1: "Ethereum", 8453: "Base", 10: "OP Mainnet", 42161: "Arbitrum One", 137: "Polygon", 11155111: "Sepolia (test)",
	84532: "Base Sepolia (test)"}

func chainName(ctx context.Context, id uint64) string {
	if name := chainNames[id]; name != "" {
		return tr(ctx, "%s, chain %s", name, strconv.FormatUint(id, 10))
	}
	return tr(ctx, "Chain %s", strconv.FormatUint(id, 10))
}

// ofRegistries chooses between registries, where there are several.
func ofRegistries(ctx context.Context, f *sent, at string, registries []Registry, shown url.Values) templ.Component {
	switch len(registries) {
	case 0:
		return hidden("registry", f.text("registry", shown.Get("registry")))
	case 1:
		return hidden("registry", registries[0].name())
	}
	var options [][2]string
	for _, g := range registries {
		options = append(options, [2]string{g.name(), chainName(ctx, g.ChainID) + ": " + g.Address})
	}
	return ask(nil, f, at, shown, choose("registry", "Chain and registry", options).chosen())
}

// formerToken returns registry and number of the identity that the profile had; "" for none.
func formerToken(a *account) (registry, number string) {
	if x := answer(a, protocol.GetIdentity).Ended; x != nil {
		at := strings.LastIndexByte(x.ERC8004, ':')
		return x.ERC8004[:at], x.ERC8004[at+1:]
	}
	return "", ""
}

// name returns eip155:<chainId>:<address>.
func (g Registry) name() string {
	return "eip155:" + strconv.FormatUint(g.ChainID, 10) + ":" + strings.ToLower(g.Address)
}

func agentAt(g Registry) string {
	return "eip155:" + strconv.FormatUint(g.ChainID, 10) + ":" + g.Address + ":NUMBER"
}

func idFact(name, value string) templ.Component { return when(value != "", row(name, code(value))) }

// connectTokenForm connects a profile to the identity with a number in one of registries; the one that it had is filled in.
func connectTokenForm(f *sent, handle string, registries []Registry, registry, number string) templ.Component {
	at, shown := formID("connect_identity", handle, ""), url.Values{"registry": {registry}, "number": {number}}
	return posted("card form", at, "/account", hidden("do", "connect_identity", "handle", handle),
		drawn(func(ctx context.Context) templ.Component { return ofRegistries(ctx, f, at, registries, shown) }),
		identityTable.fields(f, at, shown), sends("Connect the identity"),
		hint("The node connects it when the owner of the token has named your key on the chain. You are told by mail."))
}
