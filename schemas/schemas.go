// Package schemas holds the published contract, generated from the declarations
// in package protocol and committed: the OpenAPI description and the JSON
// Schema of a profile. A node serves them with its own address filled in.
package schemas

import _ "embed"

// OpenAPI is openapi.json, with the server "/".
//
//go:embed openapi.json
var OpenAPI []byte

// AgentProfile is agent-profile.v1.json, with an $id relative to the node.
//
//go:embed agent-profile.v1.json
var AgentProfile []byte
