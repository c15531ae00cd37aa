package storage

import (
	"context"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
)

// A Probe is a target that profiles list and that either answers or does not.
type Probe struct {
	Target     string // an address, or for a chain identity "<identity> <thumbprint>"
	Kind       ProbeKind
	Host       string // host[:port] of an address; the chain, eip155:<chainId>, of an identity
	Domain     string // registrable domain of the host
	AskedAt    time.Time
	AnsweredAt time.Time
	Failures   int // since it last answered
	Alive      protocol.Liveness
	Outcome    string // of the last attempt, one word
}

// A ProbeKind is how a target is probed.
type ProbeKind string

const (
	ProbeHTTP  ProbeKind = "http"
	ProbeChain ProbeKind = "chain" // reports verification, not liveness
)

// Sources of a profile's probes; each is replaced separately.
const (
	FromProfile  = "profile"
	FromMerchant = "merchant"
)

const (
	spokeFor   = 7 * 24 * time.Hour // how long an agent counts as alive after a sighting
	probeSoon  = time.Minute        // within which a new target is probed
	maxTargets = 32                 // of a source
)

// profileProbes are the targets that a profile lists: its capabilities' endpoints
// and its chain identity.
func profileProbes(p *StoredProfile) []string {
	var targets []string
	for _, c := range p.Draft.Capabilities {
		targets = append(targets, c.Endpoint)
	}
	if p.ERC8004 != "" && p.KeyHash != "" {
		targets = append(targets, p.ERC8004+" "+p.KeyHash)
	}
	return targets
}

// Probes reads and writes the targets that are probed, and the sightings of agents.
type Probes struct{ tx *Tx }

func (tx *Tx) Probes() Probes { return Probes{tx} }

// put sets the targets that one source of a profile lists. New targets are
// probed soon; targets that are no longer listed are not probed again.
func (ps Probes) put(ctx context.Context, handle, source string, targets []string) error {
	changed, err := ps.replace(ctx, handle, source, targets)
	if err != nil || !changed {
		return err
	}
	return ps.judgeAgent(ctx, handle, time.Time{})
}

func (ps Probes) replace(ctx context.Context, handle, source string, targets []string) (changed bool, err error) {
	old, err := list[string](ctx, ps.tx, `SELECT target FROM probe_of WHERE handle = ? AND source = ?`, handle, source)
	if err != nil {
		return false, err
	}
	var fresh []Probe
	for _, target := range targets[:min(len(targets), maxTargets)] {
		if p, ok := newProbe(target); ok && !slices.ContainsFunc(fresh, func(q Probe) bool { return q.Target == p.Target }) {
			fresh = append(fresh, p)
		}
	}
	for _, target := range old {
		if slices.ContainsFunc(fresh, func(p Probe) bool { return p.Target == target }) {
			continue
		}
		changed = true
		if _, err := ps.tx.write(ctx, `DELETE FROM probe_of WHERE handle = ? AND source = ? AND target = ?`, handle, source, target); err != nil {
			return false, err
		}
	}
	for _, p := range fresh {
		if slices.Contains(old, p.Target) {
			continue
		}
		changed = true
		due := millis(ps.tx.Now) + rand.Int64N(probeSoon.Milliseconds())
		if _, err := ps.tx.write(ctx, `INSERT INTO probe (target, kind, host, domain, due_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			p.Target, string(p.Kind), p.Host, p.Domain, due); err != nil {
			return false, err
		}
		if _, err := ps.tx.write(ctx, `INSERT INTO probe_of (handle, source, target) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, handle, source, p.Target); err != nil {
			return false, err
		}
	}
	return changed, nil
}

// newProbe parses a target; false if it is never probed.
func newProbe(target string) (Probe, bool) {
	if identity, _, ok := strings.Cut(target, " "); ok {
		parts := strings.SplitN(identity, ":", 3)
		if len(parts) < 3 {
			return Probe{}, false
		}
		chain := parts[0] + ":" + parts[1]
		return Probe{Target: target, Kind: ProbeChain, Host: chain, Domain: chain}, true
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
		return Probe{}, false
	}
	u.Fragment, u.RawFragment = "", ""
	u.Host = strings.ToLower(u.Host)
	return Probe{Target: u.String(), Kind: ProbeHTTP, Host: u.Host, Domain: netx.Registrable(u.Hostname())}, true
}

var probeTable = tableOf[Probe]("probe")

// A ProbeClaim is how many probes to claim.
type ProbeClaim struct {
	Most      int           // in total
	PerDomain int           // of one registrable domain within the hour
	Lease     time.Duration // until the probe is due again if it is not settled
}

