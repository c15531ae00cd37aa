package strictjson

import (
	"errors"
	"io"
	"strings"

	"stoa/protocol"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxPointer is in bytes: the document determines the length of a pointer.
const maxPointer = 200

// at returns the position of the decoder.
func at(dec *jsontext.Decoder) string { return protocol.Clip(string(dec.StackPointer()), maxPointer) }

// plain converts an error of the JSON library to a *SyntaxError in plain words.
func plain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &SyntaxError{Detail: "the document ends too early"}
	}
	if syn, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return &SyntaxError{protocol.Clip(string(syn.JSONPointer), maxPointer), syntax(syn.Err)}
	}
	if sem, ok := errors.AsType[*json.SemanticError](err); ok {
		return &SyntaxError{protocol.Clip(string(sem.JSONPointer), maxPointer), meaning(sem)}
	}
	return &SyntaxError{Detail: err.Error()}
}

func syntax(err error) string {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "this member occurs twice"
	case errors.Is(err, jsontext.ErrNonStringName):
		return "a member's name must be a string"
	case err == nil:
		return "not JSON"
	}
	text := strings.TrimPrefix(err.Error(), "jsontext: ")
	if strings.Contains(text, "UTF-8") || strings.Contains(text, "surrogate") {
		return "text is not valid UTF-8"
	}
	return "not JSON: " + text
}

func meaning(e *json.SemanticError) string {
	if errors.Is(e.Err, json.ErrUnknownName) {
		return "unknown member; check its spelling"
	}
	var got string
	switch e.JSONKind {
	case 'n':
		got = "null"
	case 't', 'f':
		got = "a boolean"
	case '"':
		got = "a string"
	case '0':
		got = "a number"
	case '{':
		got = "an object"
	case '[':
		got = "an array"
	default:
		got = "this value"
	}
	if e.Err != nil {
		if syn, ok := errors.AsType[*SyntaxError](e.Err); ok {
			return syn.Detail
		}
	}
	if want := wanted(e); want != "" && want != got {
		return got + " where " + want + " belongs"
	}
	return got + " does not fit here"
}

func wanted(e *json.SemanticError) string {
	if e.GoType == nil {
		return ""
	}
	switch kind := e.GoType.Kind().String(); {
	case e.GoType.String() == "time.Time":
		return "a time such as 2026-11-20T10:00:00Z"
	case kind == "string":
		return "a string"
	case kind == "bool":
		return "a boolean"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "slice", kind == "array":
		return "an array"
	case kind == "struct", kind == "map":
		return "an object"
	}
	return ""
}
