package storage

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"stoa/protocol"
)

// The names of places that businesses of this node give: postcode, city, and the parts of the street between commas, of
// which the last ones are the locality. Each name of a listed business with coordinates is a row.

const (
	maxPlaceNames = 8   // of one business
	maxPlaceName  = 100 // bytes of a folded name; a longer one is left out
)

// A placeRow is a name of the place of a business, with its coordinates in millionths of a degree.
type placeRow struct {
	Name                string
	Seq                 int64
	Latitude, Longitude int64
}

var placeTable = tableOf[placeRow]("merchant_place")

const microdegrees = 1e6

func (r *placeRow) geo() protocol.Geo {
	return protocol.Geo{Latitude: float64(r.Latitude) / microdegrees, Longitude: float64(r.Longitude) / microdegrees}
}

// placeKey is a name of a place as names are compared: folded, a city by the first of its names, a postcode without spaces.
func placeKey(s string) string {
	key := cityName(s)
	if strings.Trim(key, "0123456789 ") == "" {
		key = strings.ReplaceAll(key, " ", "")
	}
	return key
}

// placeNames are the names of the place of a business, in order.
func placeNames(d *protocol.MerchantDraft) (names []string) {
	texts := strings.Split(d.City, ",")
	if d.Address != nil {
		street := strings.Split(d.Address.Street, ",")
		slices.Reverse(street) // the locality is last
		texts = slices.Concat([]string{d.Address.PostalCode}, texts, street)
	}
	for _, text := range texts {
		name := placeKey(text)
		if name != "" && len(name) <= maxPlaceName && len(names) < maxPlaceNames && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// putPlaces stores the names of the place of a business, none of one that is not listed or has no coordinates.
func (ms Merchants) putPlaces(ctx context.Context, r *profileRow, m *StoredMerchant) error {
	var now []placeRow
	if g := m.Draft.Geo; g != nil && r.Listed {
		for _, name := range placeNames(&m.Draft) {
			now = append(now, placeRow{name, r.Seq, int64(math.Round(g.Latitude * microdegrees)), int64(math.Round(g.Longitude * microdegrees))})
		}
	}
	before, err := list[placeRow](ctx, ms.tx, placeTable.from+`WHERE seq = ? ORDER BY name`, r.Seq)
	if err != nil || slices.Equal(before, now) {
		return err
	}
	if _, err := ms.tx.write(ctx, `DELETE FROM merchant_place WHERE seq = ?`, r.Seq); err != nil {
		return err
	}
	for i := range now {
		if err := placeTable.insert(ctx, ms.tx, &now[i]); err != nil {
			return fmt.Errorf("store the place of a business: %w", err)
		}
	}
	return nil
}
