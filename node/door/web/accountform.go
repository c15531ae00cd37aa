package web

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// A sent form is a form of the account page that was posted and refused: it is shown again with
// what was typed, and with each fault next to its field. A nil one is a form that was not sent.
type sent struct {
	do, handle, id string
	path           string // where it was sent
	part           string // of what an edit changes, "" for all
	values         url.Values
	now            url.Values        // what is stored, when it was changed since the form was shown
	err            *protocol.Error   // why it was refused
	wrong          map[string]string // by field: its fault
	stray          []string          // faults that belong to no field
	handles        []string          // profiles of which one has to be chosen
}

func newSent(form url.Values) *sent {
	return &sent{do: form.Get("do"), handle: form.Get("handle"), id: form.Get("id"), part: form.Get("part"), values: form}
}

// status returns the HTTP status of a page with the form, 0 for none that was refused.
func (f *sent) status() int {
	if f == nil || f.err == nil {
		return 0
	}
	return f.err.Code.Status()
}

// text returns the value to show in a field with one value.
func (f *sent) text(name, stored string) string {
	if f == nil {
		return stored
	}
	return f.values.Get(name)
}

// checked reports whether a box is ticked.
func (f *sent) checked(name, value string, stored bool) bool {
	if f == nil {
		return stored
	}
	return slices.Contains(f.values[name], value)
}

// fault returns what is wrong with a field, "" for nothing.
func (f *sent) fault(name string) string {
	if f == nil {
		return ""
	}
	return f.wrong[name]
}

// without returns the form without the fault of a field, which is shown elsewhere.
func (f *sent) without(name string) *sent {
	if f == nil {
		return nil
	}
	other := *f
	other.wrong = maps.Clone(f.wrong)
	delete(other.wrong, name)
	return &other
}

// attributes returns the attributes of a field: those of the form, and those of its fault.
func (f *sent) attributes(at, name string, more templ.Attributes) templ.Attributes {
	a := maps.Clone(more)
	if a == nil {
		a = templ.Attributes{}
	}
	if f.fault(name) != "" {
		a["aria-invalid"], a["aria-describedby"] = "true", "n-"+at+"-"+name
	}
	return a
}

// challenge returns the challenge that the next proof must solve, as JSON; "" for none.
func (f *sent) challenge() string {
	if f == nil || f.err == nil || f.err.Challenge == nil {
		return ""
	}
	raw, err := json.Marshal(f.err.Challenge)
	if err != nil {
		return ""
	}
	return string(raw)
}

// puzzle returns the attribute with the challenge that the next proof must solve.
func (f *sent) puzzle() templ.Attributes {
	if c := f.challenge(); c != "" {
		return templ.Attributes{"data-challenge": c}
	}
	return nil
}

// formID returns the id of a form on the page; the ids of its fields begin with it.
func formID(do, handle, id string) string {
	return strings.Join(slices.DeleteFunc([]string{do, handle, id}, func(s string) bool { return s == "" }), "-")
}

