package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// ErrHelp is returned with the command whose help is asked for.
var ErrHelp = errors.New("help is asked for")

// Parse finds the command of a command line and sets its flags and arguments, from the words, the environment, the configuration file and the defaults,
// in this order, and asks each struct that has Validate. file is called only for a command that has settings. The command that is returned with an error is
// the last one that was found.
func (c *Command) Parse(words []string, file func() (map[string]any, error)) (*Command, error) {
	at, args, err := c.find(words)
	if c.help {
		return at, ErrHelp
	}
	if at.otherwise != nil {
		at = at.otherwise
	}
	if err != nil {
		return at, err
	}
	unknown, err := at.fill(args, file)
	for target := at; err == nil && target != nil; target = target.Parent {
		if v, ok := target.Target().(interface{ Validate() error }); ok {
			err = v.Validate()
		}
	}
	return at, errors.Join(unknown, err)
}

// find follows the names of commands, sets the flags and returns the arguments.
func (c *Command) find(words []string) (at *Command, args []string, err error) {
	at, named := c, true
	for len(words) > 0 && err == nil {
		word, next := words[0], words[1:]
		switch child := at.Command(word); {
		case word == "--":
			args, next = append(args, next...), nil
		case word == "-h":
			c.help = true
		case strings.HasPrefix(word, "-") && word != "-":
			named = false
			if at.otherwise != nil && at.Flag(flagName(word)) == nil {
				at = at.otherwise
			}
			next, err = at.flag(word, next)
		case child != nil && has(child.Tag, "passthrough"):
			return child, next, nil
		case child != nil:
			at = child
		case at.otherwise != nil:
			at, args = at.otherwise, append(args, word)
		case at.Commands != nil:
			err = fmt.Errorf("there is no command %q%s", word, DidYouMean(word, at.names()))
		default:
			args = append(args, word)
		}
		words = next
	}
	if err == nil && at.Commands != nil && at.otherwise == nil {
		if err = ErrHelp; !named || args != nil {
			err = fmt.Errorf("name one of the commands: %s", strings.Join(at.names(), ", "))
		}
	}
	return at, args, err
}

func (c *Command) names() (names []string) {
	for _, child := range c.Commands {
		if !has(child.Tag, "hidden") {
			names = append(names, child.Name)
		}
	}
	return names
}

func flagName(word string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	return name
}

// A missingValue is the error of a flag that has no value.
type missingValue struct{ of *Value }

func (m missingValue) Error() string { return m.of.usage() + " needs a value" }

// flag sets a flag from its word and the next one, where it needs it, and returns the other words.
func (c *Command) flag(word string, rest []string) ([]string, error) {
	name, value, inline := strings.Cut(word, "=")
	v := c.Flag(flagName(word))
	if v == nil {
		var known []string
		for _, f := range c.AllFlags() {
			known = append(known, "--"+f.Name)
		}
		hint := DidYouMean("--"+strings.TrimLeft(name, "-"), known)
		if !strings.HasPrefix(word, "--") {
			hint += "; an argument that begins with - is written after --"
		}
		return rest, fmt.Errorf("there is no flag %s%s", name, hint)
	}
	switch {
	case inline:
	case v.field.Kind() == reflect.Bool:
		value = "true"
	case len(rest) == 0 || strings.HasPrefix(rest[0], "--"):
		return rest, missingValue{v}
	default:
		value, rest = rest[0], rest[1:]
	}
	return rest, v.set("--"+v.Name, v.split(value)...)
}

