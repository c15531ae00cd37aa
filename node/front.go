package node

import (
	"net/http"

	vm "github.com/VictoriaMetrics/metrics"

	"stoa/node/hall"
)

// A front limits the requests of each client network, before every door: the router
// counts a request before it does anything else for it. A write also counts against a
// lower limit, as soon as the door knows that it is a write.
type front struct {
	limits  *hall.Limits
	network func(*http.Request) string
	given   func(*http.Request) string // the id that a proxy gave to the request, "" for none
	refused *vm.Counter                // requests over the limit
}

// admit counts one request. The error is a *protocol.Error with the time to wait; the
// header of the answer states the limit (contract §1).
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

// handBack undoes admit for a request.
func (f *front) handBack(r *http.Request) { f.limits.Return(f.network(r)) }

// probed reports whether a path is for monitoring, which has no limit: a load balancer
// may be one network for all of its clients.
func probed(path string) bool { return path == "/healthz" || path == "/readyz" }
