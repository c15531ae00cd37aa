package web

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// A drawing writes the fields of a form. at is the form's id, with which the ids of its fields begin; shown is what the
// fields hold. A form that was refused shows what was typed instead.
type drawing struct {
	strings.Builder
	ctx   context.Context
	op    *protocol.Operation
	f     *sent
	at    string
	shown url.Values
}

// ask shows fields for an operation's input.
func ask(op *protocol.Operation, f *sent, at string, shown url.Values, controls ...control) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		d := &drawing{ctx: ctx, op: op, f: f, at: at, shown: shown}
		d.Grow(256 * len(controls))
		for _, c := range controls {
			d.draw(c)
		}
		_, err := io.WriteString(w, d.String())
		return err
	})
}

// fields shows the fields of the table.
func (t *formTable) fields(f *sent, at string, shown url.Values) templ.Component {
	return ask(t.op, f, at, shown, t.controls...)
}

// put writes parts of HTML; every second one is text.
func (d *drawing) put(parts ...string) {
	for i, part := range parts {
		if i%2 == 1 {
			part = templ.EscapeString(part)
		}
		d.WriteString(part)
	}
}

// attributes writes attributes in the order of their names.
func (d *drawing) attributes(a templ.Attributes) {
	var room [12]string // as many as fields have
	names := slices.AppendSeq(room[:0], maps.Keys(a))
	slices.Sort(names)
	for _, name := range names {
		switch v := a[name].(type) {
		case string:
			d.put(" "+name+`="`, v, `"`)
		case bool:
			if v {
				d.put(" " + name)
			}
		}
	}
}

// flag writes an attribute without a value, if it is set.
func (d *drawing) flag(name string, set bool) {
	if set {
		d.WriteString(" " + name)
	}
}

// word returns a label in the reader's language.
func (c control) word(ctx context.Context, key string) string {
	if c.said {
		return key
	}
	return tr(ctx, key)
}

// option returns the word of an option.
func (c control) option(ctx context.Context, o [2]string) string {
	if c.spoken || c.foreign && o[0] != "" {
		return o[1]
	}
	return tr(ctx, o[1])
}

func (d *drawing) draw(c control) {
	switch c.as {
	case aLine, aBox, aChoice:
		d.field(c)
	case aTick:
		d.tick(c, "true", c.word(d.ctx, c.label))
		d.notes(c)
	case ticks:
		d.WriteString("<fieldset")
		d.attributes(d.f.attributes(d.at, c.name, c.more))
		d.put("><legend>", c.word(d.ctx, c.label), "</legend>")
		for _, o := range c.options {
			d.tick(c, o[0], c.option(d.ctx, o))
		}
		d.notes(c)
		d.WriteString("</fieldset>")
	case aHidden:
		if c.label != "" {
			d.put(`<input type="hidden" name="`, c.name, `" value="`, c.label, `">`)
		}
	case aFault:
		d.notes(c)
	case aHint:
		d.put(`<p class="hint">`, c.word(d.ctx, c.label), "</p>")
	default:
		d.group(c)
	}
}

func (d *drawing) group(c control) {
	end := "</div>"
	switch c.as {
	case aPart:
		d.put(`<div class="`, c.label, `"`)
		d.attributes(c.more)
		d.WriteString(">")
	case aGroup:
		d.WriteString("<fieldset")
		d.attributes(c.more)
		d.put("><legend>", c.word(d.ctx, c.label), "</legend>")
		end = "</fieldset>"
	case aFold:
		d.WriteString("<details")
		a := templ.Attributes{"open": d.open(c)}
		maps.Copy(a, c.more)
		d.attributes(a)
		d.put("><summary>", c.word(d.ctx, c.label), "</summary>")
		end = "</details>"
	}
	for _, part := range c.parts {
		d.draw(part)
	}
	d.WriteString(end)
}

// open reports whether a fold is open.
func (d *drawing) open(c control) bool {
	open := false
	each(c.parts, func(x control) { open = open || d.f.anyFault(x.name) || d.chosen(x) })
	return open
}

// chosen reports whether a field holds something else than its default.
func (d *drawing) chosen(c control) bool {
	var m member
	if d.op != nil {
		m, _ = memberAt(d.op.In, c.member)
	}
	usual := cmp.Or(c.usual, m.tag.Get("default"))
	switch c.as {
	case aTick:
		return d.f.checked(c.name, "true", d.shown.Get(c.name) == "true") != (usual == "true")
	case ticks:
		n := len(c.options)
		for _, o := range c.options {
			if !d.f.checked(c.name, o[0], slices.Contains(d.shown[c.name], o[0])) {
				n--
			}
		}
		return n > 0 && n < len(c.options)
	}
	text := d.f.text(c.name, d.shown.Get(c.name))
	return !c.secret && text != "" && text != usual
}

