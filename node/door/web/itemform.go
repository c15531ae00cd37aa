package web

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// itemTap is a form with one button about an item. about is what it does when that is not its label.
func itemTap(do, handle, part, sku, list, label, about string) templ.Component {
	if part != "move" || about == "" {
		about = strings.TrimSpace(label + " " + about)
	}
	button := markup(`<button class="quiet" type="submit" aria-label="%s">%s</button>`, about, label)
	return posted(part, "", "/account", partKeys(do, handle, part), hidden("sku", sku, "list", list), button)
}

var availabilities = [][2]string{
	{string(protocol.InStock), english("Available")}, {string(protocol.OutOfStock), english("Sold out")},
	{string(protocol.Preorder), english("To order in advance")}, {string(protocol.Backorder), english("Later, can be ordered now")},
	{string(protocol.Discontinued), english("No longer sold")},
}

// availabilityChoices are what a list can be narrowed to.
func availabilityChoices(ctx context.Context) [][2]string {
	all := [][2]string{{"", tr(ctx, "Any##availability")}}
	for _, x := range availabilities {
		all = append(all, [2]string{x[0], tr(ctx, x[1])})
	}
	return all
}

func availabilityWord(ctx context.Context, a string) string {
	for _, x := range availabilities {
		if x[0] == a {
			return tr(ctx, x[1])
		}
	}
	return a
}

// availabilityField is a choice of availability without a label.
func availabilityField(f *sent, at, name, value string) templ.Component {
	return ask(nil, f, at, url.Values{name: {value}}, choose(name, noLabel, availabilities))
}

// priceLabel names the field of a price.
func priceLabel(ctx context.Context, i protocol.ItemDraft) string {
	if currency := currencyOf(i); currency != protocol.Rupee {
		return tr(ctx, "Price in %s", currency)
	}
	return tr(ctx, "Price in rupees")
}

func currencySign(i protocol.ItemDraft) string {
	if currency := currencyOf(i); currency != protocol.Rupee {
		return currency
	}
	return "₹"
}

// itemPrice is the price of an item, or the range of the prices of its kinds, as it is read.
func itemPrice(ctx context.Context, i protocol.ItemDraft) string {
	var low, high *protocol.MoneyDraft
	var least, most int64
	for _, v := range append(i.Variants, protocol.VariantDraft{Price: i.Price})[:max(len(i.Variants), 1)] {
		p := cmp.Or(v.Price, i.Price)
		if p == nil {
			continue
		}
		minor, _ := p.Minor()
		if low == nil || minor < least {
			low, least = p, minor
		}
		if high == nil || minor > most {
			high, most = p, minor
		}
	}
	if low == nil {
		return initial(tr(ctx, "price on request"))
	}
	text := currencySign(i) + priceText(low)
	if least != most {
		text += "–" + currencySign(i) + priceText(high)
	}
	return text
}

// aboutItem says in which group an item is, what its price is for, and how many kinds it has.
func aboutItem(ctx context.Context, i protocol.ItemDraft) string {
	var parts []string
	if i.Category != "" {
		parts = append(parts, i.Category)
	}
	if i.Unit != "" {
		parts = append(parts, tr(ctx, "per %s", unitWord(ctx, i.Unit)))
	}
	if n := len(i.Variants); n > 0 {
		parts = append(parts, tr(ctx, "%d kinds", n))
		if i.Availability != "" && i.Availability != protocol.InStock {
			parts = append(parts, availabilityWord(ctx, string(i.Availability)))
		}
	}
	return strings.Join(parts, " · ")
}

func itemForm(f *sent, handle string, i protocol.ItemDraft) templ.Component {
	v, old := itemValues(i), hidden()
	if i.SKU != "" {
		old = version(f, v)
	}
	return posted("card form", "item", "/account", partKeys(protocol.PutItem.Name, handle, "item"), hidden("sku", i.SKU), old, itemFields(f, v, i),
		itemButtons(i.SKU))
}

