package ucpapi

import (
	"strings"

	"stoa/protocol"
)

// The shapes of UCP (schemas of release 2026-08-25, which are supersets of those of 2026-04-08).

// A message is about an answer: an error, a warning or an information.
type message struct {
	Type     string `json:"type"`
	Code     string `json:"code,omitempty"`
	Path     string `json:"path,omitempty"` // JSONPath into the request
	Content  string `json:"content"`
	Severity string `json:"severity,omitempty"` // of an error
}

func info(code, path, content string) message {
	return message{Type: "info", Code: code, Path: path, Content: content}
}

// findings say what a search did beyond the query.
func findings(f protocol.Finding) (all []message) {
	without := strings.Join(f.Without, ", ")
	if f.DidYouMean != "" {
		all = append(all, info("did_you_mean", "$.query", f.DidYouMean))
	}
	if f.Partly {
		all = append(all, info("partial_match", "$.query", strings.TrimSuffix("nothing has all words of the query; these have most: without "+without, ": without ")))
	} else if without != "" {
		all = append(all, info("no_match", "$.query", "nothing matches; leave out "+without))
	}
	return all
}

// A failure is the answer of an operation that has no other. The schema lets it have no more members.
type failure struct {
	UCP      protocol.UCPMeta `json:"ucp"`
	Messages []message        `json:"messages"`
	Continue string           `json:"continue_url,omitempty"`
}

// failed returns a failure. For one of negotiation no capability is active.
func (x *exchange) failed(code, content string) failure {
	meta := protocol.UCPMeta{Version: x.version, Status: "error"}
	if x.chosen != "" {
		meta.Capabilities = x.meta().Capabilities
	}
	return failure{UCP: meta, Continue: x.c.Base + "/merchants",
		Messages: []message{{Type: "error", Code: code, Content: content, Severity: "unrecoverable"}}}
}

type pagination struct {
	Cursor string `json:"cursor,omitempty"`
	More   bool   `json:"has_next_page"`
}

func pageOf(next *string) *pagination {
	if next == nil {
		return &pagination{}
	}
	return &pagination{*next, true}
}

type products struct {
	UCP        protocol.UCPMeta `json:"ucp"`
	Products   []productItem    `json:"products"`
	Pagination *pagination      `json:"pagination,omitempty"`
	Messages   []message        `json:"messages,omitempty"`
	Policies   []policy         `json:"policies,omitempty"`
	Untrusted  bool             `json:"untrusted_content"`
}

type oneProduct struct {
	UCP       protocol.UCPMeta `json:"ucp"`
	Product   productItem      `json:"product"`
	Messages  []message        `json:"messages,omitempty"`
	Policies  []policy         `json:"policies,omitempty"`
	Untrusted bool             `json:"untrusted_content"`
}

// A price is in minor units (ISO 4217).
type price struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

type priceRange struct {
	Min price `json:"min"`
	Max price `json:"max"`
}

type description struct {
	Plain string `json:"plain"`
}

type category struct {
	Value    string `json:"value"`
	Taxonomy string `json:"taxonomy"`
}

type media struct {
	Type string `json:"type"`
	URL  string `json:"url"`
	Alt  string `json:"alt_text,omitempty"`
}

// An optionValue has the last two members in the answer of get_product only.
type optionValue struct {
	Label     string `json:"label"`
	Available *bool  `json:"available,omitempty"`
	Exists    *bool  `json:"exists,omitempty"`
}

type option struct {
	Name   string        `json:"name"`
	Values []optionValue `json:"values"`
}

type productItem struct {
	ID          string                    `json:"id"`
	Title       string                    `json:"title"`
	Description description               `json:"description"`
	URL         string                    `json:"url"`
	Categories  []category                `json:"categories,omitempty"`
	Prices      priceRange                `json:"price_range"`
	ListPrices  *priceRange               `json:"list_price_range,omitempty"`
	Media       []media                   `json:"media,omitempty"`
	Options     []option                  `json:"options,omitempty"`
	Selected    []protocol.SelectedOption `json:"selected,omitempty"` // get_product only
	Variants    []variant                 `json:"variants"`
	Tags        []string                  `json:"tags,omitempty"`
	Metadata    map[string]any            `json:"metadata"`
}

type availability struct {
	Available bool                  `json:"available"`
	Status    protocol.Availability `json:"status"`
}

// A measure has the text that 2026-08-25 requires.
type measure struct {
	Value int    `json:"value"`
	Unit  string `json:"unit"`
	Text  string `json:"display_text"`
}

type unitPrice struct {
	price
	Measure   measure `json:"measure"`
	Reference measure `json:"reference"`
}

type barcode struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

type link struct {
	Type  string `json:"type"`
	URL   string `json:"url"`
	Title string `json:"title,omitempty"`
}

type seller struct {
	Name  string `json:"name"`
	Links []link `json:"links"`
}

// An input says which asked id led to a variant or location.
type input struct {
	ID    string `json:"id"`
	Match string `json:"match,omitempty"` // exact or featured; only of variants
}

type variant struct {
	ID           string                    `json:"id"`
	SKU          string                    `json:"sku,omitempty"`
	Barcodes     []barcode                 `json:"barcodes,omitempty"`
	Title        string                    `json:"title"`
	Description  description               `json:"description"`
	Price        price                     `json:"price"`
	ListPrice    *price                    `json:"list_price,omitempty"`
	UnitPrice    *unitPrice                `json:"unit_price,omitempty"`
	Availability availability              `json:"availability"`
	Options      []protocol.SelectedOption `json:"options,omitempty"`
	Seller       seller                    `json:"seller"`
	Inputs       []input                   `json:"inputs,omitempty"` // lookup only
}

// A policy is what holds for some products, by JSONPath. It is in release 2026-08-25 only.
type policy struct {
	Type        string                  `json:"type"`
	Description description             `json:"description"`
	AppliesTo   []string                `json:"applies_to,omitempty"`
	URL         string                  `json:"url,omitempty"`
	Returns     *protocol.ReturnsPolicy `json:"stoa.returns,omitempty"`
}
