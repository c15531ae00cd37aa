package storage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// shopAt lists a business with an address and coordinates.
func (d directory) shopAt(handle, street, postcode, city string, north, east float64) {
	d.put(protocol.ProfileDraft{Handle: handle})
	d.merchant(handle, protocol.MerchantDraft{City: city, Address: &protocol.Address{Street: street, PostalCode: postcode},
		Geo: &protocol.Geo{Latitude: north, Longitude: east}})
}

// places are the names and coordinates that a text means, with a slash between several.
func (d directory) places(text string) (all string) {
	read(d.t, d.db, func(ctx context.Context, tx *storage.Tx) error {
		found, err := tx.FindPlaces(ctx, text)
		var parts []string
		for _, p := range found {
			parts = append(parts, fmt.Sprintf("%s %.2f,%.2f", p.Name, p.Latitude, p.Longitude))
		}
		all = strings.Join(parts, " / ")
		return err
	})
	return all
}

func TestFindPlaces(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		d.shopAt("a", "80 Feet Road, 5th Block, Koramangala", "560 095", "Bengaluru", 12.934, 77.612)
		d.shopAt("b", "Koramangala", "560034", "Bangalore", 12.940, 77.624)
		d.shopAt("c", "HSR Layout", "560102", "Bengaluru", 12.911, 77.638)
		d.shopAt("d", "12 MG Road, MG Road", "", "Pune", 18.514, 73.878)
		d.shopAt("e", "MG Road", "", "Bengaluru", 12.975, 77.601)
		d.shopAt("f", "Civil Lines", "302006", "Jaipur", 26.900, 75.780)
		d.shopAt("g", "Jaipur", "", "", -40, -20) // one shop in the sea is no Jaipur
		d.shopAt("h", "Vaishali Nagar", "", "अजमेर", 26.460, 74.620)
		d.shopAt("island", "Lagoon", "", "Nowhere", -16.5, 179.99)
		d.shopAt("strand", "Lagoon", "", "Nowhere", -16.5, -179.97)
		for _, c := range []struct{ text, want string }{
			{"Koramangala", "Koramangala, Bengaluru, Karnataka, India 12.94,77.62"},
			{"  KORAMANGALA ", "KORAMANGALA, Bengaluru, Karnataka, India 12.94,77.62"},
			{"Koramangala, Bangalore", "Koramangala, Bengaluru, Karnataka, India 12.94,77.62"},
			{"Koramangala Bengaluru", "Koramangala, Bengaluru, Karnataka, India 12.94,77.62"},
			{"Koramangala, Pune", ""},
			{"560034", "560034, Bengaluru, Karnataka, India 12.94,77.62"},
			{"560 034", "560 034, Bengaluru, Karnataka, India 12.94,77.62"},
			{"५६००३४", "५६००३४, Bengaluru, Karnataka, India 12.94,77.62"},
			{"560095", "560095, Bengaluru, Karnataka, India 12.93,77.61"},
			{"56003", ""},
			{"hsr", "hsr, Bengaluru, Karnataka, India 12.91,77.64"},
			{"MG Road", "MG Road, Pune, Maharashtra, India 18.51,73.88 / MG Road, Bengaluru, Karnataka, India 12.97,77.60"},
			{"mg", "mg, Pune, Maharashtra, India 18.51,73.88 / mg, Bengaluru, Karnataka, India 12.97,77.60"},
			{"MG Road, Pune, Maharashtra, India", "MG Road, Pune, Maharashtra, India 18.51,73.88"},
			{"M G Road", ""},
			{"Jaipur", "Jaipur, Rajasthan, India 26.90,75.78"},
			{"जयपुर", "Jaipur, Rajasthan, India 26.90,75.78"},
			{"Jaipur, भारत", "Jaipur, Rajasthan, India 26.90,75.78"},
			{"Bombay", "Mumbai, Maharashtra, India 19.07,72.88"},
			{"मुंबई", "Mumbai, Maharashtra, India 19.07,72.88"},
			{"अजमेर", "Ajmer, Rajasthan, India 26.46,74.62"},
			{"Ajmer", "Ajmer, Rajasthan, India 26.45,74.64"},
			{"Köln", "Köln, North Rhine-Westphalia, Germany 50.93,6.95"},
			{"koln", "Köln, North Rhine-Westphalia, Germany 50.93,6.95"},
			{"Hyderabad", "Hyderabad, Telangana, India 17.38,78.46 / Hyderabad, Sindh, Pakistan 25.39,68.37"},
			{"Hyderabad, Sindh", "Hyderabad, Sindh, Pakistan 25.39,68.37"},
			{"Hyderabad Pakistan", "Hyderabad, Sindh, Pakistan 25.39,68.37"},
			{"New Delhi", "Delhi, India 28.65,77.23"},
			{"Lagoon", "Lagoon -16.50,-179.99"},
			{"Atlantis", ""}, {"!", ""}, {",", ""}, {", Pune", ""}, {strings.Repeat("x ", 40), ""},
		} {
			require.Equal(t, c.want, d.places(c.text), c.text)
		}

		for i := range 10 { // of two cities the one is meant where ten businesses are
			d.shopAt(fmt.Sprint("hyd", i), "", "", "Hyderabad", 17.40, 78.48)
		}
		require.Equal(t, "Hyderabad, Telangana, India 17.40,78.48", d.places("Hyderabad"))
		require.Equal(t, "Hyderabad, Sindh, Pakistan 25.39,68.37", d.places("Hyderabad, Pakistan"))
	})
}

// A business that moves, is unlisted or deleted takes the names of its place with it.
func TestFindPlaces_Gone(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		list := func(yes bool) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				p := must.Get(tx.Profiles().ForUpdate(ctx, "a"))(t)
				p.Unlisted = !yes
				return must.Err(tx.Profiles().Put(ctx, p))
			})
		}
		d.shopAt("a", "Old Lane", "", "", 12.9, 77.6)
		require.NotEmpty(t, d.places("Old Lane"))
		d.merchant("a", protocol.MerchantDraft{Address: &protocol.Address{Street: "New Lane"}, Geo: &protocol.Geo{Latitude: 13, Longitude: 77.6}})
		require.Empty(t, d.places("Old Lane"))
		require.Contains(t, d.places("New Lane"), "13.00,77.60")
		list(false)
		require.Empty(t, d.places("New Lane"))
		list(true)
		require.NotEmpty(t, d.places("New Lane"))
		d.merchant("a", protocol.MerchantDraft{Address: &protocol.Address{Street: "New Lane"}})
		require.Empty(t, d.places("New Lane"), "without coordinates")
		d.shopAt("a", "New Lane", "", "", 13, 77.6)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "a") })
		require.Empty(t, d.places("New Lane"))
	})
}
