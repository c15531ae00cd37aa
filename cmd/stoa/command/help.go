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

// WriteHelp writes what the command does, and its arguments, flags and commands: its own flags come before those of its parents.
func (c *Command) WriteHelp(w io.Writer) error {
	usage, detail, end := "Usage: "+c.Path(), "", ""
	var all []*section
	add := func(title, left, right string) {
		i := slices.IndexFunc(all, func(s *section) bool { return s.title == title })
		if i < 0 {
			i, all = len(all), append(all, &section{title: title})
		}
		all[i].rows = append(all[i].rows, [2]string{left, right})
	}
	for _, v := range c.Args {
		usage += " " + v.usage()
		add("Arguments", v.usage(), v.about())
	}
	for _, v := range c.AllFlags() {
		if has(v.tag, "required") {
			usage += " " + v.usage()
		}
		if !v.Hidden {
			add(cmp.Or(v.settings, "Flags"), v.usage(), v.about())
		}
	}
	for _, child := range c.Commands {
		if _, path, _ := strings.Cut(child.Path(), " "); !has(child.Tag, "hidden") {
			add("Commands", path, child.Summary)
			end = "\nRun " + c.Path() + " <command> --help for more.\n"
		}
	}
	if end != "" {
		usage += " <command>"
	}
	if h, ok := c.Target().(interface{ Help() string }); ok {
		detail = h.Help()
	}
	for _, text := range []string{usage + " [flags]", c.Summary, detail} {
		if text != "" {
			fmt.Fprintln(w, strings.Join(wrap(text, width), "\n")+"\n")
		}
	}
	for i, s := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprint(w, s)
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
