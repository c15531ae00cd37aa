package protocol

import (
	"slices"
	"time"
)

// The catalog of merchants: reading it for everybody, writing it for owners.

// BatchBody is the longest body of put_items, in bytes.
const BatchBody = 2 << 20

// An ItemSort is the order of a list. "" is by relevance with a q.
type ItemSort string

const (
	SortRelevance ItemSort = "relevance" // the best match first
	SortNew       ItemSort = "new"       // the newest first
	SortPrice     ItemSort = "price"     // the cheapest first
	SortDearest   ItemSort = "-price"    // the dearest first
	SortNear      ItemSort = "near"      // the nearest first
)

// A Finding is what a search did beyond the question.
type Finding struct {
	DidYouMean string   `json:"didYouMean,omitempty" doc:"What q probably meant."`
	Partly     bool     `json:"partly,omitempty" doc:"Most words match, not all."`
	Without    []string `json:"without,omitempty" doc:"Leave these out."`
}

// A List is a page of a list that is searched.
type List[T any] struct {
	Page[T]
	Finding
}

// An ItemsQuery selects items on sale.
type ItemsQuery struct {
	Q            string         `json:"q,omitempty" maxLength:"200" doc:"As people ask."`
	Handle       string         `json:"handle,omitempty" shape:"handle" doc:"Only items of this business."`
	Category     []string       `json:"category,omitempty" maxItems:"10" shape:"label" doc:"Only in one of these, by any name of it."`
	Availability []Availability `json:"availability,omitempty" maxItems:"5" enum:"in_stock,backorder,preorder,out_of_stock,discontinued" doc:"Only with a variant of one of these."`
	Sort         ItemSort       `json:"sort,omitempty" enum:"relevance,new,price,-price,near" doc:"Order."`
	PlaceFilter
	PriceFilter
	Paging
}

// Check parses near and the range of prices.
func (q ItemsQuery) Check() []Fault {
	return slices.Concat(q.PlaceFilter.check(q.Sort), q.PriceFilter.Check())
}

// A PriceFilter selects items by a range of prices, and businesses by having such an item on sale.
type PriceFilter struct {
	MinPrice Decimal `json:"minPrice,omitempty" decimal:"true" doc:"Only with an item of this or more."`
	MaxPrice Decimal `json:"maxPrice,omitempty" decimal:"true" doc:"Only with an item of this or less."`
	Currency string  `json:"currency,omitempty" shape:"currency" default:"INR" doc:"Of the prices."`
}

// Check parses the range of prices.
func (f PriceFilter) Check() (faults []Fault) {
	_, _, faults = f.Prices()
	return faults
}

// Prices returns the range of prices in minor units, nil where it is open.
func (f PriceFilter) Prices() (least, most *int64, faults []Fault) {
	read := func(at string, d Decimal) *int64 {
		if d == "" {
			return nil
		}
		minor, fault := MoneyDraft{f.In(), d}.Minor()
		if fault == nil {
			return &minor
		}
		if fault.Pointer == "/currency" {
			at = fault.Pointer
		}
		faults = append(faults, Fault{at, fault.Code, fault.Detail})
		return nil
	}
	least, most = read("/minPrice", f.MinPrice), read("/maxPrice", f.MaxPrice)
	if least != nil && most != nil && *most < *least {
		faults = append(faults, Fault{"/maxPrice", "out-of-range", "must not be less than minPrice"})
	}
	return least, most, faults
}

// In is the currency of the prices.
func (f PriceFilter) In() string {
	if f.Currency == "" {
		return Rupee
	}
	return f.Currency
}

// An ItemMerchant is the business that sells an item.
type ItemMerchant struct {
	Handle   string `json:"handle"`
	Name     string `json:"name"`
	Page     string `json:"page" format:"uri"`
	Distance *int   `json:"distance,omitempty"`
}

// A CatalogEntry is an item in a list of several businesses.
type CatalogEntry struct {
	Item
	Merchant  ItemMerchant `json:"merchant"`
	Untrusted bool         `json:"untrusted_content" enum:"true" doc:"Always true."`
}

// An ItemList is a page of items on sale.
type ItemList struct {
	Page[CatalogEntry]
	Finding
}

var ListItems = declare[ItemsQuery, ItemList](Operation{
	Name: "list_items", Title: "List items on sale",
	Summary:     "Items on sale, of all businesses or one.",
	Description: "The best matches of q first; without q the nearest, with near; one business's in its order; others the newest first.",
	HTTP:        Route{"GET", "/api/public/items", 200}, Doors: Everywhere, ReadOnly: true,
	MaxAge: 30 * time.Second, Codes: []Code{InvalidCursor, NotFound},
	Example: ItemsQuery{Handle: "rao-tiffins", Q: "dosa"},
})

