package protocol

import (
	"cmp"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of directories of other makers that a node follows.
const (
	MaxARDDirectories = 50
	MaxARDEntries     = 2000     // of one directory
	MaxARDDocument    = 4 << 20  // bytes of a catalog, or of a page of a registry
	maxARDEntry       = 16 << 10 // bytes of an entry
)

// An ARDDirectory is a directory of another maker that this node follows: a registry or a catalog.
type ARDDirectory struct {
	URL       string     `json:"url"`
	Kind      string     `json:"kind" enum:"catalog,registry" doc:"catalog: a document ai-catalog.json. registry: the base address of an ARD registry."`
	State     string     `json:"state" enum:"pending,current,failing,gone" doc:"pending: not read yet. failing: the last attempt failed. gone: for 7 days or longer; after 30 days its entries are deleted."`
	Entries   int        `json:"entries" minimum:"0" doc:"Entries of it that this node has."`
	Refused   int        `json:"refused" minimum:"0" doc:"Entries of it that were not taken when it was last read: not valid, of this node, of a host that the node refuses or silences, or more than 2000."`
	Tag       string     `json:"etag" doc:"ETag of the document, empty for none."`
	CheckedAt *time.Time `json:"checkedAt" doc:"The last attempt; null for none."`
	ReadAt    *time.Time `json:"readAt" doc:"The last successful one; null for none."`
	NextAt    time.Time  `json:"nextAt"`
	Attempts  int        `json:"attempts" minimum:"0" doc:"Failed attempts since the last success."`
	LastError string     `json:"lastError"`
}

// ARDDirectories are all directories that a node follows, at most MaxARDDirectories.
type ARDDirectories struct {
	Items     []ARDDirectory `json:"items"`
	Untrusted bool           `json:"untrusted_content" doc:"Always true: errors may repeat what others wrote."`
}

// An ARDDirectoryURL is the address of a directory.
type ARDDirectoryURL struct {
	URL string `json:"url" minLength:"1" maxLength:"2000" doc:"A document that ends in .json, the base address of an ARD registry, or only https:// and a host, for its /.well-known/ai-catalog.json."`
}

// ListDirectories lists the directories of other makers that this node follows.
var ListDirectories = declare[None, ARDDirectories](Operation{
	Name: "list_directories", Title: "List followed directories",
	Summary: "The ARD registries and catalogs that this node follows, with the state of each.",
	HTTP:    Route{"GET", "/api/operator/directories", 200}, For: Operators, ReadOnly: true, Example: None{},
})

// FollowDirectory has the running node read a directory now and then daily.
var FollowDirectory = declare[ARDDirectoryURL, None](Operation{
	Name: "follow_directory", Title: "Follow a directory",
	Summary: "Reads an ARD registry or catalog of another maker now and then daily. Its entries are found by ard_search, marked with their source; " +
		"what they say of themselves is not verified. One that is followed already is read again.",
	HTTP: Route{"POST", "/api/operator/directories/follow", 204}, For: Operators, Codes: []Code{Conflict},
	Example: ARDDirectoryURL{URL: "https://catalog.example/ai-catalog.json"},
})

// UnfollowDirectory ends that and deletes the entries.
var UnfollowDirectory = declare[ARDDirectoryURL, None](Operation{
	Name: "unfollow_directory", Title: "Stop following a directory",
	Summary: "Reads a directory no more, and deletes its entries at once.",
	HTTP:    Route{"POST", "/api/operator/directories/unfollow", 204}, For: Operators, Codes: []Code{NotFound},
	Example: ARDDirectoryURL{URL: "https://catalog.example/ai-catalog.json"},
})

// ParseARDDirectory returns the address of a directory in its one form, and whether it is that of a registry. With private,
// http is allowed on loopback.
func ParseARDDirectory(raw string, private bool) (address string, registry bool, err error) {
	raw = strings.TrimSpace(raw)
	if why := CallbackFault(raw, private); why != "" {
		return "", false, Errorf(InvalidRequest, "%q %s", Clip(raw, 200), why)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", false, Errorf(InvalidRequest, "%q must be an absolute https address", Clip(raw, 200))
	}
	u.Host = strings.ToLower(u.Host)
	if u.Path == "" || u.Path == "/" {
		u.Path = ARDCatalogPath
	}
	if strings.HasSuffix(u.Path, ".json") {
		return u.String(), false, nil
	}
	u.RawQuery, u.Path = "", strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/search")
	return u.String(), true, nil
}

// A ClaimedEntry is an entry as another directory has it. Nothing of it is verified.
type ClaimedEntry struct {
	ARDEntry
	Source string `json:"source,omitempty"` // where the directory has it from, if it says so
}

// Publisher is the publisher that the identifier names, in lower case.
func (e *ARDEntry) Publisher() string { return strings.ToLower(ARDValuesOf(*e, ARDPublisherOf)[0]) }

var airIdentifier = regexp.MustCompile(`^urn:air:[a-zA-Z0-9.-]{1,253}(:[a-zA-Z0-9._-]+)+$`)

// own are names of metadata that only the node's own entries have: what they say is verified there.
var own = []string{"hasIdentity", "erc8004", "untrusted_content"}

// ParseClaimedEntry reads an entry of another directory. The error says why it is not taken. Its trust manifest is kept as it
// is; members that say here what this node verified are removed.
func ParseClaimedEntry(raw []byte, private bool) (e ClaimedEntry, err error) {
	if len(raw) > maxARDEntry {
		return e, Errorf(InvalidRequest, "more than %d bytes", maxARDEntry)
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, Errorf(InvalidRequest, "%w", err)
	}
	for _, name := range own {
		delete(e.Metadata, name)
	}
	e.Untrusted = true
	if len(e.RepresentativeQueries) > ardQueries {
		e.RepresentativeQueries = e.RepresentativeQueries[:ardQueries]
	}
	if e.Source != "" && CallbackFault(e.Source, private) != "" {
		e.Source = ""
	}
	return e, errorOf(e.faults(private))
}

func errorOf(faults []Fault) error {
	if len(faults) > 0 {
		return Invalid(faults...)
	}
	return nil
}

func (e *ClaimedEntry) faults(private bool) (faults []Fault) {
	fault := func(at, why string) { faults = append(faults, Fault{at, "invalid", why}) }
	if len(e.Identifier) > 300 || !airIdentifier.MatchString(e.Identifier) {
		fault("/identifier", "is none of urn:air:<publisher>:<namespace>:<name>")
	}
	for at, f := range map[string]struct {
		text        string
		least, most int
	}{"/displayName": {e.DisplayName, 1, 200}, "/type": {e.Type, 1, 200}, "/url": {e.URL, 0, 2000}, "/description": {e.Description, 0, 4000},
		"/version": {e.Version, 0, 100}, "/source": {e.Source, 0, 2000}} {
		if n := utf8.RuneCountInString(f.text); n < f.least || n > f.most {
			fault(at, "has "+strconv.Itoa(n)+" characters")
		}
	}
	if (e.URL == "") == (e.Data == nil) {
		fault("/url", "exactly one of url and data")
	}
	if e.URL != "" && CallbackFault(e.URL, private) != "" {
		fault("/url", CallbackFault(e.URL, private))
	}
	for at, list := range map[string][]string{"/tags": e.Tags, "/capabilities": e.Capabilities, "/representativeQueries": e.RepresentativeQueries} {
		if len(list) > 100 {
			fault(at, "more than 100")
		}
		for _, s := range list {
			if s == "" || utf8.RuneCountInString(s) > 300 {
				fault(at, "a text has 1 to 300 characters")
			}
		}
	}
	faults = slices.Concat(faults, CheckText("", e), anyFaults("/metadata", e.Metadata), anyFaults("/data", e.Data))
	if t := e.TrustManifest; t != nil {
		if t.Identity == "" {
			fault("/trustManifest/identity", "is missing")
		}
		faults = append(faults, anyFaults("/trustManifest", t.TrustSchema)...)
		for _, p := range t.Provenance {
			faults = append(faults, anyFaults("/trustManifest", p)...)
		}
	}
	return faults
}

// anyFaults are the faults of the texts in a value of JSON.
func anyFaults(at string, v any) (faults []Fault) {
	switch v := v.(type) {
	case string:
		if f := TextFault(at, v); f != nil {
			return []Fault{*f}
		}
	case []any:
		for _, x := range v {
			faults = append(faults, anyFaults(at, x)...)
		}
	case map[string]any:
		for name, x := range v {
			faults = append(append(faults, anyFaults(at, name)...), anyFaults(at, x)...)
		}
	}
	return faults
}

// ARDReferralTo refers to the registry at a base address.
func ARDReferralTo(base string) ARDReferral {
	publisher, host := ARDPublisher(base), ""
	if u, err := url.Parse(base); err == nil {
		host = u.Host
	}
	return ARDReferral{Identifier: "urn:air:" + publisher + ":registry:ard", DisplayName: cmp.Or(host, publisher), Type: ARDRegistry, URL: base + "/search"}
}
