package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"stoa/protocol"
)

// The pages of a shop: its items, its hours, and where it is. Each form changes a part of the
// merchant record, which put_merchant writes as a whole.

func (a *account) readRecord(s *Web, r *http.Request) error {
	if err := a.read(s, r, protocol.GetMerchantRecord.Operation, &a.Record); err != nil {
		return err
	}
	a.SKU, a.Adds = r.URL.Query().Get("item"), r.URL.Query().Has("new")
	if f := a.Sent; f != nil && f.part == "item" {
		a.SKU, a.Adds = f.values.Get("sku"), f.values.Get("sku") == ""
	}
	if a.SKU != "" && a.Sent == nil && itemAt(a.Record.Record.Items, a.SKU) < 0 {
		return protocol.Errorf(protocol.NotFound, "the shop has no such item any more")
	}
	return nil
}

// recordOf returns the input that writes a record.
func recordOf(r protocol.MerchantRecord) protocol.MerchantInput {
	return protocol.MerchantInput{Owned: protocol.Owned{Handle: r.Handle}, MerchantDraft: r.Record}
}

func itemAt(items []protocol.ItemDraft, sku string) int {
	return slices.IndexFunc(items, func(i protocol.ItemDraft) bool { return i.SKU == sku })
}

var errNoItem = protocol.Errorf(protocol.NotFound, "the shop has no such item any more; nothing was changed")

func storedItem(r protocol.MerchantRecord, form url.Values) url.Values {
	if n := itemAt(r.Record.Items, form.Get("sku")); n >= 0 {
		return itemValues(r.Record.Items[n])
	}
	return nil
}

func itemValues(i protocol.ItemDraft) url.Values {
	return valued("name", i.Name, "amount", priceText(i.Price), "unit", i.Unit, "description", i.Description, "category", i.Category,
		"tags", strings.Join(i.Tags, ", "), "availability", string(cmp.Or(i.Availability, protocol.InStock)), "image", i.Image, "url", i.URL)
}

// priceText is a price as it is typed: rupees with the digits in groups as India writes them.
func priceText(p *protocol.MoneyDraft) string {
	if p == nil {
		return ""
	}
	if paise, fault := p.Amount.Paise(); fault == nil && p.Currency == protocol.Rupee {
		return strings.TrimPrefix(protocol.FormatRupees(paise), "₹")
	}
	return string(p.Amount)
}

// itemPrice is a price as it is read.
func itemPrice(ctx context.Context, i protocol.ItemDraft) string {
	if i.Price == nil {
		return initial(tr(ctx, "price on request"))
	}
	text := i.Price.Currency + " " + priceText(i.Price)
	if i.Price.Currency == protocol.Rupee {
		text = "₹" + priceText(i.Price)
	}
	if i.Unit != "" {
		text = tr(ctx, "%s per %s", text, i.Unit)
	}
	return text
}

// changedItem writes the form's item: in place of the one with its sku, or as the last one.
func changedItem(r protocol.MerchantRecord, form url.Values) (any, error) {
	items, n := r.Record.Items, itemAt(r.Record.Items, form.Get("sku"))
	i := protocol.ItemDraft{SKU: form.Get("sku")}
	if n >= 0 {
		i = items[n]
	}
	currency := protocol.Rupee
	if i.Price != nil {
		currency = i.Price.Currency
	}
	i.Name, i.Unit, i.Description, i.Category = form.Get("name"), form.Get("unit"), form.Get("description"), form.Get("category")
	i.Tags, i.Availability = tidyList("tags", form.Get("tags")), protocol.Availability(form.Get("availability"))
	i.Image, i.URL, i.Price = form.Get("image"), form.Get("url"), nil
	if amount := strings.TrimSuffix(plainAmount(form.Get("amount")), "/-"); amount != "" {
		i.Price = &protocol.MoneyDraft{Currency: currency, Amount: protocol.Decimal(amount)}
	}
	if i.SKU == "" {
		i.SKU = newSKU(i.Name, items)
	}
	if n >= 0 {
		items[n] = i
	} else {
		items = append(items, i)
	}
	r.Record.Items = items
	return recordOf(r), nil
}

