package a2aapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"stoa/identity"
	"stoa/identity/httpsig"
	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// chainCall is what the gate requires of every request where only chain identities are served. Reading a task needs a
// signature like a write, so that an old signature cannot be used to read.
var chainCall = &protocol.Operation{Name: "a2a", Access: protocol.Signed}

// aimed reads what a message asks for, as far as the gate must know it: the operation, its input and the proof of work. What is
// wrong with the parameters is kept for after the admission.
func (a *API) aimed(v *visit) {
	switch v.op = protocol.GetExchange.Operation; v.m.method {
	case a2a.CancelTask:
		v.op = protocol.CancelExchange.Operation
	case a2a.CreatePush:
		v.op = protocol.SetExchangePush.Operation
	case a2a.DeletePush:
		v.op = protocol.DeleteExchangePush.Operation
	}
	if !v.m.sends() {
		return
	}
	v.op = protocol.SendExchange.Operation
	if v.send, v.wrong = a2a.ParseSend(v.m.version, v.m.params); v.wrong != nil {
		return
	}
	if v.call, v.wrong = a2a.FindCall(v.send.Message.Parts); v.wrong != nil {
		return
	}
	v.proof = proofOf(v)
	if v.call == nil {
		if v.handle == "" {
			v.wrong = a2a.Invalid(a2a.Violation{
				Field:       "message.parts",
				Description: `the node's own agent accepts a data part {"operation": name, "input": object}; write to an agent at its own endpoint`,
			})
			return
		}
		v.args, v.wrong = a.exchangeArgs(v)
		return
	}
	at := v.call.At()
	op := protocol.Lookup(v.call.Name)
	if op == nil || op.Doors&protocol.A2A == 0 || op.For != protocol.Everybody {
		v.wrong = a2a.Invalid(a2a.Violation{Field: at + ".operation", Description: "there is no such operation; " + a.c.Base + "/openapi.json lists them"})
		return
	}
	v.op = op
	v.args, v.wrong = a.address(op, v.handle, v.call.Input, at)
}

// proofOf returns the proof of work of a request: of the header field, the message's metadata, or the input of its operation.
func proofOf(v *visit) []byte {
	if p := v.r.Header.Get("Proof-Of-Work"); p != "" {
		return []byte(p)
	}
	if v.send.Message.Metadata != nil {
		if p := strictjson.Members(v.send.Message.Metadata)[a2a.ExtProof]; len(p) > 0 {
			return p
		}
	}
	if v.call != nil && v.call.Input != nil {
		return strictjson.Members(v.call.Input)["pow"]
	}
	return nil
}

// needs returns what the gate requires of a request. Reads need a secret or a standing, which enough checks.
func (a *API) needs(v *visit) *protocol.Operation {
	if a.c.Callers == a2a.ChainCallers {
		return chainCall
	}
	needs := &protocol.Operation{Name: "a2a", Access: protocol.Anonymous, ReadOnly: true, Secret: "readToken", Scope: v.op.Scope}
	if !v.op.ReadOnly {
		needs.ReadOnly, needs.Access, needs.Purpose, needs.Unprofiled = false, v.op.Access, v.op.Purpose, v.op.Unprofiled
	}
	if a.c.Callers == a2a.SignedCallers && needs.Access != protocol.Anonymous && !httpsig.Signed(v.r.Header) {
		needs.Access = protocol.Signed
	}
	return needs
}

// enough refuses a caller whom the gate has admitted and the door does not serve.
func (a *API) enough(v *visit) error {
	c := v.c
	served := true
	switch a.c.Callers {
	case a2a.ChainCallers:
		if c.Agent == "" {
			return protocol.Errorf(protocol.IdentityUnverified,
				"the signature is valid but names no ERC-8004 identity; send Agent-Identity, covered by the signature")
		}
	case a2a.SignedCallers: // a read token was given to one whose key was its proof
		served = c.Standing == protocol.Signed || c.KeyID != "" || c.Standing == protocol.Anonymous && c.ReadToken != ""
	default: // what an operation that is called by name needs, its declaration says
		served = c.Standing != protocol.Anonymous || c.ReadToken != "" || v.call != nil
	}
	if !served {
		return protocol.Errorf(protocol.Unauthorized, "")
	}
	return nil
}

