package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

type topCmd struct {
	At    []string      `default:"127.0.0.1:8081" placeholder:"ADDR" help:"Operator's address of a process (operator-listen). Repeatable: what several processes of a node say is summed."`
	Every time.Duration `default:"2s" help:"Pause between looks, at least 200ms."`
	Once  bool          `help:"Look twice, print what happened between, and end. So it is where the output is no terminal."`
	JSON  bool          `help:"Print one line of JSON for each look."`
	Rows  int           `default:"15" help:"How many operations, those first on which most time was spent."`
}

func (c *topCmd) Help() string {
	return "Rates, queues, deliveries and the operations that take most time, from /metrics of the operator's address. Ctrl-C ends it."
}

func (c *topCmd) Run(w *world) error {
	if c.Every < 200*time.Millisecond {
		return usagef("--every: %s is less than 200ms", c.Every)
	}
	terminal := isTerminal(w.stdout)
	before, err := c.look(w.ctx)
	if err != nil {
		return err
	}
	for {
		select {
		case <-w.ctx.Done():
			return nil
		case <-time.After(c.Every):
		}
		now, err := c.look(w.ctx)
		switch {
		case w.ctx.Err() != nil:
			return nil
		case err != nil && (c.Once || !terminal):
			return err
		case err != nil: // it is restarted perhaps
			fmt.Fprintf(w.stdout, "\x1b[H\x1b[2J%s\n", err)
			continue
		}
		at := topOf(span{before, now}, c.Rows)
		before = now
		switch {
		case c.JSON:
			err = printLine(w.stdout, at)
		case terminal && !c.Once:
			_, err = fmt.Fprint(w.stdout, "\x1b[H\x1b[2J"+at.text(c.At))
		default:
			_, err = fmt.Fprint(w.stdout, at.text(c.At))
		}
		if err != nil || c.Once || !terminal && !c.JSON {
			return err
		}
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func printLine(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", raw)
	}
	return err
}

// look asks all processes.
func (c *topCmd) look(ctx context.Context) (sample, error) {
	s := sample{time.Now(), map[string]float64{}}
	for _, at := range c.At {
		if err := s.ask(ctx, at); err != nil {
			return s, fmt.Errorf("%s: %w; is the node running, with operator-listen at this address?", at, err)
		}
	}
	return s, nil
}

func (s sample) ask(ctx context.Context, at string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/metrics", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return s.read(res.Body)
}

// A topView is what top shows: rates a second, and seconds.
type topView struct {
	At         time.Time  `json:"at"`
	Version    string     `json:"version"`
	Engine     string     `json:"engine"`
	Operations float64    `json:"operations"`
	Refused    float64    `json:"refused"`
	Internal   float64    `json:"internal"`
	Median     *float64   `json:"median"`
	P99        *float64   `json:"p99"`
	Waiting    float64    `json:"waitingWrites"`
	Streams    float64    `json:"streams"`
	Limited    float64    `json:"limited"`
	CPU        float64    `json:"cpu"`
	Memory     float64    `json:"memoryBytes"`
	Files      float64    `json:"openFiles"`
	Delivered  float64    `json:"delivered"`
	Undone     float64    `json:"deliveriesFailed"`
	Behind     float64    `json:"entriesBehind"`
	Inboxes    []topCount `json:"inboxes"`
	Jobs       []topJob   `json:"jobs"`
	Slow       []topOp    `json:"slow"`
	ChainsDown float64    `json:"chainsDown"`
	Reported   float64    `json:"reportedPosts"`
	Overdue    float64    `json:"overdueComplaints"`
}

type topCount struct {
	State string  `json:"state"`
	N     float64 `json:"n"`
}

type topJob struct {
	Kind    string  `json:"kind"`
	Waiting float64 `json:"waiting"`
	Dead    float64 `json:"dead"`
	Rate    float64 `json:"rate"`
}

type topOp struct {
	Name   string   `json:"operation"`
	Rate   float64  `json:"rate"`
	Failed float64  `json:"failed"`
	Median *float64 `json:"median"`
	P99    *float64 `json:"p99"`
	Busy   float64  `json:"busy"` // seconds spent on it a second
}

const (
	opsMetric = "stoa_operation_duration_seconds"
	jobMetric = "stoa_job_duration_seconds"
)

func topOf(s span, rows int) topView {
	v := topView{At: s.to.at,
		Operations: s.rate(opsMetric + "_count"), Internal: s.rate(opsMetric+"_count", `code="internal"`),
		Median: known(s.quantile(.5, opsMetric)), P99: known(s.quantile(.99, opsMetric)),
		Waiting: s.to.sum("stoa_storage_waiting_writes"), Streams: s.to.sum("stoa_feed_streams"), Limited: s.rate("stoa_limited_requests_total"),
		CPU: s.rate("process_cpu_seconds_total"), Memory: s.to.sum("process_resident_memory_bytes"), Files: s.to.sum("process_open_fds"),
		Delivered: s.rate("stoa_federation_events_total", `event="delivery"`, `failed="false"`),
		Undone:    s.rate("stoa_federation_events_total", `event="delivery"`, `failed="true"`),
		Behind:    s.to.sum("stoa_outlet_lag_entries"), Reported: s.to.sum("stoa_review_posts"), Overdue: s.to.sum("stoa_overdue_complaints"),
		Inboxes: []topCount{}, Jobs: []topJob{}, Slow: []topOp{},
	}
	v.Refused = v.Operations - v.Internal - s.rate(opsMetric+"_count", `code="ok"`)
	for series, up := range s.to.values {
		switch {
		case has(series, "stoa_build_info", nil):
			v.Version, v.Engine = labelOf(series, "version"), labelOf(series, "engine")
		case has(series, "stoa_chain_up", nil) && up == 0:
			v.ChainsDown++
		}
	}
	for _, state := range s.labels("stoa_outlets", "state") {
		v.Inboxes = append(v.Inboxes, topCount{state, s.to.sum("stoa_outlets", "state="+strconv.Quote(state))})
	}
	for _, kind := range s.labels("stoa_jobs", "kind") {
		of := "kind=" + strconv.Quote(kind)
		v.Jobs = append(v.Jobs, topJob{kind, s.to.sum("stoa_jobs", of, `state="waiting"`), s.to.sum("stoa_jobs", of, `state="dead"`), s.rate(jobMetric+"_count", of)})
	}
	slices.SortStableFunc(v.Jobs, func(a, b topJob) int { return cmp.Or(cmp.Compare(b.Dead, a.Dead), cmp.Compare(b.Waiting, a.Waiting)) })
	for _, name := range s.labels(opsMetric+"_count", "operation") {
		of := "operation=" + strconv.Quote(name)
		op := topOp{Name: name, Rate: s.rate(opsMetric+"_count", of), Busy: s.rate(opsMetric+"_sum", of),
			Median: known(s.quantile(.5, opsMetric, of)), P99: known(s.quantile(.99, opsMetric, of))}
		op.Failed = op.Rate - s.rate(opsMetric+"_count", of, `code="ok"`)
		if op.Rate > 0 {
			v.Slow = append(v.Slow, op)
		}
	}
	slices.SortStableFunc(v.Slow, func(a, b topOp) int { return cmp.Compare(b.Busy, a.Busy) })
	v.Slow = v.Slow[:min(len(v.Slow), max(rows, 0))]
	return v
}

// known is nil for no number.
func known(f float64) *float64 {
	if math.IsNaN(f) {
		return nil
	}
	return &f
}

func took(seconds *float64) string {
	if seconds == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f ms", *seconds*1000)
}

func (v topView) text(at []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "stoa %s · %s · %s · %s\n\n", v.Version, v.Engine, strings.Join(at, " "), v.At.Format(time.TimeOnly))
	t := newTable(&b)
	fmt.Fprintf(t, "operations\t%.1f/s\trefused %.1f/s\tinternal %.2f/s\tmedian %s\t99 %% %s\n", v.Operations, v.Refused, v.Internal, took(v.Median), took(v.P99))
	fmt.Fprintf(t, "process\tCPU %.0f %%\tmemory %.0f MB\tfiles %.0f\twrites wait %.0f\tlimited %.1f/s\n", v.CPU*100, v.Memory/1e6, v.Files, v.Waiting, v.Limited)
	fmt.Fprintf(t, "deliveries\t%.1f/s\tfailed %.1f/s\tbehind %.0f entries\tstreams %.0f\tchains down %.0f\n",
		v.Delivered, v.Undone, v.Behind, v.Streams, v.ChainsDown)
	fmt.Fprintf(t, "inboxes")
	for _, c := range v.Inboxes {
		fmt.Fprintf(t, "\t%s %.0f", c.State, c.N)
	}
	fmt.Fprintf(t, "\nfor you\treported posts %.0f\tcomplaints overdue %.0f\n", v.Reported, v.Overdue)
	t.Flush()
	b.WriteByte('\n')
	t = newTable(&b)
	fmt.Fprintln(t, "operation\t/s\tfailed/s\tmedian\t99 %\tbusy")
	for _, o := range v.Slow {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%s\t%s\t%.1f %%\n", o.Name, o.Rate, o.Failed, took(o.Median), took(o.P99), o.Busy*100)
	}
	if len(v.Slow) == 0 {
		fmt.Fprintln(t, "none since the last look")
	}
	fmt.Fprintln(t, "\njob\twaiting\tgiven up\t/s")
	for _, j := range v.Jobs[:min(len(v.Jobs), 8)] {
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.1f\n", j.Kind, j.Waiting, j.Dead, j.Rate)
	}
	t.Flush()
	return b.String()
}
