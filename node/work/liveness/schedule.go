package liveness

import (
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// An Outcome is the result of a probe.
type Outcome string

const (
	Answered    Outcome = "answered"    // something answered, with whatever status
	Missing     Outcome = "missing"     // 404 or 410; the chain has no such key
	Failing     Outcome = "failing"     // 5xx
	Unreachable Outcome = "unreachable" // no name, no connection, no answer in time
	Refused     Outcome = "refused"     // not a public address
	Disallowed  Outcome = "disallowed"  // robots.txt disallows it, or redirects to another domain
	Unasked     Outcome = "unasked"     // the node does not ask such addresses: another port, plain http
	Blocked     Outcome = "blocked"     // the operator has blocked the host
	Own         Outcome = "own"         // an address of this node
	NoChain     Outcome = "no-chain"    // no chain is configured
	Undecided   Outcome = "undecided"   // the chain cannot be read now
)

// Outcomes is every outcome, for the metrics.
var Outcomes = []Outcome{Answered, Missing, Failing, Unreachable, Refused, Disallowed, Unasked, Blocked, Own, NoChain, Undecided}

const (
	daily  = 24 * time.Hour
	weekly = 7 * daily
	soon   = time.Hour // after the first failure, because most failures are short
	wait   = 15 * time.Minute
)

// backoff returns the pause after a number of failures in a row, from 1.
func backoff(failures int) time.Duration {
	if failures <= 1 {
		return soon
	}
	return netx.Backoff(daily, weekly, failures-1)
}

// next returns a probe after it was asked, and when to ask again. One failed request is not enough
// to call a target dead that answered before; an answer of the chain is.
func next(p storage.Probe, o Outcome, now time.Time, jitter func(time.Duration) time.Duration) (storage.Probe, time.Time) {
	p.Outcome = string(o)
	var pause time.Duration
	switch o {
	case Answered:
		p.Alive, p.Failures, p.AnsweredAt, pause = protocol.LivenessAlive, 0, now, daily
	case Missing, Failing, Unreachable, Refused:
		p.Failures++
		if p.Failures > 1 || p.Alive != protocol.LivenessAlive || p.Kind == storage.ProbeChain {
			p.Alive = protocol.LivenessDead
		}
		pause = backoff(p.Failures)
	case Undecided:
		pause = wait
	case Own, Unasked:
		p.Alive, p.Failures, pause = protocol.LivenessUnknown, 0, weekly
	default: // Disallowed, Blocked, NoChain
		p.Alive, p.Failures, pause = protocol.LivenessUnknown, 0, daily
	}
	return p, now.Add(jitter(pause))
}

func cutTarget(target string) (identity, thumbprint string, ok bool) {
	return strings.Cut(target, " ")
}

// jitter spreads probes that would be due at the same time: it returns between five and seven
// sixths of d.
func jitter(d time.Duration) time.Duration { return netx.Spread(d, 1.0/6) }
