package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"stoa/protocol"
)

// A dialect is the form in which the program of a shop writes its catalog: what its columns are here. Those that begin with an underscore are
// read by finish, with what they mean together.
type dialect struct {
	name    string
	has     []string // the columns that it is known by
	columns map[string]string
}

// dialects are tried in their order when a file has other columns than ours. Names are lower case, with underscores for spaces.
var dialects = []*dialect{
	{"shopify", []string{"handle", "title", "variant_price"}, shopifyColumns},
	{"shopify", []string{"url_handle", "title", "price"}, shopifyColumns}, // exports since 2025
	{"woocommerce", []string{"type", "name", "regular_price"}, map[string]string{
		"id": "_id", "type": "_type", "sku": "_sku", "parent": "_parent", "name": "name", "published": "_published", "short_description": "_short",
		"description": "description", "in_stock?": "availability", "backorders_allowed?": "_policy", "stock": "_stock", "regular_price": "price",
		"sale_price": "_sale", "categories": "categories", "tags": "tags", "images": "_images", "gtin,_upc,_ean,_or_isbn": "barcode",
		"attribute_1_name": "option1_name", "attribute_1_value(s)": "option1_value", "attribute_2_name": "option2_name", "attribute_2_value(s)": "option2_value",
		"attribute_3_name": "option3_name", "attribute_3_value(s)": "option3_value",
	}},
	googleFeed,
}

var shopifyColumns = map[string]string{
	"handle": "sku", "url_handle": "sku", "title": "name", "body_(html)": "description", "description": "description", "product_category": "_category",
	"type": "category", "tags": "tags", "published": "_published", "published_on_online_store": "_published", "status": "_status",
	"option1_name": "option1_name", "option1_value": "option1_value", "option2_name": "option2_name", "option2_value": "option2_value",
	"option3_name": "option3_name", "option3_value": "option3_value", "variant_sku": "variant_sku", "sku": "variant_sku",
	"variant_price": "price", "price": "price",
	"variant_compare_at_price": "list_price", "compare-at_price": "list_price", "variant_barcode": "barcode", "barcode": "barcode",
	"image_src": "image", "product_image_url": "image", "variant_inventory_qty": "_stock", "inventory_quantity": "_stock",
	"variant_inventory_policy": "_policy", "continue_selling_when_out_of_stock": "_policy",
}

// googleFeed is a product feed of Google Merchant Center, as a table or as RSS 2.0 or Atom with the namespace g.
var googleFeed = &dialect{"google", []string{"id", "title", "price"}, map[string]string{
	"id": "sku", "title": "name", "description": "description", "summary": "description", "link": "url", "image_link": "image",
	"additional_image_link": "_images", "availability": "availability", "price": "price", "sale_price": "_sale", "product_type": "category",
	"google_product_category": "_category", "gtin": "barcode", "unit_pricing_measure": "_unit",
}}

// schemaOrg are the members of a Product (schema.org) that productCells takes.
var schemaOrg = &dialect{name: "schema.org", columns: map[string]string{
	"sku": "sku", "name": "name", "description": "description", "url": "url", "image": "_images", "category": "category", "keywords": "tags",
	"price": "price", "currency": "currency", "availability": "availability", "barcode": "barcode",
}}

// dialectOf is the dialect of a table with those columns; nil when there is none.
func dialectOf(names []string) *dialect {
	for _, d := range dialects {
		if !slices.ContainsFunc(d.has, func(need string) bool { return !slices.Contains(names, need) }) {
			return d
		}
	}
	return nil
}

// uses says what became of columns.
func (d *dialect) uses(names []string) (list []protocol.ColumnUse) {
	meanings := map[string]string{"_id": "sku", "_sku": "sku", "_parent": "sku", "_sale": "price", "_images": "media", "_category": "category", "_unit": "unit",
		"_short": "description", "_stock": "availability", "_policy": "availability"}
	for _, name := range names {
		to, known := d.columns[name]
		if hidden := strings.HasPrefix(to, "_"); hidden && meanings[to] != "" {
			to = meanings[to]
		} else if hidden {
			to = "availability"
		}
		if name != "" {
			list = append(list, protocol.ColumnUse{Column: name, Becomes: to, Dropped: !known})
		}
	}
	return list
}

var (
	skuForm    = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
	tagForm    = regexp.MustCompile(protocol.TagPattern)
	codeForm   = regexp.MustCompile(`^[0-9A-Za-z-]{4,32}$`)
	moneyForm  = regexp.MustCompile(`^([A-Z]{3})?\s*([^A-Z]*?)\s*([A-Z]{3})?$`)
	sellsOn    = regexp.MustCompile(`(?i)^(continue|true|1|yes|notify)$`)
	absentWord = regexp.MustCompile(`(?i)^(false|0|no|draft|archived|unlisted)$`)
)

