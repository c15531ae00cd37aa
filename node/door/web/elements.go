package web

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// Elements that the pages have many times. A call of one of them in a template is a fifth of the generated
// code of the element written out. Their keys are translated, with arguments as those of say.

// An element is a translated text in an element.
type element struct {
	open, close, key string
	args             []any
}

// Render writes the element in the language of ctx.
func (e element) Render(ctx context.Context, w io.Writer) error {
	if _, err := io.WriteString(w, e.open); err != nil {
		return err
	}
	if err := e.text(ctx, w); err != nil {
		return err
	}
	_, err := io.WriteString(w, e.close)
	return err
}

// text writes what is in the element.
func (e element) text(ctx context.Context, w io.Writer) error {
	const edge = "\x00" // in no text
	var parts []templ.Component
	var plain []any
	for _, arg := range e.args {
		switch x := arg.(type) {
		case templ.Component:
			plain = append(plain, edge+string(rune('0'+len(parts)))+edge)
			parts = append(parts, x)
		case string:
			plain = append(plain, strings.ReplaceAll(x, edge, ""))
		default:
			plain = append(plain, x)
		}
	}
	for i, text := range strings.Split(tr(ctx, e.key, plain...), edge) {
		var err error
		if i%2 == 0 {
			_, err = io.WriteString(w, templ.EscapeString(text))
		} else {
			err = parts[text[0]-'0'].Render(ctx, w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// say shows a text whose arguments may be components, such as links: their place in the sentence is
// that which the language gives them.
func say(key string, args ...any) element { return element{"", "", key, args} }

// sayKey shows a text whose key is in a table.
func sayKey(key string) element { return element{"", "", key, nil} }

// spaced is followed by a space, which separates it from what is next in the line.
func (e element) spaced() element { e.close += " "; return e }

// space separates components in a line.
const space = put(" ")

// A put is a text that is shown as it is.
type put string

// Render writes the text, escaped.
func (p put) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, templ.EscapeString(string(p)))
	return err
}

func para(key string, args ...any) element  { return element{"<p>", "</p>", key, args} }
func hint(key string, args ...any) element  { return element{`<p class="hint">`, "</p>", key, args} }
func quiet(key string, args ...any) element { return element{`<p class="quiet">`, "</p>", key, args} }

// spanned is a part of a line; the space separates it from the next one for readers without style sheets.
func spanned(key string, args ...any) element { return element{"<span>", "</span> ", key, args} }

// empty says that a list is empty.
func empty(key string, args ...any) element {
	return element{`<div class="nothing"><p>`, "</p></div>", key, args}
}

func title(key string, args ...any) element { return element{"<h1>", "</h1>", key, args} }

// heading is that of a section, which names it by its id.
func heading(id, key string, args ...any) element {
	return element{`<h2 id="` + id + `">`, "</h2>", key, args}
}

// subtitle is the heading of a card.
func subtitle(key string) element { return element{"<h2>", "</h2>", key, nil} }

func subheading(key string, args ...any) element { return element{"<h3>", "</h3>", key, args} }
func summary(key string, args ...any) element    { return element{"<summary>", "</summary>", key, args} }
func legend(key string, args ...any) element     { return element{"<legend>", "</legend>", key, args} }
func column(key string) element                  { return element{`<th scope="col">`, "</th>", key, nil} }

// term is the name of a value in a list of them.
func term(key string, args ...any) element { return element{"<dt>", "</dt>", key, args} }

// submits is the button that sends a form, sends the same in a row of its own.
func submits(key string, args ...any) element {
	return element{`<button type="submit">`, "</button> ", key, args}
}

func sends(key string, args ...any) element {
	return element{`<div><button type="submit">`, "</button></div>", key, args}
}

// sendRow is a row with such a button.
func sendRow(key string) element {
	return element{`<div class="send"><button type="submit">`, "</button></div>", key, nil}
}

// submitsQuietly is a button for what is done seldom.
func submitsQuietly(key string, args ...any) element {
	return element{`<button class="quiet" type="submit">`, "</button> ", key, args}
}

// hiddenPairs are fields of a form that it does not show.
type hiddenPairs []string

// hidden are fields that a form sends without showing them: names and values in turn.
func hidden(pairs ...string) hiddenPairs { return pairs }

// Render writes the fields.
func (h hiddenPairs) Render(_ context.Context, w io.Writer) error {
	for i := 0; i+1 < len(h); i += 2 {
		if _, err := io.WriteString(w, `<input type="hidden" name="`+templ.EscapeString(h[i])+`" value="`+templ.EscapeString(h[i+1])+`">`); err != nil {
			return err
		}
	}
	return nil
}

// quietly is submitsQuietly with a text in the reader's language.
func quietly(label string) templ.Component {
	return markup(`<button class="quiet" type="submit">%s</button>`, label)
}

// A piece is a text in an element, which no language changes.
type piece struct{ open, close, text string }

// Render writes the element.
func (p piece) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, p.open+templ.EscapeString(p.text)+p.close)
	return err
}

