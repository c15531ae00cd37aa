package ics

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A date is the number of days since 1970-01-01.
type date int

func dateOf(t time.Time) date {
	y, m, d := t.Date()
	return date(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400) // dates before 1970 are refused
}

func (d date) time() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

// A rule is a RRULE (RFC 5545 §3.3.10) whose occurrences have the time of day of the start. What it
// does not know makes the rule errRule.
type rule struct {
	freq                              string // DAILY, WEEKLY, MONTHLY or YEARLY
	interval, count                   int    // count 0: no end
	until                             string // as it is written
	months, monthDays, yearDays, sets []int
	days                              []weekday
	begins                            time.Weekday // of a week
}

type weekday struct {
	n   int // 0 for each; 2 for the second of the month or year, -1 for the last
	day time.Weekday
}

var (
	errRule   = errors.New("a recurrence that is not known")
	errBudget = errors.New("too many recurring events")
	dayNames  = []string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}
)

func parseRule(text string, start time.Time) (*rule, error) {
	r := &rule{interval: 1, begins: time.Monday}
	ok := len(text) <= 1000
	numbers := func(value string, low, high int) (list []int) {
		for part := range strings.SplitSeq(value, ",") {
			n, err := strconv.Atoi(part)
			ok = ok && err == nil && n >= low && n <= high && n != 0
			list = append(list, n)
		}
		return list
	}
	same := func(value string, is int) { n, err := strconv.Atoi(value); ok = ok && err == nil && n == is }
	for part := range strings.SplitSeq(strings.ToUpper(strings.TrimSpace(text)), ";") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "FREQ":
			r.freq = value
			ok = ok && slices.Contains([]string{"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}, value)
		case "INTERVAL":
			r.interval = numbers(value, 1, 10_000)[0]
		case "COUNT":
			r.count = numbers(value, 1, 1_000_000)[0]
		case "UNTIL":
			r.until = value
		case "BYMONTH":
			r.months = numbers(value, 1, 12)
		case "BYMONTHDAY":
			r.monthDays = numbers(value, -31, 31)
		case "BYYEARDAY":
			r.yearDays = numbers(value, -366, 366)
		case "BYSETPOS":
			r.sets = numbers(value, -366, 366)
		case "BYDAY":
			for day := range strings.SplitSeq(value, ",") {
				at := slices.Index(dayNames, day[max(0, len(day)-2):])
				w := weekday{day: time.Weekday(at)}
				if n := strings.TrimPrefix(day[:max(0, len(day)-2)], "+"); n != "" {
					w.n = numbers(n, -53, 53)[0]
				}
				ok = ok && at >= 0
				r.days = append(r.days, w)
			}
		case "WKST":
			r.begins = time.Weekday(slices.Index(dayNames, value))
			ok = ok && r.begins >= 0
		case "BYHOUR":
			same(value, start.Hour())
		case "BYMINUTE":
			same(value, start.Minute())
		case "BYSECOND":
			same(value, start.Second())
		default:
			ok = ok && strings.HasPrefix(name, "X-")
		}
	}
	if !ok || r.freq == "" || start.Year() < 1970 || start.Year() > 9999 {
		return nil, errRule
	}
	r.complete(start)
	return r, nil
}

// complete adds what the start says where the rule says nothing.
func (r *rule) complete(start time.Time) {
	if len(r.days)+len(r.monthDays)+len(r.yearDays) > 0 {
		return
	}
	switch r.freq {
	case "YEARLY":
		if len(r.months) == 0 {
			r.months = []int{int(start.Month())}
		}
		r.monthDays = []int{start.Day()}
	case "MONTHLY":
		r.monthDays = []int{start.Day()}
	case "WEEKLY":
		r.days = []weekday{{day: start.Weekday()}}
	}
}