// noted counts something of the file that was changed or left out.
func (f *file) noted(format string, args ...any) { f.notes[fmt.Sprintf(format, args...)]++ }

func (f *file) allNotes() (list []string) {
	for _, note := range slices.Sorted(maps.Keys(f.notes)) {
		list = append(list, fmt.Sprintf("%d × %s", f.notes[note], note))
	}
	return list
}

// translate makes of the cells of a foreign row those of ours; nil for a row that is not on sale.
func (f *file) translate(foreign row) row {
	c := row{}
	for name, cell := range foreign {
		if to := f.dialect.columns[name]; to != "" && c[to] == "" {
			c[to] = cell
		}
	}
	if f.dialect.name == "woocommerce" {
		f.product(c)
	}
	for _, absent := range []string{c["_published"], c["_status"]} {
		if absentWord.MatchString(absent) || absent == "-1" {
			f.noted("not published, and left out")
			f.left = c["sku"]
			return nil
		}
	}
	if f.left != "" && c["sku"] == f.left && c["name"] == "" { // a variant or a picture of it
		return nil
	}
	f.finish(c)
	return c
}

// product finds what a row of WooCommerce belongs to: a variation is one of its parent, which is named by SKU or by id.
func (f *file) product(c row) {
	c["sku"] = c["_sku"]
	if c["sku"] == "" && c["_id"] != "" {
		c["sku"] = "id-" + c["_id"]
	}
	if c["description"] == "" {
		c["description"] = c["_short"]
	}
	switch c["_type"] {
	case "variation":
		c["variant_sku"], c["sku"] = c["sku"], c["_parent"]
		if id, ok := strings.CutPrefix(c["_parent"], "id:"); ok {
			c["sku"] = f.parents[id]
		}
	case "variable":
		if len(f.parents) < protocol.MaxItems {
			f.parents[c["_id"]] = c["sku"]
		}
		c["option1_value"], c["option2_value"], c["option3_value"] = "", "", ""
	default: // what describes it, and nothing to choose
		for n := 1; n <= maxRowOptions; n++ {
			delete(c, optionName(n))
			delete(c, optionValue(n))
		}
	}
}

// finish makes the cells what an item takes: texts without markup and of our lengths, links by https, one word for each availability.
func (f *file) finish(c row) {
	for _, name := range []string{"sku", "variant_sku"} {
		if sku := protocol.Clip(strings.TrimLeft(skuForm.ReplaceAllString(c[name], "-"), "._-"), 64); sku != c[name] {
			f.noted("%s written with letters, digits, dots and dashes only", name)
			c[name] = sku
		}
	}
	c["name"] = protocol.OneLine(html.UnescapeString(c["name"]))
	c["description"] = withoutMarkup(c["description"])
	for name, most := range map[string]int{"name": 120, "description": 1000} {
		if cut := protocol.Clip(c[name], most); cut != c[name] {
			f.noted("%s cut to %d characters", name, most)
			c[name] = cut
		}
	}
	if c["category"] == "" {
		c["category"] = c["_category"]
	}
	c["category"] = section(c["category"])
	if list := parts(c["categories"], ","); len(list) > 0 {
		for i := range list {
			list[i] = section(list[i])
		}
		slices.Sort(list)
		list = slices.Compact(list)
		c["categories"] = strings.Join(list[:min(10, len(list))], "|")
	}
	f.finishTags(c)
	f.finishPrice(c)
	if c["option1_name"] == "Title" && (c["option1_value"] == "Default Title" || c["option1_value"] == "") { // what has no variants
		delete(c, "option1_name")
		delete(c, "option1_value")
	}
	if c["availability"] = available(c["availability"], c["_stock"], c["_policy"]); c["barcode"] != "" && !codeForm.MatchString(c["barcode"]) {
		f.noted("barcode that is none left out")
		delete(c, "barcode")
	}
	var media []string
	for _, link := range append([]string{c["image"]}, parts(c["_images"], ",")...) {
		switch {
		case link == "" || slices.Contains(media, link):
		case !strings.HasPrefix(link, "https://") || len(link) > 500:
			f.noted("picture without https left out")
		case len(media) < 10:
			media = append(media, link)
		}
	}
	delete(c, "image")
	if c["media"] = strings.Join(media, "|"); !strings.HasPrefix(c["url"], "https://") || len(c["url"]) > 500 {
		delete(c, "url")
	}
	maps.DeleteFunc(c, func(name, cell string) bool { return cell == "" || strings.HasPrefix(name, "_") })
}

