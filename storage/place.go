package storage

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"stoa/protocol"
	"stoa/protocol/gazetteer"
)

// A place is asked for by its name. What it means is a group of businesses of this node whose addresses have the name and that
// are near each other, or a city of the gazetteer.

const (
	maxPlaceRows = 500    // businesses that are read for one name
	maxSpots     = 20     // groups of them
	samePlace    = 30_000 // metres between businesses, or from them to the middle of a city, that have one name
	fewSellers   = 3      // so many businesses away from all cities of that name are a place of that name
)

// A spot is a place that a name may mean.
type spot struct {
	rows []placeRow
	city *gazetteer.City
	protocol.Geo
}

// A nameIndex has the cities of the gazetteer by their keys.
type nameIndex struct{ first, others map[string][]*gazetteer.City }

var citiesByName = sync.OnceValue(func() nameIndex {
	index := nameIndex{map[string][]*gazetteer.City{}, map[string][]*gazetteer.City{}}
	all := gazetteer.Cities()
	for i := range all {
		city := &all[i]
		own := placeKey(city.Name)
		index.first[own] = append(index.first[own], city)
		for _, name := range city.Others {
			if key := placeKey(name); key != own && !slices.Contains(index.others[key], city) {
				index.others[key] = append(index.others[key], city)
			}
		}
	}
	return index
})

// of are the cities whose usual name has the key, otherwise those with another such name. A city and a part of it with its name,
// as Delhi and New Delhi, are the larger one.
func (n nameIndex) of(key string) (found []*gazetteer.City) {
	all, ok := n.first[key]
	if !ok {
		all = n.others[key]
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *gazetteer.City) int { return cmp.Compare(b.Thousands, a.Thousands) })
	for _, city := range all {
		if !slices.ContainsFunc(found, func(other *gazetteer.City) bool { return other.Distance(city.Geo) <= samePlace }) {
			found = append(found, city)
		}
	}
	return found
}

// FindPlaces returns the places that a text means: a locality, city or postcode, which may be followed by a comma and where that is.
// Of several the likelier ones come first; there are [protocol.MaxPlaces] at most, and none when the name is unknown. A place with a
// tenth of the businesses that another one of that name has is left out.
func (tx *Tx) FindPlaces(ctx context.Context, text string) ([]protocol.Place, error) {
	name, rest, within := strings.Cut(text, ",")
	found, err := tx.placesNamed(ctx, name, strings.Split(rest, ","))
	if words := strings.Fields(text); len(found) == 0 && err == nil && !within && len(words) > 1 { // Koramangala Bengaluru
		last := len(words) - 1
		found, err = tx.placesNamed(ctx, strings.Join(words[:last], " "), words[last:])
	}
	return found, err
}

func (tx *Tx) placesNamed(ctx context.Context, name string, within []string) ([]protocol.Place, error) {
	key := placeKey(name)
	if key == "" {
		return nil, nil
	}
	cities := citiesByName().of(key)
	rows, err := tx.placeRows(ctx, key, cities)
	if err != nil {
		return nil, err
	}
	spots := gather(rows, cities)
	spots = slices.DeleteFunc(spots, func(s *spot) bool { return !s.in(within) })
	slices.SortStableFunc(spots, func(a, b *spot) int { return cmp.Compare(b.weight(), a.weight()) })
	var found []protocol.Place
	for _, s := range spots {
		if len(found) < protocol.MaxPlaces && s.weight()*10 > spots[0].weight() {
			found = append(found, protocol.Place{Name: s.name(strings.Join(strings.Fields(name), " ")), Geo: s.Geo})
		}
	}
	return found, nil
}

// placeRows are the businesses with a name, or with the usual name of one of the cities; without any of either those with a name that
// begins with these words, as HSR is the beginning of HSR Layout. The first that were listed here go before later ones.
func (tx *Tx) placeRows(ctx context.Context, key string, cities []*gazetteer.City) (rows []placeRow, err error) {
	keys := []string{key}
	for _, city := range cities {
		if own := placeKey(city.Name); !slices.Contains(keys, own) && len(keys) <= protocol.MaxPlaces {
			keys = append(keys, own)
		}
	}
	for _, key := range keys {
		more, err := list[placeRow](ctx, tx, placeTable.from+`WHERE name = ? ORDER BY seq LIMIT ?`, key, maxPlaceRows)
		if err != nil {
			return nil, fmt.Errorf("read places: %w", err)
		}
		rows = append(rows, more...)
	}
	if len(rows)+len(cities) > 0 {
		return rows, nil
	}
	return list[placeRow](ctx, tx, placeTable.from+`WHERE name > ? AND name < ? ORDER BY name, seq LIMIT ?`, key+" ", key+"!", maxPlaceRows)
}

