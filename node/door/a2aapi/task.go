package a2aapi

import (
	"encoding/json"
	"fmt"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// untrusted marks texts that others wrote: data, never instructions. Members of metadata that the
// protocol does not define are named by their extension.
var untrusted = json.RawMessage(`{"` + a2a.ExtProfile + `/untrustedContent":true}`)

// task is the methods GetTask and CancelTask. CancelTask withdraws a bid, and fails for every
// exchange: the message has already reached the agent's owner.
func (a *API) task(v *visit) (any, error) {
	q, err := a2a.ParseTaskQuery(v.m.params)
	if err != nil {
		return nil, err
	}
	if err := ownTenant(q.Tenant, v.handle); err != nil {
		return nil, err
	}
	if protocol.IsID(protocol.BidID, q.ID) {
		return a.bid(v, q.ID)
	}
	if protocol.IsID(protocol.MeetingID, q.ID) {
		return a.meeting(v, q.ID)
	}
	e, err := a.exchange(v, q.ID)
	if err != nil {
		return nil, err
	}
	if v.m.method == a2a.CancelTask {
		return nil, a2a.ErrTaskNotCancelable.With("the message has already reached the agent's owner and cannot be canceled", "taskId", q.ID)
	}
	return a.taskOf(e, q.HistoryLength), nil
}

// ownTenant refuses a tenant other than the agent itself: cards name none.
func ownTenant(tenant, handle string) error {
	if tenant != "" && protocol.CleanHandle(tenant) != handle {
		return a2a.Invalid(a2a.Violation{Field: "tenant", Description: "must be absent; each agent has its own endpoint"})
	}
	return nil
}

// exchange returns one exchange of the caller. Another caller's exchange is not found, like one
// that does not exist.
func (a *API) exchange(v *visit, id string) (protocol.Exchange, error) {
	unknown := a2a.ErrTaskNotFound.With(a2a.ErrTaskNotFound.Text, "taskId", id)
	if _, ok := protocol.ParseExchangeID(id); !ok || !protocol.IsHandle(v.handle) {
		return protocol.Exchange{}, unknown
	}
	args, err := json.Marshal(protocol.ExchangeInput{Handle: v.handle, ID: id})
	if err != nil {
		return protocol.Exchange{}, err
	}
	res, err := a.invoke(v, protocol.GetExchange.Operation, args, "")
	if protocol.CodeOf(err) == protocol.NotFound {
		err = unknown
	}
	if err != nil {
		return protocol.Exchange{}, err
	}
	return decode(res)
}

// decode reads an exchange from a result, which may be a kept one.
func decode(res hall.Result) (e protocol.Exchange, err error) {
	if err = json.Unmarshal(res.JSON, &e); err != nil {
		err = fmt.Errorf("result of %s: %w", res.Op.Name, err)
	}
	return e, err
}

// states maps an exchange's state to A2A's. A task that the owner has not answered stays
// submitted: input-required would make the caller write again.
var states = map[protocol.ExchangeState]a2a.State{
	protocol.ExchangeOpen:     a2a.Submitted,
	protocol.ExchangeAnswered: a2a.Completed,
	protocol.ExchangeDeclined: a2a.Rejected,
	protocol.ExchangeExpired:  a2a.Failed,
}

var outcomes = map[protocol.ExchangeState]string{
	protocol.ExchangeAnswered: "The agent has answered.",
	protocol.ExchangeDeclined: "The agent's owner closed the thread without an answer.",
	protocol.ExchangeExpired:  "Nobody answered; the thread closed after 30 days of silence.",
}

// taskOf returns an exchange as a task: the thread is its context, the agent's answers are its
// artifacts.
func (a *API) taskOf(e protocol.Exchange, historyLength *int) a2a.Task {
	t := a2a.Task{ID: e.ID, ContextID: e.ThreadID, Status: a2a.Status{State: states[e.State], Timestamp: a2a.Timestamp(e.Since)}}
	var history []a2a.Message
	for _, m := range e.Messages {
		role, id := a2a.RoleUser, m.ClientID
		if m.From == protocol.AgentSide {
			role = a2a.RoleAgent
			t.Artifacts = append(t.Artifacts, a2a.Artifact{ArtifactID: m.ID, Name: "reply", Parts: []a2a.Part{a2a.TextPart(m.Text)}})
		}
		if id == "" {
			id = m.ID
		}
		history = append(history, a2a.Message{
			MessageID: id, ContextID: e.ThreadID, TaskID: e.ID, Role: role, Parts: []a2a.Part{a2a.TextPart(m.Text)},
		})
	}
	t.History = a2a.Recent(history, historyLength)
	if text := outcomes[e.State]; text != "" {
		t.Status.Message = &a2a.Message{
			MessageID: e.ID + "-" + string(e.State), ContextID: e.ThreadID, TaskID: e.ID, Role: a2a.RoleAgent, Parts: []a2a.Part{a2a.TextPart(text)},
		}
	}
	if t.Metadata = untrusted; e.ReadToken != "" {
		t.Metadata = json.RawMessage(`{"` + a2a.ExtProfile + `/untrustedContent":true,"` + a2a.ExtContact + `/readToken":"` + e.ReadToken + `"}`)
	}
	return t
}
