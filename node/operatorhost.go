package node

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// operatorOnly admits only requests whose Host is one of the operator's address. The
// name of a page in the operator's browser may resolve to that address (DNS
// rebinding); then Host has the name of the page.
func (c Config) operatorOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Content-Type-Options"] = noSniff
		if !c.operatorHost(r.Host) {
			http.Error(w, "this address does not answer for that host; name it with --operator-hosts", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// operatorHost reports whether the operator's address answers for a Host field:
// for IP addresses, names of loopback, the host that it listens on, and the hosts of
// the setting.
func (c Config) operatorHost(field string) bool {
	host := field
	if h, _, err := net.SplitHostPort(field); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	own, _, _ := net.SplitHostPort(c.OperatorListen)
	same := func(name string) bool { return strings.EqualFold(name, host) }
	return host != "" && (host == "localhost" || strings.HasSuffix(host, ".localhost") || same(own) || slices.ContainsFunc(c.OperatorHosts, same))
}
