package backup

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// How many are kept: the newest of each of so many days, weeks and months that have one, so that a gap costs none.
const (
	keptDays   = 7
	keptWeeks  = 4
	keptMonths = 6
)

const nameTime = "20060102T150405Z"

var ours = regexp.MustCompile(`^([a-z0-9._-]{1,260})-(\d{8}T\d{6}Z)\.tar\.gz(\.age)?$`)

// hostName is a host as it begins the names of its backups.
func hostName(host string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(host))
}

// Name is what a backup is called.
func Name(host string, at time.Time, sealed bool) string {
	name := hostName(host) + "-" + at.UTC().Format(nameTime) + ".tar.gz"
	if sealed {
		name += ".age"
	}
	return name
}

// ParseName reads the host and the time in the name of a backup; false for the name of something else.
func ParseName(name string) (host string, at time.Time, ok bool) {
	m := ours.FindStringSubmatch(name)
	if m == nil {
		return "", time.Time{}, false
	}
	at, err := time.Parse(nameTime, m[2])
	return m[1], at, err == nil
}

// surplus lists those of the names that are backups of a host and not to be kept. Those of held are kept in any case. One that is later
// than now was made when a clock was wrong: it is kept, and takes no place of another.
func surplus(names []string, host string, now time.Time, held ...string) (drop []string) {
	type backup struct {
		name string
		at   time.Time
	}
	var all []backup
	for _, name := range names {
		if of, at, ok := ParseName(name); ok && of == hostName(host) && !at.After(now) {
			all = append(all, backup{name, at})
		}
	}
	slices.SortFunc(all, func(a, b backup) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(b.name, a.name)) })
	rules := []struct {
		most int
		of   func(time.Time) string
		seen map[string]bool
	}{
		{keptDays, func(t time.Time) string { return t.Format(time.DateOnly) }, map[string]bool{}},
		{keptWeeks, func(t time.Time) string { year, week := t.ISOWeek(); return fmt.Sprint(year, " ", week) }, map[string]bool{}},
		{keptMonths, func(t time.Time) string { return t.Format("2006-01") }, map[string]bool{}},
	}
	for i, b := range all {
		keep := i == 0 || slices.Contains(held, b.name)
		for _, r := range rules {
			if name := r.of(b.at); !r.seen[name] && len(r.seen) < r.most {
				r.seen[name] = true
				keep = true
			}
		}
		if !keep {
			drop = append(drop, b.name)
		}
	}
	return drop
}

// nextDaily is the next time after now that is at after midnight UTC, plus more, by which nodes differ.
func nextDaily(now time.Time, at, more time.Duration) time.Time {
	day := now.UTC().Truncate(24 * time.Hour)
	next := day.Add(at)
	if !next.After(now) {
		next = next.Add(24 * time.Hour)
	}
	return next.Add(more)
}