// spaced is followed by a space.
func (p piece) spaced() piece { p.close += " "; return p }

// in is a text in an element with attributes, which are written as in HTML: in(`p class="hint"`, text).
func in(tag, text string) piece { return piece{"<" + tag + ">", endOf(tag), text} }

// sayIn is a translated text in such an element.
func sayIn(tag, key string, args ...any) element {
	return element{"<" + tag + ">", endOf(tag), key, args}
}

func endOf(tag string) string {
	name, _, _ := strings.Cut(tag, " ")
	return "</" + name + ">"
}

// link is a link to a page of this node, linkAs one with attributes, linkText one whose text is no key.
func link(path, key string, args ...any) element { return linkAs("", path, key, args...) }

func linkAs(attributes, path, key string, args ...any) element {
	return element{openLink(attributes, path), "</a>", key, args}
}

func linkText(attributes, path, text string) piece {
	return piece{openLink(attributes, path), "</a>", text}
}

func openLink(attributes, path string) string {
	if attributes != "" {
		attributes = " " + attributes
	}
	return `<a href="` + templ.EscapeString(path) + `"` + attributes + ">"
}

// row is a value in a list of them, with its name.
func row(key string, value templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if err := (element{"<div><dt>", "</dt><dd>", key, nil}).Render(ctx, w); err != nil {
			return err
		}
		if err := value.Render(ctx, w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "</dd></div>")
		return err
	})
}

// crumbs are the links of a list of them, whose label is a key.
func crumbs(label string, in ...templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if _, err := io.WriteString(w, `<nav class="crumbs" aria-label="`+templ.EscapeString(tr(ctx, label))+`">`); err != nil {
			return err
		}
		if err := renderAll(ctx, w, in); err != nil {
			return err
		}
		_, err := io.WriteString(w, "</nav>")
		return err
	})
}

// back leads to the first page of the account.
func back() element { return linkAs(`class="back"`, "/account", "Your account").spaced() }

// A crumb is a link in such a list; here marks that of the page.
type crumb struct {
	path, text string
	here       bool
}

// Render writes the link.
func (c crumb) Render(_ context.Context, w io.Writer) error {
	attributes := ""
	if c.here {
		attributes = `aria-current="page"`
	}
	_, err := io.WriteString(w, openLink(attributes, c.path)+templ.EscapeString(c.text)+"</a> ")
	return err
}

// profileCrumb is a crumb of a profile, whose handle no language changes.
func profileCrumb(path, handle string, here bool) templ.Component {
	attributes := `translate="no"`
	if here {
		attributes += ` aria-current="page"`
	}
	return linkText(attributes, path, "@"+handle).spaced()
}

// tag is an element without contents: its attributes are names and values in turn, "" for an attribute without one.
func tag(name string, pairs ...string) templ.Component {
	var d drawing
	d.WriteString("<" + name)
	for i := 0; i < len(pairs); i += 2 {
		if d.put(" " + pairs[i]); pairs[i+1] != "" {
			d.put(`="`, pairs[i+1], `"`)
		}
	}
	d.WriteString(">")
	return templ.Raw(d.String())
}

// bold is a text after another one that stands out.
func bold(key, text string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if err := (element{"<strong>", "</strong> ", key, nil}).Render(ctx, w); err != nil {
			return err
		}
		return put(text).Render(ctx, w)
	})
}

// all are components one after the other.
type all []templ.Component

// Render writes them.
func (a all) Render(ctx context.Context, w io.Writer) error { return renderAll(ctx, w, a) }

// enclosed are components in an element.
type enclosed struct {
	tag string
	in  all
}

// Render writes them.
func (e enclosed) Render(ctx context.Context, w io.Writer) error {
	if _, err := io.WriteString(w, "<"+e.tag+">"); err != nil {
		return err
	}
	if err := renderAll(ctx, w, e.in); err != nil {
		return err
	}
	_, err := io.WriteString(w, endOf(e.tag))
	return err
}

