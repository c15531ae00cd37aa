package a2a

import "encoding/json"

// This file has the objects of version 0.3 (A2A 0.3 §6, types.ts) and the conversion of those of 1.0 to them. What is read of 0.3
// is in parse.go, beside what is read of 1.0.

type message03 struct {
	Kind       string          `json:"kind"`
	MessageID  string          `json:"messageId"`
	ContextID  string          `json:"contextId,omitempty"`
	TaskID     string          `json:"taskId,omitempty"`
	Role       string          `json:"role"`
	Parts      []part03        `json:"parts"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Extensions []string        `json:"extensions,omitempty"`
	References []string        `json:"referenceTaskIds,omitempty"`
}

type part03 struct {
	Kind     string          `json:"kind"`
	Text     *string         `json:"text,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	File     *file03         `json:"file,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

type file03 struct {
	Bytes    []byte `json:"bytes,omitempty"`
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
}

type status03 struct {
	State     string     `json:"state"`
	Message   *message03 `json:"message,omitempty"`
	Timestamp string     `json:"timestamp,omitempty"`
}

type artifact03 struct {
	ArtifactID  string          `json:"artifactId"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Parts       []part03        `json:"parts"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Extensions  []string        `json:"extensions,omitempty"`
}

type task03 struct {
	Kind      string          `json:"kind"`
	ID        string          `json:"id"`
	ContextID string          `json:"contextId"`
	Status    status03        `json:"status"`
	Artifacts []artifact03    `json:"artifacts,omitempty"`
	History   []message03     `json:"history,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

var states03 = map[State]string{
	Submitted: "submitted", Working: "working", InputRequired: "input-required", AuthRequired: "auth-required",
	Completed: "completed", Failed: "failed", Canceled: "canceled", Rejected: "rejected",
}

// In returns a result as a version has it: the object itself for 1.0, its form in 0.3 otherwise.
func In(version string, result any) any {
	if version != Legacy {
		return result
	}
	switch r := result.(type) {
	case Task:
		return r.legacy()
	case SendResult:
		if r.Task != nil {
			return r.Task.legacy()
		}
		return r.Message.legacy()
	case StreamResponse:
		return r.legacy()
	case PushConfig:
		return r.legacy()
	case PushConfigList:
		all := make([]pushConfig03, len(r.Configs))
		for i, c := range r.Configs {
			all[i] = c.legacy()
		}
		return all
	case struct{}: // of a method that gives nothing
		return nil
	}
	return result
}

type statusUpdate03 struct {
	Kind      string          `json:"kind"`
	TaskID    string          `json:"taskId"`
	ContextID string          `json:"contextId"`
	Status    status03        `json:"status"`
	Final     bool            `json:"final"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

type artifactUpdate03 struct {
	Kind      string          `json:"kind"`
	TaskID    string          `json:"taskId"`
	ContextID string          `json:"contextId"`
	Artifact  artifact03      `json:"artifact"`
	LastChunk bool            `json:"lastChunk"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

func (r StreamResponse) legacy() any {
	switch {
	case r.Task != nil:
		return r.Task.legacy()
	case r.Message != nil:
		return r.Message.legacy()
	case r.StatusUpdate != nil:
		u := r.StatusUpdate
		return statusUpdate03{"status-update", u.TaskID, u.ContextID, u.Status.legacy(), u.Status.State.Over() || u.Status.State == InputRequired, u.Metadata}
	}
	u := r.ArtifactUpdate
	return artifactUpdate03{"artifact-update", u.TaskID, u.ContextID, u.Artifact.legacy(), u.LastChunk, u.Metadata}
}

func (t *Task) legacy() task03 {
	out := task03{Kind: "task", ID: t.ID, ContextID: t.ContextID, Metadata: t.Metadata,
		Status: t.Status.legacy()}
	for _, a := range t.Artifacts {
		out.Artifacts = append(out.Artifacts, a.legacy())
	}
	for i := range t.History {
		out.History = append(out.History, *t.History[i].legacy())
	}
	return out
}

func (s Status) legacy() status03 {
	return status03{State: states03[s.State], Message: s.Message.legacy(), Timestamp: s.Timestamp}
}

func (a Artifact) legacy() artifact03 {
	return artifact03{a.ArtifactID, a.Name, a.Description, parts03(a.Parts), a.Metadata, a.Extensions}
}

func (m *Message) legacy() *message03 {
	if m == nil {
		return nil
	}
	role := "user"
	if m.Role == RoleAgent {
		role = "agent"
	}
	return &message03{"message", m.MessageID, m.ContextID, m.TaskID, role, parts03(m.Parts), m.Metadata, m.Extensions, m.References}
}

func parts03(parts []Part) []part03 {
	out := make([]part03, len(parts))
	for i, p := range parts {
		to := part03{Kind: "text", Text: p.Text, Metadata: p.Metadata}
		switch {
		case p.Data != nil:
			to.Kind, to.Data = "data", p.Data
			if p.Data[0] != '{' { // which has to be an object there
				to.Data = json.RawMessage(`{"value":` + string(p.Data) + `}`)
			}
		case p.Text == nil:
			to.Kind, to.File = "file", &file03{p.Raw, p.URL, p.Filename, p.MediaType}
		}
		out[i] = to
	}
	return out
}