// itemFields are the fields of an item and of its kinds.
func itemFields(f *sent, v url.Values, i protocol.ItemDraft) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		amount := line("amount", priceLabel(ctx, i)).verbatim().of("price")
		return ask(protocol.PutItem.Operation, f, "item", v, line("name", "Name"), sideBySide(amount, line("unit", "Per, such as plate")),
			remark("The price is such as 120, 1,50,000 or ₹ 99.50. Without one the item is “on request”."), choose("availability", "Availability", availabilities),
			box("description", "Description"), line("category", "Group in your list, such as Meals"), kindFields(ctx, f, v, i),
			fold("More about it: old price, pictures, words to find it by",
				line("listAmount", "Price before a reduction; it is shown struck through").of("listPrice"),
				line("otherCategories", "Other groups that it belongs to, separated by commas").upTo(600),
				line("tags", "Words to find it by, separated by commas").upTo(300), box("media", "Addresses of pictures, https, one a line").upTo(5100),
				line("url", "Address of its own page, https"),
				sideBySide(line("measure", "The price is for, such as 750 ml").upTo(30), line("compare", "Compare by, such as 100 ml").upTo(30)),
				line("barcode", "Number below the bar code").upTo(32).with("autocomplete", "off"))).Render(ctx, w)
	})
}

// kindFields are the fields of what is sold in several kinds.
func kindFields(ctx context.Context, f *sent, v url.Values, i protocol.ItemDraft) control {
	options := optionCount(f, i)
	var names []control
	for n := range options {
		names = append(names, line("option"+strconv.Itoa(n), optionLabel(ctx, n)).verbatim().of("options.name").with("autocomplete", "off", "placeholder", " "))
	}
	parts := []control{
		remark("When it is sold in several kinds: say what they differ in, and fill in a row for each. A kind without a price has the price above."),
		sideBySide(names...),
	}
	for row := range kindCount(f, i) {
		parts = append(parts, kindRow(ctx, f, v, i, row, options))
	}
	kinds := fold("Sizes, colours and other kinds", parts...)
	kinds.more = templ.Attributes{"class": "kinds", "open": len(i.Variants) > 0 || f.hasKinds()}
	return kinds
}

// variety is a line of a kind, for a member of a variant.
func variety(row int, name, label, member string) control {
	return line(kindField(row, name), label).of("variants."+member).with("autocomplete", "off")
}

// kindRow are the fields of a kind.
func kindRow(ctx context.Context, f *sent, v url.Values, i protocol.ItemDraft, row, options int) control {
	was := f.text(kindField(row, "was"), "")
	if row < len(i.Variants) {
		was = strings.Join(i.Variants[row].Options, "\n")
	}
	var main []control
	for n := range options {
		main = append(main, variety(row, "label"+strconv.Itoa(n), kindLabel(ctx, f, v, n), "options").verbatim().upTo(60))
	}
	main = append(main, variety(row, "amount", english("Price"), "price"), choose(kindField(row, "availability"), "Availability",
		append([][2]string{{"", english("As above##availability of a kind")}}, availabilities...)))
	kind := group(tr(ctx, "Kind %d", row+1), holds(kindField(row, "was"), was), sideBySide(main...),
		fold("Old price, numbers", sideBySide(variety(row, "listAmount", english("Price before a reduction"), "listPrice"),
			variety(row, "sku", english("Your number for it"), "sku").usually(v.Get(kindField(row, "sku"))).upTo(64).with("autocapitalize", "none"),
			variety(row, "barcode", english("Number below the bar code"), "barcode").upTo(32).with("autocomplete", "off"))))
	return kind.verbatim().with("class", "variety")
}

// hasKinds reports whether a form has kinds, or shall have more rows for them.
func (f *sent) hasKinds() bool {
	return f != nil && (f.values.Get("more") != "" || f.values.Get("option0") != "" || len(kindRows(f.values)) > 0)
}

// shopPath returns the path of a page of a shop.
func shopPath(path, handle string) string { return path + "?" + query("handle", handle) }

func optionLabel(ctx context.Context, n int) string {
	switch n {
	case 0:
		return tr(ctx, "They differ in, such as Size")
	case 1:
		return tr(ctx, "And in, such as Colour")
	}
	return tr(ctx, "And in")
}

// kindLabel names the field of a label: by its option, where that is known.
func kindLabel(ctx context.Context, f *sent, v url.Values, n int) string {
	name := "option" + strconv.Itoa(n)
	switch text := f.text(name, v.Get(name)); {
	case text != "":
		return text
	case n == 0:
		return tr(ctx, "What it is, such as Large")
	}
	return tr(ctx, "And, such as Red")
}
