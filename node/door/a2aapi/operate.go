package a2aapi

import (
	"encoding/json"
	"strings"

	"stoa/protocol"
	"stoa/protocol/a2a"
)

// operate runs the operation that a data part names and returns its result as a message, or for a
// bid as a task.
func (a *API) operate(v *visit, idemKey string) (any, error) {
	op := v.op
	res, err := a.invoke(v, op, v.args, idemKey)
	if err != nil {
		return nil, a.refused(v, err)
	}
	if op == protocol.BidForAttention.Operation {
		return a.newBid(v, res)
	}
	if op == protocol.RequestMeeting.Operation {
		return a.newMeeting(v, res)
	}
	part := a2a.DataPart(res.JSON)
	switch {
	case op.Media != "":
		part = a2a.TextPart(string(res.JSON))
	case len(strings.TrimSpace(string(res.JSON))) == 0:
		part = a2a.DataPart(json.RawMessage("{}"))
	}
	return a2a.SendResult{Message: &a2a.Message{
		// The same message gets the same answer with the same id. When its message id is reused
		// with other input, the answer has another id.
		MessageID: "reply-" + digest(v.c.ID(), v.handle, v.send.Message.MessageID, op.Name, string(v.args))[4:], Role: a2a.RoleAgent, Parts: []a2a.Part{part},
		Metadata: a2a.Untrusted,
	}}, nil
}

// address sets the handle of this endpoint's agent when the operation has one. Another agent has
// another endpoint.
func (a *API) address(op *protocol.Operation, handle string, input json.RawMessage, at string) ([]byte, error) {
	if handle == "" {
		return input, nil
	}
	schema := a.c.Table.Schemas.Resolve(a.c.Table.Schemas.Of(op.In))
	if schema.Properties["handle"] == nil {
		return input, nil
	}
	members := map[string]json.RawMessage{}
	if len(input) > 0 {
		if err := json.Unmarshal(input, &members); err != nil {
			return nil, a2a.Invalid(a2a.Violation{Field: at + ".input", Description: "must be an object"})
		}
	}
	var given string
	if members["handle"] == nil {
		members["handle"] = json.RawMessage(`"` + handle + `"`)
	} else if isText(members["handle"], &given) && protocol.CleanHandle(given) != handle {
		return nil, a2a.Invalid(a2a.Violation{
			Field: at + ".input.handle", Description: "this is the endpoint of @" + handle + "; leave handle out or use the other agent's endpoint",
		})
	}
	return json.Marshal(members)
}

// operationError converts the error of an operation to an error of this door.
func operationError(err error, at string) error {
	e := protocol.AsError(err)
	if e.Code != protocol.Validation {
		return reused(err)
	}
	list := make([]a2a.Violation, len(e.Faults))
	for i, f := range e.Faults {
		list[i] = a2a.Violation{Field: at + ".input" + strings.ReplaceAll(f.Pointer, "/", "."), Description: f.Detail, Fault: f}
	}
	return a2a.Invalid(list...)
}