var (
	dueProbes      = probeTable.from + `WHERE due_at <= ? ORDER BY due_at LIMIT ?`
	askedOfDomain  = `SELECT count(*) FROM (SELECT 1 AS one FROM probe WHERE domain = ? AND asked_at > ? LIMIT ?) r`
	probesOfDomain = `SELECT count(*) FROM (SELECT 1 AS one FROM probe WHERE domain = ? LIMIT ?) r`
	nextProbe      = `SELECT due_at FROM probe WHERE due_at > 0 ORDER BY due_at LIMIT 1`
	probesWindow   = time.Hour
	probesLookedAt = 8 // times Most
	longestTurn    = 7 * 24 * time.Hour
)

// Claim claims due probes, at most one per host, and records that they are probed
// now. Those over the limit of a domain are postponed, and targets that no
// profile lists are deleted once they no longer count.
func (ps Probes) Claim(ctx context.Context, c ProbeClaim) ([]Probe, error) {
	due, err := list[Probe](ctx, ps.tx, dueProbes, millis(ps.tx.Now), c.Most*probesLookedAt)
	if err != nil {
		return nil, err
	}
	claimed, hosts, turns := []Probe{}, map[string]int{}, map[string]time.Duration{}
	for _, p := range due {
		if len(claimed) == c.Most {
			break
		}
		if hosts[p.Host]++; hosts[p.Host] > 1 && p.Kind == ProbeHTTP { // the next a moment later
			var turn time.Duration
			if turn, err = ps.turn(ctx, c, p.Domain, turns); err == nil {
				err = ps.postpone(ctx, p, time.Duration(hosts[p.Host])*time.Minute+turn)
			}
		} else {
			claimed, err = ps.claimOne(ctx, c, p, claimed, turns)
		}
		if err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

// turn is by how much to postpone an address of a domain: zero, or if the domain
// has more addresses than may be probed within the hour, a random part of the time
// that all of them take. Otherwise a thousand addresses would be due again and
// again, and delay the others. turns caches the domains of this claim.
func (ps Probes) turn(ctx context.Context, c ProbeClaim, domain string, turns map[string]time.Duration) (time.Duration, error) {
	all, known := turns[domain]
	if !known {
		var n int
		most := int(longestTurn/probesWindow) * c.PerDomain
		if err := ps.tx.row(ctx, probesOfDomain, domain, most).Scan(&n); err != nil {
			return 0, err
		}
		all = time.Duration(n) * probesWindow / time.Duration(c.PerDomain)
		turns[domain] = all
	}
	if all <= probesWindow {
		return 0, nil
	}
	return time.Duration(rand.Int64N(int64(all))), nil
}

func (ps Probes) claimOne(ctx context.Context, c ProbeClaim, p Probe, claimed []Probe, turns map[string]time.Duration) ([]Probe, error) {
	var listed, asked int
	if err := ps.tx.row(ctx, `SELECT count(*) FROM (SELECT 1 AS one FROM probe_of WHERE target = ? LIMIT 1) r`, p.Target).Scan(&listed); err != nil {
		return claimed, err
	}
	if listed == 0 {
		if ps.tx.Now.Sub(p.AskedAt) < probesWindow { // it counts for its domain
			return claimed, ps.postpone(ctx, p, probesWindow)
		}
		_, err := ps.tx.write(ctx, `DELETE FROM probe WHERE target = ?`, p.Target)
		return claimed, err
	}
	if p.Kind == ProbeHTTP {
		if err := ps.tx.row(ctx, askedOfDomain, p.Domain, millis(ps.tx.Now.Add(-probesWindow)), c.PerDomain).Scan(&asked); err != nil {
			return claimed, err
		}
		if asked >= c.PerDomain {
			turn, err := ps.turn(ctx, c, p.Domain, turns)
			if err != nil {
				return claimed, err
			}
			return claimed, ps.postpone(ctx, p, probesWindow/2+time.Duration(rand.Int64N(int64(probesWindow)))+turn)
		}
	}
	_, err := ps.tx.write(ctx, `UPDATE probe SET asked_at = ?, due_at = ? WHERE target = ?`, millis(ps.tx.Now), millis(ps.tx.Now.Add(c.Lease)), p.Target)
	return append(claimed, p), err
}

func (ps Probes) postpone(ctx context.Context, p Probe, by time.Duration) error {
	return ps.tx.exec(ctx, `UPDATE probe SET due_at = ? WHERE target = ?`, millis(ps.tx.Now.Add(by)), p.Target)
}

// Handles returns handles that list a target, in order, those after a given one.
func (ps Probes) Handles(ctx context.Context, target, after string, limit int) ([]string, error) {
	return list[string](ctx, ps.tx, `SELECT DISTINCT handle FROM probe_of WHERE target = ? AND handle > ? ORDER BY handle LIMIT ?`, target, after, limit)
}

// Settle stores the outcome of a claimed probe and when it is due next.
func (ps Probes) Settle(ctx context.Context, p Probe, due time.Time) error {
	return ps.tx.exec(ctx, `UPDATE probe SET answered_at = ?, failures = ?, alive = ?, outcome = ?, due_at = ? WHERE target = ?`,
		millis(p.AnsweredAt), p.Failures, string(p.Alive), p.Outcome, millis(due), p.Target)
}

var probesAfter = probeTable.from + `WHERE target > ? ORDER BY target LIMIT ?`

// Rest deletes the verdicts of probes, in the order of targets after a given one:
// on a node that no longer probes, old verdicts have no meaning. It returns the
// targets whose verdict was deleted, and the last target read, "" at the end. The
// caller judges their agents and then calls [Probes.EndRest]; until then they are
// returned again.
func (ps Probes) Rest(ctx context.Context, after string, limit int) (rested []string, last string, err error) {
	some, err := list[Probe](ctx, ps.tx, probesAfter, after, limit)
	if err != nil {
		return nil, "", err
	}
	for _, p := range some {
		if p.Alive == protocol.LivenessUnknown && p.Outcome != resting {
			continue
		}
		if _, err := ps.tx.write(ctx,
			`UPDATE probe SET alive = ?, outcome = ?, failures = 0 WHERE target = ?`, string(protocol.LivenessUnknown), resting, p.Target,
		); err != nil {
			return nil, "", err
		}
		rested = append(rested, p.Target)
	}
	if len(some) == limit {
		last = some[limit-1].Target
	}
	return rested, last, nil
}

// resting is the outcome of a probe whose verdict was deleted and whose agents are
// not judged yet.
const resting = "resting"

// EndRest ends the rest of targets that Rest returned and whose agents are
// judged.
func (ps Probes) EndRest(ctx context.Context, targets []string) error {
	for _, target := range targets {
		if _, err := ps.tx.write(ctx, `UPDATE probe SET outcome = '' WHERE target = ?`, target); err != nil {
			return err
		}
	}
	return nil
}

// JudgeAgents sets the liveness of agents from their probes and sightings.
func (ps Probes) JudgeAgents(ctx context.Context, handles []string) error {
	for _, handle := range handles {
		if err := ps.judgeAgent(ctx, handle, time.Time{}); err != nil && err != ErrNotFound {
			return err
		}
	}
	return nil
}

// Next is when the next probe is due; the zero time when there is none.
func (ps Probes) Next(ctx context.Context) (time.Time, error) {
	return orZero(find[time.Time](ctx, ps.tx, nextProbe))
}

// OfProfile returns the targets of a profile with their outcomes.
func (ps Probes) OfProfile(ctx context.Context, handle string) ([]Probe, error) {
	return list[Probe](ctx, ps.tx, `SELECT DISTINCT `+probeTable.columnsOf("p.")+`
		FROM probe_of o JOIN probe p ON p.target = o.target WHERE o.handle = ? ORDER BY p.target`, handle)
}

// judgeAgent sets whether an agent is alive: it is if it was sighted within the
// week or one of its probes answers; it is not if every probe failed; otherwise it
// is unknown. seen is the time of a sighting just now, or zero.
func (ps Probes) judgeAgent(ctx context.Context, handle string, seen time.Time) error {
	p, err := ps.tx.Profiles().where(ctx, "handle = ?", handle)
	if err != nil {
		return err
	}
	probes, err := ps.OfProfile(ctx, handle)
	if err != nil {
		return err
	}
	if seen.IsZero() {
		if seen, err = orZero(find[time.Time](ctx, ps.tx, `SELECT at FROM sighting WHERE handle = ?`, handle)); err != nil {
			return err
		}
	}
	alive, last := verdict(probes, seen, ps.tx.Now)
	if string(alive) == p.Alive && millis(last) <= p.LastSeenAt {
		return nil
	}
	return ps.tx.Profiles().SetLiveness(ctx, handle, alive, last)
}

func verdict(probes []Probe, seen, now time.Time) (alive protocol.Liveness, last time.Time) {
	alive, last = protocol.LivenessUnknown, seen
	dead, asked := 0, 0
	for _, p := range probes {
		if p.Kind != ProbeHTTP {
			continue
		}
		asked++
		if p.AnsweredAt.After(last) {
			last = p.AnsweredAt
		}
		switch p.Alive {
		case protocol.LivenessAlive:
			alive = protocol.LivenessAlive
		case protocol.LivenessDead:
			dead++
		}
	}
	switch {
	case !seen.IsZero() && now.Sub(seen) < spokeFor:
		alive = protocol.LivenessAlive
	case asked > 0 && dead == asked:
		alive = protocol.LivenessDead
	}
	return alive, last
}
