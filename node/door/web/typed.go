package web

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"stoa/protocol"
)

// What people type in forms, as package protocol reads it (ReadAmount, ReadHours, ReadPhone, FindUTR). What cannot be read is passed on so that
// the check of the operation refuses it at its field.

// unread returns a text that no operation takes, for one that cannot be read; 1.500 would be an amount to an operation.
func unread(text string) string { return "?" + text }

// plainAmount returns an amount of a currency as operations take it.
func plainAmount(currency, text string) string {
	amount, fault := protocol.ReadAmount(currency, text)
	if fault != nil {
		return unread(text)
	}
	return string(amount)
}

// shifts reads hours as they are typed; closed is none.
func shifts(text string) (list [][2]string) {
	for _, w := range protocol.ReadHours(text) {
		if w.Opens == "" {
			w.Opens, w.Closes = unread(w.Text), unread("")
		}
		list = append(list, [2]string{w.Opens, w.Closes})
	}
	return list
}

// windows reads hours of meetings as they are typed.
func windows(text string) (list []any) {
	for _, x := range shifts(text) {
		list = append(list, map[string]any{"from": x[0], "to": x[1]})
	}
	return list
}

// everyDay is the field for hours that are those of each day, and copyDay the choice of a day whose hours others have too.
const everyDay, copyDay = "hours-every", "copy"

// copies are the choices of copyDay: a day, and after a hyphen the last day that has its hours; without one all have.
var copies = [][2]string{{"", english("Each day as above")},
	{"monday-friday", english("Monday’s hours from Monday to Friday")}, {"monday-saturday", english("Monday’s hours from Monday to Saturday")},
	{"monday", english("Monday’s hours on every day")}, {"tuesday", english("Tuesday’s hours on every day")},
	{"wednesday", english("Wednesday’s hours on every day")}, {"thursday", english("Thursday’s hours on every day")},
	{"friday", english("Friday’s hours on every day")}, {"saturday", english("Saturday’s hours on every day")},
	{"sunday", english("Sunday’s hours on every day")}}

// dayField returns the field of a form that has the hours of a day.
func dayField(form url.Values, day string) string {
	from, last, some := strings.Cut(form.Get(copyDay), "-")
	switch {
	case strings.TrimSpace(form.Get(everyDay)) != "":
		return everyDay
	case !slices.Contains(weekNames, from), some && slices.Index(weekNames, day) > slices.Index(weekNames, last):
		return "hours-" + day
	}
	return "hours-" + from
}

// dayHours returns the shifts of a week, with the name of the day of each.
func dayHours(form url.Values) (hours [][3]string) {
	for _, day := range weekNames {
		for _, x := range shifts(form.Get(dayField(form, day))) {
			hours = append(hours, [3]string{day, x[0], x[1]})
		}
	}
	return hours
}

// hoursPlace returns the field that has the n-th shift of a week, and what is typed for it.
func (f *sent) hoursPlace(n int) (name, element string) {
	for _, day := range weekNames {
		name = dayField(f.values, day)
		for _, w := range protocol.ReadHours(f.values.Get(name)) {
			if n == 0 {
				return name, w.Text
			}
			n--
		}
	}
	return "", ""
}

// dayLines are fields for the hours of each day of a week, and for those of several.
func dayLines(most int) []control {
	day := func(name, label string) control {
		return line(name, label).of("").upTo(most).with("autocomplete", "off")
	}
	lines := []control{day(everyDay, english("The same every day, such as 9am–9pm; empty when the days differ"))}
	for _, name := range weekNames {
		lines = append(lines, day("hours-"+name, initial(name)))
	}
	return append(lines, choose(copyDay, "Copy a day’s hours when saving", copies).of(""))
}

// typedUTR returns the reference in what was typed, such as the whole message of a bank; "" for nothing.
func typedUTR(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	if utr, found := protocol.FindUTR(text); found == 1 {
		return utr
	}
	return unread("")
}

// typedPhone returns a telephone number as it is stored. The country is that of the shop's address; otherwise India, unless the shop is in
// another time zone.
func typedPhone(text string, args map[string]any) string {
	address, _ := args["address"].(map[string]any)
	country, _ := address["country"].(string)
	region, _ := address["region"].(string)
	zone, _ := args["timezone"].(string)
	if country == "" {
		country, _, _ = strings.Cut(region, "-")
	}
	if country == "" && (zone == "" || zone == "Asia/Kolkata" || zone == "Asia/Calcutta") {
		country = "IN"
	}
	return protocol.ReadPhone(country, text)
}

// amountsSuch says how an amount may be typed.
var amountsSuch = english("Such as 500, 1,50,000, 1.5 lakh or ₹ 1,500.50.")

// utrLine is the field for the reference of a payment.
var (
	utrLine = line("utr", "Bank reference (UTR), 12 digits").with("required", "", "inputmode", "numeric", "autocomplete", "off")
	utrHelp = remark("Or paste the whole message of your bank or app: the reference is found in it.")
)

// amounts are the fields that hold an amount of money, and categories one in each line.
var amounts = []string{"amount", "listAmount", "floor", "step", "maxBid", "pricing-amount", "categories", "minPrice", "maxPrice"}

// misread says how a text can be read in several ways, "" when it cannot.
func misread(ctx context.Context, name, text string) string {
	switch kind := kindOfField(name); {
	case slices.Contains(amounts, kind):
		if kind == "categories" {
			text = text[strings.LastIndexByte(text, ':')+1:]
		}
		if _, fault := protocol.ReadAmount(protocol.Rupee, text); fault != nil && fault.Code == protocol.AmbiguousCode {
			return sentence(faultText(ctx, *fault))
		}
	case kind == "hours", kind == "dateOverrides", strings.HasPrefix(kind, "hours-"):
		if kind == "dateOverrides" {
			_, text, _ = strings.Cut(text, " ")
		}
		for _, w := range protocol.ReadHours(text) {
			if w.Unclear {
				return tr(ctx, "“%s” can be read in two ways: write am or pm after both times, or 24 hours such as 9–18.", w.Text)
			}
		}
	case kind == "utr":
		if _, found := protocol.FindUTR(text); found > 1 {
			return tr(ctx, "There are %d numbers of 12 digits in it. Leave only the one that the bank calls UTR, RRN or reference.", found)
		}
	}
	return ""
}

// sameTyped reports whether a form's field says what is stored, however it is written.
func sameTyped(name, stored string, form url.Values) bool {
	text := form.Get(name)
	switch kind := kindOfField(name); {
	case slices.Contains(amounts, kind):
		return plainAmount(protocol.Rupee, stored) == plainAmount(protocol.Rupee, text)
	case strings.HasPrefix(kind, "hours-"):
		return slices.Equal(shifts(stored), shifts(form.Get(dayField(form, strings.TrimPrefix(name, "hours-")))))
	case kind == "phone":
		return stored == protocol.ShowPhone(protocol.ReadPhone("IN", text))
	}
	return stored == text
}
