package protocol

import (
	"math"
	"strconv"
	"strings"
)

// MaxPlaces is how many places are offered when a name has several.
const MaxPlaces = 5

// A Place is a place that a name may mean.
type Place struct {
	Name string // with where it is, such as Koramangala, Bengaluru, Karnataka, IN
	Geo
}

// A PlaceFilter selects businesses, and what they sell, by where they are.
type PlaceFilter struct {
	Near   string `json:"near,omitempty" maxLength:"80" doc:"Only within radius of latitude,longitude, or of a named place." example:"12.9756,77.6050"`
	Radius int    `json:"radius,omitempty" minimum:"1" maximum:"21000000" default:"5000" doc:"Metres."`
}

func (q PlaceFilter) check(sort ItemSort) []Fault {
	_, _, faults := q.Place()
	if sort == SortNear && q.Near == "" {
		faults = append(faults, Fault{"/near", "required", "sort=near is by the distance from near, which is missing"})
	}
	return faults
}

// nearby is the radius when none is given, in metres.
const nearby = 5000

// Place returns the coordinates of near and the radius in metres; nil without near, or when near is a name, which the room that
// answers looks up.
func (q PlaceFilter) Place() (near *Geo, radius float64, faults []Fault) {
	if q.Near == "" {
		if q.Radius != 0 {
			faults = append(faults, Fault{"/near", "required", "radius is measured from near, which is missing"})
		}
		return nil, 0, faults
	}
	if radius = float64(q.Radius); q.Radius == 0 {
		radius = nearby
	}
	if q.NearName() != "" {
		return nil, radius, nil
	}
	north, east, _ := strings.Cut(q.Near, ",")
	at, bad := [2]float64{}, false
	for i, text := range []string{north, east} {
		n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		bad = bad || err != nil || !(math.Abs(n) <= float64(90*(i+1)))
		at[i] = n
	}
	if bad {
		faults = append(faults, Fault{"/near", "wrong-shape", "must be latitude,longitude in degrees, such as 12.9756,77.6050, or a name"})
	}
	return &Geo{Latitude: at[0], Longitude: at[1]}, radius, faults
}

// NearName returns near where it is the name of a place: a text with a letter, or a number without a comma, which is a postcode.
func (q PlaceFilter) NearName() string {
	name := strings.TrimSpace(q.Near)
	if strings.Contains(name, ",") && strings.Trim(name, "0123456789,.+- ") == "" || strings.Trim(name, ",.+- ") == "" {
		return ""
	}
	return name
}

// PlaceError is the error of a near that is the name of no known place, or of several.
func PlaceError(places []Place) *Error {
	if len(places) == 0 {
		return Invalid(Fault{"/near", "unknown-place", "no place of that name is known here: write latitude,longitude such as 12.9756,77.6050, " +
			"the postcode or locality of a business, or a larger city"})
	}
	text := "several places have that name; write the coordinates of one:"
	for _, p := range places {
		text += " " + p.Name + " " + p.Geo.String() + ";"
	}
	e := Invalid(Fault{"/near", "ambiguous", strings.TrimSuffix(text, ";")})
	e.Places = places
	return e
}
