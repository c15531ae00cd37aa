package a2a

import (
	"slices"
	"strconv"
	"strings"

	"stoa/protocol"
)

// The supported versions; patch numbers are never sent.
const (
	Version = "1.0"
	Legacy  = "0.3"
)

// Methods of the JSON-RPC binding, by their names in 1.0.
const (
	SendMessage   = "SendMessage"
	StreamMessage = "SendStreamingMessage"
	GetTask       = "GetTask"
	ListTasks     = "ListTasks"
	CancelTask    = "CancelTask"
	SubscribeTask = "SubscribeToTask"
	CreatePush    = "CreateTaskPushNotificationConfig"
	GetPush       = "GetTaskPushNotificationConfig"
	ListPush      = "ListTaskPushNotificationConfigs"
	DeletePush    = "DeleteTaskPushNotificationConfig"
	ExtendedCard  = "GetExtendedAgentCard"
)

// methods are all methods of version 1.0, with the error for those that are not supported (A2A 1.0
// §3.1, §9.4); nil for supported ones.
var methods = map[string]*Error{
	SendMessage:   nil,
	GetTask:       nil,
	StreamMessage: nil,
	SubscribeTask: nil,
	ListTasks:     nil,
	CancelTask:    nil,
	CreatePush:    nil,
	GetPush:       nil,
	ListPush:      nil,
	DeletePush:    nil,
	ExtendedCard:  nil,
}

// legacy are the methods of version 0.3 (A2A 0.3 §7), by their names there. It has no list of tasks.
var legacy = map[string]string{
	"message/send": SendMessage, "message/stream": StreamMessage, "tasks/get": GetTask, "tasks/cancel": CancelTask, "tasks/resubscribe": SubscribeTask,
	"tasks/pushNotificationConfig/set": CreatePush, "tasks/pushNotificationConfig/get": GetPush, "tasks/pushNotificationConfig/list": ListPush,
	"tasks/pushNotificationConfig/delete": DeletePush, "agent/getAuthenticatedExtendedCard": ExtendedCard,
}

// Method returns the name in 1.0 of a method of a version. The error says that there is none, or that it is not supported.
func Method(version, method string) (string, *Error) {
	name := method
	if version == Legacy {
		name = legacy[method]
	}
	refusal, known := methods[name]
	if !known {
		return "", ErrMethodNotFound.With("there is no method " + protocol.Clip(method, 64) + " in A2A " + version)
	}
	if refusal == nil {
		return name, nil
	}
	return name, refusal.With(method + " is not supported here; send a message and ask for its task")
}

// Sends reports whether a method, of either version, sends a message, and of which version it is.
func Sends(method string) (version string, sends bool) {
	version = Version
	if name, known := legacy[method]; known {
		version, method = Legacy, name
	}
	return version, method == SendMessage || method == StreamMessage
}

// Negotiate returns the version that a request asks for: in the header A2A-Version, otherwise in
// the query parameter of that name. Without either it is 0.3, but a method
// name of 1.0 shows that the client only forgot it (A2A 1.0 §3.6).
func Negotiate(asked, method string) (string, *Error) {
	asked = strings.TrimSpace(asked)
	if asked == "" {
		if _, known := methods[method]; known {
			return Version, nil
		}
		return Legacy, nil
	}
	switch major, minor, ok := parseVersion(asked); {
	case ok && major == 1 && minor == 0:
		return Version, nil
	case ok && major == 0 && minor == 3:
		return Legacy, nil
	}
	return Version, ErrVersionNotSupported.With("A2A version "+protocol.Clip(asked, 64)+" is not supported", "supportedVersions", Version+","+Legacy)
}

// parseVersion reads major[.minor[.patch]]; the patch is ignored.
func parseVersion(s string) (major, minor int, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 3 || slices.ContainsFunc(parts, func(p string) bool { return p == "" || len(p) > 4 || strings.Trim(p, "0123456789") != "" }) {
		return 0, 0, false
	}
	major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	return major, minor, true
}

// LegacyMethod returns the name in 0.3 of a method, by its name in 1.0; "" for one that 0.3 has not.
func LegacyMethod(name string) string {
	for old, now := range legacy {
		if now == name {
			return old
		}
	}
	return ""
}
