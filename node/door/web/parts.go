package web

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// postText shows the text of a post; one with a content warning, only when the reader opens it.
func postText(p protocol.Post) templ.Component {
	if p.Warning == "" {
		return userText(p.Body)
	}
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return renderAll(ctx, w, []templ.Component{
			templ.Raw(`<details><summary lang="" dir="auto">` + templ.EscapeString(p.Warning) + "</summary>"), userText(p.Body), templ.Raw("</details>"),
		})
	})
}

// userText shows a text of a user: escaped, with its line breaks, in a language that the
// page does not know.
func userText(text string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		in := []templ.Component{templ.Raw(`<div class="text" lang="" dir="auto">`)}
		for _, part := range segments(text) {
			if part.Href != "" {
				in = append(in, externalLink(part.Href))
			} else {
				in = append(in, lines(part.Text))
			}
		}
		return renderAll(ctx, w, append(in, templ.Raw("</div>")))
	})
}

// renderAll writes components one after the other.
func renderAll(ctx context.Context, w io.Writer, in []templ.Component) error {
	for _, c := range in {
		if err := c.Render(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// externalLink is a link in a text of a user; rel says that the node does not endorse it.
func externalLink(address string) templ.Component {
	if !isWeb(address) {
		return put(address)
	}
	return linkText(`rel="nofollow noopener noreferrer ugc"`, address, address)
}

// lines shows a text with its line breaks as elements, for readers without style sheets.
func lines(text string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, strings.ReplaceAll(templ.EscapeString(text), "\n", "<br>"))
		return err
	})
}

// moment is a time in a row with others: the spaces separate them for readers without style sheets.
func moment(t time.Time) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		_, err := io.WriteString(w, ` <time datetime="`+machineTime(t)+`" data-ago>`+templ.EscapeString(stamp(ctx, t))+"</time> ")
		return err
	})
}

// badge is a mark in a row.
func badge(m mark) piece {
	return piece{` <span class="` + strings.TrimSpace("mark "+m.Class) + `">`, "</span> ", m.Word}
}

// A branch is a reply with those below it.
type branch struct {
	protocol.Post
	below []branch
}

// branches arranges replies to a post as a tree; a reply to one that is not among them stays at the
// top. Those below the eighth level are on that level.
func branches(list []protocol.Post) []branch {
	before := map[string]bool{} // no circle: a post is below an earlier one only
	below := map[string][]protocol.Post{}
	var top []protocol.Post
	for _, p := range list {
		if p.InReplyTo != nil && before[*p.InReplyTo] {
			below[*p.InReplyTo] = append(below[*p.InReplyTo], p)
		} else {
			top = append(top, p)
		}
		before[p.ID] = true
	}
	var grow func(list []protocol.Post, level int) []branch
	grow = func(list []protocol.Post, level int) (grown []branch) {
		for _, p := range list {
			b := branch{Post: p}
			under := grow(below[p.ID], level+1)
			if level < 7 {
				b.below, under = under, nil
			}
			grown = append(append(grown, b), under...)
		}
		return grown
	}
	return grow(top, 0)
}

func headline(level int, href, title string) templ.Component {
	tag := "h3"
	if level == 2 {
		tag = "h2"
	}
	return piece{"<" + tag + ` lang="" dir="auto">` + openLink("", href), "</a></" + tag + ">", title}
}

// A field of a form of filters.
type field struct {
	Name, Label, Hint string   // of which Label and Hint are in the reader's language
	Max               int      // longest value, in characters
	Known             []string // values to choose from; others may be typed
	More              bool     // in filters: there are others
}

// input is a field for a text, choice one to choose from, tick a box.
func input(f *form, x field) templ.Component {
	return filterField(f, x, func(d *drawing) {
		d.put(`<input id="f-`, x.Name, `" name="`, x.Name, `" type="search" value="`, f.get(x.Name), `"`)
		d.attributes(x.attributes(d.ctx, f))
		d.WriteString(">")
		if len(x.Known) > 0 {
			d.put(`<datalist id="k-`, x.Name, `">`)
			for _, k := range x.Known {
				d.put(`<option value="`, k, `"></option>`)
			}
			d.WriteString("</datalist>")
		}
	})
}

func choice(f *form, x field, options [][2]string) templ.Component {
	return filterField(f, x, func(d *drawing) {
		d.put(`<select id="f-`, x.Name, `" name="`, x.Name, `"`)
		d.attributes(x.attributes(d.ctx, f))
		d.WriteString(">")
		for _, o := range options {
			d.put(`<option value="`, o[0], `"`)
			d.flag("selected", f.get(x.Name) == o[0])
			d.put(">", o[1], "</option> ")
		}
		d.WriteString("</select>")
	})
}

func tick(f *form, name, value, label string) templ.Component {
	var d drawing
	d.put(`<label class="tick"><input type="checkbox" name="`, name, `" value="`, value, `"`)
	d.flag("checked", f.has(name, value))
	d.put("> ", label, "</label> ")
	return templ.Raw(d.String())
}

// filterField is a field with its label, and what is to be known about it.
func filterField(f *form, x field, draw func(*drawing)) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		d := &drawing{ctx: ctx}
		d.put(`<div class="field"><label for="f-`, x.Name, `">`, x.Label, "</label> ")
		draw(d)
		d.filterNote(f, x)
		d.WriteString("</div>")
		_, err := io.WriteString(w, d.String())
		return err
	})
}

