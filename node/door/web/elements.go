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
