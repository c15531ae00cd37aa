package web

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/protocol"
)

// walletPath is the page where an owner registers an identity with the wallet of the browser.
const walletPath = keysPath + "/register"

// callLink is a transaction that registers an identity as a link and QR code for wallets (EIP-681). It calls register(string), since a link
// cannot have the empty list of the call that the page has otherwise; the identity is the same.
func (g Registry) callLink(uri string) string {
	return "ethereum:" + g.Address + "@" + strconv.FormatUint(g.ChainID, 10) + "/register?string=" + url.QueryEscape(uri)
}

// walletChains are the names of the chains of registries by their number, as JSON.
func walletChains(ctx context.Context, registries []Registry) string {
	names := map[string]string{}
	for _, g := range registries {
		names[strconv.FormatUint(g.ChainID, 10)] = chainName(ctx, g.ChainID)
	}
	raw, err := json.Marshal(names)
	if err != nil { // strings are always JSON
		return "{}"
	}
	return string(raw)
}

// qr is a text as a QR code; nothing when the text is too long for one.
func (a *account) qr(ctx context.Context, text string) templ.Component {
	svg, err := a.QR(text, tr(ctx, "The transaction as a QR code"))
	if err != nil {
		return templ.NopComponent
	}
	return all{templ.Raw(`<div class="qr">`), templ.Raw(string(svg)), templ.Raw("</div>")}
}

// walletStep answers static/wallet.js: how far the registration is ("state"), what the wallet signs to name the profile's key ("record"), and
// the call that publishes what it signed ("call").
func (s *Web) walletStep(w http.ResponseWriter, r *http.Request) {
	said, err := s.walletSaid(w, r)
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(said)
	}
	if err != nil {
		s.Problem(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	send(w, http.StatusOK, "application/json", raw)
}

func (s *Web) walletSaid(w http.ResponseWriter, r *http.Request) (map[string]any, error) {
	if err := s.parseForm(w, r); err != nil {
		return nil, err
	}
	a := &account{Page: pageAt(walletPath)}
	if err := s.fillAccount(r, a); err != nil {
		return nil, err
	}
	k, registry := a.keptKey(), r.PostForm.Get("registry")
	if k == nil {
		return nil, protocol.Errorf(protocol.Conflict, "the profile has no key that the node keeps; make one first")
	}
	id, err := erc8004.ParseID(registry + ":" + r.PostForm.Get("number"))
	if err != nil || !slices.ContainsFunc(s.Registries, func(g Registry) bool { return g.name() == strings.ToLower(registry) }) {
		return nil, protocol.Errorf(protocol.InvalidRequest, "this is not the number of a token of a registry that this node reads")
	}
	if r.PostForm.Get("step") == "state" {
		p, err := s.Registering(r.Context(), s.Network(r), id.String(), k.KeyID)
		return map[string]any{"owner": p.Owner, "named": p.Named, "final": p.Final, "seconds": int(p.Wait.Seconds())}, err
	}
	return walletRecord(r.PostForm, id, k.JWK)
}

// walletRecord is the record that names a key, for the wallet to sign; or with its signature the call that publishes it.
func walletRecord(form url.Values, id erc8004.ID, jwk protocol.PublicJWK) (map[string]any, error) {
	raw, err := json.Marshal(jwk)
	if err != nil {
		return nil, err
	}
	public, err := key.ParsePublic(raw)
	if err != nil {
		return nil, err
	}
	named, err := erc8004.NewKey(public.Key)
	if err != nil {
		return nil, err
	}
	signer, err := erc8004.ParseAddress(strings.ToLower(form.Get("account")))
	if err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "account is not an address of 0x and 40 hex digits")
	}
	rec := erc8004.Record{Signer: signer, IssuedAt: uint64(time.Now().Unix()), Keys: []erc8004.Key{named}}
	if form.Get("step") != "call" {
		typed, err := json.Marshal(rec.TypedData(id))
		return map[string]any{"issued": strconv.FormatUint(rec.IssuedAt, 10), "typed": string(typed)}, err
	}
	if rec.IssuedAt, err = strconv.ParseUint(form.Get("issued"), 10, 64); err == nil {
		rec.Signature, err = hex.DecodeString(strings.TrimPrefix(form.Get("signature"), "0x"))
	}
	if err != nil || !rec.SignedBySigner(id) {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the wallet's signature is not that of the account, as that of a contract is not; use the command below")
	}
	return map[string]any{"data": "0x" + hex.EncodeToString(erc8004.SetKeysCall(id.AgentID, rec))}, nil
}

func walletBody(a *account) templ.Component {
	identity := answer(a, protocol.GetIdentity)
	shown := all{accountHead(a, "Register an identity with the wallet of your browser.")}
	k := a.keptKey()
	switch {
	case identity.ERC8004 != nil:
		return append(shown, para("This profile has an identity: %s.", code(*identity.ERC8004)))
	case len(a.Registries) == 0:
		return append(shown, para("Your profile works without one. This node does not read a blockchain, so it cannot check an identity."))
	case k == nil:
		return append(shown, para("The node makes a key and keeps it for you. %s first.", link(keysPath+"?"+query("handle", a.Handle), "Make a key")))
	}
	return append(shown, walletSteps(a, k), withoutWallet(a, k))
}
