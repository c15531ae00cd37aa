package protocol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/protocol/sorting"
)

// Limits of a search or exploration.
const (
	maxARDPaths  = 10  // of a filter
	maxARDValues = 20  // of a path
	maxARDValue  = 100 // bytes of a value
)

// Filter paths, and facets that can be counted.
const (
	ARDType         = "type"
	ARDPublisherOf  = "publisher"
	ARDTags         = "tags"
	ARDCapabilities = "capabilities"
	ARDKind         = "metadata.kind"
	ARDLanguages    = "metadata.languages"
	ARDRegions      = "metadata.regions"
	ARDHasIdentity  = "metadata.hasIdentity"
)

var ardPaths = []string{ARDType, ARDPublisherOf, ARDTags, ARDCapabilities, ARDKind, ARDLanguages, ARDRegions, ARDHasIdentity}

// An ARDFilter maps paths to a scalar or a list of scalars: an entry must match any value of a
// path, and all paths.
type ARDFilter map[string]any

// An ARDTerm is one path of a filter, with the values of which any must match.
type ARDTerm struct {
	Path   string
	Values []string
}

// pointerEscapes are those of RFC 6901 §3.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Terms parses a filter. Faults point into it.
func (f ARDFilter) Terms(at string) (terms []ARDTerm, faults []Fault) {
	fault := func(pointer, detail string) { faults = append(faults, Fault{at + pointer, "bad-filter", detail}) }
	if len(f) > maxARDPaths {
		fault("", "at most "+strconv.Itoa(maxARDPaths)+" paths")
		return nil, faults
	}
	for path, v := range f {
		pointer := "/" + pointerEscapes.Replace(path[:min(len(path), 64)])
		if !slices.Contains(ardPaths, path) {
			fault(pointer, "there is no such path; the paths are "+strings.Join(ardPaths, ", "))
			continue
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		if len(list) == 0 || len(list) > maxARDValues {
			fault(pointer, "one value, or a list of 1 to "+strconv.Itoa(maxARDValues))
			continue
		}
		t := ARDTerm{Path: path}
		for _, v := range list {
			switch v.(type) {
			case string, bool, float64:
			default:
				fault(pointer, "values are strings, numbers or booleans")
				continue
			}
			s := fmt.Sprint(v)
			if len(s) > maxARDValue {
				fault(pointer, "a value has at most "+strconv.Itoa(maxARDValue)+" bytes")
				continue
			}
			t.Values = append(t.Values, s)
		}
		terms = append(terms, t)
	}
	sorting.Stable(terms, func(a, b ARDTerm) int { return strings.Compare(a.Path, b.Path) })
	sorting.Stable(faults, func(a, b Fault) int { return strings.Compare(a.Pointer, b.Pointer) })
	return terms, faults
}

// Matches reports whether the entry meets the term.
func (t ARDTerm) Matches(e ARDEntry) bool {
	return slices.ContainsFunc(ARDValuesOf(e, t.Path), t.Has)
}

// Has reports whether a value is one of the term's.
func (t ARDTerm) Has(value string) bool {
	return slices.ContainsFunc(t.Values, func(want string) bool {
		if t.Path == ARDType { // examples of 0.9 omit +json
			return strings.TrimSuffix(value, "+json") == strings.TrimSuffix(want, "+json")
		}
		return strings.EqualFold(value, want)
	})
}

// ARDValuesOf returns the values that an entry has at a path.
func ARDValuesOf(e ARDEntry, path string) []string {
	switch path {
	case ARDType:
		return []string{e.Type}
	case ARDPublisherOf:
		_, rest, _ := strings.Cut(e.Identifier, "urn:air:")
		publisher, _, _ := strings.Cut(rest, ":")
		return []string{publisher}
	case ARDTags:
		return e.Tags
	case ARDCapabilities:
		return e.Capabilities
	}
	name, _ := strings.CutPrefix(path, "metadata.")
	switch v := e.Metadata[name].(type) {
	case string:
		return strings.Split(v, ",")
	case bool:
		return []string{strconv.FormatBool(v)}
	case []any:
		var all []string
		for _, x := range v {
			if s, ok := x.(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}

// An ARDSearch is a search for entries.
type ARDSearch struct {
	Query      ARDQuery `json:"query"`
	Federation string   `json:"federation,omitempty" enum:"auto,referrals,none" default:"auto" doc:"none: this node alone; referrals: also where else to ask; auto: also what this node knows of agents of others, and of directories that it follows. It asks nobody on your behalf."`
	PageSize   int      `json:"pageSize,omitempty" minimum:"1" maximum:"100" default:"10"`
	PageToken  string   `json:"pageToken,omitempty" maxLength:"200"`
}

// An ARDQuery is what to search for.
type ARDQuery struct {
	Text   string    `json:"text" minLength:"1" maxLength:"500" doc:"In plain words. If no agent has all of them, those with the most are found."`
	Filter ARDFilter `json:"filter,omitempty" doc:"Paths type, publisher, tags, capabilities, metadata.kind, metadata.languages, metadata.regions, metadata.hasIdentity; each with a value or a list of them."`
}

// Check returns the faults of the filter.
func (s ARDSearch) Check() []Fault {
	_, faults := s.Query.Filter.Terms("/query/filter")
	return faults
}

// An ARDResult is an entry that was found. Score is relevance, not trust.
type ARDResult struct {
	ARDEntry
	Score     int        `json:"score" minimum:"0" maximum:"100"`
	Source    string     `json:"source" format:"uri" doc:"The registry or catalog that indexed the entry."`
	Via       string     `json:"via,omitempty" format:"uri" doc:"The followed directory that told this node of the entry, which is that directory's claim, trustManifest included: nothing of it is verified."`
	GoneSince *time.Time `json:"goneSince,omitempty" doc:"Since then it does not answer."`
}

// An ARDReferral is another registry.
type ARDReferral struct {
	Identifier  string `json:"identifier"`
	DisplayName string `json:"displayName"`
	Type        string `json:"type"`
	URL         string `json:"url" format:"uri" doc:"Where to send the same search."`
}

// ARDFound is a page of results.
type ARDFound struct {
	Results   []ARDResult   `json:"results"`
	Referrals []ARDReferral `json:"referrals,omitempty"`
	PageToken string        `json:"pageToken,omitempty" doc:"For the next page; absent on the last."`
}

// An ARDExplore asks for counts of the matching entries.
type ARDExplore struct {
	Query      *ARDExploreQuery `json:"query,omitempty"`
	ResultType ARDResultType    `json:"resultType"`
}

// An ARDExploreQuery narrows what is counted.
type ARDExploreQuery struct {
	Text   string    `json:"text,omitempty" maxLength:"500"`
	Filter ARDFilter `json:"filter,omitempty"`
}

// An ARDResultType says what to count.
type ARDResultType struct {
	Facets []ARDFacet `json:"facets" minItems:"1" maxItems:"8"`
}

// An ARDFacet is a path whose values are counted.
type ARDFacet struct {
	Field    string `json:"field" enum:"type,publisher,tags,capabilities,metadata.kind,metadata.languages,metadata.regions,metadata.hasIdentity"`
	Limit    int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20"`
	MinCount int    `json:"minCount,omitempty" minimum:"1" maximum:"1000000000" default:"1"`
}

// Check returns the faults of the filter.
func (e ARDExplore) Check() []Fault {
	if e.Query == nil {
		return nil
	}
	_, faults := e.Query.Filter.Terms("/query/filter")
	return faults
}

// ARDExplored is the answer of an exploration. It never includes other registries.
type ARDExplored struct {
	ResultType string                `json:"resultType" enum:"facets"`
	Facets     map[string]ARDBuckets `json:"facets"`
}

// ARDBuckets are the values of a path, the most frequent first.
type ARDBuckets struct {
	Buckets    []ARDBucket `json:"buckets"`
	OtherCount int         `json:"otherCount" doc:"Occurrences of values that are not in the buckets."`
}

// An ARDBucket is a value and how many entries have it.
type ARDBucket struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

var SearchARD = declare[ARDSearch, ARDFound](Operation{
	Name: "ard_search", Title: "Search agents by ARD",
	Summary: "The directory of agents for registries and clients of Agentic Resource Discovery 0.9.",
	Description: "The same directory as search_agents, as ARD entries. Errors also have ARD's members errorCode and message; a fault of the request has " +
		"status 400.",
	HTTP: Route{"POST", ARDPath + "/search", 200}, Doors: HTTP, ReadOnly: true, NoStore: true, Dialect: DialectARD,
	Codes:   []Code{InvalidCursor},
	Example: ARDSearch{Query: ARDQuery{Text: "hand-made paper", Filter: ARDFilter{ARDKind: "business"}}, Federation: "none"},
})

var ExploreARD = declare[ARDExplore, ARDExplored](Operation{
	Name: "ard_explore", Title: "Count agents by ARD",
	Summary:     "Counts of the matching agents by type, tag, capability, kind, language, region and identity, by ARD 0.9.",
	Description: "Counts are over the whole matched set and may be some minutes old.",
	HTTP:        Route{"POST", ARDPath + "/explore", 200}, Doors: HTTP, ReadOnly: true, NoStore: true, Dialect: DialectARD,
	Example: ARDExplore{ResultType: ARDResultType{Facets: []ARDFacet{{Field: ARDTags}}}},
})
