package protocol

import "time"

// A catalog that its business keeps elsewhere, and the node reads daily.

// What becomes of items that the owner changed after the last reading.
const (
	OwnKeep      = "keep"
	OwnOverwrite = "overwrite"
)

// A CatalogAddress says where a business has its catalog.
type CatalogAddress struct {
	Owned
	URL  string `json:"url" format:"uri" maxLength:"2000" doc:"Public https address of a file as import_items takes it."`
	Mode string `json:"mode,omitempty" enum:"replace,merge" default:"replace" doc:"replace: an item that is not in the file any more is removed. merge: it stays."`
	Own  string `json:"own,omitempty" enum:"keep,overwrite" default:"keep" doc:"keep: what you add, change or remove here after the first reading stays so, a removal for 90 days. overwrite: the file decides."`
}

// A CatalogReading is how the catalog of a business is read at its address.
type CatalogReading struct {
	URL       *string     `json:"url" doc:"null: it is read nowhere."`
	Mode      string      `json:"mode"`
	Own       string      `json:"own"`
	Waiting   bool        `json:"waiting" doc:"It is read in a moment."`
	AskedAt   *time.Time  `json:"askedAt" doc:"When the address was last asked."`
	ReadAt    *time.Time  `json:"readAt" doc:"When the catalog here was last as the file."`
	ChangedAt *time.Time  `json:"changedAt" doc:"When a reading last changed something; what, say the next three."`
	Added     int         `json:"added"`
	Changed   int         `json:"changed"`
	Removed   int         `json:"removed"`
	Kept      int         `json:"kept" doc:"How many items are as you wrote them and not as the file has them."`
	Fault     *string     `json:"fault" doc:"Why the last reading changed nothing, and what to do."`
	Falls     bool        `json:"falls" doc:"The fault is that the file has fewer than half of the items: read_catalog_address with falls takes it."`
	Faults    []LineFault `json:"faults" doc:"The first faults of the file, by line."`
	NextAt    *time.Time  `json:"nextAt" doc:"When it is read next; null: not again."`
	Untrusted bool        `json:"untrusted_content" enum:"true" doc:"Always true."`
}

// A CatalogAsk asks for a reading now.
type CatalogAsk struct {
	Owned
	Falls bool `json:"falls,omitempty" doc:"Take the file also when it has fewer than half of the items; the others are removed."`
}

var GetCatalogAddress = declare[OwnInput, CatalogReading](Operation{
	Name: "get_catalog_address", Title: "See where your catalog is read",
	Summary: "Where the node reads the items of a business of yours daily, what changed last, and what is wrong.",
	HTTP:    Route{"GET", "/api/owner/merchant/address", 200}, Doors: HTTP, For: Owners, Scope: ScopeProfile, ReadOnly: true,
	Codes: []Code{Forbidden, NotFound}, Example: OwnInput{},
})

var PutCatalogAddress = declare[CatalogAddress, CatalogReading](Operation{
	Name: "put_catalog_address", Title: "Have your catalog read daily",
	Summary: "Has the items of a business of yours read from an address, now and then daily.",
	Description: "The file is one that import_items takes, of up to 64 MiB; it is asked for with ETag and Last-Modified. A file with a fault, with no item, " +
		"or with fewer than half of the items on sale changes nothing; the owner is notified once (catalog.trouble). " +
		"The first reading takes over the items that the file names.",
	HTTP: Route{"PUT", "/api/owner/merchant/address", 200}, Doors: HTTP, For: Owners, Scope: ScopeProfile, Codes: []Code{Forbidden, NotFound, Validation},
	Example: CatalogAddress{URL: "https://shop.example.org/products.csv", Own: OwnKeep},
})

var ReadCatalogAddress = declare[CatalogAsk, CatalogReading](Operation{
	Name: "read_catalog_address", Title: "Read your catalog now",
	Summary: "Has the catalog of a business of yours read at its address now, at most once a minute.",
	HTTP:    Route{"POST", "/api/owner/merchant/address/read", 200}, Doors: HTTP, For: Owners, Scope: ScopeProfile, Inward: true,
	Codes: []Code{Forbidden, NotFound}, Example: CatalogAsk{},
})

var RemoveCatalogAddress = declare[OwnInput, None](Operation{
	Name: "remove_catalog_address", Title: "End the reading of your catalog",
	Summary: "Ends the daily reading of the catalog of a business of yours. Its items stay.",
	HTTP:    Route{"DELETE", "/api/owner/merchant/address", 204}, Doors: HTTP, For: Owners, Scope: ScopeProfile,
	Codes: []Code{Forbidden, NotFound}, Example: OwnInput{},
})
