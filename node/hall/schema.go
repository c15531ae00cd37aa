package hall

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"stoa/protocol"
)

// RefPrefix is the place of the schemas in the OpenAPI document.
const RefPrefix = "#/components/schemas/"

// Schemas is the registry of all JSON Schemas, made from the struct tags of package protocol. The
// same objects are published and used for checking.
type Schemas struct {
	huma.Registry
	finished map[string]bool                     // by name
	rules    map[*huma.Schema]*protocol.TextRule // of texts
}

// NewSchemas returns an empty registry in the dialect of OpenAPI 3.1 (JSON Schema 2020-12):
// members are matched exactly, lists are never null.
func NewSchemas() *Schemas {
	strict()
	return &Schemas{Registry: huma.NewMapRegistry(RefPrefix, huma.DefaultSchemaNamer), finished: map[string]bool{}, rules: map[*huma.Schema]*protocol.TextRule{}}
}

// Declared returns the schemas of all declared operations, which are made once for all tables of
// a process. Any number of goroutines may read them; Of adds nothing for a declared type.
var Declared = sync.OnceValue(func() *Schemas {
	s := NewSchemas()
	for _, op := range slices.Concat(protocol.Operations(), protocol.LocalOperations()) {
		s.Of(op.In)
		if op.Media == "" {
			s.Of(op.Out)
		}
	}
	return s
})

// strict sets the library's package variables once: member names are case-sensitive (contract §1)
// and lists are never null.
var strict = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
})

// Of returns the schema of a type, with a $ref for a struct.
func (s *Schemas) Of(t reflect.Type) *huma.Schema {
	schema := s.Schema(t, true, t.Name())
	if len(s.Map()) != len(s.finished) { // only new schemas have anything to finish
		s.finish()
	}
	return schema
}

