package protocol

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones are known without the system's data
)

// The registries that codes are checked against. Each file names its source and
// date in its first line; lines that begin with # are comments.
var (
	//go:embed codes/iso3166.txt.gz
	iso3166 packed
	//go:embed codes/iso4217.txt
	iso4217 string
	//go:embed codes/zones.txt.gz
	zoneNames packed
	//go:embed codes/zonelinks.txt
	zoneLinks string
)

// packed is a registry as make generate compresses it.
type packed []byte

func (p packed) text() string {
	r, err := gzip.NewReader(bytes.NewReader(p))
	if err != nil {
		panic(err) // it is a part of the program
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// codeLines yields the lines of a registry that contain codes.
func codeLines(file string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.SplitSeq(file, "\n") {
			if line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}

func codeSet(file string) map[string]bool {
	set := map[string]bool{}
	for line := range codeLines(file) {
		for code := range strings.FieldsSeq(line) {
			set[code] = true
		}
	}
	return set
}

var regionSet = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for line := range codeLines(iso3166.text()) {
		codes := strings.Fields(line)
		set[codes[0]] = true
		for _, division := range codes[1:] {
			set[codes[0]+"-"+division] = true
		}
	}
	return set
})

// IsRegion reports whether s is a country of ISO 3166-1 (IN) or a subdivision
// of ISO 3166-2 (IN-KA), in upper case.
func IsRegion(s string) bool { return regionSet()[s] }

var currencySet = sync.OnceValue(func() map[string]bool { return codeSet(iso4217) })

// IsCurrency reports whether s is a currency of ISO 4217, in upper case.
func IsCurrency(s string) bool { return currencySet()[s] }

// zones are the time zones of IANA by name. Each is loaded once, when it is first asked for.
var zones = sync.OnceValue(func() map[string]func() (*time.Location, error) {
	load := map[string]func() (*time.Location, error){}
	for name := range codeSet(zoneNames.text()) {
		load[name] = sync.OnceValues(func() (*time.Location, error) { return time.LoadLocation(name) })
	}
	return load
})

// zoneNameOf is the name to use of each alias.
var zoneNameOf = sync.OnceValue(func() map[string]string {
	of := map[string]string{}
	for line := range codeLines(zoneLinks) {
		names := strings.Fields(line)
		for _, alias := range names[1:] {
			of[alias] = names[0]
		}
	}
	return of
})

// FoldZone returns the name to use for a time zone: Asia/Kolkata for Asia/Calcutta, which browsers in India say. Any
// other text is returned as it is.
func FoldZone(name string) string {
	if to, alias := zoneNameOf()[name]; alias {
		return to
	}
	return name
}

// ZoneAliases returns the other names of the time zone with that name, in order; none for a zone that has one name.
func ZoneAliases(name string) (others []string) {
	name = FoldZone(name)
	for alias, of := range zoneNameOf() {
		if of == name {
			others = append(others, alias)
		}
	}
	slices.Sort(others)
	return others
}

// Zone returns the IANA time zone with that name, spelled as IANA spells it; that of an alias has the name to use. ok is
// false for names that IANA does not list: Local, abbreviations, paths.
func Zone(name string) (loc *time.Location, ok bool) {
	load, ok := zones()[FoldZone(name)]
	if !ok {
		return nil, false
	}
	loc, err := load()
	return loc, err == nil
}
