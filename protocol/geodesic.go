package protocol

import "math"

// Half the length of a meridian ellipse of WGS 84, in metres: no two places are farther apart.
const farthest = 20_003_931.46

// Distance returns the length in metres of the shortest line between two places on the ellipsoid of
// WGS 84 (T. Vincenty, Survey Review XXIII, 1975), to less than a millimetre. Between places that are
// nearly opposite on the globe, for which the method finds no length, it is that of half a meridian.
func (g Geo) Distance(to Geo) float64 {
	const a, f = 6378137.0, 1 / 298.257223563
	const b = a * (1 - f)
	rad := func(degrees float64) float64 { return degrees * math.Pi / 180 }
	sin1, cos1 := math.Sincos(math.Atan((1 - f) * math.Tan(rad(g.Latitude))))
	sin2, cos2 := math.Sincos(math.Atan((1 - f) * math.Tan(rad(to.Latitude))))
	l := math.Remainder(rad(to.Longitude-g.Longitude), 2*math.Pi)
	lambda := l
	for range 200 {
		sinL, cosL := math.Sincos(lambda)
		sinS := math.Hypot(cos2*sinL, cos1*sin2-sin1*cos2*cosL)
		if sinS == 0 {
			return 0
		}
		cosS := sin1*sin2 + cos1*cos2*cosL
		sigma := math.Atan2(sinS, cosS)
		sinA := cos1 * cos2 * sinL / sinS
		cosA := 1 - sinA*sinA
		cosM := 0.0 // on the equator
		if cosA != 0 {
			cosM = cosS - 2*sin1*sin2/cosA
		}
		c := f / 16 * cosA * (4 + f*(4-3*cosA))
		last := lambda
		lambda = l + (1-c)*f*sinA*(sigma+c*sinS*(cosM+c*cosS*(2*cosM*cosM-1)))
		if math.Abs(lambda-last) > 1e-12 {
			continue
		}
		u := cosA * (a*a - b*b) / (b * b)
		k := 1 + u/16384*(4096+u*(-768+u*(320-175*u)))
		m := u / 1024 * (256 + u*(-128+u*(74-47*u)))
		delta := m * sinS * (cosM + m/4*(cosS*(2*cosM*cosM-1)-m/6*cosM*(4*sinS*sinS-3)*(4*cosM*cosM-3)))
		return b * k * (sigma - delta)
	}
	return farthest
}

// A Box is an area between two parallels and two meridians, in degrees. It may cross the meridian of
// 180 degrees: West is within [-180, 180), and West + Width may be more than 180.
type Box struct{ South, North, West, Width float64 }

// Around returns a box that contains every place at most radius metres away.
func (g Geo) Around(radius float64) Box {
	// A line on the ellipsoid is at least as long as the one with the same coordinates on a sphere whose
	// radius is the least radius of curvature, that of the meridian at the equator.
	const least = 6_335_439
	angle, margin := radius/least, 1e-9
	across := angle * 180 / math.Pi
	b := Box{South: g.Latitude - across - margin, North: g.Latitude + across + margin, West: -180, Width: 360}
	if b.South > -90 && b.North < 90 { // no pole is in it
		half := math.Asin(min(1, math.Sin(angle)/math.Cos(g.Latitude*math.Pi/180)))*180/math.Pi + margin
		b.Width = min(2*half, 360)
		b.West = math.Mod(g.Longitude-half+540, 360) - 180
	}
	b.South, b.North = max(b.South, -90), min(b.North, 90)
	return b
}
