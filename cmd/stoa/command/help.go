package command

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// width is that of the help, in characters.
const width = 80

// A help is what is known of a command: its arguments, flags and commands, its own flags before those of its parents.
type help struct {
	usage, summary, detail string
	sections               []*section
}

func (c *Command) describe(flags []*Value) help {
	h := help{usage: c.Path(), summary: c.Summary}
	add := func(title, left, right string) {
		i := slices.IndexFunc(h.sections, func(s *section) bool { return s.title == title })
		if i < 0 {
			i, h.sections = len(h.sections), append(h.sections, &section{title: title})
		}
		h.sections[i].rows = append(h.sections[i].rows, [2]string{left, right})
	}
	for _, v := range c.Args {
		h.usage += " " + v.usage()
		add("Arguments", v.usage(), v.about())
	}
	for _, v := range flags {
		if has(v.tag, "required") {
			h.usage += " " + v.usage()
		}
		if c.offers(v) {
			add(cmp.Or(v.settings, "Flags"), v.usage(), v.about())
		}
	}
	for _, child := range c.shown() {
		_, path, _ := strings.Cut(child.Path(), " ")
		add("Commands", path, child.Summary)
	}
	if len(c.shown()) > 0 {
		h.usage += " <command>"
	}
	h.usage += " [flags]"
	if t, ok := c.Target().(interface{ Help() string }); ok {
		h.detail = t.Help()
	}
	return h
}

// shown returns the commands that help lists.
func (c *Command) shown() []*Command {
	return slices.DeleteFunc(slices.Clone(c.Commands), func(child *Command) bool { return has(child.Tag, "hidden") })
}

// WriteHelp writes what the command does.
func (c *Command) WriteHelp(w io.Writer) error {
	h := c.describe(c.AllFlags())
	for _, text := range []string{"Usage: " + h.usage, h.summary, h.detail} {
		if text != "" {
			fmt.Fprintln(w, strings.Join(wrap(text, width), "\n")+"\n")
		}
	}
	for i, s := range h.sections {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprint(w, s)
	}
	end := ""
	if len(c.shown()) > 0 {
		end = "\nRun " + c.Path() + " <command> --help for more.\n"
	}
	_, err := io.WriteString(w, end)
	return err
}

// usage returns how a flag or an argument is written.
func (v *Value) usage() string {
	s, more := "--"+v.Name+"=", cmp.Or(v.tag.Get("placeholder"), strings.ToUpper(v.field.Type().Name()), "TEXT")
	switch {
	case has(v.tag, "arg"):
		s, more = "<"+v.Name+">", ""
	case v.field.Kind() == reflect.Bool:
		s, more = "--"+v.Name, ""
	}
	if v.several() {
		more += v.tag.Get("sep") + "..."
	}
	if has(v.tag, "optional") {
		return "[" + s + more + "]"
	}
	return s + more
}

// about returns the help of a value, with its default and its environment variable in brackets.
func (v *Value) about() string {
	s := v.tag.Get("help")
	if usual := v.tag.Get("default"); usual != "" {
		s += " [default " + usual + "]"
	}
	if env := v.tag.Get("env"); env != "" {
		s += " [$" + env + "]"
	}
	return s
}

// A section is a title and rows of two columns, the second of which is wrapped.
type section struct {
	title string
	rows  [][2]string
}

func (s *section) String() string {
	var b strings.Builder
	left := 0
	for _, row := range s.rows {
		left = min(max(left, utf8.RuneCountInString(row[0])), 28)
	}
	for _, row := range s.rows {
		lines := wrap(row[1], width-left-6)
		if utf8.RuneCountInString(row[0]) > left {
			lines = append([]string{""}, lines...)
		}
		for _, line := range lines {
			b.WriteString(strings.TrimRight(fmt.Sprintf("  %-*s    %s", left, row[0], line), " ") + "\n")
			row[0] = ""
		}
	}
	return s.title + ":\n" + b.String()
}

// wrap breaks the lines of a text where they have more than most characters; a longer word has a line of its own.
func wrap(text string, most int) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		last := ""
		for word := range strings.FieldsSeq(line) {
			if longer := strings.TrimPrefix(last+" "+word, " "); utf8.RuneCountInString(longer) <= most {
				last = longer
				continue
			}
			if last != "" {
				lines = append(lines, last)
			}
			last = word
		}
		lines = append(lines, last)
	}
	return lines
}
