package protocol

import "strings"

// The Universal Commerce Protocol (UCP), releases 2026-08-25 and 2026-04-08: what the node's
// business profile says, and what is negotiated from it.

// Paths of UCP on a node. Paths of operations are appended to UCPPath.
const (
	UCPPath        = "/api/ucp"
	UCPMCPPath     = UCPPath + "/mcp"
	UCPProfilePath = "/.well-known/ucp"
	UCPSearchPath  = UCPPath + "/catalog/search" // spec §4.1
)

// CheckoutPath is the page on which a person takes over a checkout; its secret is appended.
const CheckoutPath = "/checkout/"

// BuyPath is the address to which the items of a basket are appended (dev.ucp.shopping.permalink).
const BuyPath = "/buy"

// UCPVersions are the supported releases, the current one first.
var UCPVersions = []string{"2026-08-25", "2026-04-08"}

// UCPPrefix begins the names of what this software adds to UCP: filters, and types of links
// and policies. They have the form of reverse domain names; no top-level domain is called stoa.
const UCPPrefix = "stoa"

// Capabilities of UCP.
const (
	UCPCatalogSearch  = "dev.ucp.shopping.catalog.search"
	UCPCatalogLookup  = "dev.ucp.shopping.catalog.lookup"
	UCPLocationSearch = "dev.ucp.common.location.search"
	UCPLocationLookup = "dev.ucp.common.location.lookup"
	UCPPermalink      = "dev.ucp.shopping.permalink"

	UCPCheckouts    = "dev.ucp.shopping.checkout"
	UCPCarts        = "dev.ucp.shopping.cart"
	UCPOrders       = "dev.ucp.shopping.order"
	UCPPaymentTerms = "dev.ucp.shopping.payment_terms" // extends checkout and order
)

// A UCPEntity is a version of a capability, or a service at one transport.
type UCPEntity struct {
	Version   string `json:"version"`
	Spec      string `json:"spec,omitempty"`
	Schema    string `json:"schema,omitempty"`
	Transport string `json:"transport,omitempty"`
	Endpoint  string `json:"endpoint,omitempty"`

	Extends []string `json:"extends,omitempty"`

	Config map[string]string `json:"config,omitempty"`
}

// UCPMeta is the member ucp of a profile or answer. Maps are from reverse domain names.
type UCPMeta struct {
	Version      string                 `json:"version"`
	Status       string                 `json:"status,omitempty"` // success or error; success when absent
	Supported    map[string]string      `json:"supported_versions,omitempty"`
	Services     map[string][]UCPEntity `json:"services,omitempty"`
	Capabilities map[string][]UCPEntity `json:"capabilities,omitempty"`
	Handlers     *struct{}              `json:"payment_handlers,omitempty"` // none: the money goes to the shop, on its page
}

// UCPMetaOf returns the node's business profile in a release, without keys. base is the public
// address of the node.
func UCPMetaOf(base, version string) UCPMeta {
	m := UCPMeta{Version: version, Capabilities: UCPCapabilities(version), Handlers: &struct{}{}}
	service := func(name, transport, endpoint, schema string) UCPEntity {
		return UCPEntity{Version: version, Spec: ucpSite + version + "/specification/overview", Schema: ucpSite + version + "/services/" + name + "/" + schema,
			Transport: transport, Endpoint: base + endpoint}
	}
	m.Services = map[string][]UCPEntity{"dev.ucp.shopping": {
		service("shopping", "rest", UCPPath, "rest.openapi.json"), service("shopping", "mcp", UCPMCPPath, "mcp.openrpc.json"),
	}}
	if version == UCPVersions[0] && strings.HasPrefix(base, "https://") { // of the node alone: nothing of it is negotiated
		m.Capabilities[UCPPermalink] = []UCPEntity{{Version: version, Spec: ucpSite + version + "/specification/permalink",
			Schema: ucpSite + version + "/schemas/shopping/permalink.json", Config: map[string]string{"endpoint": base + BuyPath}}}
	}
	if version == UCPVersions[0] {
		m.Services["dev.ucp.common"] = []UCPEntity{service("common", "rest", UCPPath, "rest.openapi.json"), service("common", "mcp", UCPMCPPath, "mcp.openrpc.json")}
		m.Supported = map[string]string{}
		for _, older := range UCPVersions[1:] {
			m.Supported[older] = base + UCPProfilePath + "/" + older
		}
	}
	return m
}

const ucpSite = "https://ucp.dev/"

// UCPCapabilities are the capabilities of the node in a release, each with its versions. The catalog has
// one shape in both releases, so that the current one also has its older version.
func UCPCapabilities(version string) map[string][]UCPEntity {
	entry := func(version, spec, schema string) UCPEntity {
		return UCPEntity{Version: version, Spec: ucpSite + version + "/specification/" + spec, Schema: ucpSite + version + "/schemas/" + schema + ".json"}
	}
	all := map[string][]UCPEntity{}
	if version == UCPVersions[0] {
		all[UCPCatalogSearch] = []UCPEntity{entry(version, "shopping/catalog/search", "shopping/catalog_search")}
		all[UCPCatalogLookup] = []UCPEntity{entry(version, "shopping/catalog/lookup", "shopping/catalog_lookup")}
		all[UCPLocationSearch] = []UCPEntity{entry(version, "common/location/search", "common/location_search")}
		all[UCPLocationLookup] = []UCPEntity{entry(version, "common/location/lookup", "common/location_lookup")}
		terms := entry(version, "payment-terms", "shopping/payment_terms")
		terms.Extends = []string{UCPCheckouts, UCPOrders}
		all[UCPPaymentTerms] = []UCPEntity{terms}
	}
	for _, name := range []string{UCPCheckouts, UCPCarts, UCPOrders} {
		page := strings.TrimPrefix(name, "dev.ucp.shopping.")
		spec := page
		if version == UCPVersions[0] {
			spec = "shopping/" + page
		}
		all[name] = []UCPEntity{entry(version, spec, "shopping/"+page)}
	}
	const older = "2026-04-08"
	all[UCPCatalogSearch] = append(all[UCPCatalogSearch], entry(older, "catalog/search", "shopping/catalog_search"))
	all[UCPCatalogLookup] = append(all[UCPCatalogLookup], entry(older, "catalog/lookup", "shopping/catalog_lookup"))
	return all
}
