package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"stoa/identity/integrity"
	"stoa/protocol/activity"
	"stoa/storage"
)

// shopEntry is the activity of a log entry with the summary of a shop, as it was when it was told; nil when there is a newer
// one, or the shop is no longer listed.
func (f *Federation) shopEntry(e storage.LogEntry) ([]byte, error) {
	if e.Redacted || e.Activity == nil {
		return nil, nil
	}
	return integrity.Sign(e.Activity, f.c.Keys.Ed25519.Signer(), activity.ProofKey(f.site.Board()), e.At)
}

// serveShop serves what this node says of a shop.
func (f *Federation) serveShop(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		raw, err := tx.Merchants().Told(ctx, f.site.Board(), r.PathValue("handle"))
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

// readShop reads what the node of a followed board says of a shop of its own. Whether the shop has the chain identity that it
// claims is checked by this node, by the shop's statement.
func (f *Federation) readShop(ctx context.Context, s *storage.Subscription, act *activity.Activity) (after, error) {
	var shop activity.Shop
	if fetchLimits.DecodeLoose(act.Object, &shop) != nil {
		return noEffect, nil
	}
	for _, id := range append([]string{string(shop.ID), string(shop.URL)}, shop.AttributedTo...) {
		if !f.sameOrigin(id, s.Board) {
			return nil, fmt.Errorf("%w: a shop of another origin than its board", errIdentity)
		}
	}
	host := hostOf(s.Board)
	if err := f.admits(ctx, host); err != nil {
		return nil, err
	}
	summary, author, err := shop.Read(host)
	if err != nil {
		return nil, err
	}
	digest, err := integrity.Digest(shop.Summary)
	if err != nil {
		return nil, fmt.Errorf("%w: stoa:shop: %w", activity.ErrShape, err)
	}
	v, err := integrity.Judge(ctx, integrity.Claim{
		ID: string(shop.ID), Kind: "shop", Title: summary.Name, Body: digest, Name: string(shop.Author.Name), Handle: *author.Handle,
		ERC8004: strings.ToLower(string(shop.Author.ERC8004)), Actor: shop.AttributedTo[0], Board: s.Board,
		Published: shop.Published.Time, Statement: present(shop.Statement),
	}, f.c.Authority)
	if err != nil {
		return nil, fmt.Errorf("shop %s: %w", shop.ID, err)
	}
	judged(&author, v)
	agent := ""
	if summary.HasIdentity = v.Verified && v.ERC8004 != ""; summary.HasIdentity {
		agent = v.ERC8004
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		policy, err := policyOf(ctx, tx, host)
		if err != nil || policy == storage.PolicySilence || policy == storage.PolicyReject {
			return err
		}
		if blocked, err := blockedAuthor(ctx, tx, author); err != nil || blocked {
			return err
		}
		_, err = tx.RemoteShops().Put(ctx, storage.RemoteShop{Actor: *author.Actor, Host: host, Agent: agent, Page: string(shop.URL), Summary: summary})
		return err
	}, nil
}
