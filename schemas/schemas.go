// Package schemas holds the published contract, generated from the declarations
// in package protocol and committed: openapi.json, the OpenAPI description, which a
// node makes itself from the declarations, and the JSON Schema of a profile, which it
// serves with its own address filled in.
package schemas

import _ "embed"

// AgentProfile is agent-profile.v1.json, with an $id relative to the node.
//
//go:embed agent-profile.v1.json
var AgentProfile []byte
