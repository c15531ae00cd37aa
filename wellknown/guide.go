package wellknown

import (
	"embed"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
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

// writeGuide fills the templates in: names in double braces are texts, {{mcp}} and {{a2a}} begin lines of these doors.
func writeGuide(w *WellKnown) guide {
	var reads, writes, examples, readList, writeList []string
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.HTTP) {
		request, needed := op.HTTP.Method+" "+op.HTTP.Path, ""
		if op.Private() {
			needed = " Needs " + needs(*op) + "."
		}
		if op.ReadOnly {
			reads = append(reads, "| `"+op.Name+"` | `"+request+"` | "+parameters(*op)+" | "+op.Summary+needed+" |")
			readList = append(readList, "- ["+op.Name+"]("+op.HTTP.Path+"): "+op.HTTP.Method+". "+op.Summary+needed)
			continue
		}
		writes = append(writes, "| `"+op.Name+"` | `"+request+"` | "+needs(*op)+" | "+op.Summary+" |")
		writeList = append(writeList, "- ["+op.Name+"]("+op.HTTP.Path+"): "+op.HTTP.Method+". "+op.Summary+" Needs "+needs(*op)+".")
		if text := example(*op); text != "" {
			examples = append(examples, "- `"+op.Name+"`: `"+text+"`")
		}
	}
	description, doors, registries := protocol.OneLine(w.c.Description), "HTTP", "This node looks at no chain, so it takes none."
	if description != "" {
		description += "\n\n"
	}
	if w.c.Doors&protocol.MCP != 0 {
		doors = "HTTP or MCP"
	}
	if len(w.c.Registries) > 0 {
		registries = "This node takes identities of `" + strings.Join(w.c.Registries, "`, `") + "`."
	}
	lines := func(list []string) string { return strings.Join(list, "\n") }
	texts := []string{
		"{{base}}", w.base, "{{host}}", w.host, "{{name}}", protocol.OneLine(w.c.Name), "{{description}}", description, "{{doors}}", doors,
		"{{httpOnly}}", httpOnly(), "{{registries}}", registries, "{{mcp}}", "", "{{a2a}}", "", "{{examples}}", lines(examples),
	}
	skill := strings.NewReplacer(append(texts, "{{reads}}", lines(reads), "{{writes}}", lines(writes))...)
	list := strings.NewReplacer(append(texts, "{{reads}}", lines(readList), "{{writes}}", lines(writeList))...)
	g := guide{}
	for path, name := range guides {
		raw, err := templates.ReadFile(name + ".tmpl")
		if err != nil {
			panic(err) // it is embedded
		}
		var kept strings.Builder
		for line := range strings.Lines(string(raw)) {
			closed := strings.HasPrefix(line, "{{mcp}}") && w.c.Doors&protocol.MCP == 0 || strings.HasPrefix(line, "{{a2a}}") && w.c.Doors&protocol.A2A == 0
			if !closed {
				kept.WriteString(line)
			}
		}
		fill := skill
		if path == "/llms.txt" {
			fill = list
		}
		g[path] = []byte(fill.Replace(kept.String()))
	}
	return g
}

// example returns a valid input of an operation on one line, when it says more than its parameters: it has three members.
func example(op protocol.Operation) string {
	raw, err := json.Marshal(op.Example)
	var members map[string]json.RawMessage
	if err != nil || json.Unmarshal(raw, &members) != nil || len(members) < 3 || op.HTTP.Method == http.MethodPut { // as its POST
		return ""
	}
	return string(raw)
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

// httpOnly lists everybody's operations that are no tools of MCP.
func httpOnly() string {
	var list []string
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.HTTP) {
		if op.Doors&protocol.MCP == 0 {
			list = append(list, "`"+op.Name+"`")
		}
	}
	return strings.Join(list, ", ")
}

// secrets says what opens the subject of an operation, by the member of the input that it is in.
var secrets = map[string]string{
	"token":       "signature or the order's token",
	"deleteToken": "signature or `deleteToken`",
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
