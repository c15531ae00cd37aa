package web

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// Names of regions and languages for people; the wire has the codes of ISO 3166 and BCP 47.

// states are the states and union territories of India, by their code after IN- (ISO 3166-2).
var states = map[string]string{
	"AN": "Andaman and Nicobar Islands", "AP": "Andhra Pradesh", "AR": "Arunachal Pradesh", "AS": "Assam", "BR": "Bihar", "CG": "Chhattisgarh",
	"CH": "Chandigarh", "DH": "Dadra and Nagar Haveli and Daman and Diu", "DL": "Delhi", "GA": "Goa", "GJ": "Gujarat", "HP": "Himachal Pradesh",
	"HR": "Haryana", "JH": "Jharkhand", "JK": "Jammu and Kashmir", "KA": "Karnataka", "KL": "Kerala", "LA": "Ladakh", "LD": "Lakshadweep",
	"MH": "Maharashtra", "ML": "Meghalaya", "MN": "Manipur", "MP": "Madhya Pradesh", "MZ": "Mizoram", "NL": "Nagaland", "OD": "Odisha", "PB": "Punjab",
	"PY": "Puducherry", "RJ": "Rajasthan", "SK": "Sikkim", "TN": "Tamil Nadu", "TR": "Tripura", "TS": "Telangana", "UK": "Uttarakhand",
	"UP": "Uttar Pradesh", "WB": "West Bengal",
}

// former are codes of states that ISO 3166-2 replaced in 2023.
var former = map[string]string{"CT": "CG", "OR": "OD", "TG": "TS", "UT": "UK"}

// regionName returns the name of a region: Karnataka, India, or "Germany (DE-BY)" for a division without a name here.
func regionName(ctx context.Context, code string) string {
	country, division, within := strings.Cut(code, "-")
	if name := states[cmp.Or(former[division], division)]; within && country == "IN" && name != "" {
		return tr(ctx, name)
	}
	r, err := language.ParseRegion(country)
	if err != nil {
		return code
	}
	name := words.Of(ctx).OfRegion(r)
	switch {
	case name == "":
		return code
	case within:
		return name + " (" + code + ")"
	}
	return name
}

// codesByName returns codes by their names in every language of the pages, in lower case.
func codesByName(codes []string, name func(context.Context, string) string) map[string]string {
	named := map[string]string{}
	for _, l := range words.All().Languages {
		ctx := words.With(context.Background(), l)
		for _, code := range codes {
			if name := name(ctx, code); name != code {
				named[strings.ToLower(name)] = code
			}
		}
	}
	return named
}

// codeNamed returns the code of a name, "" for none.
func codeNamed(codes map[string]string, name string) string {
	return codes[strings.ToLower(strings.Join(strings.Fields(name), " "))]
}

// regionCodes are the codes of the regions that have a name, by their names.
var regionCodes = sync.OnceValue(func() map[string]string {
	var codes []string
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			if code := string([]rune{a, b}); protocol.IsRegion(code) {
				codes = append(codes, code)
			}
		}
	}
	for division := range states {
		codes = append(codes, "IN-"+division)
	}
	named := codesByName(codes, regionName)
	maps.Copy(named, map[string]string{"usa": "US", "uk": "GB", "orissa": "IN-OD", "pondicherry": "IN-PY"})
	return named
})

// regionCode returns the code of a region that is written as a name or code; other text as it is.
func regionCode(text string) string {
	if code := strings.ToUpper(text); protocol.IsRegion(code) {
		return code
	}
	return cmp.Or(codeNamed(regionCodes(), text), text)
}

// languageCodes are the codes of the languages that have a name, by their names; of several with one name, such as
// Chinese (zh) and Mandarin (cmn), the general one (BCP 47 §4.1.2, macrolanguage).
var languageCodes = sync.OnceValue(func() map[string]string {
	var codes []string
	for _, base := range language.Supported.BaseLanguages() {
		if tag, err := language.All.Parse(base.String()); err == nil && protocol.IsLanguage(tag.String()) {
			codes = append(codes, tag.String())
		}
	}
	return codesByName(codes, languageName)
})

// languageCode returns the code of a language that is written as a name or code; other text as it is. A code goes
// before a name: ga is Irish, not the language Ga.
func languageCode(text string) string {
	if protocol.IsLanguage(text) {
		return text
	}
	return cmp.Or(codeNamed(languageCodes(), text), text)
}

// A coding is how a field holds codes and a form shows them as names.
type coding struct {
	code func(text string) string
	name func(ctx context.Context, code string) string
}

var (
	regionCoding   = coding{regionCode, regionName}
	languageCoding = coding{languageCode, languageName}
)

// codings are the fields with names of codes; those of them that are in listed have several, separated by commas.
var codings = map[string]coding{"region": regionCoding, "country": regionCoding, "regions": regionCoding, "languages": languageCoding}

// text returns the name of a code for a form: the code where the name would be read as another one.
func (c coding) text(ctx context.Context, code string) string {
	if name := c.name(ctx, code); c.code(name) == code && !strings.Contains(name, ",") {
		return name
	}
	return code
}

// texts returns the names of a list of codes for a form.
func (c coding) texts(ctx context.Context, codes []string) string {
	var names []string
	for _, code := range codes {
		names = append(names, c.text(ctx, code))
	}
	return strings.Join(names, ", ")
}

// codes returns the codes of names in a field.
func (c coding) codes(field, text string) []string {
	list := []string{text}
	if listed[field] {
		list = commaList(text)
	}
	for i, part := range list {
		list[i] = c.code(part)
	}
	return list
}

// languageName returns the name of a language: English, Hindi, Brazilian Portuguese.
func languageName(ctx context.Context, tag string) string {
	t, err := language.Parse(tag)
	if err != nil {
		return tag
	}
	return cmp.Or(words.Of(ctx).OfLanguage(t), tag)
}

// namesOf returns the names of codes, sorted and joined by commas.
func namesOf(ctx context.Context, codes []string, name func(context.Context, string) string) string {
	var names []string
	for _, c := range codes {
		names = append(names, name(ctx, c))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// money returns an amount of a currency for people: ₹1,20,000.50, $12, JPY 1,000.
func money(currency, amount string) string {
	if currency == protocol.Rupee {
		if paise, fault := protocol.Decimal(amount).Paise(); fault == nil {
			return protocol.FormatRupees(paise)
		}
	}
	whole, part, _ := strings.Cut(amount, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if strings.Trim(part, "0") != "" {
		whole += "." + part
	}
	if sign, ok := map[string]string{"USD": "$", "EUR": "€", "GBP": "£"}[currency]; ok {
		return sign + whole
	}
	return currency + " " + whole
}

// regionNames are the names of regions, each once, sorted.
func regionNames(ctx context.Context, codes []string) []string {
	var names []string
	for _, c := range codes {
		names = append(names, regionName(ctx, c))
		if country, _, within := strings.Cut(c, "-"); within {
			names = append(names, regionName(ctx, country))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// options returns the options of a filter: any, then the values in use and the chosen one, sorted.
func options(ctx context.Context, known []string, chosen string) [][2]string {
	all := slices.Clone(known)
	if chosen != "" && !slices.Contains(all, chosen) {
		all = append(all, chosen)
	}
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	list := [][2]string{{"", tr(ctx, "Any")}}
	for _, v := range all {
		list = append(list, [2]string{v, v})
	}
	return list
}
