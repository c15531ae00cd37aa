package web

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"stoa/node/hall"
	"stoa/protocol"
)

// The page of a shop's items: the list, in which prices and availability are changed at once, and one
// item with all that it has. Its forms write single items, so a catalog may be of any size.

const (
	hoursPath  = "/account/hours"
	itemsPath  = "/account/items"
	itemsShown = 25 // on a page of the list
)

// An itemsPage is what the page of items shows.
type itemsPage struct {
	SKU   string // of the item that is shown alone, "" for the list or a new item
	Adds  bool   // an item is added
	Item  protocol.OwnItem
	List  []protocol.OwnItem
	Count int // of all items
	Form  *form
	Next  string // path of the next page, "" on the last
}

// listFields are the fields that select what the list shows.
var listFields = []string{"q", "category", "availability", "after"}

// shownList returns what the list showed in which a form was sent.
func shownList(posted url.Values) url.Values {
	list, _ := url.ParseQuery(posted.Get("list"))
	return selected(list)
}

func selected(query url.Values) url.Values {
	v := url.Values{}
	for _, name := range listFields {
		if text := strings.TrimSpace(query.Get(name)); text != "" {
			v.Set(name, text)
		}
	}
	return v
}

// list returns the selection as a hidden field of a form has it.
func (p *itemsPage) list() string { return p.Form.values.Encode() }

// back returns the path of what is shown, without what was typed.
func (p *itemsPage) back(a *account) string {
	to := a.Page.to(a.Handle)
	switch {
	case p.SKU != "":
		return to + "&" + query("item", p.SKU)
	case p.Adds:
		return to + "&new=1"
	case p.list() != "":
		return to + "&" + p.list()
	}
	return to
}

func (a *account) readItems(s *Web, r *http.Request) error {
	shown, p := r.URL.Query(), &itemsPage{}
	if r.PostForm != nil {
		shown = shownList(r.PostForm)
	}
	p.SKU, p.Adds, p.Form, a.Items = shown.Get("item"), shown.Has("new"), &form{op: protocol.ListOwnItems.Operation, values: selected(shown)}, p
	f := a.Sent
	if f != nil && f.part == "item" {
		p.SKU, p.Adds = f.values.Get("sku"), f.values.Get("sku") == ""
	}
	if p.Adds {
		return nil
	}
	if p.SKU != "" {
		err := s.ownItem(r, a.Handle, p.SKU, &p.Item)
		if f != nil && protocol.CodeOf(err) == protocol.NotFound { // it was removed while somebody typed
			return nil
		}
		return err
	}
	if err := a.ask(s, r, protocol.GetMerchantRecord.Operation, map[string]any{}); err != nil {
		return err
	}
	p.Count = answer(a, protocol.GetMerchantRecord).ItemCount
	args := map[string]any{"handle": a.Handle, "limit": itemsShown}
	for name, all := range p.Form.values {
		if args[name] = all[0]; name == "category" || name == "availability" {
			args[name] = all
		}
	}
	var found protocol.Page[protocol.OwnItem]
	err := s.invokeSignedIn(r, protocol.ListOwnItems.Operation, args, &found)
	if e := protocol.AsError(err); e != nil && e.Code == protocol.Validation {
		p.Form.err, err = e, nil
	}
	if err != nil {
		return err
	}
	p.List = found.Items
	if found.Next != nil {
		p.Next = (&form{values: p.at(a.Handle)}).next(itemsPath, found.Next)
	}
	if f != nil && f.part == "quick" && !slices.ContainsFunc(p.List, func(i protocol.OwnItem) bool { return i.Item.SKU == f.values.Get("sku") }) {
		i := protocol.OwnItem{Item: protocol.ItemDraft{SKU: f.values.Get("sku")}}
		if err := s.ownItem(r, a.Handle, i.Item.SKU, &i); err != nil && protocol.CodeOf(err) != protocol.NotFound {
			return err
		}
		p.List = slices.Insert(p.List, 0, i)
	}
	return nil
}

// at returns the query of the list of a shop.
func (p *itemsPage) at(handle string) url.Values {
	v := url.Values{"handle": {handle}}
	for name, all := range p.Form.values {
		v[name] = all
	}
	return v
}

