package doctor

import (
	"context"
	"crypto/hmac"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// madeUp is an address that no visitor has (RFC 5737), which a proxy must not pass on as that of one.
const madeUp = "192.0.2.1"

// query is one that a proxy must not rewrite.
const query = "?a=%20b&a=1"

// address makes a request to the public address, as a visitor would, and looks at the certificate, and at what reached the node.
func (d *Doctor) address(ctx context.Context, f *found) []protocol.Check {
	unseen := func(why string, names ...string) (all []protocol.Check) {
		for _, name := range names {
			all = append(all, protocol.Unseen(name, why))
		}
		return all
	}
	if d.Secret == nil {
		return unseen("the database is not open", "address", "host", "forwarded")
	}
	mark := newMark(d.Secret, d.now())
	sent := Path + mark + query
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Base+sent, nil)
	if err != nil {
		return []protocol.Check{protocol.Found("address-silent", err.Error())}
	}
	r.Header.Set("X-Forwarded-For", madeUp)
	res, err := client(d.own()).Do(r)
	if invalid(err) {
		return append(unseen("the certificate is not valid", "address", "host", "forwarded"),
			protocol.Found("certificate-invalid", cause(err)+d.orderFailed(ctx)))
	}
	if err != nil {
		return append(unseen("the public address does not answer", "host", "forwarded"), protocol.Found("address-silent", d.Base+": "+cause(err)))
	}
	defer res.Body.Close()
	all := d.certificate(ctx, res)
	var p page
	err = json.NewDecoder(res.Body).Decode(&p)
	if err != nil || res.StatusCode != http.StatusOK || !hmac.Equal(p.MAC, mac(d.Secret, "answer", []byte(mark))) {
		what := fmt.Sprintf("%s answers with status %d", d.Base, res.StatusCode)
		if res.StatusCode >= http.StatusBadGateway && res.StatusCode <= http.StatusGatewayTimeout { // a proxy without a node
			return append(append(all, unseen("the node does not answer", "host", "forwarded")...), protocol.Found("address-silent", what))
		}
		return append(append(all, unseen("something else answers", "host", "forwarded")...), protocol.Found("address-other", what))
	}
	f.page = &p
	all = append(all, protocol.Passed("address", "the node answers at "+d.Base))
	return append(all, d.passedOn(&p, sent), d.forwarded(&p))
}

// certificate looks at how long the certificate of an answer is valid: it is to be renewed before the last sixth of its life, and a week
// before its end.
func (d *Doctor) certificate(ctx context.Context, res *http.Response) []protocol.Check {
	if res.TLS == nil || len(res.TLS.PeerCertificates) == 0 {
		return []protocol.Check{protocol.Unseen("certificate", "the public address is without TLS")}
	}
	c := res.TLS.PeerCertificates[0]
	left := c.NotAfter.Sub(d.now())
	seen := fmt.Sprintf("valid until %s (%s), of %s", c.NotAfter.UTC().Format(time.DateOnly), days(left), issuer(c))
	if left < min(7*day, c.NotAfter.Sub(c.NotBefore)/6) {
		return []protocol.Check{protocol.Found("certificate-expires", seen+d.orderFailed(ctx))}
	}
	return []protocol.Check{protocol.Passed("certificate", seen)}
}

// orderFailed says why the node last got no certificate, where it gets one itself.
func (d *Doctor) orderFailed(ctx context.Context) string {
	var row storage.Certificate
	err := d.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		row, err = tx.Certificates().ByName(ctx, d.Names[0])
		return err
	})
	if err != nil || row.LastError == "" {
		return ""
	}
	return "; the last order failed: " + row.LastError
}

func issuer(c *x509.Certificate) string {
	if len(c.Issuer.Organization) > 0 {
		return c.Issuer.Organization[0]
	}
	return c.Issuer.CommonName
}

// passedOn compares host and path of a request with what reached the node.
func (d *Doctor) passedOn(p *page, sent string) protocol.Check {
	want := host(d.Base)
	switch {
	case !strings.EqualFold(p.Host, want):
		return protocol.Found("host-changed", fmt.Sprintf("sent Host: %s; the node got %q", want, p.Host))
	case p.URI != sent:
		return protocol.Found("host-changed", fmt.Sprintf("sent %s…%s; the node got %q", Path, query, shortened(p.URI)))
	}
	return protocol.Passed("host", "Host: "+p.Host+", and the path as it was sent")
}

// shortened is an address without its mark.
func shortened(uri string) string {
	before, rest, _ := strings.Cut(uri, Path)
	if len(rest) > 20 {
		rest = "…" + rest[len(rest)-20:]
	}
	return before + Path + rest
}

// forwarded looks at what became of an address that the request made up.
func (d *Doctor) forwarded(p *page) protocol.Check {
	var hops []string
	for _, hop := range strings.Split(strings.Join(p.Forwarded, ","), ",") {
		if hop = strings.TrimSpace(hop); hop != "" {
			hops = append(hops, hop)
		}
	}
	seen := fmt.Sprintf("from %s, X-Forwarded-For: %s", p.Remote, protocol.Clip(strings.Join(hops, ", "), 200))
	alone := slices.Equal(hops, []string{madeUp})
	behind := !d.TLS && strings.HasPrefix(d.Base, "https:") || len(hops) > 0 && !alone // there is a proxy
	switch {
	case !behind:
		return protocol.Passed("forwarded", "no proxy; visitors connect to the node, this one from "+p.Remote)
	case len(hops) == 0:
		return protocol.Found("forwarded-missing", "from "+p.Remote+", without X-Forwarded-For")
	case alone && p.Trusted:
		return protocol.Found("forwarded-passed", seen)
	case !p.Trusted:
		return protocol.Found("forwarded-untrusted", seen)
	}
	return protocol.Passed("forwarded", seen)
}

// day is for times that are said in days.
const day = 24 * time.Hour

// days is a time in days or hours, and whether it is over.
func days(left time.Duration) string {
	switch {
	case left < 0:
		return "over"
	case left < 2*day:
		return fmt.Sprintf("%d hours", left/time.Hour)
	}
	return fmt.Sprintf("%d days", left/day)
}
