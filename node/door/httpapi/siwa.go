package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stoa/identity"
	"stoa/node/hall"
	"stoa/protocol"
)

// The addresses at which agents sign in by their Ethereum accounts: GET says what to sign, POST takes it,
// DELETE ends delegated keys; and the two of SIWA (npm
// @buildersgarden/siwa), to get a nonce and to exchange the signed text for a receipt.
const (
	SignIn     = "/api/public/sign-in"
	SIWANonce  = "/siwa/nonce"
	SIWAVerify = "/siwa/verify"
)

// Text is get_sign_in_text.
func (a *API) Text(w http.ResponseWriter, r *http.Request) {
	a.siwa(w, r, protocol.GetSignInText.Operation, nil)
}

// SignIn is sign_in_agent.
func (a *API) SignIn(w http.ResponseWriter, r *http.Request) {
	a.siwa(w, r, protocol.SignInAgent.Operation, nil)
}

// End is end_delegation.
func (a *API) End(w http.ResponseWriter, r *http.Request) {
	a.siwa(w, r, protocol.EndDelegation.Operation, nil)
}

// Nonce is get_sign_in_text in the words of SIWA. It answers for every agent: whether it is registered is asked when it has signed.
func (a *API) Nonce(w http.ResponseWriter, r *http.Request) {
	a.siwa(w, r, protocol.GetSignInText.Operation, func(raw []byte) (any, error) {
		var t protocol.SignInText
		err := json.Unmarshal(raw, &t)
		return map[string]any{"status": "nonce_issued", "nonce": t.Nonce, "domain": t.Domain, "uri": t.URI, "chains": t.Chains,
			"issuedAt": t.IssuedAt.Format(time.RFC3339), "expirationTime": t.ExpirationTime.Format(time.RFC3339)}, err
	})
}

// Verify is sign_in_agent in the words of SIWA. The receipt is the token.
func (a *API) Verify(w http.ResponseWriter, r *http.Request) {
	a.siwa(w, r, protocol.SignInAgent.Operation, func(raw []byte) (any, error) {
		var t protocol.AgentToken
		err := json.Unmarshal(raw, &t)
		_, account, _ := strings.Cut(t.Account, ":")
		chain, address, _ := strings.Cut(account, ":")
		number, _ := strconv.ParseUint(chain, 10, 64)
		cut := strings.LastIndexByte(t.Identity, ':')
		return map[string]any{"status": "authenticated", "valid": true, "verified": "onchain", "address": address, "chainId": number,
			"agentRegistry": t.Identity[:cut], "agentId": json.Number(t.Identity[cut+1:]), "receipt": t.Token,
			"receiptExpiresAt": t.ExpiresAt.Format(time.RFC3339)}, err
	})
}

// siwa invokes an operation for an agent that signs in. Clients of SIWA send members that the operation does not know; say puts the answer in
// their words.
func (a *API) siwa(w http.ResponseWriter, r *http.Request, op *protocol.Operation, say func(answer []byte) (any, error)) {
	network, head := a.Network(r), w.Header()
	head["Access-Control-Allow-Origin"], head["Access-Control-Expose-Headers"] = anyOrigin, exposed
	fail := func(err error) { a.problem(w, r, op, network, err) }
	body, err := readBody(w, r, op)
	if err != nil {
		fail(err)
		return
	}
	args := []byte("{}")
	if op == protocol.SignInAgent.Operation {
		var in protocol.SignedText
		if err := json.Unmarshal(body, &in); err != nil {
			fail(protocol.Errorf(protocol.InvalidRequest, "send a JSON object with the members message and signature"))
			return
		}
		args, _ = json.Marshal(in) // cannot fail: two texts
	}
	res, err := a.Table.Invoke(r.Context(), hall.Request{Op: op.Name, Args: args, Door: "http",
		Evidence: identity.Evidence{Request: r, Body: body, Network: network}, ID: head.Get(RequestIDHeader)})
	if err != nil {
		fail(err)
		return
	}
	body = res.JSON
	if say != nil {
		var said any
		if said, err = say(res.JSON); err == nil {
			body, err = json.Marshal(said)
		}
		if err != nil {
			fail(err)
			return
		}
	}
	head.Set("Content-Type", "application/json")
	head.Set("Cache-Control", "no-store")
	w.Write(body)
}