// filterNote says what is wrong with a field, otherwise how it is used.
func (d *drawing) filterNote(f *form, x field) {
	class, text := "wrong", f.fault(d.ctx, x.Name, x.Hint)
	if text == "" {
		class, text = "hint", initial(x.Hint)
	}
	if x.Hint != "" || class == "wrong" {
		d.put(`<p class="`+class+`" id="n-`, x.Name, `">`, text, "</p>")
	}
}

func note(f *form, x field) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		d := &drawing{ctx: ctx}
		d.filterNote(f, x)
		_, err := io.WriteString(w, d.String())
		return err
	})
}

func (x field) attributes(ctx context.Context, f *form) templ.Attributes {
	a := templ.Attributes{}
	if len(x.Known) > 0 {
		a["list"] = "k-" + x.Name
	}
	if x.Max > 0 {
		a["maxlength"] = strconv.Itoa(x.Max)
	}
	wrong := f.fault(ctx, x.Name, x.Hint) != ""
	if wrong {
		a["aria-invalid"] = "true"
	}
	if wrong || x.Hint != "" {
		a["aria-describedby"] = "n-" + x.Name
	}
	return a
}

// marks leads to what the marks of a page mean.
func marks() templ.Component {
	return all{templ.Raw(`<p class="hint marks">`), link(knowing, "What the marks mean, and how we know"), templ.Raw("</p>")}
}

// onChain says that an agent has an identity on chain.
func onChain(has bool) templ.Component {
	return when(has, linkAs(`class="chain"`, knowing+"#identity", "chain identity"))
}

// liveness shows whether an agent answered when this node last asked; nothing when it never asked.
func liveness(alive *bool) templ.Component {
	switch {
	case alive == nil:
		return templ.NopComponent
	case *alive:
		return worded("good", "answers##of an agent that is reachable")
	}
	return worded("poor", "does not answer")
}

// byline shows who wrote something and what this node knows about the author.
func byline(a protocol.Author) templ.Component {
	by := spanned("by %s", called(a.Name))
	if path := authorPath(a); path != "" {
		by = spanned("by %s", linkTo(path, a.Name))
	}
	return all{templ.Raw(`<p class="by">`), by, authorMark(a), authorNotes(a), templ.Raw("</p>")}
}

// authorMark says how an author is known.
func authorMark(a protocol.Author) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error { return badge(markOf(ctx, a)).Render(ctx, w) })
}

// authorNotes are what an author says without proof: a name, and the node it came from.
func authorNotes(a protocol.Author) (notes all) {
	if a.ClaimedName != "" {
		notes = append(notes, sayIn(`span class="claimed"`, "calls itself %s", called(a.ClaimedName)).spaced())
	}
	if a.Verified && a.Node != nil {
		notes = append(notes, sayIn(`span class="from"`, "from %s", *a.Node))
	}
	return notes
}

// writer shows who wrote something, in the line about it.
func writer(a protocol.Author) templ.Component {
	name := templ.Component(in(`bdi lang=""`, a.Name))
	if path := authorPath(a); path != "" {
		name = linkTo(path, a.Name)
	}
	return all{name, authorMark(a), authorNotes(a)}
}

func tags(path string, list []string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if len(list) == 0 {
			return nil
		}
		var d drawing
		d.put(`<ul class="tags" aria-label="`, tr(ctx, "Tags"), `">`)
		for _, t := range list {
			d.put("<li>"+openLink(`rel="nofollow" lang=""`, path+"?"+query("tag", t)), t, "</a></li>")
		}
		_, err := io.WriteString(w, d.String()+"</ul>")
		return err
	})
}

// pager links to the other pages of a listing; older is in the reader's language.
func pager(f *form, path, next, older string) templ.Component {
	return pagerOf(f.get("after") != "", f.to(path, "after", ""), next, older)
}

// pagerOf links to the beginning of a list, and to its next page if there is one.
func pagerOf(later bool, first, next, older string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if !later && next == "" {
			return nil
		}
		more := templ.EscapeString(tr(ctx, "More of this list"))
		return all{
			templ.Raw(`<nav class="pager" aria-label="` + more + `">`), when(later, link(first, "Back to the beginning").spaced()),
			when(next != "", linkText(`class="on" rel="next"`, next, older)), templ.Raw("</nav>"),
		}.Render(ctx, w)
	})
}

// hereOnly is the filter that leaves out what is at other nodes.
func hereOnly(f *form) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return inside(`div class="field"`, tick(f, "local", "true", tr(ctx, "On this node")))
	})
}

// reactions are how often a post was liked, boosted and quoted in the fediverse, where it was.
func reactions(p protocol.Post) templ.Component {
	return all{
		when(p.Likes > 0, sayIn("span", "%d likes", p.Likes)), when(p.Shares > 0, sayIn("span", "%d boosts", p.Shares)),
		when(p.Quotes > 0, sayIn("span", "%d quotes", p.Quotes)),
	}
}

// nameAt is the name of an entry, which leads to a page of this node; linkAt leads to the page at its own node.
func nameAt(e protocol.Elsewhere, level int, path, name string) templ.Component {
	if e.Node == nil {
		return headline(level, path, name)
	}
	return in(fmt.Sprintf(`h%d lang="" dir="auto"`, level), name)
}

func linkAt(e protocol.Elsewhere, page string) templ.Component {
	return when(e.Node != nil, linked(page))
}

// itsNode is the node of an entry of a list, if that is another one.
func itsNode(e protocol.Elsewhere) templ.Component {
	return all{
		optional(e.Node, func(host string) templ.Component { return in(`span translate="no"`, host).spaced() }),
		maybe(english("Not answered since"), e.GoneSince),
	}
}
