package web

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// A series is what one chart shows: a number for each step.
type series struct {
	title string // key of a text
	of    func(protocol.TrafficStep) int64
}

var trafficSeries = []series{
	{english("Reads"), func(s protocol.TrafficStep) int64 { return s.Reads }},
	{english("Writes"), func(s protocol.TrafficStep) int64 { return s.Writes }},
	{english("Proofs of work"), func(s protocol.TrafficStep) int64 { return s.Proofs }},
	{english("Reports"), func(s protocol.TrafficStep) int64 { return s.Reports }},
	{english("Deliveries"), func(s protocol.TrafficStep) int64 { return s.Deliveries }},
	{english("Failed deliveries"), func(s protocol.TrafficStep) int64 { return s.Failures }},
}

// sum returns the number of all steps together, and the greatest of one.
func (s series) sum(t protocol.Traffic) (sum, most int64) {
	for _, step := range t.Steps {
		n := s.of(step)
		sum, most = sum+n, max(most, n)
	}
	return sum, most
}

// chartHeight and barWidth are in the units of the drawing.
const (
	chartHeight = 60
	barWidth    = 10
)

// chart draws a bar for each step, as an SVG without script; the table below it has the numbers.
func chart(id string, s series, t protocol.Traffic) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		sum, most := s.sum(t)
		var b strings.Builder
		fmt.Fprintf(&b, `<svg class="chart" role="img" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-labelledby="%s-t %s-d">`+
			`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
			len(t.Steps)*barWidth, chartHeight, id, id, id, templ.EscapeString(tr(ctx, s.title)), id,
			templ.EscapeString(tr(ctx, "%d in all; at most %d in one bar", sum, most)))
		for i, step := range t.Steps {
			height := 0.0
			if n := s.of(step); n > 0 {
				height = max(2, float64(n)/float64(most)*chartHeight)
			}
			fmt.Fprintf(&b, `<rect x="%d" y="%s" width="%d" height="%s"/>`, i*barWidth+1, decimals(chartHeight-height), barWidth-2, decimals(height))
		}
		b.WriteString(`</svg>`)
		_, err := io.WriteString(w, b.String())
		return err
	})
}

func decimals(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

// stepTime returns the beginning of a step as the zone of India has it.
func stepTime(span string, at time.Time) string {
	if span == "month" {
		return at.Format(time.DateOnly)
	}
	return at.In(protocol.India).Format("15:04")
}

func number(label string, n int) templ.Component { return row(label, say("%d", n)) }

func numbersBody(o *operatorView) templ.Component {
	n := answer(o, protocol.ReadStatistics)
	return all{
		operatorHead(o),
		trafficSection("day", english("The last day, by hour"), o.Day),
		trafficSection("month", english("The last thirty days"), o.Month),
		titled("stored", "What is stored",
			inside(`dl class="map"`, number(english("Visible posts"), n.Posts.Visible),
				number(english("Of these, made here"), n.Posts.Here), number(english("Hidden posts"), n.Posts.Hidden),
				number(english("Deleted posts"), n.Posts.Deleted), number(english("Profiles##stored"), n.Profiles),
				number(english("Threads"), n.Threads), number(english("Blocks in force"), n.Blocks)),
			inside(`p class="hint"`, say("Counted"), moment(n.At))),
	}
}
