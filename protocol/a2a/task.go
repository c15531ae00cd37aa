package a2a

import (
	"encoding/base64"
	"encoding/json"

	"stoa/protocol"
)

// Untrusted marks texts that others wrote: data, never instructions. Members of metadata that the
// protocol does not define are named by their extension.
var Untrusted = json.RawMessage(`{"` + ExtProfile + `/untrustedContent":true}`)

// states maps an exchange's state to A2A's. A task that the owner has not answered stays
// submitted: input-required would make the caller write again.
var states = map[protocol.ExchangeState]State{
	protocol.ExchangeOpen: Submitted, protocol.ExchangeWorking: Working, protocol.ExchangeAsked: InputRequired,
	protocol.ExchangeAnswered: Completed, protocol.ExchangeDeclined: Rejected, protocol.ExchangeExpired: Failed, protocol.ExchangeCanceled: Canceled,
}

// Exchanges returns the states of exchanges that are a state of tasks; none for a state that no exchange has.
func (s State) Exchanges() (all []protocol.ExchangeState) {
	for of, state := range states {
		if state == s {
			all = append(all, of)
		}
	}
	return all
}

// StateOf returns the state of a task whose exchange is in a state.
func StateOf(s protocol.ExchangeState) State { return states[s] }

// Over reports whether a task in the state changes no more.
func (s State) Over() bool { return s == Completed || s == Failed || s == Canceled || s == Rejected }

// Waits reports whether a task in the state waits for its caller.
func (s State) Waits() bool { return s == InputRequired || s == AuthRequired }

var outcomes = map[protocol.ExchangeState]string{
	protocol.ExchangeAnswered: "The agent has answered.",
	protocol.ExchangeDeclined: "The agent's owner closed the thread without an answer.",
	protocol.ExchangeExpired:  "Nobody answered; the thread closed after 30 days of silence.",
	protocol.ExchangeCanceled: "You have canceled the task; its thread is closed.",
}

// FromExchange returns an exchange as a task: the thread is its context, the agent's answers and attachments are its
// artifacts. What the agent said last, short of an answer, is in the status.
func FromExchange(e protocol.Exchange, historyLength *int) Task {
	t := Task{ID: e.ID, ContextID: e.ThreadID, Status: Status{State: states[e.State], Timestamp: Timestamp(e.Since)}, Metadata: Untrusted}
	var history []Message
	for _, m := range e.Messages {
		said := Message{MessageID: m.ClientID, ContextID: e.ThreadID, TaskID: e.ID, Role: RoleUser, Parts: []Part{TextPart(m.Text)}}
		if m.ClientID == "" {
			said.MessageID = m.ID
		}
		if m.From == protocol.AgentSide {
			said.Role = RoleAgent
			if a := artifactOf(m); a != nil {
				t.Artifacts = append(t.Artifacts, *a)
			}
			if m.As == protocol.AsRefusal || t.Status.State == Working && m.As == protocol.AsProgress || t.Status.State == InputRequired && m.As == protocol.AsQuestion {
				t.Status.Message = &said
			}
		}
		history = append(history, said)
	}
	t.History = Recent(history, historyLength)
	if text := outcomes[e.State]; text != "" && t.Status.Message == nil {
		t.Status.Message = &Message{
			MessageID: e.ID + "-" + string(e.State), ContextID: e.ThreadID, TaskID: e.ID, Role: RoleAgent, Parts: []Part{TextPart(text)},
		}
	}
	if e.ReadToken != "" {
		t.Metadata = json.RawMessage(`{"` + ExtProfile + `/untrustedContent":true,"` + ExtContact + `/readToken":"` + e.ReadToken + `"}`)
	}
	return t
}

// artifactOf returns what a message of an agent is as a result: an answer, or what it brings; nil for neither.
func artifactOf(m protocol.ExchangeMessage) *Artifact {
	a := &Artifact{ArtifactID: m.ID, Name: "reply", Parts: []Part{TextPart(m.Text)}}
	brings := m.Attachment
	if brings == nil {
		if m.As != "" && m.As != protocol.AsAnswer {
			return nil
		}
		return a
	}
	if brings.Name != "" {
		a.Name = brings.Name
	}
	p := Part{Data: brings.Data, URL: brings.URL, MediaType: brings.MediaType}
	if p.Data != nil {
		p.MediaType = "application/json"
	} else {
		p.Filename = brings.Name
		p.Raw, _ = base64.StdEncoding.DecodeString(brings.Bytes) // it was checked when it came
	}
	a.Parts = append(a.Parts, p)
	return a
}
