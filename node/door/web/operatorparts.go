package web

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// deedForm is a form with one button, about the thing that the field names.
func deedForm(o *operatorView, do, label, name, value, class string) templ.Component {
	return posted("", "", o.here(), once(), hidden("do", do, "at", value, name, value), element{`<button class="` + class + `" type="submit">`,
		"</button>", label, nil})
}

// form is a form that does an operation, about the thing with an id; button is a key.
func (o *operatorView) form(id string, op *protocol.Operation, at string, shown url.Values, button string, controls ...control) templ.Component {
	return posted("form", at, o.here(), once(), ownKeys(op.Name, "", ""), ask(op, o.sent(id, op.Name), at, shown, controls...), sends(button))
}

// wordOf returns the key of the word of an option.
func wordOf(options [][2]string, value string) string {
	for _, o := range options {
		if o[0] == value {
			return o[1]
		}
	}
	return value
}

// subject is the hidden field that names what the undoing is about.
func (u undoing) subject() hiddenPairs {
	if u.name == "" {
		return nil
	}
	return hidden(u.name, u.value)
}

func (o *operatorView) crumbs(ctx context.Context) []templ.Component {
	links := []templ.Component{back()}
	for _, p := range operatorPages() {
		links = append(links, crumb{p.path, tr(ctx, p.title), p.path == o.Page.path})
	}
	return links
}

// with returns the address of the list from its beginning, with one filter changed.
func (o *operatorView) with(name, value string) string {
	values := (&form{values: o.Form.values}).to(o.Page.path, name, value)
	path, query, _ := strings.Cut(values, "?")
	kept := strings.Split(query, "&")
	var q []string
	for _, x := range kept {
		if x != "" && !strings.HasPrefix(x, "after=") {
			q = append(q, x)
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + strings.Join(q, "&")
}

func failingPeers(h protocol.Health) (n int) {
	for _, p := range h.Peers {
		if p.State != "active" {
			n += p.Count
		}
	}
	return n
}

func deadJobs(h protocol.Health) (n int) {
	for _, j := range h.Jobs {
		n += j.Dead
	}
	return n
}

// short is a text of others in one line.
func short(text string, most int) string {
	return excerpt(strings.Join(strings.Fields(text), " "), most)
}

// bytesText returns a size in MiB, or KiB below one.
func bytesText(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return strconv.FormatInt(n>>20, 10) + " MiB"
}

// older leads to the next page of a list; its text is a key.
func older(o *operatorView, text string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return pagerOf(o.Form.get("after") != "", o.with("after", ""), o.Next, tr(ctx, text)).Render(ctx, w)
	})
}
