package integrity

import (
	"encoding/json"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// posted returns the input of post_to_board in a signed request to the post's home node: the body
// of its route, the arguments of the tool call at its MCP door, or the input of the data part at
// an A2A endpoint. ok is false for any other request.
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
	if handle, there := strings.CutPrefix(target, c.base()+a2a.Path("")); there && (handle == "" || handle[0] == '/') {
		return sentByA2A(body)
	}
	return nil, false
}

func sentByA2A(body []byte) (input []byte, ok bool) {
	var request struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if strictjson.DecodeLoose(body, &request) != nil || request.Method != a2a.SendMessage {
		return nil, false
	}
	send, err := a2a.ParseSend(request.Params)
	if err != nil {
		return nil, false
	}
	call, err := a2a.FindCall(send.Message.Parts)
	if err != nil || call == nil || call.Name != protocol.PostToBoard.Name {
		return nil, false
	}
	return call.Input, true
}