// section is the last part of a category such as Food > Grains.
func section(category string) string {
	if i := strings.LastIndex(category, ">"); i >= 0 {
		category = category[i+1:]
	}
	return protocol.Clip(protocol.OneLine(html.UnescapeString(category)), 60)
}

func (f *file) finishTags(c row) {
	var tags []string
	for _, tag := range parts(c["tags"], ",") {
		tag = strings.ReplaceAll(protocol.FoldTag(protocol.OneLine(tag)), " ", "-")
		switch {
		case slices.Contains(tags, tag):
		case !tagForm.MatchString(tag) || len(tags) == 8:
			f.noted("tag left out")
		default:
			tags = append(tags, tag)
		}
	}
	c["tags"] = strings.Join(tags, "|")
}

// finishPrice takes currencies out of prices, makes of a sale the price with the list price beside it, and drops a list price that is none.
func (f *file) finishPrice(c row) {
	for _, name := range []string{"price", "list_price", "_sale"} {
		if m := moneyForm.FindStringSubmatch(strings.TrimSpace(c[name])); m != nil && (m[1] != "" || m[3] != "") {
			if c[name] = m[2]; c["currency"] == "" {
				c["currency"] = m[1] + m[3]
			}
		}
	}
	minor := func(text string) int64 { // 0 for what is no amount, of which the reader of prices says what is wrong
		currency := cmp.Or(c["currency"], protocol.Rupee)
		a, _ := protocol.ReadAmount(currency, text)
		n, _ := protocol.MoneyDraft{Currency: currency, Amount: a}.Minor()
		return n
	}
	if minor(c["_sale"]) > 0 {
		c["list_price"], c["price"] = c["price"], c["_sale"]
	}
	if minor(c["list_price"]) <= minor(c["price"]) {
		delete(c, "list_price")
	}
}

// available is the availability that a shop's program says in its own words, or by what is in stock.
func available(word, stock, policy string) string {
	word = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), " ", "_")
	if i := strings.LastIndexByte(word, '/'); i >= 0 { // https://schema.org/InStock
		word = word[i+1:]
	}
	sells := sellsOn.MatchString(policy)
	switch word {
	case "in_stock", "instock", "1", "available", "limitedavailability", "onlineonly", "instoreonly":
		return string(protocol.InStock)
	case "out_of_stock", "outofstock", "soldout":
		return string(protocol.OutOfStock)
	case "preorder", "presale":
		return string(protocol.Preorder)
	case "backorder", "backordered", "available_for_order":
		return string(protocol.Backorder)
	case "discontinued":
		return string(protocol.Discontinued)
	case "0":
		if sells {
			return string(protocol.Backorder)
		}
		return string(protocol.OutOfStock)
	case "":
		if stock != "" && (strings.HasPrefix(stock, "-") || strings.Trim(stock, "0.") == "") && !sells {
			return string(protocol.OutOfStock)
		}
		return ""
	}
	return word // whatever it is, the schema says what it may be
}

// pictured joins rows of a product that only add a picture to it, as those of Shopify do.
func pictured(rows []row) []row {
	out := rows[:1]
	media := parts(rows[0]["media"], "|")
	for _, r := range rows[1:] {
		if r["price"] != "" || r["variant_sku"] != "" || r[optionValue(1)] != "" || r["name"] != "" {
			out = append(out, r)
			continue
		}
		for _, link := range parts(r["media"], "|") {
			if len(media) < 10 && !slices.Contains(media, link) {
				media = append(media, link)
			}
		}
	}
	rows[0]["media"] = strings.Join(media, "|")
	return out
}

// withoutMarkup is the text of HTML, a line for each of its blocks.
func withoutMarkup(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return strings.TrimSpace(s)
	}
	var b strings.Builder
	tokens, hidden := html.NewTokenizer(strings.NewReader(s)), ""
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			var lines []string
			for line := range strings.SplitSeq(b.String(), "\n") {
				if line = protocol.OneLine(line); line != "" {
					lines = append(lines, line)
				}
			}
			return strings.Join(lines, "\n")
		case html.TextToken:
			if hidden == "" {
				b.Write(tokens.Text())
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			raw := tokens.Raw()
			name, _ := tokens.TagName()
			switch tag := string(name); tag {
			case "script", "style":
				if hidden = tag; strings.HasPrefix(string(raw), "</") {
					hidden = ""
				}
			case "p", "br", "li", "div", "tr", "h1", "h2", "h3", "h4", "ul", "ol", "table":
				b.WriteByte('\n')
			case "td", "th":
				b.WriteByte(' ')
			}
		}
	}
}
