package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"stoa/cmd/stoa/client"
	"stoa/cmd/stoa/command"
	"stoa/identity/key"
	"stoa/protocol"
)

type callCmd struct {
	Args []string `arg:"" optional:"" help:"Operation and its fields: stoa call <operation> --<field> value …"`
}

func (c *callCmd) Help() string { return callUsage }

var callUsage = `stoa call <operation> [<id>] [--<field> value …] [options]
stoa call --list
stoa call <operation> --help

` + optionsText(nil) + `
The parts of the operation's address, and then its required fields, may be given
by position: stoa call get_board_post post_…. A proof of work is solved where the
node asks for one.`

// A callOption is an option of call itself, not of the operation.
type callOption struct {
	name, value, about string
	of                 func(*protocol.Operation) bool // the operations that it applies to; nil: all
}

var callOptions = []callOption{
	{"node", "URL", "the node; default $STOA_NODE or http://127.0.0.1:8080", nil},
	{"key", "FILE", "sign with this private JWK (default $STOA_KEY)", func(o *protocol.Operation) bool { return o.Access == 0 || o.Access&protocol.Signed != 0 }},
	{"agent", "ID", "sign as this chain identity, eip155:<chain>:<registry>:<agent>",
		func(o *protocol.Operation) bool { return o.Access == 0 || o.Access&protocol.Signed != 0 }},
	{"token", "T", "an owner's or operator's API token (default $STOA_TOKEN)", func(o *protocol.Operation) bool { return o.Access == 0 || o.TakesToken() }},
	{"idempotency-key", "K", "give the same answer when the call is repeated", func(o *protocol.Operation) bool { return !o.ReadOnly }},
	{"json-body", "JSON", "all fields as one JSON object; @FILE reads a file, - standard input", func(o *protocol.Operation) bool { return o.In.NumField() > 0 }},
	{"file", "FILE", "the file to upload; - reads standard input", func(o *protocol.Operation) bool { return o.Upload > 0 }},
}

// callSwitches are the options without a value.
var callSwitches = []string{"json", "help", "list"}

// optionsText lists the options that apply to an operation, or all.
func optionsText(op *protocol.Operation) string {
	var b strings.Builder
	for _, o := range callOptions {
		if op == nil || o.of == nil || o.of(op) {
			fmt.Fprintf(&b, "  --%-20s %s\n", o.name+" "+o.value, o.about)
		}
	}
	if op == nil || op.Media == "" {
		fmt.Fprintf(&b, "  --%-20s %s\n", "json", "print the answer unchanged, on one line")
	}
	return b.String()
}

// invocation is a parsed command line of call.
type invocation struct {
	op               *protocol.Operation
	node, keyFile    string
	agent, token     string
	idemKey          string
	file             string // the body of an operation that takes a file
	body             string // all fields as JSON
	json, help, list bool
	args             map[string]any
}

func (c *callCmd) Run(w *world) error {
	in, err := parseCall(c.Args)
	if err != nil {
		return err
	}
	if err := in.readBody(w.stdin); err != nil {
		return err
	}
	switch {
	case in.list:
		return listOperations(w.stdout)
	case in.op == nil:
		fmt.Fprintln(w.stdout, callUsage)
		return nil
	case in.help:
		return describeOperation(w.stdout, in.op)
	}
	o := client.Options{AgentID: in.agent, Token: in.token, UserAgent: "stoa-call/" + buildVersion()}
	if in.keyFile != "" {
		raw, err := os.ReadFile(in.keyFile)
		if err != nil {
			return err
		}
		if o.Key, err = key.ParsePair(raw); err != nil {
			return fmt.Errorf("%s: %w", in.keyFile, err)
		}
	}
	caller, err := client.New(in.node, o)
	if err != nil {
		return err
	}
	call := client.Call{Operation: in.op.Name, Args: in.args, IdempotencyKey: in.idemKey}
	if in.op.GivesFile() {
		call.Out = w.stdout
	}
	if in.file != "" {
		f, err := openFile(w.stdin, in.file)
		if err != nil {
			return err
		}
		defer f.Close()
		call.File = f
	}
	res, err := caller.Do(w.ctx, call)
	if err != nil {
		return err
	}
	return printAnswer(w.stdout, in, res.Body)
}