// period returns the n-th day, week, month or year in which the rule has occurrences.
func (r *rule) period(start time.Time, n int) (first, last date) {
	y, m, _ := start.Date()
	switch d := dateOf(start); r.freq {
	case "DAILY":
		first = d + date(n*r.interval)
		return first, first
	case "WEEKLY":
		first = d - date((start.Weekday()-r.begins+7)%7) + date(7*n*r.interval)
		return first, first + 6
	case "MONTHLY":
		t := time.Date(y, m+time.Month(n*r.interval), 1, 0, 0, 0, 0, time.UTC)
		return dateOf(t), dateOf(t.AddDate(0, 1, -1))
	default:
		t := time.Date(y+n*r.interval, 1, 1, 0, 0, 0, 0, time.UTC)
		return dateOf(t), dateOf(t.AddDate(1, 0, -1))
	}
}

// skip returns a period before which no occurrence is on from or later.
func (r *rule) skip(start time.Time, from date) int {
	if r.count > 0 { // all of them have to be counted
		return 0
	}
	days := map[string]int{"DAILY": 1, "WEEKLY": 7, "MONTHLY": 31, "YEARLY": 366}[r.freq]
	return max(0, int(from-dateOf(start))/(days*r.interval)-1)
}

// occurrences returns the dates of the occurrences of a RRULE from one date through another, in
// order. at returns the instant of an occurrence. budget is how many days may be looked at; it is
// counted down, and errBudget ends the search.
func occurrences(text string, start time.Time, from, to date, at func(date) time.Time, budget *int) ([]date, error) {
	r, err := parseRule(text, start)
	if err != nil {
		return nil, err
	}
	return r.dates(start, from, to, at, budget)
}

func (r *rule) dates(start time.Time, from, to date, at func(date) time.Time, budget *int) ([]date, error) {
	until, byDate, bounded := parseTime(r.until, "", start.Location())
	if r.until != "" && !bounded {
		return nil, errRule
	}
	var found []date
	counted := 0
	for n := r.skip(start, from); ; n++ {
		first, last := r.period(start, n)
		if first > to {
			return found, nil
		}
		if *budget -= int(last - first + 2); *budget < 0 {
			return nil, errBudget
		}
		for _, d := range r.within(first, last) {
			if d < dateOf(start) {
				continue
			}
			counted++
			over := bounded && (byDate && d > dateOf(until) || !byDate && at(d).After(until))
			if over || d > to || r.count > 0 && counted > r.count {
				return found, nil
			}
			if d >= from {
				found = append(found, d)
			}
		}
	}
}

// within returns the occurrences of one period.
func (r *rule) within(first, last date) (days []date) {
	for d := first; d <= last; d++ {
		if r.has(d) {
			days = append(days, d)
		}
	}
	if len(r.sets) == 0 {
		return days
	}
	var chosen []date
	for i, d := range days {
		if slices.Contains(r.sets, i+1) || slices.Contains(r.sets, i-len(days)) {
			chosen = append(chosen, d)
		}
	}
	return chosen
}

// has reports whether a date satisfies every part of the rule.
func (r *rule) has(d date) bool {
	t := d.time()
	year, month, day := t.Date()
	in := func(list []int, n, length int) bool {
		return len(list) == 0 || slices.Contains(list, n) || slices.Contains(list, n-length-1)
	}
	monthLength := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	yearLength := time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC).YearDay()
	if !in(r.months, int(month), 1<<20) || !in(r.monthDays, day, monthLength) || !in(r.yearDays, t.YearDay(), yearLength) {
		return false
	}
	n, length := day, monthLength // the month or the year in which weekdays are counted
	if r.freq == "YEARLY" && len(r.months) == 0 {
		n, length = t.YearDay(), yearLength
	}
	return len(r.days) == 0 || slices.ContainsFunc(r.days, func(w weekday) bool {
		switch {
		case w.day != t.Weekday():
			return false
		case w.n == 0 || r.freq == "WEEKLY" || r.freq == "DAILY":
			return true
		case w.n > 0:
			return (n-1)/7+1 == w.n
		}
		return -((length-n)/7 + 1) == w.n
	})
}
