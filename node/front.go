package node

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"stoa/node/dispatch"
)

// A front is the bound of client networks before every door: the router takes
// one request of a network's bound before anything else is done for the request.
// What changes something takes one more of a narrower bound, where the door knows
// that it does.
type front struct {
	limits  *dispatch.Limits
	network func(*http.Request) string
	refused prometheus.Counter // requests over the bound
}

// admit takes one request. The error is *protocol.Error with the time to wait;
// the fields of the answer say what the bound is (contract §1).
func (f *front) admit(head http.Header, r *http.Request) error {
	if probed(r.URL.Path) {
		return nil
	}
	network := f.network(r)
	err := f.limits.Request(network)
	if err != nil {
		f.refused.Inc()
		f.limits.Fields(head, network, true)
	}
	return err
}

// handBack returns to a client network what admit took for a request.
func (f *front) handBack(r *http.Request) { f.limits.Return(f.network(r)) }

// probed reports a path for those who watch the node: a load balancer may be one
// network for all of its clients.
func probed(path string) bool { return path == "/healthz" || path == "/readyz" }
