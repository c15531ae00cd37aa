package a2aapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// send is the method SendMessage. A data part that names an operation is executed and answered
// with a message; anything else is a message to the agent and becomes a task. The owner of an
// agent may need days, so the call waits for some seconds and then returns the task in its present state.
func (a *API) send(v *visit) (any, error) {
	if err := ownTenant(v.send.Tenant, v.handle); err != nil {
		return nil, err
	}
	if v.send.Push != nil && v.call != nil {
		return nil, a2a.ErrPushNotSupported.With("what an operation gives tells of its changes at the callbackUrl of its input")
	}
	idemKey := v.r.Header.Get("Idempotency-Key")
	if idemKey == "" {
		// Guests of one network are one caller for receipts. Their ids may be equal, so that each proof has its own.
		idemKey = digest(v.handle, v.send.Message.MessageID, string(v.guestProof()))
	}
	if v.call != nil {
		return a.operate(v, idemKey)
	}
	return a.write(v, idemKey)
}

func (v *visit) guestProof() []byte {
	if v.c.Standing == protocol.Proof {
		return v.proof
	}
	return nil
}

// digest returns the idempotency key for a message id. It need not contain the caller, which is
// part of the receipt.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "a2a-" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// write begins or continues an exchange and returns its task.
func (a *API) write(v *visit, idemKey string) (any, error) {
	res, err := a.invoke(v, protocol.SendExchange.Operation, v.args, idemKey)
	if err != nil {
		return nil, a.refused(v, err)
	}
	e, err := decode(res)
	token := e.ReadToken
	if token != "" {
		v.c.ReadToken = token
	}
	if err == nil && res.Replayed { // the answer is the task in its present state
		e, err = a.exchange(v, protocol.GetExchange.Operation, e.ID)
	}
	if err != nil {
		return nil, err
	}
	e.ReadToken, v.exchange = token, &e
	t := a2a.FromExchange(e, v.send.HistoryLength)
	return a2a.SendResult{Task: &t}, nil
}

// refused converts the error of the operation that a message comes to.
func (a *API) refused(v *visit, err error) error {
	if v.call != nil {
		return operationError(err, v.call.At())
	}
	return sendError(err, v.send.Message)
}

// sendError gives an error of the room the code that A2A has for it (A2A 1.0 §3.4.2, §7).
func sendError(err error, in a2a.Message) error {
	e := protocol.AsError(err)
	switch e.Code {
	case protocol.Validation:
		return a2a.Invalid(fieldsOf(e.Faults, map[string]string{
			"/text": "message.parts", "/kind": `message.metadata["` + a2a.ExtContact + `"].kind`, "/messageId": "message.messageId",
			"/threadId": "message.contextId", "/exchangeId": "message.taskId",
			"/push/url": "configuration.taskPushNotificationConfig.url", "/push/token": "configuration.taskPushNotificationConfig.token",
			"/push/scheme":      "configuration.taskPushNotificationConfig.authentication.scheme",
			"/push/credentials": "configuration.taskPushNotificationConfig.authentication.credentials",
		})...)
	case protocol.NotFound:
		switch {
		case in.TaskID != "":
			return a2a.ErrTaskNotFound.With(a2a.ErrTaskNotFound.Text, "taskId", in.TaskID)
		case in.ContextID != "":
			return a2a.Invalid(a2a.Violation{Field: "message.contextId", Description: "you have no such context with this agent; leave it out to begin one"})
		}
	case protocol.Gone: // the exchange or thread has ended
		return a2a.ErrUnsupportedOperation.With(e.Detail)
	}
	return reused(err)
}

// reused returns the error for a message id that was used for another message; other errors are
// returned unchanged.
func reused(err error) error {
	if !errors.Is(err, hall.ErrKeyReused) {
		return err
	}
	c := a2a.Invalid(a2a.Violation{
		Field: "message.messageId", Description: "was used for another message in the last 24 hours; give each message its own id",
	})
	c.Reason = "MESSAGE_ID_REUSED"
	return c
}

func fieldsOf(faults []protocol.Fault, names map[string]string) []a2a.Violation {
	list := make([]a2a.Violation, 0, len(faults))
	for _, f := range faults {
		field := names[f.Pointer]
		if field == "" {
			field = "message" + f.Pointer
		}
		v := a2a.Violation{Field: field, Description: f.Detail}
		v.Fault = protocol.Fault{Pointer: a2a.Pointer(field), Code: f.Code, Detail: f.Detail}
		list = append(list, v)
	}
	return list
}

// kindOf reads the kind of a contact from the message's metadata.
func kindOf(metadata json.RawMessage) (protocol.ContactKind, error) {
	var members map[string]json.RawMessage
	if metadata == nil || json.Unmarshal(metadata, &members) != nil || members[a2a.ExtContact] == nil {
		return "", nil
	}
	var data map[string]json.RawMessage
	var kind string
	if json.Unmarshal(members[a2a.ExtContact], &data) != nil || data["kind"] != nil && !isText(data["kind"], &kind) {
		return "", a2a.Invalid(a2a.Violation{Field: `message.metadata["` + a2a.ExtContact + `"]`, Description: `must be an object such as {"kind": "question"}`})
	}
	return protocol.ContactKind(kind), nil
}

// textOf joins the parts to one text. Data becomes JSON and a file its address: both are only
// shown to the owner.
func textOf(parts []a2a.Part) string {
	var texts []string
	for _, p := range parts {
		switch {
		case p.Text != nil:
			texts = append(texts, *p.Text)
		case p.URL != "":
			texts = append(texts, strings.TrimPrefix(p.Filename+": "+p.URL, ": "))
		default:
			var b bytes.Buffer
			if json.Compact(&b, p.Data) == nil {
				texts = append(texts, b.String())
			}
		}
	}
	return strings.Join(texts, "\n\n")
}
