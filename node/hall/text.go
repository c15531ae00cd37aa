package hall

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"stoa/identity/proof"
	"stoa/protocol"
)

// texts applies the rule of text (protocol.Unfit) to every string of a value, and to the names of
// its members. A string that the schema requires to be non-empty must contain something visible, and one whose field has a rule
// (protocol.RuleOf) follows it.
// Types that keep bytes unchanged are skipped: []byte, which is sent as base64, and raw JSON (a
// JWK, a signed document), which has its own parser and is never shown as text.
func (s *Schemas) texts(at string, schema *huma.Schema, value any, faults *[]protocol.Fault) {
	if schema != nil {
		if schema = s.Resolve(schema); verbatim(schema) {
			return
		}
	}
	switch v := value.(type) {
	case string:
		if f := protocol.TextFault(at, v); f != nil {
			*faults = append(*faults, *f)
		} else if f := protocol.AddressFault(at, v); f != nil && schema != nil && strings.HasPrefix(schema.Format, "uri") {
			*faults = append(*faults, *f)
		} else if v != "" && schema != nil && schema.MinLength != nil && *schema.MinLength > 0 && protocol.Blank(v) {
			*faults = append(*faults, protocol.Fault{Pointer: at, Code: "blank", Detail: "must contain a visible character"})
		}
		*faults = append(*faults, s.rules[schema].Faults(at, v)...)
	case []any:
		var items *huma.Schema
		if schema != nil {
			items = schema.Items
		}
		for i, e := range v {
			s.texts(at+"/"+strconv.Itoa(i), items, e, faults)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := at + "/" + Escape(name)
			if f := protocol.TextFault(at, name); f != nil {
				*faults = append(*faults, *f)
			}
			s.texts(at, member(schema, name), v[name], faults)
		}
	}
}

func member(schema *huma.Schema, name string) *huma.Schema {
	if schema == nil {
		return nil
	}
	if p := schema.Properties[name]; p != nil {
		return p
	}
	extra, _ := schema.AdditionalProperties.(*huma.Schema)
	return extra
}

// verbatim reports the schemas of []byte and json.RawMessage.
func verbatim(schema *huma.Schema) bool {
	raw := schema.Type == "" && len(schema.AnyOf) == 0 && len(schema.OneOf) == 0 && len(schema.AllOf) == 0
	return raw || schema.ContentEncoding == "base64"
}

// errAlike means that a proof of work does not pay for a text that is similar to others.
var errAlike = errors.New("hall: the text is like others")

// proseFrom is the length, in characters, that a member must allow for its value to count as
// prose; names and titles often repeat.
const proseFrom = 100

// prose returns the text of an anonymous write, nil for every other call. Reports do not count,
// because honest reporters write the same.
func (t *Table) prose(e *entry, c protocol.Caller, value map[string]any) *proof.Text {
	if c.Standing != protocol.Proof || e.op.ReadOnly || e.op.Inward {
		return nil
	}
	var all []string
	schema := t.Schemas.Resolve(e.in)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		p := t.Schemas.Resolve(schema.Properties[name])
		s, ok := value[name].(string)
		free := p.Pattern == "" && p.Format == "" && len(p.Enum) == 0 && (p.MaxLength == nil || *p.MaxLength >= proseFrom)
		if ok && free && !protocol.Blank(s) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return proof.NewText(strings.Join(all, "\n"))
}