// newSKU returns the name of a new item within its shop: its first words in Latin letters, else item,
// with a number where that is taken.
func newSKU(name string, items []protocol.ItemDraft) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	base := strings.Join(words, "-")
	if len(base) > 40 {
		base = strings.TrimRight(base[:40], "-")
	}
	base = cmp.Or(base, "item")
	sku := base
	for n := 2; itemAt(items, sku) >= 0; n++ {
		sku = base + "-" + strconv.Itoa(n)
	}
	return sku
}

func withoutItem(r protocol.MerchantRecord, form url.Values) (any, error) {
	n := itemAt(r.Record.Items, form.Get("sku"))
	if n < 0 {
		return nil, errNoItem
	}
	r.Record.Items = slices.Delete(r.Record.Items, n, n+1)
	return recordOf(r), nil
}

// restoredItem puts an item back that was removed, where it was.
func restoredItem(r protocol.MerchantRecord, form url.Values) (any, error) {
	var i protocol.ItemDraft
	n, err := strconv.Atoi(form.Get("at"))
	if err != nil || json.Unmarshal([]byte(form.Get("item")), &i) != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the removed item cannot be read; add it again")
	}
	if itemAt(r.Record.Items, i.SKU) < 0 {
		r.Record.Items = slices.Insert(r.Record.Items, min(max(n, 0), len(r.Record.Items)), i)
	}
	return recordOf(r), nil
}

func movedItem(r protocol.MerchantRecord, form url.Values) (any, error) {
	n := itemAt(r.Record.Items, form.Get("sku"))
	if n < 0 {
		return nil, errNoItem
	}
	if n > 0 {
		r.Record.Items[n-1], r.Record.Items[n] = r.Record.Items[n], r.Record.Items[n-1]
	}
	return recordOf(r), nil
}

func storedHours(r protocol.MerchantRecord, _ url.Values) url.Values {
	v := valued("timezone", r.Record.Timezone)
	for _, day := range weekNames {
		v.Set("hours-"+day, shiftText(r.Record.Hours, day))
	}
	return v
}

// shiftText is a day's hours as they are typed.
func shiftText(hours []protocol.DayHours, day string) string {
	var shifts []string
	for _, h := range hours {
		if h.Day == day {
			shifts = append(shifts, h.Opens+"–"+h.Closes)
		}
	}
	return strings.Join(shifts, ", ")
}

// shifts reads hours as they are typed. What are no hours is refused by the node.
func shifts(text string) (list [][2]string) {
	for _, part := range commaList(text) {
		if strings.EqualFold(part, "closed") {
			continue
		}
		w := windowOf(part)
		list = append(list, [2]string{w["from"].(string), w["to"].(string)})
	}
	return list
}

func changedHours(r protocol.MerchantRecord, form url.Values) (any, error) {
	r.Record.Timezone, r.Record.Hours = strings.TrimSpace(form.Get("timezone")), nil
	for _, day := range weekNames {
		for _, x := range shifts(form.Get("hours-" + day)) {
			r.Record.Hours = append(r.Record.Hours, protocol.DayHours{Day: day, Opens: x[0], Closes: x[1]})
		}
	}
	return recordOf(r), nil
}

// closedDays adds days with other hours; without hours the shop is closed on them.
func closedDays(r protocol.MerchantRecord, form url.Values) (any, error) {
	e := protocol.ExceptionHours{Title: form.Get("why"), ValidFrom: form.Get("from"), ValidThrough: cmp.Or(form.Get("to"), form.Get("from"))}
	hours := shifts(form.Get("hours"))
	if len(hours) == 0 {
		hours = append(hours, [2]string{})
	}
	for _, x := range hours {
		e.Opens, e.Closes = x[0], x[1]
		r.Record.ExceptionHours = append(r.Record.ExceptionHours, e)
	}
	slices.SortStableFunc(r.Record.ExceptionHours, func(a, b protocol.ExceptionHours) int { return strings.Compare(a.ValidFrom, b.ValidFrom) })
	return recordOf(r), nil
}

// exceptionOf returns the days that a form names.
func exceptionOf(form url.Values) protocol.ExceptionHours {
	return protocol.ExceptionHours{
		Title: form.Get("why"), ValidFrom: form.Get("from"), ValidThrough: form.Get("to"), Opens: form.Get("opens"), Closes: form.Get("closes"),
	}
}

