// Package schemas holds the published contract, generated from the declarations
// in package protocol and committed: openapi.json, the OpenAPI description, which a
// node makes itself from the declarations, and the JSON Schema of a profile, which it
// serves with its own address filled in.
package schemas

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
)

//go:embed agent-profile.v1.json.gz
var packed []byte

// AgentProfile is agent-profile.v1.json, with an $id relative to the node.
var AgentProfile = unpacked()

func unpacked() []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // it is a part of the program
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return raw
}