// An OwnItem is an item as its owner wrote it.
type OwnItem struct {
	ID         string    `json:"id" pattern:"^item_"`
	Item       ItemDraft `json:"item" doc:"What put_item takes."`
	VariantIDs []string  `json:"variantIds" doc:"Ids of its variants, in their order; of an item without any, the one that it is."`
	Untrusted  bool      `json:"untrusted_content" enum:"true" doc:"Always true."`
}

// An ItemRef names an item of one of the owner's businesses.
type ItemRef struct {
	Owned
	SKU string `json:"sku" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Your own name for the item."`
}

// An ItemInput is a whole item for one of the owner's businesses.
type ItemInput struct {
	Owned
	ItemDraft
}

// An OwnItemsQuery selects items of one of the owner's businesses.
type OwnItemsQuery struct {
	Owned
	Q            string         `json:"q,omitempty" maxLength:"200" doc:"As people ask."`
	Category     []string       `json:"category,omitempty" maxItems:"10" shape:"label" doc:"Only in one of these."`
	Availability []Availability `json:"availability,omitempty" maxItems:"5" enum:"in_stock,backorder,preorder,out_of_stock,discontinued" doc:"Only with a variant of one of these."`
	Paging
}

var ListOwnItems = declare[OwnItemsQuery, Page[OwnItem]](Operation{
	Name: "list_own_items", Title: "List your items",
	Summary: "The items of a business of yours as you wrote them, in their order.",
	HTTP:    Route{"GET", "/api/owner/merchant/items", 200}, For: Owners, Scope: ScopeProfile, ReadOnly: true,
	Codes: []Code{Forbidden, NotFound, InvalidCursor}, Example: OwnItemsQuery{Q: "dosa"},
})

var GetOwnItem = declare[ItemRef, OwnItem](Operation{
	Name: "get_own_item", Title: "Read an item of yours",
	Summary: "One item of a business of yours, as you wrote it.",
	HTTP:    Route{"GET", "/api/owner/merchant/items/{sku}", 200}, For: Owners, Scope: ScopeProfile, ReadOnly: true, Codes: []Code{Forbidden, NotFound},
	Example: ItemRef{SKU: "masala-dosa"},
})

var PutItem = declare[ItemInput, OwnItem](Operation{
	Name: "put_item", Title: "Write an item",
	Summary: "Adds an item to the catalog of a business of yours, or replaces the one with its sku.",
	Description: "A catalog holds at most 20,000 items. An item keeps its id, and a variant the one of its sku or of its labels. " +
		"A new item is announced in the feed, and a lower price; at most a hundred in a day.",
	HTTP: Route{"PUT", "/api/owner/merchant/items/{sku}", 200}, For: Owners, Scope: ScopeProfile, Replaces: GetOwnItem.Operation,
	Codes:   []Code{Forbidden, NotFound, Conflict},
	Example: ItemInput{ItemDraft: ItemDraft{SKU: "masala-dosa", Name: "Masala dosa", Price: &MoneyDraft{Rupee, "85.00"}, Unit: "plate", Category: "Breakfast"}},
})

var RemoveItem = declare[ItemRef, None](Operation{
	Name: "remove_item", Title: "Remove an item",
	Summary: "Removes an item from the catalog of a business of yours. Written again within 90 days, it has its id and its place again.",
	HTTP:    Route{"DELETE", "/api/owner/merchant/items/{sku}", 204}, For: Owners, Scope: ScopeProfile, Replaces: GetOwnItem.Operation,
	Codes: []Code{Forbidden, NotFound, Conflict}, Example: ItemRef{SKU: "masala-dosa"},
})

// An ItemBatch changes several items of one of the owner's businesses.
type ItemBatch struct {
	Owned
	Items  []ItemDraft `json:"items,omitempty" maxItems:"1000" doc:"Items to add or replace." as:"put_item"`
	Remove []string    `json:"remove,omitempty" maxItems:"1000" doc:"SKUs of items to remove. An unknown one is no error."`
}

// Check returns the faults of each item, and repeated SKUs.
func (in ItemBatch) Check() (faults []Fault) {
	faults = checkItems(in.Items)
	if len(in.Items)+len(in.Remove) == 0 {
		faults = append(faults, Fault{"/items", "required", "name items to write, or to remove"})
	}
	return faults
}

