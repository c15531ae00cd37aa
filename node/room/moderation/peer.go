package moderation

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// FollowArgs are the arguments of a follow job. Each attempt enqueues a new job.
type FollowArgs struct {
	URL   string    `json:"url"`
	Since time.Time `json:"since"`
	Tries int       `json:"tries,omitempty"` // failed attempts so far
}

// SetPolicy sets how a host and its subdomains are treated.
func (m *Moderation) SetPolicy(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PolicyChange) (protocol.None, error) {
	host, policy := strings.TrimSuffix(strings.ToLower(in.Host), "."), storage.Policy(in.Policy)
	if in.Policy == "none" {
		policy = ""
	}
	if !protocol.IsHost(host) && host != storage.AllHosts {
		return protocol.None{}, protocol.Errorf(protocol.InvalidRequest, "%q is not a host such as n1.example, nor * for all", host)
	}
	if host == storage.AllHosts && (policy == storage.PolicyAllow || policy == storage.PolicyTrusted) {
		return protocol.None{}, protocol.Errorf(protocol.InvalidRequest, "all hosts can be rejected or silenced; none is what admits them")
	}
	if policy == storage.PolicyReject && OwnHost(m.Base, host) {
		return protocol.None{}, protocol.Errorf(protocol.InvalidRequest, "%s is this node, or a domain that it is in", host)
	}
	if err := tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: host, Policy: policy, Note: in.Note}); err != nil {
		return protocol.None{}, err
	}
	now, err := tx.Peers().PolicyFor(ctx, host)
	if err != nil {
		return protocol.None{}, err
	}
	switch {
	case now != storage.PolicyReject && now != storage.PolicySilence:
		if err := m.showHeld(ctx, tx); err != nil {
			return protocol.None{}, err
		}
	case host != storage.AllHosts: // what is known of others stays until their nodes tell it again
		if err := errors.Join(tx.RemoteAgents().DropUnder(ctx, host), tx.Reactions().DropOf(ctx, protocol.BlockHost, host)); err != nil {
			return protocol.None{}, err
		}
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "peer policy", host, string(policy)+" "+in.Note)
}

// mostShown is how many held posts, and of how many hosts, are shown when hosts are admitted.
const mostShown = 1000

// showHeld shows the posts that were hidden only because their host was silenced, of every host that is not silenced any more.
func (m *Moderation) showHeld(ctx context.Context, tx *storage.Tx) error {
	host, left := "", mostShown
	for range mostShown {
		var err error
		if host, err = tx.Posts().HeldHost(ctx, host); errors.Is(err, storage.ErrNotFound) || left <= 0 {
			return nil
		}
		if err != nil {
			return err
		}
		policy, err := tx.Peers().PolicyFor(ctx, host)
		if err != nil {
			return err
		}
		if policy == storage.PolicyReject || policy == storage.PolicySilence {
			continue
		}
		shown, err := m.showHeldOf(ctx, tx, host, left)
		if err != nil {
			return err
		}
		left -= shown
	}
	return nil
}

// showHeldOf shows the newest held posts of a host, and returns how many.
func (m *Moderation) showHeldOf(ctx context.Context, tx *storage.Tx, host string, most int) (int, error) {
	ids, err := tx.Posts().Held(ctx, host, most)
	for _, id := range ids {
		p, err := find(ctx, tx, id)
		if err != nil {
			return 0, err
		}
		if err := tx.Posts().SetState(ctx, id, protocol.Visible, ""); err != nil {
			return 0, err
		}
		if err := m.Distribute(ctx, tx, p, storage.LogRestore); err != nil {
			return 0, err
		}
	}
	return len(ids), err
}

// Peers lists the nodes that are followed, delivered to, or have a policy.
func (m *Moderation) Peers(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.PeersQuery) (protocol.PeersView, error) {
	v := protocol.PeersView{Following: []protocol.Followed{}, Delivering: []protocol.Delivering{}, Policies: []protocol.PeerPolicy{},
		Reports: []protocol.LogReport{}, Untrusted: true}
	var err error
	if _, v.Head, err = tx.Logs().Head(ctx, protocol.BoardID(m.Base)); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return v, err
	}
	if err := readFollowing(ctx, tx, &v); err != nil {
		return v, err
	}
	reports, err := tx.Logs().Reports(ctx)
	if err != nil {
		return v, err
	}
	for _, r := range reports {
		v.Reports = append(v.Reports, protocol.LogReport{Host: r.Board, Conflict: ConflictOf(r)})
	}
	outlets, err := tx.Outlets().List(ctx, protocol.BoardID(m.Base), in.Limit, in.After)
	if err != nil {
		return v, err
	}
	v.Next = outlets.Next
	for _, o := range outlets.Items {
		d := protocol.Delivering{Inbox: o.Inbox, State: string(o.State), Seq: o.Cursor, Behind: max(0, v.Head-o.Cursor), Attempts: o.Failures,
			LastError: o.LastError, LastAt: known(o.LastOK), Stoa: o.Stoa}
		if o.State != storage.OutletActive {
			d.NextAt = known(o.NextAt)
		}
		v.Delivering = append(v.Delivering, d)
	}
	policies, err := tx.Peers().ListPolicies(ctx)
	for _, p := range policies {
		v.Policies = append(v.Policies, protocol.PeerPolicy{Host: p.Host, Policy: string(p.Policy), Note: p.Note})
	}
	return v, err
}

// readFollowing adds the boards that are followed, or are to be.
func readFollowing(ctx context.Context, tx *storage.Tx, v *protocol.PeersView) error {
	follows, err := tx.Jobs().Named(ctx, storage.FollowJob)
	if err != nil {
		return err
	}
	for _, j := range follows {
		var args FollowArgs
		if err := json.Unmarshal(j.Args, &args); err != nil {
			return err
		}
		f := protocol.Followed{Address: args.URL, State: "pending", Attempts: args.Tries, LastError: j.LastError, NextAt: &j.RunAt}
		if j.State == storage.JobDead {
			f.State, f.NextAt = "failed", nil
		}
		v.Following = append(v.Following, f)
	}
	subscriptions, err := tx.Subscriptions().List(ctx)
	if err != nil {
		return err
	}
	conflicts, err := tx.Subscriptions().ListConflicts(ctx)
	if err != nil {
		return err
	}
	at := map[string]*protocol.LogConflict{}
	for _, c := range conflicts {
		shown := ConflictOf(c)
		at[c.Board] = &shown
	}
	for _, s := range subscriptions {
		f := protocol.Followed{Address: s.Board, State: string(s.State), Seq: s.LastSeq, Behind: max(0, s.Head-s.LastSeq), Attempts: s.Failures,
			LastError: s.LastError, CheckedAt: known(s.CheckedAt), Conflict: at[s.Board]}
		if s.State == storage.SubscriptionAccepted && !s.NextAt.IsZero() {
			f.NextAt = &s.NextAt
		}
		v.Following = append(v.Following, f)
	}
	return nil
}

// ConflictOf returns a conflict as operators see it.
func ConflictOf(c storage.Conflict) protocol.LogConflict {
	return protocol.LogConflict{Kind: string(c.Kind), Epoch: c.Epoch, Seq: c.Seq, Ours: c.Ours, Theirs: c.Theirs, At: c.At}
}

// known returns a time that was stored, nil for none.
func known(t time.Time) *time.Time {
	if t.UnixMilli() <= 0 {
		return nil
	}
	return &t
}
