package mcpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"stoa/identity/strictjson"
	"stoa/protocol"
)

// The supported revisions, newest first. The first needs no handshake.
const latest = "2026-07-28"

var versions = []string{latest, "2025-11-25", "2025-06-18", "2025-03-26"}

// Versions returns the supported revisions, newest first.
func Versions() []string { return slices.Clone(versions) }

// latestLegacy is the revision that a handshake agrees on when the client asks for an unknown one.
const latestLegacy = "2025-11-25"

// A wire is a generation of the protocol.
type wire uint8

const (
	legacy wire = iota // up to 2025-11-25: handshake, errors under status 200
	modern             // 2026-07-28: every request states its version, errors have an HTTP status
)

// Members of _meta that each modern request carries.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
)

// A message is one JSON-RPC request or notification. Member names are case-sensitive, so that a
// proxy that checked the headers has read the same message.
type message struct {
	id     json.RawMessage // as sent; nil for a notification
	method string
	params map[string]json.RawMessage
	meta   map[string]json.RawMessage
	wire   wire

	awaited bool // its answer was waited for
}

// The hall checks the arguments again within its own limits; these only leave room for the
// envelope.
var bodyLimits = strictjson.Limits{MaxBytes: MaxBody, MaxDepth: 24, MaxTokens: 8192 + 256}

// parse reads a body. On an error the message may still have its id.
func parse(body []byte) (*message, error) {
	if err := strictjson.Check(body, bodyLimits); err != nil {
		return nil, &rpcError{status: http.StatusBadRequest, code: parseError, text: "the body cannot be read as JSON", always: true,
			data: errorData{Code: protocol.InvalidRequest, Detail: err.Error()}}
	}
	members := strictjson.Members(body)
	if members == nil {
		return nil, invalid("send one JSON-RPC request object; batches are not supported")
	}
	m := &message{}
	id, hasID := members["id"]
	if hasID {
		if !goodID(id) {
			return nil, invalid("id must be a string or a whole number")
		}
		m.id = id
	}
	if string(members["jsonrpc"]) != `"2.0"` {
		return m, invalid(`jsonrpc must be "2.0"`)
	}
	if m.method, _ = strictjson.String(members["method"]); m.method == "" {
		return m, invalid("method must be the name of a method; responses are not accepted")
	}
	if raw, sent := members["params"]; sent {
		if m.params = strictjson.Members(raw); m.params == nil {
			return m, invalid("params must be an object")
		}
	}
	if raw, sent := m.params["_meta"]; sent {
		if m.meta = strictjson.Members(raw); m.meta == nil {
			return m, invalidParams("_meta must be an object")
		}
	}
	return m, nil
}

func goodID(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	return len(id) <= 20 && (id[0] == '-' || id[0] >= '0' && id[0] <= '9') && !strings.ContainsAny(string(id), ".eE")
}

// agree determines the generation of a request and checks the headers that it requires.
func (m *message) agree(head http.Header) error {
	sent, named := head.Values("MCP-Protocol-Version"), m.meta[metaVersion] != nil
	header := ""
	if len(sent) > 0 {
		header = strings.TrimSpace(sent[0])
	}
	if named || isDate(header) && header >= latest {
		m.wire = modern
		return m.agreeModern(head, header, len(sent))
	}
	if header != "" && !slices.Contains(versions, header) {
		return unsupported(header)
	}
	return nil
}

func (m *message) agreeModern(head http.Header, header string, sent int) error {
	version, ok := strictjson.String(m.meta[metaVersion])
	if !ok {
		return invalidParams("_meta needs " + metaVersion)
	}
	if !bytes.HasPrefix(m.meta[metaCapabilities], []byte("{")) {
		return invalidParams("_meta needs " + metaCapabilities)
	}
	if sent != 1 || header != version {
		return mismatch("MCP-Protocol-Version", metaVersion)
	}
	if version != latest {
		return unsupported(version)
	}
	if method := head.Values("Mcp-Method"); len(method) != 1 || strings.TrimSpace(method[0]) != m.method {
		return mismatch("Mcp-Method", "method")
	}
	var member string
	switch m.method {
	case "tools/call", "prompts/get":
		member = "name"
	case "resources/read":
		member = "uri"
	case "tasks/get", "tasks/update", "tasks/cancel": // which a client may name, and not otherwise (SEP-2663)
		id, _ := strictjson.String(m.params["taskId"])
		if name := head.Values("Mcp-Name"); len(name) > 0 && (len(name) > 1 || decodeName(name[0]) != id) {
			return mismatch("Mcp-Name", "params.taskId")
		}
		return nil
	default: // requiring Mcp-Name for other methods breaks clients
		return nil
	}
	want, ok := strictjson.String(m.params[member])
	if !ok {
		return invalidParams("params needs " + member)
	}
	if name := head.Values("Mcp-Name"); len(name) != 1 || decodeName(name[0]) != want {
		return mismatch("Mcp-Name", "params."+member)
	}
	return nil
}

// decodeName decodes a name that was wrapped because a header cannot carry it as it is.
func decodeName(s string) string {
	s = strings.TrimSpace(s)
	if inner, ok := strings.CutPrefix(s, "=?base64?"); ok {
		if inner, ok = strings.CutSuffix(inner, "?="); ok {
			if raw, err := base64.StdEncoding.DecodeString(inner); err == nil {
				return string(raw)
			}
		}
	}
	return s
}

// isDate reports whether a version has the form of a date, so that versions may be compared as
// text.
func isDate(s string) bool {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return false
	}
	return strings.Trim(s[:4]+s[5:7]+s[8:], "0123456789") == ""
}
