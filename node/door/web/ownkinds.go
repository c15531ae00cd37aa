package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"stoa/protocol"
)

// The kinds of an item (its variants) in a form: a row for each, with a label for each of what they
// differ in (its options). Their fields are option0, option1 … and v0-label0, v0-label1, v0-amount … of
// the first row. A row without labels is none.

const (
	emptyKinds = 3 // rows to fill in
	moreKinds  = 10
)

func kindField(row int, name string) string { return "v" + strconv.Itoa(row) + "-" + name }

// kindOfField returns the name under which fields describes a field: label for v3-label1, option for option0.
func kindOfField(name string) string {
	if _, known := fields[name]; known {
		return name
	}
	if row, of, found := strings.Cut(name, "-"); found && strings.HasPrefix(row, "v") {
		name = of
	}
	return strings.TrimRight(name, "0123456789")
}

// optionCount is how many options a form of an item shows.
func optionCount(f *sent, i protocol.ItemDraft) int {
	n := max(2, len(i.Options))
	for f != nil && f.values.Has("option"+strconv.Itoa(n)) && n < 5 {
		n++
	}
	return n
}

// kindCount is how many rows a form of an item shows.
func kindCount(f *sent, i protocol.ItemDraft) int {
	if f == nil {
		return min(len(i.Variants)+emptyKinds, protocol.MaxVariants)
	}
	n := 0
	for n < protocol.MaxVariants && f.values.Has(kindField(n, "label0")) {
		n++
	}
	if f.values.Get("more") != "" {
		n += moreKinds
	}
	return min(n, protocol.MaxVariants)
}

// kindValues adds what a form shows of an item's kinds.
func kindValues(i protocol.ItemDraft, v url.Values) {
	for n, o := range i.Options {
		v.Set("option"+strconv.Itoa(n), o.Name)
	}
	for n, x := range i.Variants {
		for o, label := range x.Options {
			v.Set(kindField(n, "label"+strconv.Itoa(o)), label)
		}
		for name, text := range map[string]string{"amount": priceText(x.Price), "listAmount": priceText(x.ListPrice),
			"availability": string(x.Availability), "sku": x.SKU, "barcode": x.Barcode} {
			v.Set(kindField(n, name), text)
		}
	}
}

// kindRows are the rows of a form that are kinds.
func kindRows(form url.Values) (rows []int) {
	for n := range protocol.MaxVariants {
		for o := range 5 {
			if strings.TrimSpace(form.Get(kindField(n, "label"+strconv.Itoa(o)))) != "" {
				rows = append(rows, n)
				break
			}
		}
	}
	return rows
}

// typedKinds reads the options and variants of a form. A label that no kind has any more is removed from
// its option; the others are in their former order, new ones after them.
func typedKinds(before protocol.ItemDraft, form url.Values, currency string) (options []protocol.ItemOption, variants []protocol.VariantDraft) {
	rows := kindRows(form)
	width := 0
	for n := range 5 {
		name := strings.TrimSpace(form.Get("option" + strconv.Itoa(n)))
		labelled := slices.ContainsFunc(rows, func(row int) bool { return form.Get(kindField(row, "label"+strconv.Itoa(n))) != "" })
		if name != "" || labelled {
			width = n + 1
		}
	}
	for n := range width {
		o := protocol.ItemOption{Name: strings.TrimSpace(form.Get("option" + strconv.Itoa(n))), Values: []string{}}
		if n < len(before.Options) {
			for _, value := range before.Options[n].Values {
				had := slices.ContainsFunc(before.Variants, func(v protocol.VariantDraft) bool { return v.Options[n] == value })
				has := slices.ContainsFunc(rows, func(row int) bool { return label(form, row, n) == value })
				if has || !had {
					o.Values = append(o.Values, value)
				}
			}
		}
		options = append(options, o)
	}
	for _, row := range rows {
		v := protocol.VariantDraft{}
		for n := range options {
			text := label(form, row, n)
			v.Options = append(v.Options, text)
			if text != "" && !slices.Contains(options[n].Values, text) {
				options[n].Values = append(options[n].Values, text)
			}
		}
		was := func(x protocol.VariantDraft) bool {
			return form.Get(kindField(row, "was")) == strings.Join(x.Options, "\n")
		}
		if n := slices.IndexFunc(before.Variants, was); n >= 0 {
			v.UnitPrice = before.Variants[n].UnitPrice
		}
		v.Price = typedPrice(form.Get(kindField(row, "amount")), currency)
		v.ListPrice = typedPrice(form.Get(kindField(row, "listAmount")), currency)
		v.Availability = protocol.Availability(form.Get(kindField(row, "availability")))
		v.SKU, v.Barcode = form.Get(kindField(row, "sku")), form.Get(kindField(row, "barcode"))
		variants = append(variants, v)
	}
	return options, variants
}

func label(form url.Values, row, option int) string {
	return strings.TrimSpace(form.Get(kindField(row, "label"+strconv.Itoa(option))))
}

// itemPlace returns the field of a fault of an item, and what of the field it is about.
func (f *sent) itemPlace(parts []string) (name, element string) {
	at := func(n int) string {
		if n < len(parts) {
			return parts[n]
		}
		return ""
	}
	number := func(n int) int {
		i, err := strconv.Atoi(at(n))
		if err != nil {
			return -1
		}
		return i
	}
	list := func(field string, n int) string {
		if all := commaList(f.values.Get(field)); n >= 0 && n < len(all) {
			return all[n]
		}
		return ""
	}
	switch parts[0] {
	case "price":
		return "amount", ""
	case "listPrice":
		return "listAmount", ""
	case "unitPrice":
		if at(1) == "reference" {
			return "compare", ""
		}
		return "measure", ""
	case "image":
		return "media", ""
	case "categories":
		return "otherCategories", list("otherCategories", number(1)-1)
	case "tags":
		return "tags", list("tags", number(1))
	case "options":
		if at(2) != "values" {
			return "option" + strconv.Itoa(max(number(1), 0)), ""
		}
		return f.labelPlace(number(1)), ""
	case "variants":
		rows, n := kindRows(f.values), number(1)
		if n < 0 || n >= len(rows) {
			return "option0", ""
		}
		switch at(2) {
		case "price":
			return kindField(rows[n], "amount"), ""
		case "listPrice":
			return kindField(rows[n], "listAmount"), ""
		case "options", "":
			return kindField(rows[n], "label"+strconv.Itoa(max(number(3), 0))), ""
		}
		return kindField(rows[n], at(2)), ""
	}
	return parts[0], ""
}

// labelPlace returns the field of the longest label of an option: what can be wrong with a label is its
// length.
func (f *sent) labelPlace(option int) (name string) {
	name = "option" + strconv.Itoa(max(option, 0))
	longest := 0
	for _, row := range kindRows(f.values) {
		if n := len(label(f.values, row, option)); n > longest {
			name, longest = kindField(row, "label"+strconv.Itoa(option)), n
		}
	}
	return name
}
