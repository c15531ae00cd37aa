package protocol

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Limits of a catalog.
const (
	MaxItems        = 20_000   // items on sale of one merchant
	MaxRecordItems  = 100      // items that a merchant record shows, and that put_merchant replaces
	MaxItemBytes    = 32 << 10 // of one item as JSON
	MaxCatalogBytes = 64 << 20 // of all items of a merchant as JSON
	MaxVariants     = 100      // of one item
)

// An Availability says whether an item is available.
type Availability string

const (
	InStock      Availability = "in_stock"
	Backorder    Availability = "backorder"
	Preorder     Availability = "preorder"
	OutOfStock   Availability = "out_of_stock"
	Discontinued Availability = "discontinued"
)

// Availabilities are all of them.
var Availabilities = []Availability{InStock, Backorder, Preorder, OutOfStock, Discontinued}

// A Measure is a quantity of a unit.
type Measure struct {
	Value int    `json:"value" minimum:"1" maximum:"1000000" doc:"How much."`
	Unit  string `json:"unit" line:"true" minLength:"1" maxLength:"20" doc:"Of which unit, such as g or ml." example:"g"`
}

// A Media is a link to a picture or video. Pages of this node do not load it.
type Media struct {
	Type string `json:"type,omitempty" enum:"image,video,model_3d" doc:"image when left out."`
	URL  string `json:"url" format:"uri" shape:"address" maxLength:"500" doc:"https address."`
	Alt  string `json:"alt,omitempty" line:"true" maxLength:"200" doc:"What it shows, in words."`
}

// An UnitPriceDraft says for how much of a unit the price is, and for how much it is to be compared.
type UnitPriceDraft struct {
	Measure   Measure `json:"measure" doc:"What the price is for: 750 ml."`
	Reference Measure `json:"reference" doc:"What to compare by: 100 ml. The same unit."`
}

// An ItemOption is a choice between variants of an item.
type ItemOption struct {
	Name   string   `json:"name" line:"true" minLength:"1" maxLength:"40" doc:"What is chosen." example:"Size"`
	Values []string `json:"values" minItems:"1" maxItems:"50" shape:"label" doc:"Labels to choose from, such as Small."`
}

// A VariantDraft is one form of an item that is sold by itself, as the owner writes it.
type VariantDraft struct {
	SKU          string          `json:"sku,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Your own name for it; unique among the variants of the item."`
	Options      []string        `json:"options" minItems:"1" maxItems:"5" doc:"One label of each option of the item, in their order."`
	Price        *MoneyDraft     `json:"price,omitempty" doc:"The item's when left out."`
	ListPrice    *MoneyDraft     `json:"listPrice,omitempty" doc:"Price before a reduction; more than the price."`
	UnitPrice    *UnitPriceDraft `json:"unitPrice,omitempty" doc:"For prices by weight or volume."`
	Availability Availability    `json:"availability,omitempty" enum:"in_stock,backorder,preorder,out_of_stock,discontinued" doc:"The item's when left out."`
	Barcode      string          `json:"barcode,omitempty" pattern:"^[0-9A-Za-z-]{4,32}$" doc:"GTIN, EAN, UPC or ISBN."`
}

// An ItemDraft is something that a merchant sells, as the owner writes it. SKU is the owner's name
// for it: an item that is written again with the same SKU keeps its id.
type ItemDraft struct {
	SKU          string          `json:"sku" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Your own name for the item; unique among your items."`
	Name         string          `json:"name" line:"true" minLength:"1" maxLength:"120" doc:"Name of the item."`
	Description  string          `json:"description,omitempty" maxLength:"1000" doc:"Plain text."`
	Price        *MoneyDraft     `json:"price,omitempty" doc:"Leave it out for a price on request."`
	ListPrice    *MoneyDraft     `json:"listPrice,omitempty" doc:"Price before a reduction; more than the price."`
	Unit         string          `json:"unit,omitempty" line:"true" maxLength:"40" doc:"What the price is for, such as plate or kg."`
	UnitPrice    *UnitPriceDraft `json:"unitPrice,omitempty" doc:"For prices by weight or volume, such as per 100 g."`
	Category     string          `json:"category,omitempty" line:"true" maxLength:"60" doc:"The section of your list that it belongs to, such as meals: the first of its categories."`
	Categories   []string        `json:"categories,omitempty" maxItems:"10" shape:"label" doc:"All its categories; the first is its section."`
	Tags         []string        `json:"tags,omitempty" maxItems:"8" shape:"tag" doc:"Words to find it by, lower case."`
	Availability Availability    `json:"availability,omitempty" enum:"in_stock,backorder,preorder,out_of_stock,discontinued" doc:"in_stock when left out."`
	Options      []ItemOption    `json:"options,omitempty" maxItems:"5" doc:"Choices between its variants."`
	Variants     []VariantDraft  `json:"variants,omitempty" maxItems:"100" doc:"Its forms; an item without any is its only variant."`
	Barcode      string          `json:"barcode,omitempty" pattern:"^[0-9A-Za-z-]{4,32}$" doc:"GTIN, EAN, UPC or ISBN of an item without variants."`
	Media        []Media         `json:"media,omitempty" maxItems:"10" doc:"Pictures and videos, the first one first."`
	Image        string          `json:"image,omitempty" format:"uri" shape:"address" maxLength:"500" doc:"https address of a picture: the first of its media."`
	URL          string          `json:"url,omitempty" format:"uri" shape:"address" maxLength:"500" doc:"https address of its page."`
}

