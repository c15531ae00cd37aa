package a2aapi

import (
	"encoding/json"
	"fmt"
	"slices"

	"stoa/protocol"
	"stoa/protocol/a2a"
)

// createPush is the method CreateTaskPushNotificationConfig.
func (a *API) createPush(v *visit) (any, error) {
	tenant, taskID, push, err := a2a.ParsePush(v.m.version, v.m.params)
	if err == nil {
		err = ownTenant(tenant, v.handle)
	}
	if err != nil {
		return nil, err
	}
	var made protocol.ExchangePush
	err = a.pushed(v, protocol.SetExchangePush.Operation, taskID, func(in protocol.ExchangeInput) any {
		return protocol.NewExchangePush{ExchangeInput: in, Push: push}
	}, &made)
	if e := protocol.AsError(err); err != nil && e.Code == protocol.Validation {
		at := ""
		if v.m.version == a2a.Legacy {
			at = "pushNotificationConfig."
		}
		err = a2a.Invalid(fieldsOf(e.Faults, map[string]string{"/push/id": at + "id", "/push/url": at + "url", "/push/token": at + "token",
			"/push/scheme": at + "authentication.scheme", "/push/credentials": at + "authentication.credentials"})...)
	}
	if err != nil {
		return nil, err
	}
	return a2a.PushConfigOf(taskID, made), nil
}

// pushes is the methods about configs that are there.
func (a *API) pushes(v *visit) (any, error) {
	q, err := a2a.ParsePushQuery(v.m.version, v.m.method, v.m.params)
	if err == nil {
		err = ownTenant(q.Tenant, v.handle)
	}
	if err != nil {
		return nil, err
	}
	if v.m.method == a2a.DeletePush {
		return struct{}{}, a.pushed(v, protocol.DeleteExchangePush.Operation, q.TaskID, func(in protocol.ExchangeInput) any {
			return protocol.ExchangePushRef{ExchangeInput: in, PushID: q.ID}
		}, nil)
	}
	var all protocol.ExchangePushes
	err = a.pushed(v, protocol.ListExchangePushes.Operation, q.TaskID, func(in protocol.ExchangeInput) any { return in }, &all)
	if err != nil {
		return nil, err
	}
	if v.m.method == a2a.ListPush {
		list := a2a.PushConfigList{Configs: []a2a.PushConfig{}}
		for _, p := range all.Items {
			list.Configs = append(list.Configs, a2a.PushConfigOf(q.TaskID, p))
		}
		return list, nil
	}
	i := slices.IndexFunc(all.Items, func(p protocol.ExchangePush) bool { return q.ID == "" || p.ID == q.ID })
	if i < 0 {
		return nil, a2a.ErrTaskNotFound.With("the task has no push notification config with that id", "taskId", q.TaskID)
	}
	return a2a.PushConfigOf(q.TaskID, all.Items[i]), nil
}

// pushed runs an operation about the addresses of an exchange. Bids and meeting requests have one, which they are made with.
func (a *API) pushed(v *visit, op *protocol.Operation, taskID string, args func(protocol.ExchangeInput) any, into any) error {
	switch {
	case v.handle == "", !protocol.IsHandle(v.handle):
		return a2a.ErrPushNotSupported
	case isThing(taskID):
		if _, err := a.thing(v, taskID); err != nil {
			return err
		}
		return a2a.ErrPushNotSupported.With("a bid and a meeting request tell of their changes at the callbackUrl that they were made with", "taskId", taskID)
	}
	unknown := a2a.ErrTaskNotFound.With(a2a.ErrTaskNotFound.Text, "taskId", taskID)
	if _, ok := protocol.ParseExchangeID(taskID); !ok {
		return unknown
	}
	raw, err := json.Marshal(args(protocol.ExchangeInput{Handle: v.handle, ID: taskID}))
	if err != nil {
		return err
	}
	res, err := a.invoke(v, op, raw, "")
	if protocol.CodeOf(err) == protocol.NotFound && err != nil {
		return unknown
	}
	if err != nil || into == nil {
		return err
	}
	if err = json.Unmarshal(res.JSON, into); err != nil {
		err = fmt.Errorf("result of %s: %w", op.Name, err)
	}
	return err
}
