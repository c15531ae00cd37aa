package a2a

import (
	"slices"
	"strconv"
	"strings"

	"stoa/protocol"
)

// Methods of the JSON-RPC binding that are done here.
const (
	SendMessage = "SendMessage"
	GetTask     = "GetTask"
	CancelTask  = "CancelTask" // of one's own task it is refused, of another's unknown
)

// methods are all that version 1.0 has. The value says how one that is not done
// here is refused (A2A 1.0 §3.1, §9.4); nil is done.
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

// Unoffered returns how a method is refused, nil for one that is done here.
func Unoffered(method string) *Error {
	refusal, known := methods[method]
	if !known {
		return ErrMethodNotFound.With("there is no method " + protocol.Clip(method, 64) + " in A2A " + Version)
	}
	if refusal == nil {
		return nil
	}
	return refusal.With(method + " is not offered here; use " + SendMessage + " and " + GetTask)
}

// Negotiate checks the version that a request asks for: the A2A-Version header,
// else the query parameter of that name. Without either the specification means
// 0.3; a method name of 1.0 shows that the client only forgot (A2A 1.0 §3.6).
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