// categories are those of the items that are shown.
func (p *itemsPage) categories() (all []string) {
	for _, i := range p.List {
		all = append(all, i.Item.AllCategories()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// movable reports whether the items that are shown can be put into another order: put_merchant writes
// the order of small catalogs.
func (p *itemsPage) movable() bool {
	return p.Count <= protocol.MaxRecordItems && len(p.Form.values) == 0
}

// quick returns the refused form if it changes that item in the list, otherwise nil.
func (a *account) quick(sku string) *sent {
	if f := a.part("quick"); f != nil && f.values.Get("sku") == sku {
		return f
	}
	return nil
}

// quickID is the id of the form that changes an item in the list.
func quickID(sku string) string { return "quick-" + sku }

// ownItem reads an item of a shop.
func (s *Web) ownItem(r *http.Request, handle, sku string, into *protocol.OwnItem) error {
	return s.invokeSignedIn(r, protocol.GetOwnItem.Operation, map[string]any{"handle": handle, "sku": sku}, into)
}

// itemInput is the input that writes an item which a form names.
func itemInput(i protocol.ItemDraft, form url.Values) protocol.ItemInput {
	i.SKU = form.Get("sku")
	return protocol.ItemInput{Owned: protocol.Owned{Handle: form.Get("handle")}, ItemDraft: i}
}

func storedItem(o protocol.OwnItem, _ url.Values) url.Values {
	if o.ID == "" {
		return nil
	}
	return itemValues(o.Item)
}

func itemValues(i protocol.ItemDraft) url.Values {
	var others, links []string
	if all := i.AllCategories(); len(all) > 1 {
		others = all[1:]
	}
	for _, m := range i.AllMedia() {
		links = append(links, m.URL)
	}
	v := valued("name", i.Name, "amount", priceText(i.Price), "listAmount", priceText(i.ListPrice), "unit", i.Unit, "description", i.Description,
		"category", i.Category, "otherCategories", strings.Join(others, ", "), "tags", strings.Join(i.Tags, ", "),
		"availability", string(cmp.Or(i.Availability, protocol.InStock)), "media", strings.Join(links, "\n"), "url", i.URL, "barcode", i.Barcode)
	if u := i.UnitPrice; u != nil {
		v.Set("measure", measureText(u.Measure))
		v.Set("compare", measureText(u.Reference))
	}
	kindValues(i, v)
	return v
}

func measureText(m protocol.Measure) string { return strconv.Itoa(m.Value) + " " + m.Unit }

// typedMeasure reads a measure as it is typed: 750 ml, or 750ml.
func typedMeasure(form url.Values, field, member string) (m protocol.Measure, err error) {
	text := strings.TrimSpace(form.Get(field))
	if text == "" {
		return m, nil
	}
	unit := strings.TrimLeft(text, "0123456789")
	if m.Value, err = strconv.Atoi(strings.TrimSuffix(text, unit)); err != nil {
		return m, protocol.Invalid(protocol.Fault{Pointer: "/unitPrice/" + member, Code: "wrong-shape", Detail: "must be a number and a unit"})
	}
	m.Unit = strings.TrimSpace(unit)
	return m, nil
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

// typedPrice reads a price as it is typed; nil for nothing.
func typedPrice(text, currency string) *protocol.MoneyDraft {
	amount := plainAmount(currency, text)
	if amount == "" {
		return nil
	}
	return &protocol.MoneyDraft{Currency: currency, Amount: protocol.Decimal(amount)}
}

// currencyOf is the currency of an item's prices.
func currencyOf(i protocol.ItemDraft) string {
	for _, v := range i.Variants {
		if v.Price != nil {
			return v.Price.Currency
		}
	}
	if i.Price != nil {
		return i.Price.Currency
	}
	return protocol.Rupee
}

// changedItem writes the form's item; what the form does not show is unchanged.
func changedItem(o protocol.OwnItem, form url.Values) (any, error) {
	i, before := o.Item, itemValues(o.Item)
	currency := currencyOf(i)
	i.Name, i.Unit, i.Description = form.Get("name"), form.Get("unit"), form.Get("description")
	i.Price, i.ListPrice = typedPrice(form.Get("amount"), currency), typedPrice(form.Get("listAmount"), currency)
	i.Tags, i.Availability = tidyList("tags", form.Get("tags")), protocol.Availability(form.Get("availability"))
	i.URL, i.Barcode = form.Get("url"), form.Get("barcode")
	if i.Category = form.Get("category"); form.Get("otherCategories") != before.Get("otherCategories") || i.Category != before.Get("category") {
		others := commaList(form.Get("otherCategories"))
		if form.Get("otherCategories") == before.Get("otherCategories") && len(o.Item.AllCategories()) > 1 { // a name may have a comma
			others = o.Item.AllCategories()[1:]
		}
		i.Categories = others
		if i.Category != "" && len(others) > 0 {
			i.Categories = append([]string{i.Category}, others...)
		}
	}
	i.Image, i.Media = "", nil
	for _, link := range strings.Fields(form.Get("media")) {
		m := protocol.Media{URL: link}
		if n := slices.IndexFunc(o.Item.AllMedia(), func(m protocol.Media) bool { return m.URL == link }); n >= 0 {
			m = o.Item.AllMedia()[n]
		}
		i.Media = append(i.Media, m)
	}
	measure, err := typedMeasure(form, "measure", "measure")
	if err != nil {
		return nil, err
	}
	reference, err := typedMeasure(form, "compare", "reference")
	if err != nil {
		return nil, err
	}
	if i.UnitPrice = nil; measure != (protocol.Measure{}) || reference != (protocol.Measure{}) {
		i.UnitPrice = &protocol.UnitPriceDraft{Measure: measure, Reference: reference}
	}
	i.Options, i.Variants = typedKinds(o.Item, form, currency)
	return itemInput(i, form), nil
}

func storedQuick(o protocol.OwnItem, _ url.Values) url.Values {
	if o.ID == "" {
		return nil
	}
	return quickValues(o.Item)
}

// quickValues are what the list shows of an item and changes.
func quickValues(i protocol.ItemDraft) url.Values {
	return valued("amount", priceText(i.Price), "availability", string(cmp.Or(i.Availability, protocol.InStock)))
}

func changedQuick(o protocol.OwnItem, form url.Values) (any, error) {
	if o.ID == "" {
		return nil, errNoItem
	}
	o.Item.Price, o.Item.Availability = typedPrice(form.Get("amount"), currencyOf(o.Item)), protocol.Availability(form.Get("availability"))
	return itemInput(o.Item, form), nil
}

var errNoItem = protocol.Errorf(protocol.NotFound, "the shop has no such item any more; nothing was changed")

func removedItem(o protocol.OwnItem, form url.Values) (any, error) {
	if o.ID == "" {
		return nil, errNoItem
	}
	return map[string]any{"handle": form.Get("handle"), "sku": form.Get("sku")}, nil
}

// undoItem returns how an item that a form removes is put back.
func (s *Web) undoItem(r *http.Request, f *sent) (*removed, error) {
	var o protocol.OwnItem
	err := s.ownItem(r, f.handle, f.values.Get("sku"), &o)
	if protocol.CodeOf(err) == protocol.NotFound {
		return nil, errNoItem
	}
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(o.Item)
	return &removed{o.Item.Name, protocol.PutItem.Name, "restore",
		valued("item", string(raw), "sku", o.Item.SKU, "list", shownList(f.values).Encode())}, err
}

// restoredItem puts an item back that was removed. One that is there is unchanged.
func restoredItem(o protocol.OwnItem, form url.Values) (any, error) {
	if o.ID != "" {
		return itemInput(o.Item, form), nil
	}
	var i protocol.ItemDraft
	if json.Unmarshal([]byte(form.Get("item")), &i) != nil || i.SKU != form.Get("sku") {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the removed item cannot be read; add it again")
	}
	return itemInput(i, form), nil
}

// movedItem puts an item before the one above it.
func movedItem(r protocol.MerchantRecord, form url.Values) (any, error) {
	items := r.Record.Items
	n := slices.IndexFunc(items, func(i protocol.ItemDraft) bool { return i.SKU == form.Get("sku") })
	if n < 0 {
		return nil, errNoItem
	}
	if n > 0 {
		items[n-1], items[n] = items[n], items[n-1]
	}
	return recordOf(r), nil
}

// addItem writes a new item under a name of its own.
func (s *Web) addItem(r *http.Request, f *sent) error {
	form := url.Values{}
	for name, all := range f.values {
		form[name] = all
	}
	for n := 1; ; n++ {
		form.Set("sku", newSKU(form.Get("name"), n))
		var o protocol.OwnItem
		err := s.ownItem(r, f.handle, form.Get("sku"), &o)
		if protocol.CodeOf(err) == protocol.NotFound {
			break
		}
		if err != nil {
			return err
		}
	}
	args, err := changedItem(protocol.OwnItem{}, form)
	if err == nil {
		err = s.invokeSignedIn(r, protocol.PutItem.Operation, args, nil)
	}
	if errors.Is(err, hall.ErrKeyReused) { // this form was done
		return nil
	}
	return err
}

// newSKU returns the n-th name to try for a new item within its shop: its first words in Latin letters,
// else item, with a number after the first; with letters by chance when those are taken.
func newSKU(name string, n int) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	base := strings.Join(words, "-")
	if len(base) > 40 {
		base = strings.TrimRight(base[:40], "-")
	}
	base = cmp.Or(base, "item")
	switch {
	case n == 1:
		return base
	case n < 10:
		return base + "-" + strconv.Itoa(n)
	}
	return base + "-" + strings.ToLower(rand.Text()[:8])
}