// admit determines the caller. The error has the status of its answer, and says what would be admitted.
func (a *API) admit(v *visit, body []byte) error {
	network := a.c.Network(v.r)
	if v.m.writes() {
		if err := a.c.Table.Limits.Write(network); err != nil {
			return err
		}
	}
	if v.wrong == nil && v.confirms() { // what became of it is for who has the id; the hall asks for nothing else
		v.c = &protocol.Caller{Network: network}
		return nil
	}
	ev := identity.Evidence{Request: v.r, Body: body, Proof: v.proof, Network: network, ActAs: v.r.Header.Get("Act-As")}
	c, err := a.c.Table.Gate.Admit(v.r.Context(), ev, a.needs(v))
	if v.c = &c; err == nil {
		err = a.enough(v)
	}
	if err == nil {
		return nil
	}
	if v.wrong != nil && protocol.AsError(err).Challenge != nil {
		return v.wrong
	}
	if v.args != nil {
		err = a.c.Table.Helpful(v.r.Context(), err, v.op.Name, v.args)
	}
	e := protocol.AsError(err)
	switch e.Code {
	case protocol.PowRequired:
		e.Confirm = a.offer(v, ev)
	case protocol.Unauthorized:
		text := a.wanting(v)
		if e.Detail != "" && a.c.Callers == a2a.AnyCallers && v.r.Header["Authorization"] != nil {
			text = e.Detail + ". " + strings.ToUpper(text[:1]) + text[1:]
		}
		err = &protocol.Error{Code: e.Code, Detail: text, Err: e.Err, Confirm: a.offer(v, ev)}
	case protocol.Validation, protocol.NotFound, protocol.ContactRefused:
		return a.refused(v, err)
	}
	return &refusal{err, e.Code.Status()}
}

// offer makes a link by which a person confirms what a caller sends whom this door does not serve; nil where that would not help.
func (a *API) offer(v *visit, ev identity.Evidence) *protocol.Confirm {
	if v.args == nil || !v.op.Confirm || v.r.Header["Authorization"] != nil {
		return nil
	}
	return a.c.Table.Offer(v.r.Context(), v.op.Name, v.args, ev)
}

// confirms reports whether a message asks what became of one that was sent before, by the member confirmId of its arguments or by its metadata,
// which it then puts there.
func (v *visit) confirms() bool {
	if v.args == nil || !v.op.Confirm {
		return false
	}
	members := strictjson.Members(v.args)
	if id := strictjson.Members(v.send.Message.Metadata)[a2a.ExtConfirm]; len(id) > 0 && members != nil {
		members["confirmId"] = id
		v.args, _ = json.Marshal(members) // cannot fail: it was decoded
	}
	_, sent := strictjson.String(members["confirmId"])
	return sent
}

// wanting says what a caller of this door needs, and what does the same elsewhere.
func (a *API) wanting(v *visit) string {
	signing := a.c.Base + "/skill/signing.md"
	switch a.c.Callers {
	case a2a.SignedCallers:
		return "sign the request (RFC 9421; " + signing + "), or send the read token of your task as Authorization: Bearer. " + a.elsewhere(v)
	case a2a.AnyCallers:
		return "send a solved challenge (Proof-Of-Work), an API token or the read token of your task (Authorization: Bearer), or sign the request (" + signing + ")"
	}
	return "A2A is for agents with an ERC-8004 identity here: sign the request (RFC 9421; " + signing + ") with a key that the chain grants to the identity, " +
		"and name it in Agent-Identity. " + a.elsewhere(v)
}

func (a *API) elsewhere(v *visit) string {
	to := a.instead(v)
	if len(to) == 0 {
		return ""
	}
	return fmt.Sprintf("Without that, %s does the same: %s %s, or the tool at %s%s", to[0].Operation, to[0].Method, to[0].URL, a.c.Base, protocol.MCPPath)
}

// A way is the same as an operation, at another door.
type way struct {
	Door      string `json:"door"`
	Operation string `json:"operation"`
	Method    string `json:"method"`
	URL       string `json:"url"`
}

// instead returns where a request may be made by a caller whom this door does not serve.
func (a *API) instead(v *visit) []way {
	op := v.op
	switch op {
	case protocol.SendExchange.Operation:
		op = protocol.ContactAgent.Operation
		if v.send.Message.TaskID != "" || v.send.Message.ContextID != "" {
			op = protocol.ContinueConversation.Operation
		}
	case protocol.SetExchangePush.Operation, protocol.DeleteExchangePush.Operation:
		op = protocol.CheckConversation.Operation
	case protocol.GetExchange.Operation, protocol.CancelExchange.Operation:
		op = protocol.CheckConversation.Operation
		q, _ := a2a.ParseTaskQuery(v.m.params)
		switch {
		case protocol.IsID(protocol.BidID, q.ID):
			op = protocol.GetBid.Operation
		case protocol.IsID(protocol.MeetingID, q.ID):
			op = protocol.GetMeeting.Operation
		}
	}
	path := op.HTTP.Path
	if v.handle != "" {
		path = strings.Replace(path, "{handle}", v.handle, 1)
	}
	return []way{
		{"http", op.Name, op.HTTP.Method, a.c.Base + path},
		{"mcp", op.Name, http.MethodPost, a.c.Base + protocol.MCPPath},
	}
}

// exchangeArgs returns the arguments of send_exchange for a message.
func (a *API) exchangeArgs(v *visit) (json.RawMessage, error) {
	kind, err := kindOf(v.send.Message.Metadata)
	if err != nil {
		return nil, err
	}
	return json.Marshal(protocol.AgentMessage{
		Handle: v.handle, MessageID: v.send.Message.MessageID, Text: textOf(v.send.Message.Parts), Kind: kind,
		ThreadID: v.send.Message.ContextID, ExchangeID: v.send.Message.TaskID, Push: v.send.Push,
	})
}
