package a2aapi

import (
	"encoding/json"
	"fmt"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// A meeting request that an agent makes over A2A is a task, whose id is that of the request. Nothing of
// the task is stored: its state is that of the request.

// meetingTask returns the task of a request. data is the request, or for a new one its receipt.
func meetingTask(r protocol.MeetingRequest, data []byte) a2a.Task {
	t := a2a.Task{ID: r.ID, ContextID: r.ID, Metadata: a2a.Untrusted, Artifacts: []a2a.Artifact{{
		ArtifactID: r.ID, Name: "meeting", Parts: []a2a.Part{a2a.DataPart(data)},
	}}}
	since := r.CreatedAt
	if n := len(r.History); n > 0 {
		since = r.History[n-1].At
	}
	t.Status = a2a.Status{State: a2a.StateOf(protocol.MeetingExchange(r.State)), Timestamp: a2a.Timestamp(since)}
	if r.Note != "" {
		t.Status.Message = &a2a.Message{
			MessageID: fmt.Sprintf("%s-%d", r.ID, len(r.History)), ContextID: r.ID, TaskID: r.ID, Role: a2a.RoleAgent,
			Parts: []a2a.Part{a2a.TextPart(r.Note)},
		}
	}
	return t
}

// newMeeting answers request_meeting. The same message gets the task as it is now.
func (a *API) newMeeting(v *visit, res hall.Result) (any, error) {
	var made protocol.MeetingReceipt
	if err := json.Unmarshal(res.JSON, &made); err != nil {
		return nil, fmt.Errorf("result of %s: %w", res.Op.Name, err)
	}
	r := made.Request
	if v.c.Standing == protocol.Proof {
		v.c.ReadToken = made.StatusToken
	}
	if res.Replayed {
		now, _, err := a.readMeeting(v, protocol.GetMeeting.Operation, r.ID)
		if err != nil {
			return nil, err
		}
		r = now
	}
	t := meetingTask(r, res.JSON)
	v.thing = r.ID
	return a2a.SendResult{Task: &t}, nil
}

// meeting answers GetTask and CancelTask about a request of the caller.
func (a *API) meeting(v *visit, id string) (a2a.Task, error) {
	r, raw, err := a.readMeeting(v, protocol.GetMeeting.Operation, id)
	if err != nil {
		return a2a.Task{}, err
	}
	if v.m.method == a2a.CancelTask {
		if !r.State.Waits() && r.State != protocol.MeetingWithdrawn {
			return a2a.Task{}, a2a.ErrTaskNotCancelable.With("the request is "+string(r.State)+"; cancel_meeting cancels an approved meeting", "taskId", id)
		}
		if r, raw, err = a.readMeeting(v, protocol.CancelMeeting.Operation, id); err != nil {
			return a2a.Task{}, err
		}
	}
	return meetingTask(r, raw), nil
}

// readMeeting runs an operation about one request of the caller.
func (a *API) readMeeting(v *visit, op *protocol.Operation, id string) (r protocol.MeetingRequest, raw []byte, err error) {
	args, err := json.Marshal(protocol.MeetingInput{ID: id})
	if err != nil {
		return r, nil, err
	}
	res, err := a.invoke(v, op, args, "")
	if err == nil {
		err = json.Unmarshal(res.JSON, &r)
	}
	if protocol.CodeOf(err) == protocol.NotFound || err == nil && v.handle != "" && r.Handle != v.handle {
		err = a2a.ErrTaskNotFound.With(a2a.ErrTaskNotFound.Text, "taskId", id)
	}
	return r, res.JSON, err
}
