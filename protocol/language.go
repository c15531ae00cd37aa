package protocol

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed codes/bcp47.txt.gz
var subtagRegistry packed

// subtags are the registered subtags in lower case, one set per section of the registry.
var subtags = sync.OnceValue(func() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	section := ""
	for line := range codeLines(subtagRegistry.text()) {
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			all[section] = map[string]bool{}
			continue
		}
		for subtag := range strings.FieldsSeq(strings.ToLower(line)) {
			all[section][subtag] = true
		}
	}
	return all
})

// registered reports whether a lower-case subtag is in a section, by itself or in one of the
// ranges for private use.
func registered(section, subtag string) bool {
	set := subtags()[section]
	if set[subtag] {
		return true
	}
	switch section {
	case "language":
		return subtag >= "qaa" && subtag <= "qtz" && len(subtag) == 3
	case "script":
		return subtag >= "qaaa" && subtag <= "qabx"
	case "region":
		return len(subtag) == 2 && (subtag >= "qm" && subtag <= "qz" || subtag >= "xa" && subtag <= "xz")
	}
	return false
}

// IsLanguage reports whether s is a valid language tag: well-formed, with registered subtags only
// (RFC 5646 §2.2.9), in any case. Tags for private use (x-…) mean nothing to strangers and are
// refused.
func IsLanguage(s string) bool {
	s = strings.ToLower(s)
	if subtags()["grandfathered"][s] {
		return true
	}
	parts := strings.Split(s, "-")
	language := parts[0]
	if len(language) < 2 || len(language) > 3 || !registered("language", language) {
		return false
	}
	parts = parts[1:]
	next := func(section string, lengths string) bool {
		if len(parts) == 0 || len(parts[0]) > 8 || !strings.Contains(lengths, string(rune('0'+len(parts[0])))) || !registered(section, parts[0]) {
			return false
		}
		parts = parts[1:]
		return true
	}
	if len(parts) > 0 && subtags()["extlang"][language+"-"+parts[0]] {
		parts = parts[1:]
	}
	next("script", "4")
	next("region", "23")
	seen := map[string]bool{}
	for len(parts) > 0 && !seen[parts[0]] {
		variant := parts[0]
		if !next("variant", "45678") {
			break
		}
		seen[variant] = true // RFC 5646 §2.2.5: a variant occurs once
	}
	return extensions(parts)
}

// extensions reports whether the rest of a tag is a sequence of extensions, each with its own
// singleton, and private use at the end (RFC 5646 §2.2.6, §2.2.7).
func extensions(parts []string) bool {
	seen := map[string]bool{}
	for len(parts) > 0 {
		singleton := parts[0]
		if len(singleton) != 1 || !alphanumeric(singleton) || seen[singleton] {
			return false
		}
		seen[singleton] = true
		least, n := 2, 1
		if singleton == "x" {
			least = 1
		}
		for n < len(parts) && len(parts[n]) >= least && len(parts[n]) <= 8 && alphanumeric(parts[n]) {
			n++
		}
		if n == 1 || singleton == "x" && n < len(parts) {
			return false
		}
		parts = parts[n:]
	}
	return true
}

func alphanumeric(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