// finish applies the tags that the library does not know: those of protocol.RuleOf and shape on a text or a list of them, orNull on an
// object, decimal on an amount that may be a string or a number, and null among the values of
// a nullable text with an enum.
func (s *Schemas) finish() {
	for name, schema := range s.Map() {
		if s.finished[name] {
			continue
		}
		s.finished[name] = true
		t := s.TypeFromRef(RefPrefix + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		for _, f := range reflect.VisibleFields(t) {
			member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := schema.Properties[member]
			if p == nil { // a member that no document has
				continue
			}
			text := p
			if p.Items != nil {
				text = p.Items
			}
			if rule := protocol.RuleOf(f.Tag); rule != nil {
				s.rules[text] = rule
			}
			if _, shaped := f.Tag.Lookup("shape"); shaped {
				text.Pattern = protocol.PatternOf(f.Tag)
				text.PrecomputeMessages()
				p.PrecomputeMessages()
			}
			if p.Nullable && len(p.Enum) > 0 { // null is no value of a list that does not name it
				p.Enum = append(p.Enum, nil)
				p.PrecomputeMessages()
			}
			if f.Tag.Get("decimal") != "" && p.AnyOf == nil {
				schema.Properties[member] = &huma.Schema{Description: f.Tag.Get("doc"), AnyOf: decimal()}
			}
			if p.Ref != "" && f.Tag.Get("orNull") != "" {
				schema.Properties[member] = &huma.Schema{Description: f.Tag.Get("doc"), AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
			}
		}
	}
}

// decimal returns the forms of an amount (contract §1).
func decimal() []*huma.Schema {
	least := 0.0
	text := &huma.Schema{Type: "string", Pattern: protocol.PatternOf(`shape:"decimal"`), Examples: []any{"120.50"}}
	number := &huma.Schema{Type: "number", Minimum: &least}
	text.PrecomputeMessages()
	number.PrecomputeMessages()
	return []*huma.Schema{text, number}
}

// Resolve follows a reference.
func (s *Schemas) Resolve(schema *huma.Schema) *huma.Schema {
	for schema.Ref != "" {
		schema = s.SchemaFromRef(schema.Ref)
	}
	return schema
}

// Check validates a decoded JSON value and returns every fault, including those of the rule of
// text. Faults beyond protocol.MaxFaults are empty and only count.
func (s *Schemas) Check(schema *huma.Schema, value any) (faults []protocol.Fault) {
	// The library compares list elements with == to find out whether they are unique, which panics
	// for objects and lists. Such an element has the wrong type for every declared list.
	defer func() {
		if recover() != nil {
			faults = append(faults, protocol.Fault{Code: "wrong-type", Detail: "a list contains objects or lists where it must contain strings"})
		}
	}()
	var res huma.ValidateResult
	path := huma.NewPathBuffer(make([]byte, 0, 128), 0)
	huma.Validate(s.Registry, schema, path, huma.ModeWriteToServer, value, &res)
	res.Errors = slices.CompactFunc(res.Errors, sameFault) // the library reports each repeated item
	for _, err := range res.Errors[:min(len(res.Errors), protocol.MaxFaults)] {
		faults = append(faults, faultOf(err))
	}
	if more := len(res.Errors) - protocol.MaxFaults; more > 0 {
		return append(faults, make([]protocol.Fault, more)...)
	}
	s.texts("", schema, value, &faults)
	return faults
}

func sameFault(a, b error) bool {
	x, ok := a.(*huma.ErrorDetail)
	y, also := b.(*huma.ErrorDetail)
	return ok && also && x.Location == y.Location && x.Message == y.Message
}

// faultOf converts an error of the library. It never repeats the value: for an unknown member that
// would be the whole object.
func faultOf(err error) protocol.Fault {
	detail, ok := err.(*huma.ErrorDetail)
	if !ok {
		return protocol.Fault{Code: "invalid", Detail: "is not valid"}
	}
	at := pointer(detail.Location)
	var n int
	var word string
	switch msg := detail.Message; {
	case msg == "unexpected property":
		return protocol.Fault{Pointer: at, Code: "unknown-member", Detail: "there is no such member; check the spelling"}
	case scan(msg, "expected required property %s to be present", &word):
		return protocol.Fault{Pointer: at + "/" + Escape(word), Code: "required", Detail: "is required"}
	case scan(msg, "expected length <= %d", &n):
		return protocol.Fault{Pointer: at, Code: "too-long", Detail: "at most " + count(n, "character")}
	case scan(msg, "expected length >= %d", &n):
		return protocol.Fault{Pointer: at, Code: "too-short", Detail: "at least " + count(n, "character")}
	case scan(msg, "expected array length <= %d", &n):
		return protocol.Fault{Pointer: at, Code: "too-many", Detail: "at most " + count(n, "item")}
	case scan(msg, "expected array length >= %d", &n):
		return protocol.Fault{Pointer: at, Code: "too-few", Detail: "at least " + count(n, "item")}
	case strings.HasPrefix(msg, "expected number <="), strings.HasPrefix(msg, "expected number >="):
		return protocol.Fault{Pointer: at, Code: "out-of-range", Detail: strings.Replace(msg, "expected number", "must be", 1)}
	case msg == "expected value to match at least one schema but matched none":
		return protocol.Fault{Pointer: at, Code: "wrong-shape", Detail: "must be a decimal amount such as \"120.50\" or 120.5"}
	case strings.HasPrefix(msg, "expected value to be one of"):
		return protocol.Fault{Pointer: at, Code: "not-allowed", Detail: strings.ReplaceAll(strings.Replace(msg, "expected value to be", "must be", 1), `"`, "")}
	case msg == "expected string to match pattern "+protocol.PostTagPattern:
		return protocol.Fault{Pointer: at, Code: "wrong-shape", Detail: "must be " + protocol.TagRule}
	case strings.HasPrefix(msg, "expected string to match pattern"):
		return protocol.Fault{Pointer: at, Code: "wrong-shape", Detail: "must match " + strings.TrimPrefix(msg, "expected string to match pattern ")}
	case msg == "expected array items to be unique":
		return protocol.Fault{Pointer: at, Code: "repeated", Detail: "items must differ"}
	case strings.HasPrefix(msg, "expected string to be RFC"):
		return protocol.Fault{Pointer: at, Code: "wrong-shape", Detail: "is not a valid " + formatName(msg)}
	case strings.HasPrefix(msg, "expected "):
		return protocol.Fault{Pointer: at, Code: "wrong-type", Detail: "must be of type " + strings.TrimPrefix(msg, "expected ")}
	default:
		return protocol.Fault{Pointer: at, Code: "invalid", Detail: msg}
	}
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

func scan(msg, format string, into any) bool {
	n, err := fmt.Sscanf(msg, format, into)
	return n == 1 && err == nil
}

func formatName(msg string) string {
	word := strings.TrimPrefix(msg, "expected string to be ")
	word, _, _ = strings.Cut(word, ":")
	return word
}

// pointer converts the library's path ("tags[2].name") to a JSON Pointer.
func pointer(location string) string {
	if location == "" {
		return ""
	}
	var b strings.Builder
	for part := range strings.SplitSeq(location, ".") {
		name, index, indexed := strings.Cut(part, "[")
		if name != "" {
			b.WriteString("/" + Escape(name))
		}
		for indexed {
			var i string
			i, index, indexed = strings.Cut(index, "[")
			if n, err := strconv.Atoi(strings.TrimSuffix(i, "]")); err == nil {
				b.WriteString("/" + strconv.Itoa(n))
			}
		}
	}
	return b.String()
}

// Escape escapes a member's name for a JSON Pointer. The name may come from a stranger, so it is
// shortened and made printable.
func Escape(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	if ordinary(s) {
		return s
	}
	return escapes.Replace(protocol.CleanText(s))
}

// escapes are those of RFC 6901 §3.
var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// ordinary reports whether a name needs no change: most do not, and a request may have thousands.
func ordinary(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '~' || c == '/' {
			return false
		}
	}
	return true
}
