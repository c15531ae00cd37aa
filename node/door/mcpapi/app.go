package mcpapi

import (
	_ "embed"
	"slices"
	"time"

	"stoa/identity/strictjson"
)

// MCP Apps (SEP-1865, the extension io.modelcontextprotocol/ui of 2026-01-26): beside a write that waits for a person, a client that declares it
// shows app.html in a frame without an origin. The app shows what is to be sent, has the client open the page that asks, where the person presses,
// and looks what became of it by the tool itself. It sends nothing by itself.

const (
	uiExtension = "io.modelcontextprotocol/ui"
	appURI      = "ui://stoa/confirm"
	appMedia    = "text/html;profile=mcp-app"
	appSession  = "ui-" // begins the session of a client of the older wire that declares the extension
)

//go:embed app.html
var appPage string

// toolMeta names the app of a tool.
type toolMeta struct {
	UI struct {
		URI string `json:"resourceUri"`
	} `json:"ui"`
}

// withApp names the app at the tools whose writes may wait.
func withApp(tools []*tool) []*tool {
	meta := &toolMeta{}
	meta.UI.URI = appURI
	tools = slices.Clone(tools)
	for i, t := range tools {
		if t.op != nil && t.op.Confirm {
			shown := *t
			shown.Meta = meta
			tools[i] = &shown
		}
	}
	return tools
}

// app is the resource of the app. It is in no list: tools name it.
func app() Resource {
	part := map[string]any{"uri": appURI, "mimeType": appMedia, "text": appPage, "_meta": map[string]any{"ui": map[string]bool{"prefersBorder": true}}}
	return Resource{URI: appURI, Media: appMedia, Read: func(*Call, map[string]string) (Contents, error) {
		return Contents{Parts: []any{part}, MaxAge: listTTL * time.Millisecond, Open: true}, nil
	}}
}

// declaresApp reports whether the capabilities of a handshake of the older wire have the extension.
func (m *message) declaresApp() bool {
	return strictjson.Members(strictjson.Members(m.params["capabilities"])["extensions"])[uiExtension] != nil
}
