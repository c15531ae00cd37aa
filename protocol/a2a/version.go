package a2a

import (
	"slices"
	"strconv"
	"strings"

	"stoa/protocol"
)

// Supported methods of the JSON-RPC binding.
const (
	SendMessage = "SendMessage"
	GetTask     = "GetTask"
	CancelTask  = "CancelTask" // fails for the caller's own task, not found for another's
)

// methods are all methods of version 1.0, with the error for those that are not supported (A2A 1.0
// §3.1, §9.4); nil for supported ones.
var methods = map[string]*Error{
	SendMessage:                        nil,
	GetTask:                            nil,
	"SendStreamingMessage":             ErrUnsupportedOperation,
	"SubscribeToTask":                  ErrUnsupportedOperation,
	"ListTasks":                        ErrUnsupportedOperation,
	CancelTask:                         nil,
	"CreateTaskPushNotificationConfig": ErrPushNotSupported,
	"GetTaskPushNotificationConfig":    ErrPushNotSupported,
	"ListTaskPushNotificationConfigs":  ErrPushNotSupported,
	"DeleteTaskPushNotificationConfig": ErrPushNotSupported,
	"GetExtendedAgentCard":             ErrUnsupportedOperation,
}

// Unoffered returns the error for a method, nil for a supported one.
func Unoffered(method string) *Error {
	refusal, known := methods[method]
	if !known {
		return ErrMethodNotFound.With("there is no method " + protocol.Clip(method, 64) + " in A2A " + Version)
	}
	if refusal == nil {
		return nil
	}
	return refusal.With(method + " is not supported here; use " + SendMessage + " and " + GetTask)
}

// Negotiate checks the version that a request asks for: in the header A2A-Version, otherwise in
// the query parameter of that name. Without either the specification assumes 0.3, but a method
// name of 1.0 shows that the client only forgot it (A2A 1.0 §3.6).
func Negotiate(asked, method string) *Error {
	asked = strings.TrimSpace(asked)
	if asked == "" {
		if _, known := methods[method]; known || method == "" {
			return nil
		}
		asked = "0.3"
	}
	if major, minor, ok := parseVersion(asked); ok && major == 1 && minor == 0 {
		return nil
	}
	return ErrVersionNotSupported.With("A2A version "+protocol.Clip(asked, 64)+" is not supported", "supportedVersions", Version)
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