// fields are the fields of the account page's forms, each with a description of a valid value, ""
// when only its length is bounded; of one in a table nothing need be said then.
var fields = map[string]string{
	"name": "", "description": "", "scopes": "", "headline": "", "invitation": "",
	"handle":           english("2 to 39 letters a to z, digits and inner hyphens"),
	"id":               english("a short name such as cotton-yarn: 2 to 40 letters a to z, digits and hyphens, the first a letter"),
	"tags":             english("a tag: 1 to 32 letters a to z, digits and _ . : -"),
	"languages":        english("a language such as Hindi, or its code such as hi"),
	"regions":          english("a state or country such as Karnataka or India, or its code such as IN-KA"),
	"timezone":         english("a time zone such as Asia/Kolkata"),
	"endpoint":         english("an address that begins with https://"),
	"pricing-amount":   english("a number such as 120.50"),
	"pricing-currency": english("a currency code of three letters such as INR"),
	"expiresInDays":    english("a whole number of days from 1 to 3650"),
	"mail":             english("a mail address such as asha@example.org"),
	"note":             "", "kind": "", "title": "", "body": "", "as": "", "comment": "", "subject": "", "role": "",
	"amount":   english("an amount of rupees such as 1500 or 1500.50"),
	"message":  "",
	"category": english("a category of this board"),
	"url":      english("an address that begins with https://"),
	"rules":    "", "categories": "", "payeeName": "", "legalName": "", "address": "", "reference": "", "reason": "", "answer": "", "provider": "",
	"order": english("a number of an order such as R-1042"), "client": english("an account such as 0x and 40 digits and letters a to f"), "buyer": "",
	"paidAt":            english("a date such as 2026-11-20"),
	"keyId":             "",
	"floor":             english("an amount of rupees such as 1500"),
	"step":              english("an amount of rupees such as 50"),
	"maxBid":            english("an amount of rupees such as 100000"),
	"slots":             english("a whole number from 1 to 100"),
	"slotDays":          english("a whole number of days from 1 to 90"),
	"protectHours":      english("a whole number of hours from 0 to 168"),
	"fullRefundHours":   english("a whole number of hours from 0 to 2160"),
	"respondWithinDays": english("a whole number of days from 1 to 30"),
	"claimHours":        english("a whole number of hours from 1 to 72"),
	"vpa":               english("a UPI address such as asha@okbank"),
	"gstin":             english("a GST number of 15 characters"),
	"gstPercent":        english("a percentage such as 18"),
	"requester":         "", "purpose": "", "durationMin": "", "location": "", "policy": "", "questions": "", "block": "", "times": "",
	"keySecret": "", "webhookSecrets": "", "outsideHours": "", "unit": "", "availability": "",
	"listAmount": english("an amount of rupees such as 1500 or 1500.50"), "otherCategories": "", "label": "", "option": "",
	"measure": english("an amount such as 750 ml"), "compare": english("an amount such as 100 ml"),
	"barcode": english("the 4 to 32 digits and letters below a bar code"),
	"sku":     english("a number or name of your own such as KURTA-7: letters a to z, digits and . _ -"),
	"media":   english("an address that begins with https://"),
	"file":    "", "mode": "", "alt": "",
	"city": "", "street": "", "postalCode": "", "why": "",
	"image":   english("an address that begins with https://"),
	"website": english("an address that begins with https://"),
	"phone":   english("a telephone number such as +91 80 5550 1234"),
	"region":  english("a state such as Karnataka"),
	"country": english("a country such as India"),
	"geo":     english("a place such as 12.9716, 77.5946: degrees north, then east"),
	"archive": "", "passphrase": english("12 to 128 letters, digits and signs of a keyboard, without a space at its ends"),
	"from":       english("a date such as 2026-11-08"),
	"to":         english("a date such as 2026-11-08"),
	"hours":      hoursSuch,
	"usualHours": "", "times-1": english("a date and a time"), "times-2": english("a date and a time"), "times-3": english("a date and a time"),
	"hours-monday": hoursSuch, "hours-tuesday": hoursSuch, "hours-wednesday": hoursSuch, "hours-thursday": hoursSuch, "hours-friday": hoursSuch,
	"hours-saturday": hoursSuch, "hours-sunday": hoursSuch, everyDay: hoursSuch,
	"durations":     english("a number of minutes from 5 to 240"),
	"dateOverrides": english("a date such as 2026-12-25 closed, or 2026-12-26 10:00–12:00"),
	"travel":        english("a journey such as 2026-12-01 to 2026-12-05 Europe/Berlin"),
	"slotStep":      english("a whole number of minutes from 5 to 60"),
	"bufferBefore":  english("a whole number of minutes from 0 to 120"),
	"bufferAfter":   english("a whole number of minutes from 0 to 120"),
	"minNoticeMin":  english("a whole number of minutes from 15 to 20160"),
	"maxDaysAhead":  english("a whole number of days from 1 to 90"),
	"maxPerDay":     english("a whole number from 1 to 100"),
	"maxPerWeek":    english("a whole number from 1 to 500"),
	"maxWaiting":    english("a whole number from 1 to 100"),
	"email":         english("a mail address such as ravi@example.org"),
	"user":          english("a user name without a colon"),
	"password":      "", "reads": "", "writes": "", "create": "",
	"number":   english("the number of a token, such as 42"),
	"startsAt": english("a date and a time"),
	"utr":      english("the bank's reference, 12 digits that the UPI app shows after the payment"),
	"value":    "", "host": english("a host such as spam.example"), "text": "",
	"readRate": english("a number from 0.1 to 1000000"), "writeRate": english("a number from 0.1 to 1000000"),
	"identityRate": english("a number from 0.1 to 1000000"),
	"proofLevel":   english("a whole number from 0 to 7"),
	"code":         english("a code of such a mail: 32 letters, digits, _ and -"),
}

var postTag = english("a tag: 1 to 32 letters or digits of any script and _ . : -, a letter or digit first")

var hoursSuch = english("hours such as 10:00–18:00")

// refuse stores why the form was refused, with each fault at its field in plain words.
func (f *sent) refuse(ctx context.Context, err *protocol.Error) {
	f.err, f.wrong = err, map[string]string{}
	for _, x := range err.Faults {
		name, element := f.place(x.Pointer)
		if _, known := fields[kindOfField(name)]; !known && !tableOf(protocol.Lookup(f.do), f.part).has(name) {
			f.stray = append(f.stray, memberFault(ctx, x))
		} else if f.wrong[name] == "" {
			f.wrong[name] = cmp.Or(misread(ctx, name, cmp.Or(element, f.values.Get(name))), faultWords(ctx, name, element, x))
			if name == "startsAt" && x.Code == "required" && f.values.Has("from") && f.values.Get("startsAt") != "other" { // of a list of open times
				f.wrong[name] = tr(ctx, "Choose a time.")
			}
		}
	}
}

