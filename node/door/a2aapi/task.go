package a2aapi

import (
	"encoding/json"
	"errors"
	"fmt"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// task is the methods GetTask and CancelTask. CancelTask withdraws a bid or a meeting request, and closes the thread of an exchange.
func (a *API) task(v *visit) (any, error) {
	q, err := a2a.ParseTaskQuery(v.m.params)
	if err != nil {
		return nil, err
	}
	if err := ownTenant(q.Tenant, v.handle); err != nil {
		return nil, err
	}
	return a.taskByID(v, q)
}

func (a *API) taskByID(v *visit, q a2a.TaskQuery) (any, error) {
	if isThing(q.ID) {
		return a.thing(v, q.ID)
	}
	op := protocol.GetExchange.Operation
	if v.m.method == a2a.CancelTask {
		op = protocol.CancelExchange.Operation
	}
	e, err := a.exchange(v, op, q.ID)
	if protocol.CodeOf(err) == protocol.Conflict {
		err = a2a.ErrTaskNotCancelable.With(protocol.AsError(err).Detail, "taskId", q.ID)
	}
	if err != nil {
		return nil, err
	}
	return a2a.FromExchange(e, q.HistoryLength), nil
}

// isThing reports whether a task is a bid or a meeting request.
func isThing(id string) bool {
	return protocol.IsID(protocol.BidID, id) || protocol.IsID(protocol.MeetingID, id)
}

// thing returns the task of a bid or a meeting request, which CancelTask withdraws.
func (a *API) thing(v *visit, id string) (a2a.Task, error) {
	if protocol.IsID(protocol.BidID, id) {
		return a.bid(v, id)
	}
	return a.meeting(v, id)
}

// ownTenant refuses a tenant other than the agent itself: cards name none.
func ownTenant(tenant, handle string) error {
	if tenant != "" && protocol.CleanHandle(tenant) != handle {
		return a2a.Invalid(a2a.Violation{Field: "tenant", Description: "must be absent; each agent has its own endpoint"})
	}
	return nil
}

// exchange runs an operation about one exchange of the caller. Another caller's exchange is not found, like one
// that does not exist.
func (a *API) exchange(v *visit, op *protocol.Operation, id string) (protocol.Exchange, error) {
	unknown := a2a.ErrTaskNotFound.With(a2a.ErrTaskNotFound.Text, "taskId", id)
	if _, ok := protocol.ParseExchangeID(id); !ok || !protocol.IsHandle(v.handle) {
		return protocol.Exchange{}, unknown
	}
	args, err := json.Marshal(protocol.ExchangeInput{Handle: v.handle, ID: id})
	if err != nil {
		return protocol.Exchange{}, err
	}
	res, err := a.invoke(v, op, args, "")
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

// list is the method ListTasks: the caller's messages to the agent, bids and meeting requests as tasks.
func (a *API) list(v *visit) (any, error) {
	q, err := a2a.ParseListQuery(v.m.params)
	if err != nil {
		return nil, err
	}
	if err := ownTenant(q.Tenant, v.handle); err != nil {
		return nil, err
	}
	out := a2a.TaskList{Tasks: []a2a.Task{}, PageSize: q.PageSize}
	in := protocol.ExchangeQuery{
		Handle: v.handle, Thread: q.ContextID, States: q.State.Exchanges(), Since: q.Since, Paging: protocol.Paging{Limit: q.PageSize, After: q.PageToken},
	}
	if v.handle == "" || q.State != "" && len(in.States) == 0 { // the node's own agent has no tasks
		return out, nil
	}
	args, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	res, err := a.invoke(v, protocol.ListExchanges.Operation, args, "")
	if protocol.CodeOf(err) == protocol.InvalidCursor {
		err = a2a.Invalid(a2a.Violation{Field: "pageToken", Description: "is not of this list; leave it out to begin with the newest"})
	}
	if err != nil {
		return nil, err
	}
	page, ok := res.Value.(protocol.ExchangePage)
	if !ok {
		return nil, fmt.Errorf("%s gave %T", res.Op.Name, res.Value)
	}
	if q.HistoryLength == nil {
		q.HistoryLength = new(0)
	}
	for _, e := range page.Items {
		t := a2a.FromExchange(e, q.HistoryLength)
		if isThing(e.ID) {
			if t, err = a.thing(v, e.ID); protocol.CodeOf(err) == protocol.NotFound || errors.Is(err, a2a.ErrTaskNotFound) {
				continue // it is there no more
			}
			if err != nil {
				return nil, err
			}
		}
		if !q.Artifacts {
			t.Artifacts = nil
		}
		out.Tasks = append(out.Tasks, t)
	}
	if out.TotalSize = page.Total; page.Next != nil {
		out.NextPageToken = *page.Next
	}
	return out, nil
}