// An ItemsReport counts what a change of a catalog did.
type ItemsReport struct {
	Added     int `json:"added"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Removed   int `json:"removed"`
	ItemCount int `json:"itemCount" doc:"How many items are on sale now."`
}

var PutItems = declare[ItemBatch, ItemsReport](Operation{
	Name: "put_items", Title: "Write several items",
	Summary:     "Adds, replaces and removes up to 1,000 items of a business of yours, all of them or none.",
	Description: "The body may have 2 MiB over HTTP. For a whole catalog use import_items.",
	HTTP:        Route{"POST", "/api/owner/merchant/items/batch", 200}, For: Owners, Body: BatchBody, Scope: ScopeProfile,
	Codes:   []Code{Forbidden, NotFound, Conflict},
	Example: ItemBatch{Items: []ItemDraft{{SKU: "masala-dosa", Name: "Masala dosa", Price: &MoneyDraft{Rupee, "85.00"}}}, Remove: []string{"idli"}},
})

// MaxItemsUpload is the size limit, in bytes, of a catalog that is imported.
const MaxItemsUpload = 64 << 20

// Modes of an import of items.
const (
	ImportReplace = "replace" // the file is the whole catalog
	ImportMerge   = "merge"   // items that it does not name stay
)

// An ItemsImport is how to import the catalog in the body.
type ItemsImport struct {
	Owned
	Mode   string `json:"mode,omitempty" enum:"replace,merge" default:"replace" doc:"replace: the file is the whole catalog, in its order; other items are removed. merge: they stay."`
	DryRun bool   `json:"dryRun,omitempty" doc:"Change nothing; report the faults, or what would happen."`
}

// A LineFault is a fault of a line of a file.
type LineFault struct {
	Line    int    `json:"line" doc:"From 1. Of an item with several lines, the first."`
	Pointer string `json:"pointer" doc:"JSON Pointer to the member: /price/amount. Empty: the whole line."`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

// An ItemsImportReport is what an import of items did, or would do.
type ItemsImportReport struct {
	DryRun     bool        `json:"dryRun" doc:"Nothing was changed."`
	Format     string      `json:"format" enum:"csv,jsonl,json,shopify,woocommerce,google,schema.org"`
	Items      int         `json:"items" doc:"How many items the file has."`
	Added      int         `json:"added"`
	Changed    int         `json:"changed"`
	Unchanged  int         `json:"unchanged"`
	Removed    int         `json:"removed"`
	FaultCount int         `json:"faultCount" doc:"How many faults the file has; with any, the counts above are 0."`
	Faults     []LineFault `json:"faults" doc:"The first 500 of them."`
	Columns    []ColumnUse `json:"columns,omitempty" doc:"Of a file that another program wrote: what became of its columns."`
	Notes      []string    `json:"notes,omitempty" doc:"What of it was changed or left out, and how often."`
}

// A ColumnUse is what became of a column of a file that another program wrote.
type ColumnUse struct {
	Column  string `json:"column"`
	Becomes string `json:"becomes" doc:"Column of ours."`
	Dropped bool   `json:"dropped" doc:"It has no place here."`
}

var ImportItems = declare[ItemsImport, ItemsImportReport](Operation{
	Name: "import_items", Title: "Import a catalog",
	Summary: "Imports the items of a business of yours from a file, all of them or none; the file is the body.",
	Description: "Up to 20,000 items and 64 MiB, UTF-8: CSV, JSON Lines or a JSON array; what Shopify and WooCommerce export as CSV; " +
		"a feed of Google Merchant Center (table, RSS, Atom); products of schema.org as JSON. " +
		"JSON: items as put_item takes them. CSV: the first line names the columns " +
		"sku, name, description, price, list_price, currency, unit, category, categories, tags, availability, barcode, image, media, url, measure, reference, " +
		"variant_sku, option1_name, option1_value, up to option5_value, json (a whole item); only sku and name are required. " +
		"Prices are in rupees (85.50) unless currency says otherwise; " +
		"categories, tags and media are divided by |; measure and reference are such as 750 ml. Lines of one sku that follow each other are variants of one item: " +
		"T1,Kurta,1200,Size,S and then T1,,1250,Size,M; a first line without values of its options says what all of them have. " +
		"An apostrophe before =, +, - or @ is not part of a value. " +
		"Readers see the old catalog until the new one is complete. A dry run lists every fault by line.",
	HTTP: Route{"POST", "/api/owner/merchant/items/import", 200}, Doors: HTTP, For: Owners, Upload: MaxItemsUpload,
	UploadMedia: "text/csv, text/tab-separated-values, application/json, application/ld+json, application/jsonl, application/x-ndjson, " +
		"application/xml, text/xml, application/rss+xml, application/atom+xml", Access: Session, Scope: ScopeProfile, Idempotent: true,
	Codes: []Code{Forbidden, NotFound, Conflict, TooLarge, UnsupportedMediaType}, Example: ItemsImport{DryRun: true},
})

var ExportItems = declare[Owned, File](Operation{
	Name: "export_items", Title: "Export your catalog",
	Summary: "Exports the items of a business of yours as CSV, with the columns of import_items: an import of the file changes nothing.",
	Description: "UTF-8 with a byte order mark. A cell that a spreadsheet would take for a formula begins with an apostrophe; " +
		"an item that columns cannot express is in the column json.",
	HTTP: Route{"GET", "/api/owner/merchant/items.csv", 200}, Doors: HTTP, For: Owners, Media: "text/csv; charset=utf-8", Scope: ScopeProfile,
	ReadOnly: true, Codes: []Code{Forbidden, NotFound, Overloaded}, Example: Owned{},
})