// place returns the field of a fault and, in a list, the element that it is about, "" for the
// whole list.
func (f *sent) place(pointer string) (name, element string) {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if t := tableOf(protocol.Lookup(f.do), f.part); t != nil {
		if name, element, ok := t.place(f, parts); ok {
			return name, element
		}
	}
	switch f.do {
	case protocol.PutMerchant.Name:
		return f.shopPlace(parts)
	case protocol.PutItem.Name:
		name, element = f.itemPlace(parts)
		if f.part == "quick" && !f.values.Has(name) { // the list shows less than what is checked
			return "", ""
		}
		return name, element
	}
	if name, element, ok := f.settingPlace(parts); ok {
		return name, element
	}
	switch name = parts[0]; {
	case listed[name] && len(parts) > 1:
		list := commaList(f.values.Get(name))
		if n, err := strconv.Atoi(parts[1]); err == nil && n < len(list) {
			element = list[n]
		}
	}
	return name, element
}

// faultWords returns what is wrong with a field, in plain words.
func faultWords(ctx context.Context, name, element string, x protocol.Fault) string {
	right := fields[kindOfField(name)]
	if x.Detail == "must be "+protocol.TagRule { // of a post: those of a profile are narrower
		right = postTag
	}
	switch {
	case name == "scopes" && (x.Code == "required" || x.Code == "too-few"):
		return tr(ctx, "Tick at least one.")
	case x.Code == "required" && x.Detail == "is required", x.Code == "too-short":
		return tr(ctx, "Fill this in.")
	case (name == "startsAt" || strings.HasPrefix(name, "times-")) && x.Code != "wrong-shape": // too soon, not open, skipped
		return sentence(faultText(ctx, x))
	case name == "to" && x.Code == "out-of-range":
		return tr(ctx, "The last day comes before the first, or more than a year after it.")
	case slices.Contains(shapeFaults, x.Code) && right != "" && element != "":
		return tr(ctx, "“%s” is not %s.", element, tr(ctx, right))
	case slices.Contains(shapeFaults, x.Code) && right != "":
		return tr(ctx, "This is not %s.", tr(ctx, right))
	case slices.Contains(shapeFaults, x.Code) && !strings.Contains(x.Detail, "not") && element != "":
		return tr(ctx, "“%s” cannot be used here.", element)
	case slices.Contains(shapeFaults, x.Code) && !strings.Contains(x.Detail, "not"):
		return tr(ctx, "This cannot be used here.")
	case element != "":
		return sentence("“" + element + "”: " + faultText(ctx, x))
	}
	return sentence(faultText(ctx, x))
}

// shapeFaults are the faults of a value that does not have its field's form.
var shapeFaults = []string{
	"wrong-shape", "wrong-type", "not-allowed", "out-of-range", "unknown-zone", "unknown-language", "unknown-region", "unknown-currency", "not-an-address",
}

// names returns the names of the fields that were sent, in order.
func (f *sent) names() []string { return slices.Sorted(maps.Keys(f.values)) }

// listed are the fields that hold several values, separated by commas.
var listed = map[string]bool{"tags": true, "languages": true, "regions": true}

// commaList splits such a field.
func commaList(text string) []string {
	list := []string{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// tidyList splits such a field and normalises its values: tags in lower case without #, regions and languages
// as codes.
func tidyList(name, text string) []string {
	if coded, ok := codings[name]; ok {
		return coded.codes(name, text)
	}
	list := []string{}
	for _, part := range commaList(text) {
		if name == "tags" {
			part = strings.ToLower(strings.TrimPrefix(part, "#"))
		}
		list = append(list, part)
	}
	return list
}

// named returns the handle in the form, "" without one.
func (f *sent) named() string {
	if f == nil {
		return ""
	}
	return f.handle
}

// sent returns the refused form if it is the named one, otherwise nil.
func (a *account) sent(do, handle, id string) *sent {
	if f := a.Sent; f != nil && f.do == do && f.handle == handle && f.id == id {
		return f
	}
	return nil
}

// part returns the refused form if it is the named one of a shop, otherwise nil.
func (a *account) part(name string) *sent {
	if f := a.Sent; f != nil && f.part == name {
		return f
	}
	return nil
}

// added returns the refused form if it adds an element that the list does not have, otherwise nil.
func (a *account) added(do, handle string, has func(id string) bool) *sent {
	if f := a.Sent; f != nil && f.do == do && f.handle == handle && !has(f.id) {
		return f
	}
	return nil
}

// at returns the id that the refused form has on the page.
func (a *account) at() string {
	f, p := a.Sent, answer(a, protocol.GetOwnProfile)
	for _, c := range p.Capabilities {
		if a.sent("put_capability", p.Handle, c.ID) != nil {
			return formID(f.do, f.handle, f.id)
		}
	}
	for _, n := range p.Needs {
		if a.sent("put_need", p.Handle, n.ID) != nil {
			return formID(f.do, f.handle, f.id)
		}
	}
	switch f.do {
	case protocol.CreateToken.Name:
		return f.do // its handle is one of its fields
	case protocol.PutItem.Name:
		if f.part == "quick" {
			return quickID(f.values.Get("sku"))
		}
		return f.part
	case protocol.PutMerchant.Name:
		return f.part
	}
	return formID(f.do, f.handle, "")
}