// field writes a field with its label, what is wrong with it, and what is stored now; the field alone when it has no label.
func (d *drawing) field(c control) {
	id := d.at + "-" + c.name
	if c.named && d.shown.Get(c.name) != "" {
		d.put(`<input type="hidden" name="`, c.name, `" value="`, d.shown.Get(c.name), `">`)
		return
	}
	if c.label != "" {
		d.put(`<div class="field"><label for="`, id, `">`, c.word(d.ctx, c.label), "</label> ")
		defer d.WriteString("</div>")
		defer d.notes(c)
	}
	var m member
	if d.op != nil {
		m, _ = memberAt(d.op.In, c.member)
	}
	a := d.f.attributes(d.at, c.name, c.attributes(m))
	value := d.value(c)
	switch c.as {
	case aChoice:
		d.put(`<select id="`, id, `" name="`, c.name, `"`)
		d.attributes(a)
		d.WriteString(">")
		for _, o := range c.options {
			d.put(`<option value="`, o[0], `"`)
			d.flag("selected", o[0] == value)
			if c.foreign && o[0] != "" {
				d.WriteString(` lang="" translate="no"`)
			}
			d.put(">", c.option(d.ctx, o), "</option> ")
		}
		d.WriteString("</select>")
	case aBox:
		d.put(`<textarea id="`, id, `" name="`, c.name, `" rows="3"`)
		d.attributes(a)
		d.put(">", value, "</textarea>")
	default:
		d.put(`<input id="`, id, `" name="`, c.name, `" value="`, value, `"`)
		d.attributes(textual(a))
		d.WriteString(">")
	}
}

// value returns what a field shows: codes as names.
func (d *drawing) value(c control) string {
	if c.secret {
		return ""
	}
	value := d.f.text(c.name, d.shown.Get(c.name))
	if coded, ok := codings[c.name]; ok && value != "" {
		return coded.texts(d.ctx, coded.codes(c.name, value))
	}
	return value
}

func (d *drawing) tick(c control, value, label string) {
	d.put(`<label class="tick"><input type="checkbox" name="`, c.name, `" value="`, value, `"`)
	d.flag("checked", d.f.checked(c.name, value, slices.Contains(d.shown[c.name], value)))
	if c.foreign {
		d.put("> <bdi>", label, "</bdi></label> ")
		return
	}
	d.put("> ", label, "</label> ")
}

// notes say what is wrong with a field, and what is stored in it when that was changed since the form was shown.
func (d *drawing) notes(c control) {
	if wrong := d.f.fault(c.name); wrong != "" {
		d.put(`<p class="wrong" id="n-`, d.at+"-"+c.name, `">`, wrong, "</p>")
	}
	if !d.f.differs(c.name) {
		return
	}
	d.put(`<p class="now">`, tr(d.ctx, "Stored now:"), " ")
	now := d.f.now[c.name]
	if coded, ok := codings[c.name]; ok {
		now = []string{coded.texts(d.ctx, coded.codes(c.name, d.f.now.Get(c.name)))}
	}
	switch n := slices.IndexFunc(c.options, func(o [2]string) bool { return o[0] == d.f.now.Get(c.name) }); {
	case len(now) > 1:
		d.put(`<bdi lang="">`, strings.Join(now, ", "), "</bdi>")
	case d.f.now.Get(c.name) == "true":
		d.put("", tr(d.ctx, "ticked"))
	case d.f.now.Get(c.name) == "":
		d.put("", tr(d.ctx, "nothing##in a field"))
	case n >= 0 && c.as != ticks:
		d.put("", c.option(d.ctx, c.options[n]))
	default:
		d.put(`<bdi lang="">`, now[0], "</bdi>")
	}
	d.WriteString("</p>")
}

// textual sets a field's type to text unless it has another.
func textual(a templ.Attributes) templ.Attributes {
	if a["type"] == nil {
		a["type"] = "text"
	}
	return a
}

// posted is a form that is sent to an address of this node.
func posted(class, id, action string, in ...templ.Component) templ.Component {
	a := templ.Attributes{"action": action, "method": "post"}
	for name, value := range map[string]string{"class": class, "id": id} {
		if value != "" {
			a[name] = value
		}
	}
	return formOf(a, in)
}

// proven is a form of a visitor, which static/proof.js sends with a proof of work for a purpose; f has the challenge of one
// that was refused.
func proven(f *sent, purpose, id, action string, in ...templ.Component) templ.Component {
	a := templ.Attributes{"class": "card form", "id": id, "action": action, "method": "post", "data-proof": purpose}
	maps.Copy(a, f.puzzle())
	return formOf(a, in)
}

func formOf(a templ.Attributes, in []templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		var d drawing
		d.WriteString("<form")
		d.attributes(a)
		d.WriteString(">")
		if _, err := io.WriteString(w, d.String()); err != nil {
			return err
		}
		if err := renderAll(ctx, w, in); err != nil {
			return err
		}
		_, err := io.WriteString(w, "</form>")
		return err
	})
}

// wrong shows what is wrong with a member that several fields are for.
func wrong(f *sent, at, name string) templ.Component { return ask(nil, f, at, nil, faultOf(name)) }

// version is the hidden field with the version of what a form shows.
func version(f *sent, shown url.Values) hiddenPairs { return hidden("version", f.version(shown)) }
