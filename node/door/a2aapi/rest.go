package a2aapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// The HTTP+JSON binding of A2A 1.0 (§11) at the endpoints of agents: a method is an HTTP method and a path, its parameters are those of the
// JSON-RPC binding, of the path, the query and the body. The node's own agent has none, since the paths below it belong to agents.

// restRoutes are the addresses of the binding. Most clients subscribe by POST, as the table of §5.3 has it; the definition of the protocol has GET.
func (a *API) restRoutes() []Route {
	all := []Route{}
	add := func(method, path, of string) {
		all = append(all, Route{method, "/a2a/:handle" + path, a.rest(func(*http.Request) string { return of })})
	}
	act := a.rest(func(r *http.Request) string {
		switch _, action, _ := strings.Cut(r.PathValue("task"), ":"); {
		case action == "cancel" && r.Method == http.MethodPost:
			return a2a.CancelTask
		case action == "subscribe":
			return a2a.SubscribeTask
		case action == "" && r.Method == http.MethodGet:
			return a2a.GetTask
		}
		return ""
	})
	add("POST", "/message:send", a2a.SendMessage)
	add("POST", "/message:stream", a2a.StreamMessage)
	add("GET", "/tasks", a2a.ListTasks)
	all = append(all, Route{"GET", "/a2a/:handle/tasks/:task", act}, Route{"POST", "/a2a/:handle/tasks/:task", act})
	add("POST", "/tasks/:task/pushNotificationConfigs", a2a.CreatePush)
	add("GET", "/tasks/:task/pushNotificationConfigs", a2a.ListPush)
	add("GET", "/tasks/:task/pushNotificationConfigs/:config", a2a.GetPush)
	add("DELETE", "/tasks/:task/pushNotificationConfigs/:config", a2a.DeletePush)
	add("GET", "/extendedAgentCard", a2a.ExtendedCard)
	return all
}

// rest serves the method that a request is.
func (a *API) rest(of func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := a.visit(w, r)
		v.m.rest, v.m.method = true, of(r)
		var body []byte
		var err error
		if r.Method == http.MethodPost && r.ContentLength != 0 {
			body, err = readBody(w, r)
		}
		if err != nil {
			a.refuse(v, err)
			return
		}
		w.Header().Set("A2A-Version", a2a.Version)
		if v.m.method == "" {
			a.refuse(v, a2a.ErrMethodNotFound.With("there is no such method of a task"))
			return
		}
		if version, wrong := a2a.Negotiate(versionOf(r), v.m.method); wrong != nil || version != a2a.Version {
			const text = "the HTTP+JSON binding has version 1.0; 0.3 is at the same address by JSON-RPC"
			a.refuse(v, a2a.ErrVersionNotSupported.With(text, "supportedVersions", a2a.Version))
			return
		}
		var broken error
		v.m.params, broken = restParams(r, v.m.method, body)
		a.process(v, body, broken)
	})
}

// isREST reports whether a request is of this binding, by its path.
func isREST(r *http.Request) bool {
	rest, _ := strings.CutPrefix(r.URL.Path, "/a2a/")
	_, rest, _ = strings.Cut(rest, "/")
	at, _, _ := strings.Cut(rest, "/")
	return at == "tasks" || strings.HasPrefix(at, "message:") || at == "extendedAgentCard"
}

// restParams are the parameters of a method. Those of the path override others.
func restParams(r *http.Request, method string, body []byte) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(body) > 0 {
		if err := strictjson.Check(body, bodyLimits); err != nil {
			return nil, a2a.ErrParse.With("the body cannot be read as JSON: " + err.Error())
		}
		if json.Unmarshal(body, &members) != nil || members == nil {
			return nil, a2a.ErrInvalidRequest.With("the body must be an object")
		}
	}
	put := func(name, value string) {
		members[name], _ = json.Marshal(value) // cannot fail: it is a string
	}
	if r.Method == http.MethodGet {
		for name, values := range r.URL.Query() {
			if put(name, values[0]); values[0] == "true" || values[0] == "false" {
				members[name] = json.RawMessage(values[0])
			}
		}
	}
	id, _, _ := strings.Cut(r.PathValue("task"), ":")
	switch method {
	case a2a.GetTask, a2a.CancelTask, a2a.SubscribeTask:
		put("id", id)
	case a2a.CreatePush, a2a.ListPush, a2a.GetPush, a2a.DeletePush:
		delete(members, "task_id")
		if put("taskId", r.PathValue("task")); r.PathValue("config") != "" {
			put("id", r.PathValue("config"))
		}
	}
	return json.Marshal(members)
}

// restStatus returns the HTTP status of an error in this binding (A2A 1.0 §5.4, §11.6).
func restStatus(err error) int {
	e, ok := errors.AsType[*a2a.Error](err)
	if !ok {
		return protocol.CodeOf(err).Status()
	}
	switch e.Code {
	case a2a.ErrTaskNotFound.Code, a2a.ErrMethodNotFound.Code:
		return http.StatusNotFound
	case a2a.ErrInternal.Code:
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// rpcNames are the names of google.rpc.Code for HTTP statuses.
var rpcNames = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusNotFound: "NOT_FOUND", http.StatusConflict: "ABORTED", http.StatusGone: "FAILED_PRECONDITION", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED",
	http.StatusInternalServerError: "INTERNAL", http.StatusServiceUnavailable: "UNAVAILABLE", http.StatusUnprocessableEntity: "INVALID_ARGUMENT",
	http.StatusRequestEntityTooLarge: "INVALID_ARGUMENT", http.StatusUnsupportedMediaType: "INVALID_ARGUMENT",
}

// A restError is a google.rpc.Status over HTTP (AIP-193).
type restError struct {
	Error struct {
		Code    int    `json:"code"`
		Status  string `json:"status"`
		Message string `json:"message"`
		Details any    `json:"details,omitempty"`
	} `json:"error"`
}

func newRestError(status, code int, text string, details any) (e restError) {
	e.Error.Code, e.Error.Status, e.Error.Message, e.Error.Details = status, rpcNames[status], text, details
	switch {
	case code <= a2a.ErrTaskNotCancelable.Code && code > a2a.ErrTaskNotCancelable.Code-8 && code != a2a.ErrContentType.Code:
		e.Error.Status = "FAILED_PRECONDITION"
	case e.Error.Status == "":
		e.Error.Status = "UNKNOWN"
	}
	return e
}

// send writes an answer.
func send(w http.ResponseWriter, status int, media string, body []byte) {
	head := w.Header()
	head.Set("Content-Type", media)
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}
