package ucpapi

import (
	"encoding/json"
	"fmt"
	"strconv"

	"stoa/identity/strictjson"
	"stoa/protocol"
)

// bodyLimits are those of every operation of the hall.
var bodyLimits = strictjson.Limits{MaxBytes: MaxBody, MaxDepth: 16, MaxTokens: 8192}

// An object reads members of a JSON object. UCP lets senders add members, so unknown ones are
// ignored. The first fault is kept, and shared with the objects within.
type object struct {
	members map[string]json.RawMessage
	path    string // JSONPath of the object
	fault   **fault
	browse  bool // a search needs no input
}

// parse reads a whole document, which must be an object.
func parse(raw []byte) (*object, *fault) {
	if err := strictjson.Check(raw, bodyLimits); err != nil {
		return nil, badRequest("the body cannot be read as JSON: " + err.Error())
	}
	members := strictjson.Members(raw)
	if members == nil {
		return nil, badRequest("the body must be a JSON object")
	}
	return newObject(members), nil
}

func newObject(members map[string]json.RawMessage) *object {
	return &object{members: members, path: "$", fault: new(*fault)}
}

// wrong records a fault of a member.
func (o *object) wrong(name, detail string) {
	if o != nil && *o.fault == nil {
		at := o.path
		if name != "" {
			at += "." + protocol.Clip(name, 64)
		}
		*o.fault = badRequest(protocol.CleanText(at) + ": " + detail)
	}
}

// get returns a member; null counts as absent.
func (o *object) get(name string) (json.RawMessage, bool) {
	if o == nil {
		return nil, false
	}
	raw, ok := o.members[name]
	return raw, ok && string(raw) != "null"
}

// object returns a member that is an object, nil when it is absent.
func (o *object) object(name string) *object {
	raw, ok := o.get(name)
	if !ok {
		return nil
	}
	members := strictjson.Members(raw)
	if members == nil {
		o.wrong(name, "must be an object")
		return nil
	}
	return &object{members: members, path: o.path + "." + protocol.Clip(name, 64), fault: o.fault}
}

// text returns a member that is a string of at most that many bytes.
func (o *object) text(name string, most int) string {
	raw, ok := o.get(name)
	if !ok {
		return ""
	}
	s, ok := strictjson.String(raw)
	switch {
	case !ok:
		o.wrong(name, "must be a string")
	case len(s) > most:
		o.wrong(name, fmt.Sprintf("at most %d bytes", most))
		return ""
	}
	return s
}

// texts returns a member that is a list of strings.
func (o *object) texts(name string, most, length int) []string {
	var all []string
	for i, raw := range o.list(name) {
		s, ok := strictjson.String(raw)
		switch {
		case !ok:
			o.wrong(name, "must be a list of strings")
			return nil
		case i >= most:
			o.wrong(name, fmt.Sprintf("at most %d values", most))
			return nil
		case len(s) > length:
			o.wrong(name, fmt.Sprintf("a value has at most %d bytes", length))
			return nil
		}
		all = append(all, s)
	}
	return all
}

// list returns the elements of a member that is a list.
func (o *object) list(name string) []json.RawMessage {
	raw, ok := o.get(name)
	if !ok {
		return nil
	}
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		o.wrong(name, "must be a list")
	}
	return all
}

// objects returns the elements of a member that is a list of objects.
func (o *object) objects(name string, most int) []*object {
	var all []*object
	for i, raw := range o.list(name) {
		members := strictjson.Members(raw)
		if members == nil || i >= most {
			o.wrong(name, fmt.Sprintf("must be a list of at most %d objects", most))
			return nil
		}
		all = append(all, &object{members: members, path: o.path + "." + name + "[" + strconv.Itoa(i) + "]", fault: o.fault})
	}
	return all
}

// integer returns a member that is a whole number, written without fraction or exponent: amounts are
// in minor units. sent is false when it is absent.
func (o *object) integer(name string, least, most int64) (n int64, sent bool) {
	raw, ok := o.get(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < least || n > most {
		o.wrong(name, fmt.Sprintf("must be a whole number from %d to %d, without fraction or exponent", least, most))
		return 0, false
	}
	return n, true
}

// number returns a member that is a number.
func (o *object) number(name string, least, most float64) float64 {
	raw, ok := o.get(name)
	var n float64
	if !ok || json.Unmarshal(raw, &n) != nil || n < least || n > most {
		o.wrong(name, fmt.Sprintf("must be a number from %g to %g", least, most))
	}
	return n
}
