package command

import (
	"fmt"
	"slices"
	"strings"
)

// roff escapes text for a manual page: a hyphen is that of a flag, and nothing begins a request.
var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// Manuals returns the manual pages of the program by their names, as man(7): one of the program, one of each of its commands, with the commands of it.
func (c *Command) Manuals(version string) map[string]string {
	pages := map[string]string{c.Name: c.manual(version, nil)}
	for _, child := range c.shown() {
		pages[c.Name+"-"+child.Name] = child.manual(version, child.all())
	}
	return pages
}

// all returns the commands of a group, and of the groups in it.
func (c *Command) all() (found []*Command) {
	for _, child := range c.shown() {
		found = append(append(found, child), child.all()...)
	}
	return found
}

func (c *Command) manual(version string, parts []*Command) string {
	name := strings.ReplaceAll(c.Path(), " ", "-")
	var b strings.Builder
	line := func(format string, text ...string) {
		escaped := make([]any, len(text))
		for i, s := range text {
			escaped[i] = strings.TrimPrefix(roff.Replace("\n"+s), "\n")
		}
		fmt.Fprintf(&b, format+"\n", escaped...)
	}
	line(`.TH "%s" 1 "" "%s %s"`, strings.ToUpper(name), "stoa", version)
	line(".SH NAME\n%s \\- %s", name, strings.TrimSuffix(c.Summary, "."))
	write := func(h help, under string) {
		for text := range strings.SplitSeq(h.detail, "\n") {
			if text != "" {
				line(".PP\n%s", text)
			}
		}
		for _, s := range h.sections {
			line(under+" %s", s.title)
			for _, row := range s.rows {
				line(".TP\n\\fB%s\\fR\n%s", row[0], row[1])
			}
		}
	}
	own := c.describe(c.AllFlags())
	line(".SH SYNOPSIS\n%s\n.SH DESCRIPTION\n%s", own.usage, own.summary)
	write(own, ".SH")
	for _, part := range parts {
		h := part.describe(part.Flags)
		h.sections = slices.DeleteFunc(h.sections, func(s *section) bool { return s.title == "Commands" })
		line(".SH %s\n%s\n.PP\n%s", strings.TrimPrefix(part.Path(), c.Path()+" "), h.usage, h.summary)
		write(h, ".SS")
	}
	if c.Parent != nil {
		line(".SH SEE ALSO\n%s(1)", c.Parent.Name)
	}
	return b.String()
}
