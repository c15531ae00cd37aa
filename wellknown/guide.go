package wellknown

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"stoa/protocol"
)

//go:embed *.tmpl
var templates embed.FS

// A guide contains the texts that are made from the declared operations, by path. They contain no text of an agent's owner.
type guide map[string][]byte

// guides are the parts of a guide by path, with the name of the template. What only some need, such as who signs, bids or
// receives callbacks, is a part of its own, so that SKILL.md stays short.
var guides = map[string]string{
	"/llms.txt": "llms.txt", "/SKILL.md": "SKILL.md", "/skill/bids.md": "bids.md", "/skill/meetings.md": "meetings.md",
	"/skill/signing.md": "signing.md", "/skill/callbacks.md": "callbacks.md",
	"/skill/joining.md": "joining.md",
}

// guideView is the data of the templates.
type guideView struct {
	Base, Host, Name, Description string
	Reads, Writes                 []protocol.Operation
	MCP, A2A                      bool
	Registries                    []string
}

func writeGuide(w *WellKnown) (guide, error) {
	v := guideView{
		Base: w.base, Host: w.host, Name: protocol.OneLine(w.c.Name), Description: protocol.OneLine(w.c.Description),
		MCP: w.c.Doors&protocol.MCP != 0, A2A: w.c.Doors&protocol.A2A != 0, Registries: w.c.Registries,
	}
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.HTTP) {
		if op.ReadOnly {
			v.Reads = append(v.Reads, *op)
		} else {
			v.Writes = append(v.Writes, *op)
		}
	}
	g := guide{}
	for path, name := range guides {
		var err error
		if g[path], err = render(name, v); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func render(name string, v guideView) ([]byte, error) {
	t, err := template.New(name+".tmpl").Funcs(template.FuncMap{
		"example": example, "telling": telling, "needs": needs, "parameters": parameters, "httpOnly": httpOnly,
		"private": func(op protocol.Operation) bool { return op.Private() },
	}).ParseFS(templates, name+".tmpl")
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := t.Execute(&b, v); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return []byte(b.String()), nil
}

// example returns a valid input of an operation, on one line.
func example(op protocol.Operation) (string, error) {
	raw, err := json.Marshal(op.Example)
	return string(raw), err
}

// telling reports whether the example of an operation says more than its parameters: it has three members.
func telling(op protocol.Operation) (bool, error) {
	raw, err := json.Marshal(op.Example)
	var members map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &members)
	}
	return len(members) > 2, err
}

// parameters lists the members of an operation's input that are neither in its path nor secret.
// Required members are marked, and short enumerations are listed.
func parameters(op protocol.Operation) string {
	var list []string
	for _, f := range reflect.VisibleFields(op.In) {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == op.Secret || strings.Contains(op.HTTP.Path, "{"+name+"}") {
			continue
		}
		text := "`" + name + "`"
		if rest == "" && f.Type.Kind() != reflect.Pointer {
			text += "*"
		}
		if values := f.Tag.Get("enum"); values != "" {
			text += " (" + strings.ReplaceAll(values, ",", ", ") + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// httpOnly lists the operations of a guide that are no tools of MCP.
func httpOnly(v guideView) string {
	var list []string
	for _, op := range slices.Concat(v.Reads, v.Writes) {
		if op.Doors&protocol.MCP == 0 {
			list = append(list, "`"+op.Name+"`")
		}
	}
	return strings.Join(list, ", ")
}

// secrets says what opens the subject of an operation, by the member of the input that it is in.
var secrets = map[string]string{
	"readToken":   "signature, token or `readToken`",
	"statusToken": "signature, token or `statusToken`",
	"ticket":      "ticket of a mailed link",
	"payToken":    "last part of `paymentUrl`",
}

// needs returns what a writer, or the reader of private data, has to show.
func needs(op protocol.Operation) string {
	switch {
	case op.Secret != "" && op.Access == protocol.Anonymous:
		return secrets[op.Secret]
	case op.Access == protocol.Anonymous:
		return "nothing"
	case op.Access&protocol.Proof != 0:
		return "proof of work (" + op.Purpose + "), signature or token"
	}
	return "signature or token"
}

// part serves a text of the guide.
func part(path string, body []byte) func(*http.Request) (document, error) {
	media := "text/plain; charset=utf-8"
	if strings.HasSuffix(path, ".md") {
		media = "text/markdown; charset=utf-8"
	}
	return func(*http.Request) (document, error) {
		return document{media: media, body: body, maxAge: time.Hour}, nil
	}
}

// securityTxt says where to report vulnerabilities (RFC 9116). Expires moves by a day each day and
// is always less than a year ahead (§2.5.5).
func (w *WellKnown) securityTxt(*http.Request) (document, error) {
	expires := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 180)
	body := "Contact: " + w.c.Contact + "\nExpires: " + expires.Format(time.RFC3339) +
		"\nPreferred-Languages: en\nCanonical: " + w.base + "/.well-known/security.txt\n"
	if w.c.Policy != "" {
		body += "Policy: " + w.c.Policy + "\n"
	}
	return document{media: "text/plain; charset=utf-8", body: []byte(body), maxAge: 24 * time.Hour}, nil
}
