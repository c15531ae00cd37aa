package a2a

import (
	"encoding/json"
	"fmt"
)

// A Call is a data part that names an operation of the node.
type Call struct {
	Part  int // which of the parts it is
	Name  string
	Input json.RawMessage // an object; nil when absent
}

// At is the path of its data.
func (c *Call) At() string { return fmt.Sprintf("message.parts[%d].data", c.Part) }

// FindCall returns the one data part that names an operation, nil when there is none.
func FindCall(parts []Part) (*Call, error) {
	var found *Call
	for i, p := range parts {
		var members map[string]json.RawMessage
		if len(p.Data) == 0 || p.Data[0] != '{' || json.Unmarshal(p.Data, &members) != nil {
			continue
		}
		c := &Call{Part: i, Input: members["input"]}
		if !decodeText(members["operation"], &c.Name) {
			continue
		}
		at := c.At()
		switch {
		case found != nil:
			return nil, Invalid(Violation{Field: at, Description: "a message calls at most one operation"})
		case len(c.Input) > 0 && c.Input[0] != '{':
			return nil, Invalid(Violation{Field: at + ".input", Description: "must be an object"})
		}
		found = c
	}
	return found, nil
}