// inside are components in an element with attributes, which are written as in HTML.
func inside(tag string, in ...templ.Component) enclosed { return enclosed{tag, in} }

// titled is a section of a page with its heading, whose text is a key.
func titled(id, key string, in ...templ.Component) enclosed {
	return inside(`section aria-labelledby="`+id+`"`, append(all{heading(id, key)}, in...)...)
}

// folded are components below a summary, whose text is a key; they are shown when it is opened.
func folded(open bool, key string, in ...templ.Component) enclosed {
	tag := "details"
	if open {
		tag = "details open"
	}
	return inside(tag, append(all{summary(key)}, in...)...)
}

// when is a component that is shown only sometimes.
func when(is bool, c templ.Component) templ.Component {
	if is {
		return c
	}
	return templ.NopComponent
}

// labelled is a value in a list of them, with its name in the reader's language.
func labelled(label string, value templ.Component) templ.Component {
	return all{templ.Raw("<div>"), in("dt", label), templ.Raw("<dd>"), value, templ.Raw("</dd></div>")}
}

// fact is a line of a text of a user, plainFact one of checked codes; nothing when it is empty. Their names are keys.
func fact(key, text string) templ.Component      { return when(text != "", row(key, userText(text))) }
func plainFact(key, text string) templ.Component { return when(text != "", row(key, put(text))) }

// once names this visit of the page in a form that makes something.
func once() templ.Component {
	return drawn(func(ctx context.Context) templ.Component { return hidden("once", onceOf(ctx)) })
}

// A drawn component is made when it is shown: it is of the reader's language, or rests on what only some pages have.
type drawn func(ctx context.Context) templ.Component

// Render makes and writes it.
func (d drawn) Render(ctx context.Context, w io.Writer) error { return d(ctx).Render(ctx, w) }

// forEach shows every one of a list.
func forEach[T any](list []T, show func(T) templ.Component) templ.Component {
	return drawn(func(context.Context) templ.Component {
		var shown all
		for _, x := range list {
			shown = append(shown, show(x))
		}
		return shown
	})
}

// optional shows what there may be; nothing where there is none.
func optional[T any](x *T, show func(T) templ.Component) templ.Component {
	if x == nil {
		return templ.NopComponent
	}
	return show(*x)
}

// either is one of two texts.
func either(first bool, one, other string) string {
	if first {
		return one
	}
	return other
}

// done says what a form has done; nothing without a key.
func done(key string, args ...any) templ.Component {
	return when(key != "", element{`<p class="done" role="status">`, "</p>", key, args})
}

// alerts is what a reader has to see first.
func alerts(in ...templ.Component) enclosed { return inside(`div class="alert" role="alert"`, in...) }

// failed is such a paragraph: what failed, and why, in the reader's language.
func failed(key, why string) templ.Component { return alerts(inside("p", bold(key, why))) }

// copyable is a text that a reader copies whole.
func copyable(text string) templ.Component {
	return inside(`pre tabindex="0"`, in("code data-copy", text))
}

// priced is an amount of money in a line.
func priced(text string) piece { return in(`span class="price"`, text).spaced() }

// kindOf marks what kind a thing is, in a line.
func kindOf[S ~string](kind S) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return piece{`<span class="kind ` + templ.EscapeString(string(kind)) + `">`, "</span> ", word(ctx, kind)}
	})
}

// linked is a line with a link that a user wrote, quoted a text of a user.
func linked(address string) templ.Component { return inside("p", externalLink(address)) }
func quoted(text string) templ.Component    { return inside(`div class="said"`, userText(text)) }

// onward leads to the next page of a list; nothing when there is none.
func onward(address, key string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component { return pagerOf(false, "", address, tr(ctx, key)) })
}

// plainField is a field of a form that is no operation's: its label is a key, its attributes are names and values in turn.
func plainField(key, id string, attributes ...string) templ.Component {
	return inside(`div class="field"`, sayIn(`label for="`+id+`"`, key), tag("input", append([]string{"id", id}, attributes...)...))
}

// opening is the form by which a token opens a page.
func opening(path, name, label, button string) templ.Component {
	return formOf(templ.Attributes{"class": "card form", "id": "open", "action": path, "method": "post", "data-fragment": name}, []templ.Component{
		plainField(label, "open-token", "name", name, "type", "text", "required", "", "maxlength", "100", "autocomplete", "off"), sends(button)})
}

// worded is a mark with a translated word.
func worded(class, key string, args ...any) templ.Component {
	return element{` <span class="mark ` + class + `">`, "</span> ", key, args}
}
