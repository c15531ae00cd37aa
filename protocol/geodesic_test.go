package protocol

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every place within the radius is in the box, on all sides of the globe; and the box is no larger than
// it must be: at its middle parallel, places a little beyond its sides are too far.
func TestAround(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	within := 0
	for range 50_000 {
		from := Geo{r.Float64()*180 - 90, r.Float64()*360 - 180}
		radius := math.Exp(r.Float64() * math.Log(2e7))
		b := from.Around(radius)
		require.True(t, b.South >= -90 && b.North <= 90 && b.West >= -180 && b.West < 180 && b.Width <= 360, "%+v", b)
		reach := radius / 80_000 // in degrees, some more than the radius
		to := Geo{from.Latitude + (r.Float64()*2-1)*reach, from.Longitude + (r.Float64()*2-1)*reach/max(0.02, math.Cos(from.Latitude*math.Pi/180))}
		if math.Abs(to.Latitude) > 90 {
			continue
		}
		to.Longitude = math.Remainder(to.Longitude, 360)
		in := to.Latitude >= b.South && to.Latitude <= b.North && math.Mod(to.Longitude-b.West+720, 360) <= b.Width
		if from.Distance(to) <= radius {
			within++
			require.True(t, in, "%v is %f m from %v, radius %f: %+v", to, from.Distance(to), from, radius, b)
		} else if side := (Geo{from.Latitude, b.West - b.Width*0.02}); b.Width < 90 {
			require.Greater(t, from.Distance(side), radius, "%v, radius %f: %+v", from, radius, b)
		}
	}
	require.Greater(t, within, 5000)
}