func printAnswer(w io.Writer, in *invocation, body []byte) error {
	if in.op.Media != "" || len(body) == 0 {
		_, err := w.Write(body)
		return err
	}
	var out bytes.Buffer
	var err error
	if in.json {
		err = json.Compact(&out, body)
	} else {
		err = json.Indent(&out, bytes.TrimSpace(body), "", "  ")
	}
	if err != nil {
		return fmt.Errorf("the node's answer is not JSON: %w", err)
	}
	fmt.Fprintln(w, out.String())
	return nil
}

// parseCall parses the operation, the options of call and the fields of the operation's input,
// whose flags come from its declaration.
func parseCall(args []string) (*invocation, error) {
	in := &invocation{
		node: envOr("STOA_NODE", "http://127.0.0.1:8080"), keyFile: os.Getenv("STOA_KEY"),
		token: os.Getenv("STOA_TOKEN"), args: map[string]any{},
	}
	options := map[string]*string{"node": &in.node, "key": &in.keyFile, "agent": &in.agent, "token": &in.token,
		"idempotency-key": &in.idemKey, "file": &in.file, "json-body": &in.body}
	switches := map[string]*bool{"json": &in.json, "help": &in.help, "list": &in.list}
	var positions []string
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "--")
		if !isFlag {
			switch {
			case in.op == nil:
				if in.op = protocol.Lookup(strings.ReplaceAll(args[i], "-", "_")); in.op == nil {
					return nil, usagef("there is no operation %q%s; stoa call --list shows all operations",
						args[i], command.DidYouMean(strings.ReplaceAll(args[i], "-", "_"), operationNames()))
				}
			default:
				positions = append(positions, args[i])
			}
			continue
		}
		name, value, inline := strings.Cut(name, "=")
		if s := switches[name]; s != nil && !inline {
			*s = true
			continue
		}
		if !inline {
			if i+1 >= len(args) {
				return nil, usagef("--%s needs a value", name)
			}
			i++
			value = args[i]
		}
		if o := options[name]; o != nil {
			*o = value
			continue
		}
		if err := in.field(name, value); err != nil {
			return nil, err
		}
	}
	return in, in.place(positions)
}

func operationNames() (names []string) {
	for _, op := range protocol.Operations() {
		if op.Doors&protocol.HTTP != 0 {
			names = append(names, op.Name)
		}
	}
	return names
}

// place assigns positional values to fields: first the parts of the address, then other required
// fields.
func (in *invocation) place(values []string) error {
	if len(values) == 0 {
		return nil
	}
	var names []string
	for part := range strings.SplitSeq(in.op.HTTP.Path, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	for _, f := range fieldsOf(in.op.In) {
		if f.required && !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { _, given := in.args[name]; return given })
	for i, value := range values {
		if i >= len(names) {
			return usagef("unexpected %q; fields are given as --<field> value", value)
		}
		if err := in.field(names[i], value); err != nil {
			return err
		}
	}
	return nil
}

// readBody adds the fields that were given as JSON; fields on the command line take precedence.
func (in *invocation) readBody(stdin io.Reader) error {
	if in.body == "" || in.op == nil {
		return nil
	}
	raw, err := []byte(in.body), error(nil)
	switch file, isFile := strings.CutPrefix(in.body, "@"); {
	case in.body == "-":
		raw, err = io.ReadAll(io.LimitReader(stdin, 1<<20))
	case isFile:
		raw, err = os.ReadFile(file)
	}
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return usagef("--json-body: not a JSON object: %w", err)
	}
	for name, value := range fields {
		if _, given := in.args[name]; !given {
			in.args[name] = value
		}
	}
	return nil
}

