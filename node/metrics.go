package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	vm "github.com/VictoriaMetrics/metrics"

	"stoa/identity/erc8004"
	"stoa/node/hall"
	"stoa/node/room/feed"
	"stoa/node/room/operate"
	"stoa/node/work/liveness"
	"stoa/protocol"
	"stoa/storage"
)

// metrics are the counts of one node in the text format of Prometheus, filled by the observers of the hall,
// worker and federation. Labels come from small fixed sets only. docs/OPERATIONS.md says what each means.
type metrics struct {
	*vm.Set
	backlog operate.Backlog
	limited *vm.Counter
}

var (
	operationBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5} // seconds
	jobBuckets       = []float64{.001, .01, .1, 1, 10, 60}                                // the same
)

func newMetrics(db *storage.DB, version string, hub *feed.Hub) *metrics {
	vm.ExposeMetadata(true)
	m := &metrics{Set: vm.NewSet(), backlog: operate.Backlog{DB: db}}
	for _, outcome := range liveness.Outcomes {
		m.GetOrCreateCounter(series("stoa_probes_total", "outcome", string(outcome)))
	}
	m.limited = m.NewCounter("stoa_limited_requests_total")
	m.NewGauge("stoa_storage_waiting_writes", func() float64 { return float64(db.QueueLen()) })
	m.NewGauge(series("stoa_build_info", "engine", db.Engine(), "version", version), nil).Set(1)
	m.RegisterMetricsWriter(func(w io.Writer) {
		c, behind := hub.Counts(), 0.0
		if c.Behind {
			behind = 1
		}
		vm.WriteGaugeFloat64(w, "stoa_feed_streams", float64(c.Streams))
		vm.WriteGaugeFloat64(w, "stoa_feed_stream_behind", behind)
		vm.WriteCounterUint64(w, "stoa_feed_stream_wakes_total", c.Wakes)
		vm.WriteCounterUint64(w, "stoa_feed_stream_batches_total", c.Batches)
		vm.WriteCounterUint64(w, "stoa_feed_stream_events_total", c.Events)
		vm.WriteCounterUint64(w, "stoa_feed_streams_cut_total", c.Cut)
	})
	return m
}

// series is the name of a metric with its labels, given in pairs of name and value.
func series(name string, labels ...string) string {
	for i := 0; i < len(labels); i += 2 {
		name += [2]string{"{", ","}[min(i, 1)] + labels[i] + "=" + strconv.Quote(labels[i+1])
	}
	return name + "}"
}

// replicas adds, for each standby, whether it is up, how far it is behind, and how many reads it answered.
func (m *metrics) replicas(db *storage.DB) {
	m.RegisterMetricsWriter(func(w io.Writer) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		all, primary := db.Replicas(ctx)
		each := func(name, kind string, of func(r storage.ReplicaState) float64) {
			vm.WriteMetadataIfNeeded(w, name, kind)
			for _, r := range all {
				fmt.Fprintf(w, "%s %g\n", series(name, "host", r.Host), of(r))
			}
		}
		each("stoa_database_replica_up", "gauge", func(r storage.ReplicaState) float64 {
			if r.Up {
				return 1
			}
			return 0
		})
		each("stoa_database_replica_lag_bytes", "gauge", func(r storage.ReplicaState) float64 { return float64(r.Bytes) })
		each("stoa_database_replica_lag_seconds", "gauge", func(r storage.ReplicaState) float64 { return r.Lag.Seconds() })
		each("stoa_database_replica_behind_total", "counter", func(r storage.ReplicaState) float64 { return float64(r.Behind) })
		each("stoa_database_reads_total", "counter", func(r storage.ReplicaState) float64 { return float64(r.Reads) })
		fmt.Fprintf(w, "%s %d\n", series("stoa_database_reads_total", "host", "primary"), primary)
	})
}

// certificate adds for how many seconds the certificate of HTTPS is still valid; 0 for none.
func (m *metrics) certificate(c certifier) {
	m.NewGauge("stoa_certificate_expires_seconds", func() float64 {
		until, _ := c.State(context.Background())
		if until.IsZero() {
			return 0
		}
		return time.Until(until).Seconds()
	})
}

// chains adds, for each configured chain, a gauge that is 1 while its setting is right and enough endpoints answered the last time, the same
// for each endpoint, and how often endpoints gave different answers.
func (m *metrics) chains(reader *erc8004.Reader) {
	up := func(bad bool) float64 {
		if bad {
			return 0
		}
		return 1
	}
	for i, s := range reader.States() {
		id := strconv.FormatUint(s.Chain, 10)
		m.NewGauge(series("stoa_chain_up", "chain", id), func() float64 { return up(reader.States()[i].Err != nil) })
		for n := range s.Bad {
			m.NewGauge(series("stoa_chain_endpoint_up", "chain", id, "endpoint", strconv.Itoa(n+1)), func() float64 { return up(reader.States()[i].Bad[n]) })
		}
	}
	m.RegisterMetricsWriter(func(w io.Writer) {
		const name = "stoa_chain_disagreements_total"
		vm.WriteMetadataIfNeeded(w, name, "counter")
		for _, s := range reader.States() {
			fmt.Fprintf(w, "%s %d\n", series(name, "chain", strconv.FormatUint(s.Chain, 10)), s.Differed)
		}
	})
}

func (m *metrics) operation(o hall.Observation) {
	code := string(protocol.CodeOf(o.Err))
	if code == "" {
		code = "ok"
	}
	name := o.Op
	if protocol.Lookup(name) == nil {
		name = "unknown"
	}
	m.GetOrCreatePrometheusHistogramExt(series("stoa_operation_duration_seconds", "code", code, "door", o.Door, "operation", name),
		operationBuckets).Update(o.Duration.Seconds())
}

func (m *metrics) job(kind storage.JobKind, d time.Duration, err error) {
	m.GetOrCreatePrometheusHistogramExt(series("stoa_job_duration_seconds", "failed", strconv.FormatBool(err != nil), "kind", string(kind)),
		jobBuckets).Update(d.Seconds())
}

func (m *metrics) federated(event, _ string, err error) {
	m.GetOrCreateCounter(series("stoa_federation_events_total", "event", event, "failed", strconv.FormatBool(err != nil))).Inc()
}

func (m *metrics) probed(o liveness.Outcome) {
	m.GetOrCreateCounter(series("stoa_probes_total", "outcome", string(o))).Inc()
}

// ServeHTTP answers a scrape, with 500 where the database does not tell what waits.
func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	if err := m.backlog.Write(r.Context(), &b); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	m.WritePrometheus(&b)
	vm.WriteProcessMetrics(&b)
	vm.WriteFDMetrics(&b)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = b.WriteTo(w)
}

// operatorHandler serves the operator's address: metrics and profiles.
func (m *metrics) operatorHandler(health, ready http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m)
	mux.Handle("GET /healthz", health)
	mux.Handle("GET /readyz", ready)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
