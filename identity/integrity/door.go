package integrity

import (
	"encoding/json"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// posted returns the input of post_to_board, or of edit_post of this post, in a signed request to the post's home node: the
// body of its route, the arguments of the tool call at its MCP door, or the input of the data part at an A2A endpoint. ok is
// false for any other request.
func (c Claim) posted(msg *httpsig.Message, target string, body []byte) (input []byte, edit, ok bool) {
	name := ""
	switch base := c.base(); {
	case msg.Method == "PUT" && target == base+PostPath+"/"+c.id():
		return body, true, true
	case msg.Method != "POST":
		return nil, false, false
	case target == base+PostPath:
		return body, false, true
	case target == base+protocol.MCPPath:
		name, input = calledByMCP(body)
	case target == base+a2a.Path(""), strings.HasPrefix(target, base+a2a.Path("")+"/"):
		name, input = sentByA2A(body)
	}
	switch name {
	case protocol.PostToBoard.Name:
		return input, false, true
	case protocol.EditPost.Name:
		var in struct {
			ID string `json:"id"`
		}
		return input, true, strictjson.DecodeLoose(input, &in) == nil && in.ID == c.id()
	}
	return nil, false, false
}

// id returns the post's id on its home node.
func (c Claim) id() string { return c.ID[strings.LastIndexByte(c.ID, '/')+1:] }

func calledByMCP(body []byte) (name string, input []byte) {
	var call struct {
		Method string `json:"method"`
		Params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	if strictjson.DecodeLoose(body, &call) != nil || call.Method != "tools/call" {
		return "", nil
	}
	return call.Params.Name, call.Params.Arguments
}

func sentByA2A(body []byte) (name string, input []byte) {
	var request struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if strictjson.DecodeLoose(body, &request) != nil || request.Method != a2a.SendMessage {
		return "", nil
	}
	send, err := a2a.ParseSend(request.Params)
	if err != nil {
		return "", nil
	}
	call, err := a2a.FindCall(send.Message.Parts)
	if err != nil || call == nil {
		return "", nil
	}
	return call.Name, call.Input
}
