package federation

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/rate"
	"stoa/storage"
)

// A node may ask another one that it follows, or that follows it, whether its public address can be reached from there. The request is
// signed by the node's actor, and only the host of that actor is looked at, on port 443 and on 80: it is no scanner of ports for anyone.

const (
	reachPath    = "/ap/reach"
	reachTimeout = 5 * time.Second
	reachAtOnce  = 4 // looks for others, of this process
)

// reachRate is how often a domain may ask.
var reachRate = rate.Limit{Every: time.Minute, Burst: 3}

// serveReach looks at the public address of the node that asks.
func (f *Federation) serveReach(w http.ResponseWriter, r *http.Request) {
	sight, err := f.reachFor(r)
	if err != nil {
		f.problem(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	private(w.Header())
	json.NewEncoder(w).Encode(sight)
}

func (f *Federation) reachFor(r *http.Request) (s protocol.Sight, err error) {
	actor, err := f.readerOf(r)
	if err != nil {
		return s, err
	}
	u, err := f.parseID(actor)
	if err != nil || u.Path != "/ap/node" {
		return s, refuse(http.StatusForbidden, "sign as the actor of a node", err)
	}
	var peer bool
	err = f.c.DB.Read(r.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		peer, err = tx.Peers().Has(ctx, u.Host)
		return err
	})
	switch {
	case err != nil:
		return s, err
	case !peer || f.c.Reach == nil:
		return s, refuse(http.StatusForbidden, "this node looks for nodes that it follows or that follow it", nil)
	case !f.reaches.take(u.Host, 1, f.now()):
		return s, refuse(http.StatusTooManyRequests, "this node looked a short time ago", nil)
	}
	select {
	case f.reaching <- struct{}{}:
	default:
		return s, refuse(http.StatusServiceUnavailable, "this node looks for others; try again later", nil)
	}
	defer func() { <-f.reaching }()
	return f.sightOf(r.Context(), u), nil
}

// sightOf looks at the host of an actor.
func (f *Federation) sightOf(ctx context.Context, actor *url.URL) (s protocol.Sight) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	port := uint16(443)
	if n, err := strconv.ParseUint(actor.Port(), 10, 16); err == nil { // the client refuses other ports of public addresses
		port = uint16(n)
	}
	var wg sync.WaitGroup
	for _, look := range []struct {
		into    *string
		network string
		port    uint16
	}{{&s.IPv4, "tcp4", port}, {&s.IPv6, "tcp6", port}, {&s.Plain4, "tcp4", 80}, {&s.Plain6, "tcp6", 80}} {
		wg.Go(func() { *look.into = SightOf(f.c.Reach(ctx, look.network, actor.Hostname(), look.port)) })
	}
	wg.Go(func() {
		res, err := f.get(ctx, actor.String(), "", activity.MediaType, schemeEd25519)
		if s.Document = SightOf(err); err != nil {
			return
		}
		if res.StatusCode != http.StatusOK || !isActivity(res.Header.Get("Content-Type")) {
			s.Document = protocol.SightFailed
		}
		closeBody(res)
	})
	wg.Wait()
	return s
}

// SightOf is the word for why a connection or a request failed.
func SightOf(err error) string {
	if err == nil {
		return protocol.SightOK
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return protocol.SightCertificate
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return protocol.SightNone
	}
	if _, ok := errors.AsType[*net.AddrError](err); ok { // no address of the family
		return protocol.SightNone
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return protocol.SightRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		return protocol.SightUnreachable
	case errors.Is(err, context.DeadlineExceeded), ok && timeout.Timeout():
		return protocol.SightTimeout
	}
	return protocol.SightFailed
}

// keyHostSilent is the detail of the refusal of a request whose key could not be fetched: who asks cannot be reached.
const keyHostSilent = "the host of the key does not answer; try again later"

// AskReach asks the node at base how it sees this one.
func (f *Federation) AskReach(ctx context.Context, base string) (s protocol.Sight, err error) {
	u, err := f.parseID(base + reachPath)
	if err != nil {
		return s, err
	}
	if err := f.admits(ctx, u.Host); err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*reachTimeout)
	defer cancel()
	release, err := f.hosts.take(ctx, u.Host)
	if err != nil {
		return s, err
	}
	defer release()
	res, err := f.get(ctx, u.String(), "", "application/json", schemeEd25519)
	if err != nil {
		return s, err
	}
	defer closeBody(res)
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	switch {
	case err != nil:
		return s, err
	case res.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(body), keyHostSilent):
		return protocol.Sight{Document: protocol.SightTimeout}, nil
	case res.StatusCode != http.StatusOK:
		return s, fmt.Errorf("status %d", res.StatusCode)
	}
	return s, json.Unmarshal(body, &s)
}
