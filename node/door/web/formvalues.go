package web

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"stoa/protocol"
)

// shows returns what the fields of the table hold of a value, which has the members of the operation's input.
func (t *formTable) shows(v any) url.Values {
	out := url.Values{}
	each(t.controls, func(c control) {
		if c.secret || c.member == "" {
			return
		}
		m, _ := memberAt(t.op.In, c.member)
		x := valueAt(reflect.ValueOf(v), c.member)
		switch {
		case c.text != nil && x.IsValid():
			out.Set(c.name, c.text.show(x.Interface()))
		case c.text != nil:
			out.Set(c.name, "")
		case c.as == ticks && x.IsValid():
			for i := range x.Len() {
				out.Add(c.name, x.Index(i).String())
			}
		case c.as == ticks:
			out[c.name] = nil
		case !x.IsValid() && m.tag.Get("default") == "true":
			out.Set(c.name, "true")
		case !x.IsValid():
			out.Set(c.name, "")
		case x.Kind() == reflect.Slice && c.as == aBox:
			out.Set(c.name, strings.Join(textsOf(x), "\n"))
		case x.Kind() == reflect.Slice:
			out.Set(c.name, strings.Join(textsOf(x), ", "))
		case x.IsZero() && x.CanInt() && m.tag.Get("minimum") != "0":
			out.Set(c.name, "")
		default:
			out.Set(c.name, textOf(x))
		}
	})
	return out
}

// valueAt returns a member of a struct by its path, without pointers; the zero Value where there is none.
func valueAt(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		m, ok := membersOf(v.Type())[name]
		if !ok {
			return reflect.Value{}
		}
		v = v.FieldByIndex(m.index)
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// textOf returns a value as it is written in a field.
func textOf(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case protocol.Money:
		return x.Amount
	case bool:
		return yes(x)
	case int:
		return strconv.Itoa(x)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return v.String()
}

func textsOf(list reflect.Value) []string {
	texts := make([]string, list.Len())
	for i := range texts {
		texts[i] = textOf(list.Index(i))
	}
	return texts
}

// apart are the fields of forms that are no members of an input, though one may have the same name.
var apart = []string{"do", "version", "once", "part", "list", "preview", "more"}

// inputOf returns the input of an operation that a form means. A field without text is left out; a number that is none
// stays a text, so that the check of the schema says what is wrong with it.
func inputOf(op *protocol.Operation, form url.Values) map[string]any { return inputOver(op, nil, form) }

// inputOver is inputOf for a part of what an operation writes: what the form does not show is as in stored.
func inputOver(op *protocol.Operation, stored any, form url.Values) map[string]any {
	args := map[string]any{}
	if raw, err := json.Marshal(stored); err == nil && stored != nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		_ = d.Decode(&args)
	}
	t, named := tableOf(op, form.Get("part")), map[string]bool{}
	if t != nil {
		each(t.controls, func(c control) {
			named[c.name] = true
			if c.member == "" {
				return
			}
			m, _ := memberAt(op.In, c.member)
			setMember(args, strings.Split(c.member, "."), c.means(m, form))
		})
	}
	for name := range form {
		if m, ok := memberAt(op.In, name); ok && !named[name] && !slices.Contains(apart, name) && stored == nil {
			setMember(args, []string{name}, line(name, noLabel).means(m, form))
		}
	}
	if t != nil && t.finish != nil {
		t.finish(form, args)
	}
	return args
}

// setMember sets a member by its path, nil removes it, and what has no member then.
func setMember(args map[string]any, path []string, v any) {
	if len(path) > 1 {
		within, _ := args[path[0]].(map[string]any)
		if within == nil {
			within = map[string]any{}
		}
		setMember(within, path[1:], v)
		args[path[0]] = within
		if len(within) == 0 {
			delete(args, path[0])
		}
		return
	}
	if v == nil {
		delete(args, path[0])
		return
	}
	args[path[0]] = v
}

// means returns the JSON value that a field means, nil for nothing.
func (c control) means(m member, form url.Values) any {
	text := form.Get(c.name)
	blank := strings.TrimSpace(text) == ""
	switch {
	case m.typ.Kind() == reflect.Bool && c.text == nil:
		return !blank
	case blank && len(form[c.name]) < 2:
		return nil
	case c.text != nil:
		return c.text.mean(text)
	case m.typ.Kind() == reflect.Slice:
		return c.meansList(m.typ.Elem(), form)
	case m.tag.Get("decimal") != "":
		return plainAmount(protocol.Rupee, text)
	case m.typ.Kind() == reflect.Int || m.typ.Kind() == reflect.Int64:
		return coerce("integer", strings.TrimSpace(protocol.FoldDigits(text)))
	case m.typ.Kind() == reflect.Float64:
		if n, err := strconv.ParseFloat(plainAmount(protocol.Rupee, text), 64); err == nil && math.Abs(n) <= 1e15 {
			return n
		}
	case m.tag.Get("format") == "uri" || m.tag.Get("shape") != "":
		return strings.TrimSpace(text)
	}
	return text
}

func (c control) meansList(of reflect.Type, form url.Values) any {
	list, text := form[c.name], form.Get(c.name)
	switch {
	case c.as == ticks || len(list) > 1:
	case c.as == aBox:
		list = textLines(text)
	default:
		list = tidyList(c.name, text)
	}
	values := make([]any, len(list))
	for i, x := range list {
		if values[i] = x; of.Kind() == reflect.Int {
			values[i] = coerce("integer", x)
		}
	}
	if len(values) == 0 {
		return nil
	}
	return values
}

// place returns the field for a member of the input, and the part of it that a fault is about, "" for all; ok is false
// when no field is for it.
func (t *formTable) place(f *sent, pointer []string) (name, element string, ok bool) {
	each(t.controls, func(c control) {
		path := strings.Split(c.member, ".")
		if ok || c.member == "" || len(pointer) < len(path) || !slices.Equal(pointer[:len(path)], path) {
			return
		}
		name, ok = c.name, true
		if rest := pointer[len(path):]; len(rest) > 0 {
			list := commaList(f.values.Get(name))
			if c.as == aBox {
				list = textLines(f.values.Get(name))
			}
			if n, err := strconv.Atoi(rest[0]); err == nil && n >= 0 && n < len(list) {
				element = list[n]
			}
		}
	})
	return name, element, ok
}
