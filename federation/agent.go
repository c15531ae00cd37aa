package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"stoa/identity/integrity"
	"stoa/identity/strictjson"
	"stoa/protocol/activity"
	"stoa/storage"
)

// agentEntry is the activity of a log entry with the summary of an agent, as it was when it was told; nil when there is a newer
// one, or the agent is no longer listed.
func (f *Federation) agentEntry(e storage.LogEntry) ([]byte, error) {
	if e.Redacted || e.Activity == nil {
		return nil, nil
	}
	return integrity.Sign(e.Activity, f.c.Keys.Ed25519.Signer(), activity.ProofKey(f.site.Board()), e.At)
}

// serveSummary serves what this node says of an agent.
func (f *Federation) serveSummary(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		raw, err := tx.Profiles().Told(ctx, f.site.Board(), r.PathValue("handle"))
		if err != nil {
			return nil, err
		}
		var offer struct {
			Object activity.Object `json:"object"`
		}
		if err := json.Unmarshal(raw, &offer); err != nil {
			return nil, err
		}
		return activity.WithContext(offer.Object), nil
	})
}

// readAgent reads what the node of a followed board says of an agent of its own. Whether the agent has the chain identity that it
// claims is checked by this node, by the agent's statement.
func (f *Federation) readAgent(ctx context.Context, s *storage.Subscription, act *activity.Activity) (after, error) {
	var agent activity.Agent
	if strictjson.DecodeChecked(act.Object, &agent) != nil {
		return noEffect, nil
	}
	for _, id := range append([]string{string(agent.ID), string(agent.URL)}, agent.AttributedTo...) {
		if !f.sameOrigin(id, s.Board) {
			return nil, fmt.Errorf("%w: an agent of another origin than its board", errIdentity)
		}
	}
	host := hostOf(s.Board)
	if err := f.admits(ctx, host); err != nil {
		return nil, err
	}
	summary, author, err := agent.Read(host)
	if err != nil {
		return nil, err
	}
	digest, err := integrity.Digest(agent.Summary)
	if err != nil {
		return nil, fmt.Errorf("%w: stoa:summary: %w", activity.ErrShape, err)
	}
	v, err := integrity.Judge(ctx, integrity.Claim{
		ID: string(agent.ID), Kind: "agent", Title: summary.Profile.Name, Body: digest, Name: string(agent.Author.Name), Handle: *author.Handle,
		ERC8004: strings.ToLower(string(agent.Author.ERC8004)), Actor: agent.AttributedTo[0], Board: s.Board,
		Published: agent.Published.Time, Statement: present(agent.Statement),
	}, f.c.Authority)
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", agent.ID, err)
	}
	judged(&author, v)
	identity := ""
	if v.Verified {
		identity = v.ERC8004
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		policy, err := policyOf(ctx, tx, host)
		if err != nil || policy == storage.PolicySilence || policy == storage.PolicyReject {
			return err
		}
		if blocked, err := blockedAuthor(ctx, tx, author); err != nil || blocked {
			return err
		}
		_, err = tx.RemoteAgents().Put(ctx, storage.RemoteAgent{Actor: *author.Actor, Host: host, Agent: identity, Summary: summary})
		return err
	}, nil
}
