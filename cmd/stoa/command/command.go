// Package command binds structs to a command line. A field with the tag cmd is a command, one with arg an argument, one with help a flag; the fields of
// an embedded struct are as its parent's. It calls no method by its name, because the linker would then keep every exported method of every type.
//
// Tags: name, help; of flags and arguments default, enum (separated by commas), placeholder, required, env (flags), optional (arguments), hidden, and sep,
// what is between several values in one word ("," by default); of commands hidden, passthrough (the words after it are not parsed) and default (meant
// where none is named). The tag settings of an embedded struct makes its flags keys of the configuration file; its text is their title in the help, which
// lists those that the tag shown names, or all.
package command

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// A Command is a command, or a group of commands.
type Command struct {
	Name, Summary string
	Tag           reflect.StructTag
	Parent        *Command // nil of the program itself
	Commands      []*Command
	Flags, Args   []*Value // its own; the flags of its parents apply too

	target    reflect.Value
	otherwise *Command // the one that is meant where none is named
	help      bool     // of the program: --help was given
}

// A Value is a flag or an argument.
type Value struct {
	Name   string
	Enum   []string // what it may be; nil: anything
	Hidden bool

	tag      reflect.StructTag
	field    reflect.Value
	settings string // the title of the settings that it belongs to
	given    bool
}

// New returns the program that a struct declares.
func New(name, summary string, target any) *Command {
	c := &Command{Name: name, Summary: summary, target: reflect.ValueOf(target).Elem()}
	c.bind(c.target, "")
	c.Flags = append(c.Flags, &Value{Name: "help", tag: `help:"Print what a command does, and its flags; -h does too."`, field: reflect.ValueOf(&c.help).Elem()})
	return c
}

func (c *Command) bind(in reflect.Value, settings reflect.StructTag) {
	for i := range in.NumField() {
		f := in.Type().Field(i)
		switch v := (&Value{Name: name(f), tag: f.Tag, field: in.Field(i), settings: settings.Get("settings")}); {
		case f.Anonymous:
			c.bind(v.field, f.Tag+settings)
		case has(f.Tag, "cmd"):
			child := &Command{Name: v.Name, Summary: f.Tag.Get("help"), Tag: f.Tag, Parent: c, target: v.field}
			child.bind(v.field, "")
			c.Commands = append(c.Commands, child)
			if has(f.Tag, "default") {
				c.otherwise = child
			}
		case has(f.Tag, "arg"), has(f.Tag, "help"):
			shown, some := settings.Lookup("shown")
			v.Hidden = has(f.Tag, "hidden") || some && !slices.Contains(strings.Split(shown, ","), v.Name)
			if enum, ok := f.Tag.Lookup("enum"); ok {
				v.Enum = strings.Split(enum, ",")
			}
			if has(f.Tag, "arg") {
				c.Args = append(c.Args, v)
			} else {
				c.Flags = append(c.Flags, v)
			}
		}
	}
}

func has(tag reflect.StructTag, key string) bool { _, ok := tag.Lookup(key); return ok }

// name returns the name of a field on the command line: DryRun is dry-run, and URL is url.
func name(f reflect.StructField) string {
	if s := f.Tag.Get("name"); s != "" {
		return s
	}
	var b strings.Builder
	last := ' '
	for _, r := range f.Name {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return b.String()
}

// Target returns a pointer to the struct of the command, with what was parsed.
func (c *Command) Target() any { return c.target.Addr().Interface() }

// Path returns the command's name after those of its parents, as it is typed.
func (c *Command) Path() string {
	if c.Parent == nil {
		return c.Name
	}
	return c.Parent.Path() + " " + c.Name
}

// Command returns the command of that name in a group, or nil.
func (c *Command) Command(name string) *Command {
	if i := slices.IndexFunc(c.Commands, func(child *Command) bool { return child.Name == name }); i >= 0 {
		return c.Commands[i]
	}
	return nil
}

// AllFlags returns the flags of the command and then of its parents.
func (c *Command) AllFlags() (all []*Value) {
	for ; c != nil; c = c.Parent {
		all = append(all, c.Flags...)
	}
	return all
}

// offers reports whether help and completion show a flag: one with the tag configures only where there are settings, here or below.
func (c *Command) offers(v *Value) bool {
	return !v.Hidden && (!has(v.tag, "configures") || c.settled())
}

func (c *Command) settled() bool {
	return slices.ContainsFunc(c.AllFlags(), func(v *Value) bool { return v.settings != "" }) || slices.ContainsFunc(c.Commands, (*Command).settled)
}

// Flag returns the flag of that name, of the command or of a parent, or nil.
func (c *Command) Flag(name string) *Value {
	all := c.AllFlags()
	if i := slices.IndexFunc(all, func(v *Value) bool { return v.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}
