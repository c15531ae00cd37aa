package integrity

import (
	"encoding/json"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// posted returns the input of the operation that wrote this, in a signed request to its home node: the body of its route, the arguments of the
// tool call at its MCP door, or the input of the data part at an A2A endpoint. A post is written by post_to_board, or changed by edit_post. ok is
// false for any other request.
func (c Claim) posted(msg *httpsig.Message, target string, body []byte) (input []byte, edit, ok bool) {
	name := ""
	path, ours := strings.CutPrefix(target, c.base())
	switch {
	case !ours:
		return nil, false, false
	case msg.Method == "PUT" && path == PostPath+"/"+c.id():
		name, input, edit = protocol.EditPost.Name, body, true
	case msg.Method != "POST":
		return nil, false, false
	case path == PostPath:
		name, input = protocol.PostToBoard.Name, body
	case path == protocol.MCPPath:
		name, input = calledByMCP(body)
	case path == a2a.Path(""), strings.HasPrefix(path, a2a.Path("")+"/"):
		name, input = sentByA2A(body)
	case c.Call != nil && c.Call.At(path):
		name, input = c.Call.Operation, body
	}
	if c.Call != nil {
		return input, false, name == c.Call.Operation
	}
	if name == protocol.EditPost.Name && !edit {
		var in struct {
			ID string `json:"id"`
		}
		edit = strictjson.DecodeLoose(input, &in) == nil && in.ID == c.id()
	}
	return input, edit, name == protocol.PostToBoard.Name || edit
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
	if strictjson.DecodeLoose(body, &request) != nil {
		return "", nil
	}
	version, sends := a2a.Sends(request.Method)
	if !sends {
		return "", nil
	}
	send, err := a2a.ParseSend(version, request.Params)
	if err != nil {
		return "", nil
	}
	call, err := a2a.FindCall(send.Message.Parts)
	if err != nil || call == nil {
		return "", nil
	}
	return call.Name, call.Input
}
