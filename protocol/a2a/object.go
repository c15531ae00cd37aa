// Package a2a contains the types of the Agent2Agent protocol, version 1.0 (1.0.1 of 2026-05-28),
// over its JSON-RPC binding: messages, tasks, errors, agent cards, and the conversion of a profile
// to a card. There is one model; version 0.3 is read into it and written from it. It does no I/O.
package a2a

import (
	"encoding/json"
	"time"
)

// Limits of what a caller sends.
const (
	MaxBody      = 256 << 10 // bytes of a request (contract §1)
	MaxParts     = 20
	MaxList      = 20       // entries of extensions and of referenceTaskIds
	MaxID        = 256      // characters of an id that the caller chooses
	MaxMetadata  = 16 << 10 // bytes
	MaxMediaType = 128
	MaxFilename  = 255
	MaxURL       = 2048
)

// MediaType is that of objects of 1.0 over HTTP+JSON and in push notifications.
const MediaType = "application/a2a+json"

// A Role says who speaks.
type Role string

const (
	RoleUser  Role = "ROLE_USER" // the caller
	RoleAgent Role = "ROLE_AGENT"
)

// A State is the state of a task. Completed, Failed, Canceled and Rejected are final.
type State string

const (
	Submitted     State = "TASK_STATE_SUBMITTED"
	Working       State = "TASK_STATE_WORKING"
	InputRequired State = "TASK_STATE_INPUT_REQUIRED"
	AuthRequired  State = "TASK_STATE_AUTH_REQUIRED"
	Completed     State = "TASK_STATE_COMPLETED"
	Failed        State = "TASK_STATE_FAILED"
	Canceled      State = "TASK_STATE_CANCELED"
	Rejected      State = "TASK_STATE_REJECTED"
)

// A Message is one turn of either side.
type Message struct {
	MessageID  string          `json:"messageId"`
	ContextID  string          `json:"contextId,omitempty"`
	TaskID     string          `json:"taskId,omitempty"`
	Role       Role            `json:"role"`
	Parts      []Part          `json:"parts"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Extensions []string        `json:"extensions,omitempty"`
	References []string        `json:"referenceTaskIds,omitempty"`
}

// A Part holds exactly one of Text, Raw, URL and Data.
type Part struct {
	Text      *string         `json:"text,omitempty"`
	Raw       []byte          `json:"raw,omitempty"` // base64 on the wire
	URL       string          `json:"url,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
}

// TextPart is a part of plain text.
func TextPart(s string) Part { return Part{Text: &s} }

// DataPart is a part of JSON.
func DataPart(data json.RawMessage) Part { return Part{Data: data, MediaType: "application/json"} }

// A Status is a state and the time since when it holds.
type Status struct {
	State     State    `json:"state"`
	Message   *Message `json:"message,omitempty"`
	Timestamp string   `json:"timestamp,omitempty"`
}

// A Task is one piece of work for the agent.
type Task struct {
	ID        string          `json:"id"`
	ContextID string          `json:"contextId"`
	Status    Status          `json:"status"`
	Artifacts []Artifact      `json:"artifacts,omitempty"`
	History   []Message       `json:"history,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// An Artifact is a result of a task.
type Artifact struct {
	ArtifactID  string          `json:"artifactId"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Parts       []Part          `json:"parts"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Extensions  []string        `json:"extensions,omitempty"`
}

// A SendResult is the answer to SendMessage: a task, or a message.
type SendResult struct {
	Task    *Task    `json:"task,omitempty"`
	Message *Message `json:"message,omitempty"`
}

// A StreamResponse is one event of a stream: exactly one of its members.
type StreamResponse struct {
	Task           *Task           `json:"task,omitempty"`
	Message        *Message        `json:"message,omitempty"`
	StatusUpdate   *StatusUpdate   `json:"statusUpdate,omitempty"`
	ArtifactUpdate *ArtifactUpdate `json:"artifactUpdate,omitempty"`
}

// A StatusUpdate says that the status of a task has changed.
type StatusUpdate struct {
	TaskID    string          `json:"taskId"`
	ContextID string          `json:"contextId"`
	Status    Status          `json:"status"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// An ArtifactUpdate brings an artifact of a task, whole.
type ArtifactUpdate struct {
	TaskID    string          `json:"taskId"`
	ContextID string          `json:"contextId"`
	Artifact  Artifact        `json:"artifact"`
	LastChunk bool            `json:"lastChunk"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// Since returns the events that lead from a task as it was to the task as it is: its new artifacts, then its status if that has changed.
func (t Task) Since(before Task) (events []StreamResponse) {
	for _, a := range t.Artifacts[min(len(before.Artifacts), len(t.Artifacts)):] {
		events = append(events, StreamResponse{ArtifactUpdate: &ArtifactUpdate{t.ID, t.ContextID, a, true, Untrusted}})
	}
	was, is := before.Status, t.Status
	if was.State != is.State || was.Timestamp != is.Timestamp {
		events = append(events, StreamResponse{StatusUpdate: &StatusUpdate{t.ID, t.ContextID, is, Untrusted}})
	}
	return events
}

// A TaskList is the answer to ListTasks.
type TaskList struct {
	Tasks         []Task `json:"tasks"`
	NextPageToken string `json:"nextPageToken"`
	PageSize      int    `json:"pageSize"`
	TotalSize     int    `json:"totalSize"`
}

// Timestamp formats a time as A2A does: UTC, with milliseconds.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Recent returns the last n messages of a history; nil returns all, at most 100, and 0 returns
// none (A2A 1.0 §3.2.4).
func Recent(history []Message, n *int) []Message {
	most := 100
	if n != nil {
		most = min(*n, most)
	}
	return history[max(0, len(history)-most):]
}
