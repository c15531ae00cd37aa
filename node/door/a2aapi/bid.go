package a2aapi

import (
	"encoding/json"
	"fmt"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// A bid is a task from bid_for_attention on: its id is the bid's, and so is its context. GetTask
// reads it and CancelTask withdraws it.

// bidTask returns a bid as a task. text is what its status says, and data its artifact.
func bidTask(b protocol.Bid, text string, data []byte) a2a.Task {
	t := a2a.Task{ID: b.ID, ContextID: b.ID, Metadata: a2a.Untrusted, Artifacts: []a2a.Artifact{{
		ArtifactID: b.ID, Name: "bid", Parts: []a2a.Part{a2a.DataPart(data)},
	}}}
	since := b.CreatedAt
	if n := len(b.History); n > 0 {
		since = b.History[n-1].At
	}
	t.Status = a2a.Status{State: a2a.StateOf(protocol.BidExchange(b.State, b.LiveAt != nil)), Timestamp: a2a.Timestamp(since)}
	if text != "" {
		t.Status.Message = &a2a.Message{
			MessageID: fmt.Sprintf("%s-%d", b.ID, len(b.History)), ContextID: b.ID, TaskID: b.ID, Role: a2a.RoleAgent, Parts: []a2a.Part{a2a.TextPart(text)},
		}
	}
	return t
}

// newBid returns the task of a bid that bid_for_attention made. Its artifact is the only place of
// the secrets; for a repeated message the state is the present one.
func (a *API) newBid(v *visit, res hall.Result) (any, error) {
	var made protocol.BidReceipt
	if err := json.Unmarshal(res.JSON, &made); err != nil {
		return nil, fmt.Errorf("result of %s: %w", res.Op.Name, err)
	}
	b := made.Bid
	if v.c.Standing == protocol.Proof {
		v.c.ReadToken = made.StatusToken
	}
	if res.Replayed {
		now, _, err := a.readBid(v, protocol.GetBid.Operation, b.ID)
		if err != nil {
			return nil, err
		}
		b = now
	}
	text := b.Note
	if b.State == protocol.BidHeld {
		text += " To pay: " + made.PaymentURL
	}
	t := bidTask(b, text, res.JSON)
	v.thing = b.ID
	return a2a.SendResult{Task: &t}, nil
}

// bid is the methods GetTask and CancelTask for the task of a bid.
func (a *API) bid(v *visit, id string) (a2a.Task, error) {
	op := protocol.GetBid.Operation
	b, raw, err := a.readBid(v, op, id)
	if err != nil {
		return a2a.Task{}, err
	}
	if v.m.method == a2a.CancelTask {
		b, raw, err = a.readBid(v, protocol.WithdrawBid.Operation, id)
		if protocol.CodeOf(err) == protocol.Conflict {
			err = a2a.ErrTaskNotCancelable.With(protocol.AsError(err).Detail, "taskId", id)
		}
		if err != nil {
			return a2a.Task{}, err
		}
	}
	return bidTask(b, b.Note, raw), nil
}

// readBid invokes an operation that names a bid of the caller and returns it. Another caller's bid,
// and one on the board of another agent than the endpoint's, are not found.
func (a *API) readBid(v *visit, op *protocol.Operation, id string) (b protocol.Bid, raw []byte, err error) {
	args, err := json.Marshal(protocol.BidInput{ID: id})
	if err != nil {
		return b, nil, err
	}
	res, err := a.invoke(v, op, args, "")
	if err == nil {
		err = json.Unmarshal(res.JSON, &b)
	}
	if protocol.CodeOf(err) == protocol.NotFound || err == nil && v.handle != "" && b.Handle != v.handle {
		err = a2a.ErrTaskNotFound.With(a2a.ErrTaskNotFound.Text, "taskId", id)
	}
	return b, res.JSON, err
}
