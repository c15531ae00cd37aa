package a2a

import (
	"encoding/json"

	"stoa/protocol"
)

// A PushConfig is where a task's changes are sent (A2A 1.0 §4.3.1).
type PushConfig struct {
	ID             string    `json:"id"`
	TaskID         string    `json:"taskId"`
	URL            string    `json:"url"`
	Token          string    `json:"token,omitempty"`
	Authentication *PushAuth `json:"authentication,omitempty"`
}

// A PushAuth is what is sent in Authorization. Credentials are not shown.
type PushAuth struct {
	Scheme string `json:"scheme"`
}

// PushConfigOf returns an address that is told of a task as the protocol has it.
func PushConfigOf(taskID string, p protocol.ExchangePush) PushConfig {
	c := PushConfig{ID: p.ID, TaskID: taskID, URL: p.URL, Token: p.Token}
	if p.Scheme != "" {
		c.Authentication = &PushAuth{p.Scheme}
	}
	return c
}

// A PushConfigList is the answer to ListTaskPushNotificationConfigs.
type PushConfigList struct {
	Configs       []PushConfig `json:"configs"`
	NextPageToken string       `json:"nextPageToken"`
}

type pushConfig03 struct {
	TaskID string    `json:"taskId"`
	Config pushURL03 `json:"pushNotificationConfig"`
}

type pushURL03 struct {
	ID             string      `json:"id"`
	URL            string      `json:"url"`
	Token          string      `json:"token,omitempty"`
	Authentication *pushAuth03 `json:"authentication,omitempty"`
}

type pushAuth03 struct {
	Schemes []string `json:"schemes"`
}

func (c PushConfig) legacy() pushConfig03 {
	out := pushConfig03{c.TaskID, pushURL03{ID: c.ID, URL: c.URL, Token: c.Token}}
	if c.Authentication != nil {
		out.Config.Authentication = &pushAuth03{[]string{c.Authentication.Scheme}}
	}
	return out
}

// ParsePush reads the parameters of CreateTaskPushNotificationConfig.
func ParsePush(version string, params json.RawMessage) (tenant, taskID string, p protocol.ExchangePush, err error) {
	r := &reader{legacy: version == Legacy}
	o := r.object("params", params)
	tenant, taskID = o.text("tenant", MaxID), o.needed("taskId", MaxID)
	config := o
	if r.legacy {
		config = o.object("pushNotificationConfig")
	}
	return tenant, taskID, *parsePush(config), r.err()
}

// parsePush reads a config, in 0.3 without its task.
func parsePush(o *object) *protocol.ExchangePush {
	p := &protocol.ExchangePush{ID: o.text("id", MaxID), URL: o.needed("url", MaxURL), Token: o.text("token", MaxURL), Legacy: o.r != nil && o.r.legacy}
	raw := o.take("authentication")
	if raw == nil {
		return p
	}
	auth := o.child("authentication", raw)
	p.Credentials = auth.text("credentials", MaxURL)
	if o.r.legacy {
		if all := auth.list("schemes"); len(all) > 0 {
			p.Scheme = all[0]
		}
	} else {
		p.Scheme = auth.needed("scheme", MaxID)
	}
	return p
}

// push reads a config of a new message.
func (o *object) push(name string) *protocol.ExchangePush {
	raw := o.take(name)
	if raw == nil {
		return nil
	}
	return parsePush(o.child(name, raw))
}

// A PushQuery is the parameters of the methods about configs that are there.
type PushQuery struct{ Tenant, TaskID, ID string }

// ParsePushQuery reads the parameters of a method about configs: one of them, for which 1.0 needs its id, or all of a task.
func ParsePushQuery(version, method string, params json.RawMessage) (PushQuery, error) {
	r := &reader{}
	o := r.object("params", params)
	q := PushQuery{Tenant: o.text("tenant", MaxID)}
	switch {
	case version == Legacy && method == DeletePush:
		q.TaskID, q.ID = o.needed("id", MaxID), o.needed("pushNotificationConfigId", MaxID)
	case version == Legacy:
		q.TaskID, q.ID = o.needed("id", MaxID), o.text("pushNotificationConfigId", MaxID)
	case method == ListPush: // a page holds all that a task can have
		q.TaskID = o.needed("taskId", MaxID)
		if n := o.length("pageSize"); n != nil && (*n < 1 || *n > maxPage) {
			o.fault("pageSize", "must be from 1 to 100")
		}
		if o.text("pageToken", MaxURL) != "" {
			o.fault("pageToken", "is not of this list; leave it out")
		}
	default:
		q.TaskID, q.ID = o.needed("taskId", MaxID), o.needed("id", MaxID)
	}
	return q, r.err()
}

// Notification returns the first of the events that lead from a task as an address was told to the task as it is, and what it has then been
// told. An address of 0.3 is told the whole task instead. There is none when nothing has changed.
func Notification(t Task, told Task, legacy bool) (body any, id string, now Task, changed bool) {
	events := t.Since(told)
	if len(events) == 0 {
		return nil, "", told, false
	}
	whole := t.Settled()
	if legacy {
		return t.legacy(), t.ID + "-" + t.Status.Timestamp, whole, true
	}
	if u := events[0].ArtifactUpdate; u != nil {
		told.Artifacts = make([]Artifact, len(told.Artifacts)+1)
		return events[0], t.ID + "-" + u.Artifact.ArtifactID, told, true
	}
	return events[0], t.ID + "-" + t.Status.Timestamp + "-" + string(t.Status.State), whole, true
}

// Settled is what of a task is needed to tell what has changed since.
func (t Task) Settled() Task {
	return Task{Status: Status{State: t.Status.State, Timestamp: t.Status.Timestamp}, Artifacts: make([]Artifact, len(t.Artifacts))}
}
