package node

import (
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"stoa/identity/erc8004"
	"stoa/node/hall"
	"stoa/node/room/feed"
	"stoa/node/room/operate"
	"stoa/node/work/liveness"
	"stoa/protocol"
	"stoa/storage"
)

// metrics are the collectors of one node, filled by the observers of the hall,
// worker and federation. Labels come from small fixed sets only.
type metrics struct {
	registry   *prometheus.Registry
	operations *prometheus.HistogramVec
	jobs       *prometheus.HistogramVec
	federation *prometheus.CounterVec
	probes     *prometheus.CounterVec
	limited    prometheus.Counter
}

func newMetrics(db *storage.DB, version string, hub *feed.Hub) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stoa_operation_duration_seconds", Help: "Time an operation took, by operation, door and error code.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"operation", "door", "code"}),
		jobs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stoa_job_duration_seconds", Help: "Time a job took, by kind and outcome.",
			Buckets: []float64{.001, .01, .1, 1, 10, 60},
		}, []string{"kind", "failed"}),
		federation: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stoa_federation_events_total", Help: "Federation events, by event and outcome.",
		}, []string{"event", "failed"}),
	}
	m.probes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stoa_probes_total", Help: "Listed endpoints, sites and identities that were asked whether they answer, by outcome.",
	}, []string{"outcome"})
	for _, outcome := range liveness.Outcomes {
		m.probes.WithLabelValues(string(outcome))
	}
	m.limited = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "stoa_limited_requests_total", Help: "Requests refused at every door together, since their client network was over its bound.",
	})
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stoa_storage_waiting_writes", Help: "Writes waiting for the group commit.",
	}, func() float64 { return float64(db.QueueLen()) })
	m.registry.MustRegister(&operate.Backlog{DB: db})
	m.registry.MustRegister(streamMetrics(hub)...)
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "stoa_build_info", Help: "Always 1; the label says which version runs.", ConstLabels: prometheus.Labels{"version": version, "engine": db.Engine()},
	})
	build.Set(1)
	m.registry.MustRegister(m.operations, m.jobs, m.federation, m.probes, m.limited, waiting, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// streamMetrics are the counts of the hub of the feed's streams.
func streamMetrics(hub *feed.Hub) []prometheus.Collector {
	gauge := func(name, help string, value func(feed.Counts) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(hub.Counts()) })
	}
	counter := func(name, help string, value func(feed.Counts) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value(hub.Counts())) })
	}
	return []prometheus.Collector{
		gauge("stoa_feed_streams", "Open streams of the feed.", func(c feed.Counts) float64 { return float64(c.Streams) }),
		gauge("stoa_feed_stream_behind", "1 while more waits for the streams than a wake may give them, else 0.", func(c feed.Counts) float64 {
			if c.Behind {
				return 1
			}
			return 0
		}),
		counter("stoa_feed_stream_wakes_total", "Times that the waiting streams were woken.", func(c feed.Counts) uint64 { return c.Wakes }),
		counter("stoa_feed_stream_batches_total", "Batches of events that streams were given, each one write.", func(c feed.Counts) uint64 { return c.Batches }),
		counter("stoa_feed_stream_events_total", "Events that streams were given: items by streams.", func(c feed.Counts) uint64 { return c.Events }),
		counter("stoa_feed_streams_cut_total", "Streams that were cut since they did not keep up.", func(c feed.Counts) uint64 { return c.Cut }),
	}
}

// chainStates has one gauge per configured chain.
type chainStates struct{ reader *erc8004.Reader }

var chainUp = prometheus.NewDesc("stoa_chain_up", "1 while the chain's setting is right and an endpoint answered the last time, else 0.",
	[]string{"chain"}, nil)

// Describe implements prometheus.Collector.
func (chainStates) Describe(ch chan<- *prometheus.Desc) { ch <- chainUp }

// Collect implements prometheus.Collector.
func (c chainStates) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.reader.States() {
		up := 0.0
		if s.Err == nil {
			up = 1
		}
		ch <- prometheus.MustNewConstMetric(chainUp, prometheus.GaugeValue, up, strconv.FormatUint(s.Chain, 10))
	}
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
	m.operations.WithLabelValues(name, o.Door, code).Observe(o.Duration.Seconds())
}

func (m *metrics) job(kind storage.JobKind, d time.Duration, err error) {
	m.jobs.WithLabelValues(string(kind), strconv.FormatBool(err != nil)).Observe(d.Seconds())
}

func (m *metrics) federated(event, _ string, err error) {
	m.federation.WithLabelValues(event, strconv.FormatBool(err != nil)).Inc()
}

func (m *metrics) probed(o liveness.Outcome) { m.probes.WithLabelValues(string(o)).Inc() }

// operatorHandler serves the operator's address: metrics and profiles.
func (m *metrics) operatorHandler(health, ready http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /healthz", health)
	mux.Handle("GET /readyz", ready)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
