package web

import (
	"context"
	"maps"
	"strings"
	"sync"

	"stoa/node/door/web/words"
)

// units are the keys of units of prices that the pages have words for; owners write units as they like.
var units = []string{english("plate##unit"), english("piece##unit"), english("kg##unit"), english("100 g##unit"), english("gram##unit"), english("litre##unit"),
	english("ml##unit"), english("dozen##unit"), english("pack##unit"), english("box##unit"), english("bottle##unit"), english("cup##unit"),
	english("glass##unit"), english("person##unit"), english("hour##unit"), english("day##unit"), english("week##unit"), english("month##unit"),
	english("year##unit"), english("metre##unit"), english("pair##unit"), english("set##unit"), english("visit##unit"), english("word##unit"),
	english("page##unit"), english("meal##unit"), english("thali##unit"), english("order##unit")}

// unitForms are other ways to write them.
var unitForms = map[string]string{
	"plates": "plate##unit", "pc": "piece##unit", "pcs": "piece##unit", "pieces": "piece##unit", "kilo": "kg##unit", "kgs": "kg##unit", "kilogram": "kg##unit",
	"g": "gram##unit", "gm": "gram##unit", "grams": "gram##unit", "100g": "100 g##unit", "100 gm": "100 g##unit", "l": "litre##unit", "ltr": "litre##unit",
	"liter": "litre##unit", "litres": "litre##unit", "packet": "pack##unit", "hr": "hour##unit", "hours": "hour##unit", "days": "day##unit", "m": "metre##unit",
	"meter": "metre##unit", "किग्रा": "kg##unit", "पीस": "piece##unit", "लिटर": "litre##unit", "घण्टा": "hour##unit",
}

// unitKeys are the keys of units by their words in every language, in lower case.
var unitKeys = sync.OnceValue(func() map[string]string {
	named := maps.Clone(unitForms)
	for _, l := range words.All().Languages {
		for _, key := range units {
			named[strings.ToLower(l.Text(key))] = key
		}
	}
	return named
})

// unitWord returns the unit of a price in the reader's language; one that is not known is as the owner wrote it.
func unitWord(ctx context.Context, unit string) string {
	if key := unitKeys()[strings.ToLower(strings.Join(strings.Fields(unit), " "))]; key != "" {
		return tr(ctx, key)
	}
	return unit
}