// openFile opens the file to upload. Standard input is saved first, since a body that is signed or
// sent again is read twice.
func openFile(stdin io.Reader, name string) (io.ReadSeekCloser, error) {
	if name != "-" {
		return os.Open(name)
	}
	f, err := os.CreateTemp("", "stoa-call-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil { // the file exists as long as it is open
		return nil, errors.Join(err, f.Close())
	}
	if _, err := io.Copy(f, io.LimitReader(stdin, protocol.MaxArchiveUpload+1)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

func (in *invocation) field(name, value string) error {
	if in.op == nil {
		return usagef("--%s: name the operation first", name)
	}
	for _, f := range fieldsOf(in.op.In) {
		if f.name != name && !strings.EqualFold(strings.ReplaceAll(name, "-", ""), f.name) {
			continue
		}
		v, err := f.parse(value)
		if err != nil {
			return usagef("--%s: %w", name, err)
		}
		if list, ok := in.args[f.name].([]string); ok {
			v = append(list, v.([]string)...)
		}
		in.args[f.name] = v
		return nil
	}
	var known []string
	for _, f := range fieldsOf(in.op.In) {
		known = append(known, f.name)
	}
	for _, o := range callOptions {
		known = append(known, o.name)
	}
	return usagef("%s has no field %q%s; stoa call %s --help lists them", in.op.Name, name, command.DidYouMean(name, known), in.op.Name)
}

// field is one member of an operation's input.
type field struct {
	name     string
	kind     reflect.Kind
	required bool
	tag      reflect.StructTag
}

func fieldsOf(t reflect.Type) []field {
	var all []field
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		all = append(all, field{name, kindOf(kind), !protocol.Optional(f.Tag), f.Tag})
	}
	return all
}

// kindOf returns how a field is written on the command line: objects and lists of objects as JSON
// (Struct), types with a text form as that.
func kindOf(t reflect.Type) reflect.Kind {
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return reflect.String
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.String, t.Kind() == reflect.Map, t.Kind() == reflect.Interface:
		return reflect.Struct
	}
	return t.Kind()
}

func (f field) parse(s string) (any, error) {
	switch f.kind {
	case reflect.Int:
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", s)
		}
		return n, nil
	case reflect.Float64:
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", s)
		}
		return n, nil
	case reflect.Bool:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not true or false", s)
		}
		return b, nil
	case reflect.Slice:
		return strings.Split(s, ","), nil
	case reflect.Struct:
		if !json.Valid([]byte(s)) {
			return nil, fmt.Errorf("%q is not JSON", s)
		}
		return json.RawMessage(s), nil
	}
	return s, nil
}

// listOperations prints the operations by audience.
func listOperations(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, group := range []struct {
		of    protocol.Audience
		title string
	}{
		{protocol.Everybody, "For everybody"},
		{protocol.Owners, "For owners of profiles, with --token"},
		{protocol.Operators, "For operators of the node, with --token of the scope operator"},
	} {
		if i > 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "%s:\n", group.title)
		for _, op := range protocol.OperationsFor(group.of, protocol.HTTP) {
			fmt.Fprintf(t, "  %s\t%s\n", op.Name, op.Summary)
		}
	}
	return t.Flush()
}

func describeOperation(w io.Writer, op *protocol.Operation) error {
	fmt.Fprintf(w, "%s: %s\n%s\n", op.Name, op.Summary, op.Description)
	fmt.Fprintf(w, "HTTP: %s %s\n", op.HTTP.Method, op.HTTP.Path)
	if op.Access != protocol.Anonymous {
		fmt.Fprintf(w, "Needs one of: %s\n", strings.Join(standings(op.Access), ", "))
	}
	fields := fieldsOf(op.In)
	fmt.Fprintln(w)
	if len(fields) == 0 {
		fmt.Fprintln(w, "It has no fields.")
	} else {
		fmt.Fprintln(w, "Fields:")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		need := ""
		if f.required {
			need = "required"
		}
		fmt.Fprintf(t, "  --%s\t%s\t%s\t%s\n", f.name, kindName(f.kind), need, f.about())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nOptions:\n%s", optionsText(op))
	return nil
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.Slice:
		return "list,…"
	case reflect.Int:
		return "number"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true|false"
	case reflect.Struct:
		return "JSON"
	}
	return "text"
}

// about returns the field's description and limits, from its tags.
func (f field) about() string {
	var parts []string
	if doc := f.tag.Get("doc"); doc != "" {
		parts = append(parts, doc)
	}
	if enum := f.tag.Get("enum"); enum != "" {
		parts = append(parts, "One of "+strings.ReplaceAll(enum, ",", ", ")+".")
	}
	for _, limit := range []struct{ tag, text string }{
		{"maxLength", "At most %s characters."}, {"maxItems", "At most %s items."},
		{"minimum", "From %s."}, {"maximum", "To %s."}, {"default", "Default %s."},
	} {
		if v := f.tag.Get(limit.tag); v != "" {
			parts = append(parts, fmt.Sprintf(limit.text, v))
		}
	}
	return strings.Join(parts, " ")
}

func standings(a protocol.Access) []string {
	var names []string
	for _, s := range []struct {
		standing protocol.Standing
		name     string
	}{{protocol.Signed, "a signature (--key)"}, {protocol.Session, "a token (--token)"}, {protocol.Proof, "a proof of work (solved for you)"}} {
		if a&s.standing != 0 {
			names = append(names, s.name)
		}
	}
	return names
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
