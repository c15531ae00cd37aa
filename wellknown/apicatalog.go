package wellknown

import (
	"net/http"
	"time"

	"stoa/protocol"
)

// A target is a link of a linkset (RFC 9264 §4.2).
type target struct {
	Href  string `json:"href"`
	Type  string `json:"type,omitempty"`
	Title string `json:"title,omitempty"`
}

// An api is one API with its descriptions; in the entry of the catalog itself, Item lists all (RFC
// 9727 §2, appendix A).
type api struct {
	Anchor string   `json:"anchor"`
	Item   []target `json:"item,omitempty"`
	Desc   []target `json:"service-desc,omitempty"`
	Doc    []target `json:"service-doc,omitempty"`
	Meta   []target `json:"service-meta,omitempty"`
	Status []target `json:"status,omitempty"`
}

// apiCatalog lists every public API of the node, and the feeds (RFC 9727).
func (w *WellKnown) apiCatalog(*http.Request) (document, error) {
	at := func(path, media string) []target { return []target{{Href: w.base + path, Type: media}} }
	status := at("/healthz", "application/json")
	apis := []api{{
		Anchor: w.base + "/api/public/", Status: status,
		Desc: at("/openapi.json", "application/vnd.oai.openapi+json"),
		Doc:  append(at("/SKILL.md", "text/markdown"), at("/llms.txt", "text/plain")...),
		Meta: at("/schemas/agent-profile.v1.json", "application/schema+json"),
	}}
	if w.c.Doors&protocol.MCP != 0 {
		apis = append(apis, api{
			Anchor: w.base + protocol.MCPPath, Meta: at(serverCardPaths[0], protocol.ARDMCPCard), Doc: at("/SKILL.md", "text/markdown"), Status: status,
		})
	}
	if w.c.Doors&protocol.A2A != 0 {
		apis = append(apis, api{Anchor: w.base + "/a2a/", Meta: at("/.well-known/agent-card.json", "application/json"), Status: status})
	}
	apis = append(apis,
		api{
			Anchor: w.base + protocol.ARDPath, Desc: at("/openapi.json", "application/vnd.oai.openapi+json"),
			Meta: at(protocol.ARDCatalogPath, "application/json"), Status: status,
		},
		api{Anchor: w.base + protocol.UCPPath, Meta: at(protocol.UCPProfilePath, "application/json"), Doc: at("/SKILL.md", "text/markdown"), Status: status},
		api{Anchor: w.base + "/ap/", Meta: at("/nodeinfo/2.1", "application/json"), Status: status},
	)
	own := api{Anchor: w.base + "/.well-known/api-catalog"}
	for _, a := range apis {
		own.Item = append(own.Item, target{Href: a.Anchor})
	}
	for _, f := range w.c.Feeds {
		own.Item = append(own.Item, target{w.base + f.Path, f.Media, f.Title})
	}
	d, err := jsonDocument(`application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`, time.Hour,
		map[string]any{"linkset": append([]api{own}, apis...)})
	d.header = http.Header{"Link": {`</.well-known/api-catalog>; rel="api-catalog"`}}
	return d, err
}