// fill sets the arguments, and the flags that no word gave. It returns the faults of the file's keys, and all others.
func (c *Command) fill(args []string, file func() (map[string]any, error)) (unknown, err error) {
	var missing, known []string
	var keys map[string]any
	for _, v := range slices.Backward(c.AllFlags()) { // the flag that names the file comes before the settings
		if v.settings != "" {
			if known = append(known, v.Name); len(known) == 1 {
				if keys, err = file(); err != nil {
					return nil, err
				}
			}
		}
		env, usual := v.tag.Get("env"), v.tag.Get("default")
		text, inEnv := os.LookupEnv(env)
		key, inFile := keys[v.Name]
		switch {
		case v.given:
		case inEnv:
			err = errors.Join(err, v.set("$"+env, v.split(text)...))
		case inFile && v.settings != "":
			err = errors.Join(err, v.setKey(key))
		case usual != "":
			err = errors.Join(err, v.set("--"+v.Name, v.split(usual)...))
		case has(v.tag, "required"):
			missing = append([]string{v.usage()}, missing...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(known, key) {
			unknown = errors.Join(unknown, fmt.Errorf("configuration file: there is no setting %q%s; stoa serve --help lists them", key, DidYouMean(key, known)))
		}
	}
	for _, v := range c.Args {
		n := min(1, len(args))
		if v.several() {
			n = len(args)
		}
		if n == 0 && !has(v.tag, "optional") {
			missing = append(missing, v.usage())
		}
		err = errors.Join(err, v.set(v.usage(), args[:n]...))
		args = args[n:]
	}
	switch {
	case missing != nil:
		err = errors.Join(err, fmt.Errorf("missing: %s", strings.Join(missing, " ")))
	case len(args) > 0:
		err = errors.Join(err, fmt.Errorf("unexpected argument %q", args[0]))
	}
	return unknown, err
}

// several reports whether it takes more than one value.
func (v *Value) several() bool { return v.field.Kind() == reflect.Slice }

// split returns the values in one word; an empty one has none for a list.
func (v *Value) split(word string) []string {
	switch {
	case !v.several():
		return []string{word}
	case word == "":
		return nil
	}
	return strings.Split(word, cmp.Or(v.tag.Get("sep"), ","))
}

// setKey sets what a TOML file has for it.
func (v *Value) setKey(value any) error {
	from := "configuration file: " + v.Name
	if text, ok := value.(string); ok {
		return v.set(from, v.split(text)...)
	}
	list, ok := value.([]any)
	if !ok || !v.several() {
		list = []any{value}
	}
	for _, item := range list {
		switch item.(type) {
		case string, int64, float64, bool:
		default:
			return fmt.Errorf("%s: %v is not what a setting can be", from, item)
		}
		if err := v.set(from, fmt.Sprint(item)); err != nil {
			return err
		}
	}
	return nil
}

// Put gives a value another text, after the parse.
func (v *Value) Put(text string) error {
	v.field.SetZero()
	return v.set("--"+v.Name, v.split(text)...)
}

// set sets words, or adds them to a list.
func (v *Value) set(from string, words ...string) error {
	v.given = true
	for _, word := range words {
		if v.Enum != nil && !slices.Contains(v.Enum, word) {
			return fmt.Errorf("%s: %q is none of %s", from, word, strings.Trim(strings.Join(v.Enum, ", "), ", "))
		}
		if err := parse(v.field, word); err != nil {
			return fmt.Errorf("%s: %q is %w", from, word, err)
		}
	}
	return nil
}

var switches = map[string]bool{"true": true, "yes": true, "y": true, "1": true, "false": false, "no": false, "n": false, "0": false}

// parse sets a field from its text, or adds to a list. The error continues a sentence.
func parse(field reflect.Value, s string) error {
	switch kind := field.Kind(); {
	case kind == reflect.String:
		field.SetString(s)
	case kind == reflect.Bool:
		on, ok := switches[strings.ToLower(s)]
		if !ok {
			return errors.New("neither true nor false")
		}
		field.SetBool(on)
	case kind == reflect.Slice:
		item := reflect.New(field.Type().Elem()).Elem()
		if err := parse(item, s); err != nil {
			return err
		}
		field.Set(reflect.Append(field, item))
	case field.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(s)
		if err != nil {
			return errors.New("not a duration such as 90s or 2h30m")
		}
		field.SetInt(int64(d))
	default:
		if err := json.Unmarshal([]byte(s), field.Addr().Interface()); err != nil || s == "null" {
			if field.CanFloat() {
				return errors.New("not a number")
			}
			return errors.New("not a whole number within its range")
		}
	}
	return nil
}
