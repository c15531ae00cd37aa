package integrity

import (
	"encoding/json"

	"stoa/identity/httpsig"
	"stoa/identity/strictjson"
	"stoa/protocol"
)

// posted returns the input of post_to_board that a signed request to the post's
// home node carries: the body of its route, or the arguments of the tool call
// at its MCP door. ok is false for any other request.
func (c Claim) posted(msg *httpsig.Message, target string, body []byte) (input []byte, ok bool) {
	if msg.Method != "POST" {
		return nil, false
	}
	switch target {
	case c.base() + PostPath:
		return body, true
	case c.base() + protocol.MCPPath:
		var call struct {
			Method string `json:"method"`
			Params struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if strictjson.DecodeLoose(body, &call) == nil && call.Method == "tools/call" && call.Params.Name == protocol.PostToBoard.Name {
			return call.Params.Arguments, true
		}
	}
	return nil, false
}
