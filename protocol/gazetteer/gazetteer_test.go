package gazetteer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCities reads each line of the file.
func TestCities(t *testing.T) {
	t.Parallel()
	all, lines := Cities(), 0
	for line := range strings.Lines(file()) {
		if !strings.HasPrefix(line, "#") {
			lines++
		}
	}
	require.Len(t, all, lines, "a line has another number of columns")
	require.Less(t, len(packed), 150_000, "bytes in the binary")
	india := 0
	for i, c := range all {
		require.Len(t, c.Country, 2, c.Name)
		require.NotEmpty(t, c.Name)
		require.False(t, c.Latitude == 0 || c.Longitude == 0 || c.Latitude < -60 || c.Latitude > 75 || c.Longitude < -180 || c.Longitude > 180, c.Name)
		if c.Country == "IN" {
			india++
			require.GreaterOrEqual(t, c.Thousands, 50, c.Name)
			require.True(t, c.Latitude > 6 && c.Latitude < 37 && c.Longitude > 68 && c.Longitude < 98, c.Name)
		} else {
			require.GreaterOrEqual(t, c.Thousands, 500, c.Name)
		}
		if i > 0 {
			require.LessOrEqual(t, all[i-1].Country, c.Country)
		}
	}
	require.Greater(t, india, 850)
	require.Greater(t, len(all)-india, 850)
}
