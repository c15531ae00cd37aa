package mcpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"stoa/identity/strictjson"
	"stoa/node/hall"
	"stoa/protocol"
)

// The extension io.modelcontextprotocol/tasks (SEP-2663): a call whose answer comes later is answered with a task, if the client declares
// that it knows them.
const tasksExtension = "io.modelcontextprotocol/tasks"

const missingCapability = -32021

// A Task is what became of a call so far. Once it is completed it has a Result, the members of the call's; failed, an Error of JSON-RPC.
type Task struct {
	ID            string         `json:"taskId"`
	Status        string         `json:"status"` // working, input_required, completed, failed or cancelled
	StatusMessage string         `json:"statusMessage,omitempty"`
	CreatedAt     time.Time      `json:"createdAt"`
	UpdatedAt     time.Time      `json:"lastUpdatedAt"`
	TTL           int64          `json:"ttlMs"`
	PollInterval  int            `json:"pollIntervalMs,omitempty"`
	InputRequests map[string]any `json:"inputRequests,omitempty"`
	Result        map[string]any `json:"result,omitempty"`
	Error         any            `json:"error,omitempty"`
}

// Begun are the members of the answer that begins a task.
func (t Task) Begun() map[string]any { return t.members(true) }

// members are those of the answer that begins a task, or of tasks/get.
func (t Task) members(begins bool) map[string]any {
	m := map[string]any{"taskId": t.ID, "status": t.Status, "createdAt": stamp(t.CreatedAt), "lastUpdatedAt": stamp(t.UpdatedAt), "ttlMs": t.TTL}
	if t.StatusMessage != "" {
		m["statusMessage"] = t.StatusMessage
	}
	if t.PollInterval > 0 {
		m["pollIntervalMs"] = t.PollInterval
	}
	if begins {
		m["resultType"] = "task"
		return m
	}
	for name, value := range map[string]map[string]any{"inputRequests": t.InputRequests, "result": t.Result} {
		if value != nil {
			m[name] = value
		}
	}
	if t.Error != nil {
		m["error"] = t.Error
	}
	return m
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Tasks answers what clients ask of tasks. An unknown id is an error with the code of [NoTask].
type Tasks interface {
	Get(c *Call, id string) (Task, error)
	// Update takes answers to the task's requests for input.
	Update(c *Call, id string, responses []byte) error
	Cancel(c *Call, id string) error
}

// NoTask is the error for a task that there is not.
func NoTask() error {
	return &Failure{Status: http.StatusBadRequest, Code: badParams, Text: "there is no task of this id", Data: errorData{Code: protocol.NotFound}}
}

// Needs is the error for a client that does not declare what a request needs, an object of capabilities.
func Needs(capabilities any) error {
	return &Failure{Status: http.StatusBadRequest, Code: missingCapability, Text: "the request needs a capability that the client does not declare",
		Data: map[string]any{"requiredCapabilities": capabilities}}
}

// task answers tasks/get, tasks/update and tasks/cancel.
func (a *API) task(c *Call) error {
	if !c.Declares("extensions", tasksExtension) {
		return c.reply(nil, Needs(map[string]any{"extensions": map[string]any{tasksExtension: struct{}{}}}))
	}
	id, ok := strictjson.String(c.m.params["taskId"])
	if !ok {
		return invalidParams("params must have the member taskId")
	}
	switch c.m.method {
	case "tasks/update":
		responses := c.m.params["inputResponses"]
		if strictjson.Members(responses) == nil {
			return invalidParams("params must have inputResponses, an object")
		}
		return c.reply(map[string]any{}, a.tasks.Update(c, id, responses))
	case "tasks/cancel":
		return c.reply(map[string]any{}, a.tasks.Cancel(c, id))
	}
	t, err := a.tasks.Get(c, id)
	return c.reply(t.members(false), err)
}

// drafts are the tasks of the node: writes that wait for a person. The id is that of the draft, after the time at which it began.
type drafts struct{ table *hall.Table }

// maxMillis is a time after every other, of four digits of years.
const maxMillis = 253_402_300_799_999

// pollDraft is how often a client asks what a person has done.
const pollDraft = 5000

// begun is the task of a write that begins to wait.
func (d drafts) begun(m *message, w *protocol.Confirm, now time.Time) Task {
	t := Task{ID: strconv.FormatInt(now.UnixMilli(), 36) + "." + w.ID, CreatedAt: now, UpdatedAt: now, TTL: hall.DraftLifetime.Milliseconds()}
	t.waits(m, w.URL)
	return t
}

// waits says how a person gets to the page: the client shows it, or the model does.
func (t *Task) waits(m *message, url string) {
	t.PollInterval = pollDraft
	if m.declares("elicitation", "url") {
		t.Status, t.InputRequests = "input_required", confirmRequest(url)
		return
	}
	t.Status, t.StatusMessage = "working", "Give this link to the person, who confirms there: "+url
}

// Get implements Tasks.
func (d drafts) Get(c *Call, id string) (t Task, err error) {
	began, secret, _ := strings.Cut(id, ".")
	millis, wrong := strconv.ParseInt(began, 36, 64)
	draft, result, err := d.table.Waiting(c.R.Context(), secret)
	if wrong != nil || millis < 0 || millis > maxMillis || protocol.CodeOf(err) == protocol.NotFound {
		return t, NoTask()
	}
	if err != nil {
		return t, err
	}
	t = Task{ID: id, CreatedAt: time.UnixMilli(millis), UpdatedAt: draft.Ends().Add(-hall.DraftLifetime)}
	t.TTL = draft.Ends().Sub(t.CreatedAt).Milliseconds()
	switch {
	case draft.Waits():
		t.waits(c.m, draft.URL())
	case draft.Refused():
		t.Status, t.StatusMessage = "cancelled", "It was refused; nothing was done."
	default:
		t.Status, t.Result = "completed", contentOf(draft.Op, result)
	}
	return t, nil
}

// Update implements Tasks. That a person has opened the link says nothing; that they declined ends the wait.
func (d drafts) Update(c *Call, id string, responses []byte) error {
	answer := strictjson.Members(strictjson.Members(responses)["confirm"])
	if action, _ := strictjson.String(answer["action"]); action == "decline" || action == "cancel" {
		return d.Cancel(c, id)
	}
	_, err := d.Get(c, id)
	return err
}

// Cancel implements Tasks. One that is over stays as it is.
func (d drafts) Cancel(c *Call, id string) error {
	_, secret, _ := strings.Cut(id, ".")
	draft, _, err := d.table.Waiting(c.R.Context(), secret)
	if protocol.CodeOf(err) == protocol.NotFound {
		return NoTask()
	}
	if err != nil || !draft.Waits() {
		return err
	}
	if err := d.table.Refuse(c.R.Context(), &draft); err != nil && protocol.CodeOf(err) != protocol.Conflict { // decided meanwhile
		return err
	}
	return nil
}
