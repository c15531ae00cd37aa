// Package gazetteer is a list of the larger cities with their coordinates: those of India with at least 50,000 inhabitants, and
// of other countries with at least 500,000. The data are those of GeoNames (https://www.geonames.org/) under the licence CC BY
// 4.0, of March 2023, shortened by generate.go. Names in Indic scripts are there as far as GeoNames has them.
package gazetteer

import (
	"compress/gzip"
	_ "embed"
	"io"
	"strconv"
	"strings"
	"sync"

	"stoa/protocol"
)

//go:embed cities.txt.gz
var packed string

// file is the text of the cities, which is unpacked once. The tests have read it.
var file = sync.OnceValue(func() string {
	r, err := gzip.NewReader(strings.NewReader(packed))
	var text []byte
	if err == nil {
		text, err = io.ReadAll(r)
	}
	if err != nil {
		panic("cities.txt.gz: " + err.Error())
	}
	return string(text)
})

// A City is a populated place. Its coordinates are good to some hundred metres.
type City struct {
	Name      string
	Region    string // name of the first-level division, such as Karnataka; "" when the source has none
	Country   string // ISO 3166-1, such as IN
	Thousands int    // of inhabitants
	Others    []string
	protocol.Geo
}

// Cities returns all cities, in the order of countries and names. The caller does not change them.
var Cities = sync.OnceValue(func() (all []City) {
	for line := range strings.Lines(file()) {
		if c := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(c) == 7 {
			city := City{Country: c[0], Name: c[1], Region: c[2], Thousands: int(number(c[5])), Others: strings.Split(c[6], "|")}
			city.Latitude, city.Longitude = number(c[3]), number(c[4])
			all = append(all, city)
		}
	}
	return all
})

// number is one of the file, which TestCities reads whole.
func number(s string) float64 {
	n, _ := strconv.ParseFloat(s, 64)
	return n
}