// AllCategories are the categories, the section first.
func (d *ItemDraft) AllCategories() []string {
	var all []string
	for _, c := range append([]string{d.Category}, d.Categories...) {
		if c != "" && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// AllMedia are the media, with the image.
func (d *ItemDraft) AllMedia() []Media {
	all := slices.Clone(d.Media)
	if d.Image != "" && !slices.ContainsFunc(all, func(m Media) bool { return m.URL == d.Image }) {
		all = slices.Insert(all, 0, Media{URL: d.Image})
	}
	for i := range all {
		if all[i].Type == "" {
			all[i].Type = "image"
		}
	}
	return all
}

// Normal returns a checked draft in the one form in which equal items are equal: each category and
// picture once, amounts with the decimals of their currency.
func (d ItemDraft) Normal() ItemDraft {
	categories, media := d.AllCategories(), d.AllMedia()
	d.Category, d.Categories = "", nil
	if len(categories) > 0 {
		d.Category = categories[0]
	}
	if len(categories) > 1 {
		d.Categories = categories
	}
	d.Image, d.Media = "", nil
	if len(media) == 1 && media[0].Type == "image" && media[0].Alt == "" {
		d.Image = media[0].URL
	} else if len(media) > 0 {
		d.Media = media
	}
	d.Price, d.ListPrice = d.Price.normal(), d.ListPrice.normal()
	d.Variants = slices.Clone(d.Variants)
	for i := range d.Variants {
		v := &d.Variants[i]
		v.Price, v.ListPrice = v.Price.normal(), v.ListPrice.normal()
	}
	return d
}

func (m *MoneyDraft) normal() *MoneyDraft {
	if m == nil {
		return nil
	}
	minor, fault := m.Minor()
	if fault != nil {
		return m
	}
	return &MoneyDraft{m.Currency, Decimal(MoneyOf(m.Currency, minor).Amount)}
}

// Check returns the faults that tags cannot express: invalid amounts, several currencies, options
// and variants that do not fit together.
func (d ItemDraft) Check() (faults []Fault) {
	add := func(pointer, code, detail string) { faults = append(faults, Fault{pointer, code, detail}) }
	currency := ""
	money := func(at string, m *MoneyDraft) (minor int64, ok bool) {
		if m == nil {
			return 0, false
		}
		minor, fault := m.Minor()
		if fault != nil {
			add(at+fault.Pointer, fault.Code, fault.Detail)
			return 0, false
		}
		if currency == "" {
			currency = m.Currency
		}
		if m.Currency != currency {
			add(at+"/currency", "other-currency", "all prices of an item have one currency")
		}
		return minor, true
	}
	prices := func(at string, price, list *MoneyDraft) {
		now, priced := money(at+"/price", price)
		if before, ok := money(at+"/listPrice", list); ok && (!priced || before <= now) {
			add(at+"/listPrice", "not-more", "must be more than the price, which it is compared with")
		}
	}
	unit := func(at string, u *UnitPriceDraft) {
		if u != nil && u.Measure.Unit != u.Reference.Unit {
			add(at+"/unitPrice/reference/unit", "other-unit", "must be the unit of the measure")
		}
	}
	prices("", d.Price, d.ListPrice)
	unit("", d.UnitPrice)
	if len(d.AllCategories()) > 10 {
		add("/categories", "too-many", "at most 10 categories")
	}
	return append(faults, d.checkVariants(prices, unit)...)
}

// checkItems returns the faults of a list of items in the member items.
func checkItems(items []ItemDraft) (faults []Fault) {
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		at := "/items/" + strconv.Itoa(i)
		if seen[item.SKU] {
			faults = append(faults, Fault{at + "/sku", "repeated", "another item has this sku"})
		}
		seen[item.SKU] = true
		for _, f := range item.Check() {
			faults = append(faults, Fault{at + f.Pointer, f.Code, f.Detail})
		}
	}
	return faults
}

func (d *ItemDraft) checkVariants(prices func(string, *MoneyDraft, *MoneyDraft), unit func(string, *UnitPriceDraft)) (faults []Fault) {
	add := func(pointer, code, detail string) { faults = append(faults, Fault{pointer, code, detail}) }
	names := map[string]bool{}
	for i, o := range d.Options {
		at := "/options/" + strconv.Itoa(i)
		if names[o.Name] {
			add(at+"/name", "repeated", "another option has this name")
		}
		names[o.Name] = true
		for n, v := range o.Values {
			if slices.Contains(o.Values[:n], v) {
				add(at+"/values/"+strconv.Itoa(n), "repeated", "the option has this value already")
			}
		}
	}
	if len(d.Options) > 0 && len(d.Variants) == 0 {
		add("/variants", "required", "an item with options has variants, one for each choice on sale")
	}
	if len(d.Variants) > 0 && d.Barcode != "" {
		add("/barcode", "not-with-variants", "an item with variants has the barcodes at the variants")
	}
	seen, skus := map[string]bool{}, map[string]bool{}
	for i, v := range d.Variants {
		at := "/variants/" + strconv.Itoa(i)
		prices(at, v.Price, v.ListPrice)
		unit(at, v.UnitPrice)
		if v.SKU != "" && skus[v.SKU] {
			add(at+"/sku", "repeated", "another variant has this sku")
		}
		skus[v.SKU] = true
		if len(v.Options) != len(d.Options) {
			add(at+"/options", "wrong-length", fmt.Sprintf("one label for each of the %d options of the item", len(d.Options)))
			continue
		}
		for n, label := range v.Options {
			if !slices.Contains(d.Options[n].Values, label) {
				add(at+"/options/"+strconv.Itoa(n), "unknown-value", "not a value of the option "+CleanText(d.Options[n].Name))
			}
		}
		if key := strings.Join(v.Options, "\x00"); seen[key] {
			add(at+"/options", "repeated", "another variant has these labels")
		} else {
			seen[key] = true
		}
	}
	return faults
}

// A SelectedOption is what a variant is, of one option.
type SelectedOption struct {
	Name  string `json:"name"`
	Label string `json:"label"`
}

// An UnitPrice is a price to compare with others.
type UnitPrice struct {
	Money
	Measure   Measure `json:"measure"`
	Reference Measure `json:"reference"`
}

// NewUnitPrice computes the price of the reference quantity, rounded half up to minor units.
func NewUnitPrice(currency string, minor int64, d *UnitPriceDraft) *UnitPrice {
	if d == nil || currency == "" {
		return nil
	}
	n := new(big.Int).Mul(big.NewInt(minor), big.NewInt(2*int64(d.Reference.Value)))
	n.Add(n, big.NewInt(int64(d.Measure.Value)))
	n.Quo(n, big.NewInt(2*int64(d.Measure.Value)))
	return &UnitPrice{MoneyOf(currency, n.Int64()), d.Measure, d.Reference}
}

// A Variant is one form of an item that is sold by itself. An item without variants has one, which
// is the item.
type Variant struct {
	ID           string           `json:"id" pattern:"^var_"`
	SKU          string           `json:"sku" doc:"The item's when the variant has none."`
	Title        string           `json:"title" doc:"Its labels, or the name of the item."`
	Options      []SelectedOption `json:"options"`
	Price        *Money           `json:"price" required:"true" orNull:"true" doc:"Null: on request."`
	ListPrice    *Money           `json:"listPrice,omitempty" doc:"Price before a reduction."`
	UnitPrice    *UnitPrice       `json:"unitPrice,omitempty" doc:"Price to compare with others."`
	Availability Availability     `json:"availability" enum:"in_stock,backorder,preorder,out_of_stock,discontinued"`
	Barcode      string           `json:"barcode,omitempty"`
}

// A PriceRange is the least and the greatest price of an item's variants.
type PriceRange struct {
	Min Money `json:"min"`
	Max Money `json:"max"`
}

// An Item is something a merchant sells, as readers see it.
type Item struct {
	ID           string       `json:"id" pattern:"^item_"`
	SKU          string       `json:"sku"`
	Name         string       `json:"name"`
	Description  string       `json:"description"`
	Price        *Money       `json:"price" required:"true" orNull:"true" doc:"Of an item with variants, the least one. Null: on request."`
	PriceRange   *PriceRange  `json:"priceRange,omitempty" doc:"When its variants have several prices."`
	ListPrice    *Money       `json:"listPrice,omitempty" doc:"Price before a reduction."`
	Unit         *string      `json:"unit" nullable:"true"`
	UnitPrice    *UnitPrice   `json:"unitPrice,omitempty" doc:"Price to compare with others."`
	Category     *string      `json:"category" nullable:"true" doc:"The section of the shop that it is in."`
	Categories   []string     `json:"categories"`
	Tags         []string     `json:"tags"`
	Availability Availability `json:"availability" enum:"in_stock,backorder,preorder,out_of_stock,discontinued"`
	Options      []ItemOption `json:"options,omitempty"`
	Variants     []Variant    `json:"variants" doc:"At least one."`
	Media        []Media      `json:"media"`
	Image        *string      `json:"image" nullable:"true" format:"uri"`
	URL          *string      `json:"url" nullable:"true" format:"uri"`
}