func reopenedDays(r protocol.MerchantRecord, form url.Values) (any, error) {
	n := slices.Index(r.Record.ExceptionHours, exceptionOf(form))
	if n < 0 {
		return nil, protocol.Errorf(protocol.NotFound, "these days are not in the list any more; nothing was changed")
	}
	r.Record.ExceptionHours = slices.Delete(r.Record.ExceptionHours, n, n+1)
	return recordOf(r), nil
}

func storedShop(r protocol.MerchantRecord, _ url.Values) url.Values {
	var at protocol.Address
	if r.Record.Address != nil {
		at = *r.Record.Address
	}
	return valued("category", r.Record.Category, "phone", r.Record.Phone, "website", r.Record.Website, "street", at.Street, "city", r.Record.City,
		"postalCode", at.PostalCode, "region", at.Region, "country", at.Country, "geo", geoText(r.Record.Geo))
}

func geoText(g *protocol.Geo) string {
	if g == nil {
		return ""
	}
	return strconv.FormatFloat(g.Latitude, 'f', -1, 64) + ", " + strconv.FormatFloat(g.Longitude, 'f', -1, 64)
}

func changedShop(r protocol.MerchantRecord, form url.Values) (any, error) {
	d := &r.Record
	d.Category, d.Phone, d.Website, d.City = form.Get("category"), form.Get("phone"), form.Get("website"), form.Get("city")
	at := protocol.Address{Street: form.Get("street"), PostalCode: form.Get("postalCode"), Region: regionCode(form.Get("region")),
		Country: regionCode(form.Get("country"))}
	if d.Address = &at; at == (protocol.Address{}) {
		d.Address = nil
	}
	d.Geo = nil
	if text := strings.TrimSpace(form.Get("geo")); text != "" {
		var g protocol.Geo
		if n, err := fmt.Sscanf(strings.ReplaceAll(text, ",", " "), "%g %g", &g.Latitude, &g.Longitude); n != 2 || err != nil {
			return nil, protocol.Invalid(protocol.Fault{Pointer: "/geo", Code: "wrong-shape", Detail: "must be two numbers"})
		}
		d.Geo = &g
	}
	return recordOf(r), nil
}

// shopPlace returns the field of a fault of the record, and what of the field it is about.
func (f *sent) shopPlace(parts []string) (name, element string) {
	name = parts[0]
	if len(parts) < 2 {
		return name, ""
	}
	n, _ := strconv.Atoi(parts[1])
	switch name {
	case "items":
		if len(parts) < 3 {
			return name, ""
		}
		if name = parts[2]; name == "price" {
			return "amount", ""
		}
		if list := commaList(f.values.Get(name)); len(parts) > 3 && listed[name] {
			if n, err := strconv.Atoi(parts[3]); err == nil && n < len(list) {
				element = list[n]
			}
		}
	case "hours":
		for _, day := range weekNames {
			for _, text := range commaList(f.values.Get("hours-" + day)) {
				if n == 0 {
					return "hours-" + day, text
				}
				n--
			}
		}
	case "exceptionHours":
		name = "from"
		if len(parts) > 2 {
			name = cmp.Or(map[string]string{"validThrough": "to", "title": "why", "opens": "hours", "closes": "hours"}[parts[2]], name)
		}
	case "address":
		name = parts[1]
	}
	return name, element
}

// removed is what was removed, for the form that puts it back.
type removed struct {
	what   string
	part   string
	fields url.Values
}

// undoOf returns how what a form removes is put back; nil for a form that removes nothing.
func undoOf(ctx context.Context, before protocol.MerchantRecord, f *sent) *removed {
	switch f.part {
	case "remove":
		if n := itemAt(before.Record.Items, f.values.Get("sku")); n >= 0 {
			raw, err := json.Marshal(before.Record.Items[n])
			if err == nil {
				return &removed{before.Record.Items[n].Name, "restore", valued("item", string(raw), "at", strconv.Itoa(n))}
			}
		}
	case "reopen":
		e := exceptionOf(f.values)
		hours := ""
		if e.Opens != "" {
			hours = e.Opens + "–" + e.Closes
		}
		return &removed{cmp.Or(e.Title, date(ctx, e.ValidFrom)), "close", valued("from", e.ValidFrom, "to", e.ValidThrough, "why", e.Title, "hours", hours)}
	}
	return nil
}
