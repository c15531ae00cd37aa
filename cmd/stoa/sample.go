package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A sample is what /metrics said at a moment, of one process or summed over several. A series is its name with its labels.
type sample struct {
	at     time.Time
	values map[string]float64
}

// read adds what a process says, in the text format of Prometheus.
func (s sample) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			return fmt.Errorf("%q is no line of metrics", line)
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return fmt.Errorf("%q is no line of metrics: %w", line, err)
		}
		series := line[:at]
		if name, _, _ := strings.Cut(series, "{"); ofDatabase[name] {
			s.values[series] = max(s.values[series], value)
		} else {
			s.values[series] += value
		}
	}
	return lines.Err()
}

// ofDatabase are gauges that each process of a node reads from the database that they share.
var ofDatabase = map[string]bool{"stoa_jobs": true, "stoa_outlets": true, "stoa_outlet_lag_entries": true, "stoa_review_posts": true,
	"stoa_overdue_complaints": true, "stoa_chain_up": true}

var labelPair = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)

// labelOf is the value of a label of a series.
func labelOf(series, name string) string {
	for _, pair := range labelPair.FindAllStringSubmatch(series, -1) {
		if pair[1] == name {
			return pair[2]
		}
	}
	return ""
}

// has reports whether a series has a name and all of some labels, such as kind="mail".
func has(series, name string, labels []string) bool {
	rest, ok := strings.CutPrefix(series, name)
	if !ok || rest != "" && rest[0] != '{' {
		return false
	}
	for _, l := range labels {
		if !strings.Contains(rest, "{"+l) && !strings.Contains(rest, ","+l) {
			return false
		}
	}
	return true
}

// sum adds the series of a name that have some labels.
func (s sample) sum(name string, labels ...string) (total float64) {
	for series, value := range s.values {
		if has(series, name, labels) {
			total += value
		}
	}
	return total
}

// A span is what happened between two samples.
type span struct{ from, to sample }

// rate is by how much a counter grew, a second. One that is less than it was began again, with its process.
func (s span) rate(name string, labels ...string) float64 {
	grew := 0.0
	for series, now := range s.to.values {
		if has(series, name, labels) {
			if was := s.from.values[series]; was <= now {
				now -= was
			}
			grew += now
		}
	}
	return grew / max(s.to.at.Sub(s.from.at).Seconds(), 1e-3)
}

// quantile estimates from the buckets of a histogram how long a share q took at most, in seconds; NaN where nothing happened.
func (s span) quantile(q float64, name string, labels ...string) float64 {
	counts := map[float64]float64{}
	for series, now := range s.to.values {
		if has(series, name+"_bucket", labels) {
			le, err := strconv.ParseFloat(labelOf(series, "le"), 64)
			if err == nil {
				counts[le] += max(now-s.from.values[series], 0)
			}
		}
	}
	bounds := make([]float64, 0, len(counts))
	for le := range counts {
		bounds = append(bounds, le)
	}
	slices.Sort(bounds)
	if len(bounds) == 0 || counts[bounds[len(bounds)-1]] == 0 {
		return math.NaN()
	}
	rank, below, under := q*counts[bounds[len(bounds)-1]], 0.0, 0.0
	for _, le := range bounds {
		if counts[le] >= rank {
			if math.IsInf(le, 1) {
				return below
			}
			return below + (le-below)*(rank-under)/max(counts[le]-under, 1e-9)
		}
		below, under = le, counts[le]
	}
	return below
}

// labels are the values of a label among the series of a name, by name.
func (s span) labels(name, label string) (all []string) {
	for series := range s.to.values {
		if has(series, name, nil) {
			if v := labelOf(series, label); !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	slices.Sort(all)
	return all
}