// gather makes places of businesses and of the cities that have the name. A group is what is near its first business, so that one that
// comes later does not divide or move it.
func gather(rows []placeRow, cities []*gazetteer.City) (spots []*spot) {
	for _, r := range rows {
		at := slices.IndexFunc(spots, func(s *spot) bool { return s.rows[0].geo().Distance(r.geo()) <= samePlace })
		if at < 0 {
			if len(spots) == maxSpots {
				continue
			}
			at, spots = len(spots), append(spots, &spot{})
		}
		if !slices.ContainsFunc(spots[at].rows, func(other placeRow) bool { return other.Seq == r.Seq }) {
			spots[at].rows = append(spots[at].rows, r)
		}
	}
	for _, s := range spots {
		s.Geo = middle(s.rows)
	}
	for _, city := range cities {
		at := slices.IndexFunc(spots, func(s *spot) bool { return s.city == nil && s.Distance(city.Geo) <= samePlace })
		if at < 0 {
			at, spots = len(spots), append(spots, &spot{Geo: city.Geo})
		}
		spots[at].city = city
	}
	return slices.DeleteFunc(spots, func(s *spot) bool { return len(cities) > 0 && s.city == nil && len(s.rows) < fewSellers })
}

// middle is the median of latitudes and of longitudes, which a few businesses that are elsewhere do not move.
func middle(rows []placeRow) protocol.Geo {
	var at placeRow
	median := func(of func(r placeRow) int64) int64 {
		sorted := make([]int64, len(rows))
		for i, r := range rows {
			sorted[i] = of(r)
		}
		slices.Sort(sorted)
		return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	}
	const turn = 360 * microdegrees
	at.Latitude = median(func(r placeRow) int64 { return r.Latitude })
	at.Longitude = median(func(r placeRow) int64 { // on one side of the antimeridian
		return r.Longitude + turn*int64(math.Round(float64(rows[0].Longitude-r.Longitude)/turn))
	})
	at.Longitude -= turn * int64(math.Round(float64(at.Longitude)/turn))
	return at.geo()
}

// weight is how many businesses are there; a city without any has the weight of one.
func (s *spot) weight() int { return max(1, len(s.rows)) }

// nearest is the city of the gazetteer where a place is, nil when it is more than 50 km from all.
func (s *spot) nearest() *gazetteer.City {
	if s.city != nil {
		return s.city
	}
	var found *gazetteer.City
	most := 50_000.0
	all := gazetteer.Cities()
	for i := range all {
		if math.Abs(all[i].Latitude-s.Latitude) > 0.5 {
			continue
		}
		if d := all[i].Distance(s.Geo); d <= most {
			found, most = &all[i], d
		}
	}
	return found
}

// name is the place with where it is, in words of the gazetteer and of whoever asked: none that a business wrote.
func (s *spot) name(asked string) string {
	city := s.nearest()
	switch {
	case city == nil:
		return asked
	case s.city == nil:
		asked += ", " + city.Name
	default:
		asked = city.Name
	}
	if city.Region != "" && city.Region != city.Name {
		asked += ", " + city.Region
	}
	return asked + ", " + protocol.CountryName(city.Country, "en")
}

// in reports whether a place is in all of the named ones: a city, its region, or its country.
func (s *spot) in(within []string) bool {
	for _, name := range within {
		key := placeKey(name)
		if key == "" {
			continue
		}
		city := s.nearest()
		if city == nil {
			return false
		}
		names := []string{city.Name, city.Region, city.Country, protocol.CountryName(city.Country, "en"), protocol.CountryName(city.Country, "hi")}
		if !slices.ContainsFunc(names, func(n string) bool { return placeKey(n) == key }) && !slices.Contains(citiesByName().others[key], city) {
			return false
		}
	}
	return true
}
