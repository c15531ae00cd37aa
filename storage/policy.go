package storage

import (
	"context"
	"strings"
	"time"

	"stoa/protocol"
)

// A Policy is how a host and the hosts below it are treated.
type Policy string

const (
	PolicyReject  Policy = "reject"  // nothing is accepted or fetched
	PolicySilence Policy = "silence" // stored hidden, and kept off the lists
	PolicyAllow   Policy = "allow"   // as without a policy, whatever the one for all hosts is
	PolicyTrusted Policy = "trusted" // its reports count
)

// AllHosts is the host whose policy is that of every host without one, but for those whose boards are followed.
const AllHosts = "*"

// HeldByPolicy is the reason of a post that was stored hidden because its host is silenced.
const HeldByPolicy = "held by the policy for its host"

// A HostPolicy is the operator's policy for a host.
type HostPolicy struct {
	Host   string // lower case
	Policy Policy // "" none
	Note   string
}

var policyTable = tableOf[HostPolicy]("host_policy")

// Peers reads and writes what is known of other servers: their policies, their
// actors and keys.
type Peers struct{ tx *Tx }

func (tx *Tx) Peers() Peers { return Peers{tx} }

// SetPolicy sets the policy of a host; an empty policy removes it.
func (ps Peers) SetPolicy(ctx context.Context, p HostPolicy) error {
	if p.Policy == "" {
		_, err := ps.tx.write(ctx, `DELETE FROM host_policy WHERE host = ?`, p.Host)
		return err
	}
	return policyTable.put(ctx, ps.tx, &p, "host")
}

// PolicyFor returns the policy in force for a host, with or without a port: PolicyReject
// when an active block matches the host or a domain above it, otherwise the policy of its
// longest domain suffix, or of all hosts; "" if there is none.
func (ps Peers) PolicyFor(ctx context.Context, host string) (Policy, error) {
	text, args := policyQuery(host, ps.tx.Now)
	found, err := list[HostPolicy](ctx, ps.tx, text, args...)
	if err != nil || len(found) == 0 {
		return "", err
	}
	nearest := found[0]
	for _, p := range found {
		switch {
		case p.Host == "":
			return PolicyReject, nil // a block
		case len(p.Host) > len(nearest.Host):
			nearest = p
		}
	}
	if nearest.Host != AllHosts {
		return nearest.Policy, nil
	}
	followed, err := ps.tx.exists(ctx, hostFollowed, host)
	if followed {
		return PolicyAllow, err
	}
	return nearest.Policy, err
}

// policyQuery finds the policies of a host and the domains above it, of the longest of which the policy is that of the host, and
// one of no host when it is blocked.
func policyQuery(host string, now time.Time) (text string, args []any) {
	names := suffixes(host)
	blocks, args := activeBlock(now, BlockedAs{protocol.BlockHost: names})
	if blocks == "" { // of ""
		blocks = `FALSE`
	}
	names = append(names, AllHosts)
	return `SELECT '' AS host, '` + string(PolicyReject) + `' AS policy, '' AS note FROM block WHERE ` + blocks +
		` UNION ALL SELECT host, policy, note FROM host_policy WHERE host IN (` + marks(len(names)) + `)`, append(args, toAny(names)...)
}

const hostFollowed = `SELECT 1 FROM subscription WHERE host = ? LIMIT 1`

// Refused reports whether the operator refuses a host: by an active block or by the
// reject policy.
func (ps Peers) Refused(ctx context.Context, host string) (bool, error) {
	p, err := ps.PolicyFor(ctx, host)
	return p == PolicyReject, err
}

// maxLabels limits the labels of a host that are considered (RFC 1035 §2.3.4 allows
// 127).
const maxLabels = 127

// suffixes are the host as given, without its port, and each domain above it.
func suffixes(host string) []string {
	host = strings.ToLower(host)
	all := []string{host}
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
		all = append(all, host)
	}
	if strings.HasPrefix(host, "[") {
		return all
	}
	for range maxLabels {
		_, rest, ok := strings.Cut(host, ".")
		if !ok {
			break
		}
		all, host = append(all, rest), rest
	}
	return all
}

// ListPolicies returns every policy, by host.
func (ps Peers) ListPolicies(ctx context.Context) ([]HostPolicy, error) {
	return list[HostPolicy](ctx, ps.tx, policyTable.from+`ORDER BY host`)
}

// SetScheme stores the signature scheme of a host.
func (ps Peers) SetScheme(ctx context.Context, host, scheme string) error {
	return ps.tx.exec(ctx, `INSERT INTO host_scheme (host, scheme, at) VALUES (?, ?, ?)
		ON CONFLICT (host) DO UPDATE SET scheme = EXCLUDED.scheme, at = EXCLUDED.at`, host, scheme, millis(ps.tx.Now))
}

// Scheme returns the stored signature scheme, "" if there is none.
func (ps Peers) Scheme(ctx context.Context, host string) (string, error) {
	return orZero(find[string](ctx, ps.tx, `SELECT scheme FROM host_scheme WHERE host = ?`, host))
}

// PruneSchemes deletes what was stored about hosts before a time, at most a
// thousand per call, and returns how many: it is found out again.
func (ps Peers) PruneSchemes(ctx context.Context, before time.Time) (int, error) {
	return ps.tx.deleteSome(ctx, "host_scheme", "host", `at < ? ORDER BY at LIMIT 1000`, millis(before))
}

const postsHeld = `SELECT id FROM post WHERE node = ? AND state = 'hidden' AND reason = '` + HeldByPolicy + `' ORDER BY seq DESC LIMIT ?`

const hostHeld = `SELECT node FROM post WHERE node > ? AND state = 'hidden' AND reason = '` + HeldByPolicy + `' ORDER BY node LIMIT 1`

// HeldHost returns the first host after a host of which posts are held; ErrNotFound without one.
func (ps Posts) HeldHost(ctx context.Context, after string) (string, error) {
	return find[string](ctx, ps.tx, hostHeld, after)
}

// Held returns the ids of posts of a host that are hidden because of its policy alone, newest first.
func (ps Posts) Held(ctx context.Context, host string, limit int) ([]string, error) {
	return list[string](ctx, ps.tx, postsHeld, host, limit)
}
