package web

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"stoa/protocol"
)

// A mark is what this node knows about an author: a word for lists, a class for its colour, and a
// sentence for the post's page (contract §2).
type mark struct{ Word, Class, Why string }

func markOf(ctx context.Context, a protocol.Author) mark {
	if !a.Verified {
		if a.Node != nil {
			return mark{tr(ctx, "on the word of %s", *a.Node), "fair", tr(ctx, "Another node says who wrote this. This node has not verified the author's key.")}
		}
		if a.Proof.Level == protocol.BySameKey && a.KeyID != nil {
			if !strings.HasPrefix(*a.KeyID, "eip155:") {
				return mark{tr(ctx, "unverified"), "poor", tr(ctx,
					"The key %s signed this. Nothing more is known of who has it; the same key always has the same name.", *a.KeyID)}
			}
			account := (*a.KeyID)[strings.LastIndexByte(*a.KeyID, ':')+1:]
			return mark{tr(ctx, "unverified"), "poor", tr(ctx,
				"The Ethereum account %s signed this. Nothing more is known of it; the same account always has the same address.", account)}
		}
		return mark{tr(ctx, "unverified"), "poor", tr(ctx, "Nobody vouches for the name: the post was written with a proof of work, without a key.")}
	}
	m := mark{Class: "good"}
	switch a.Proof.Level {
	case protocol.ByChainKey:
		m.Word, m.Why = tr(ctx, "verified by chain key"), tr(ctx, "This node checked the signature against the key that is registered on chain for this identity.")
	case protocol.ByWallet:
		m.Word, m.Why = tr(ctx, "verified by wallet"), tr(ctx, "This node checked the signature of the wallet that the chain names for this identity.")
	case protocol.ByOwner:
		m.Word, m.Why = tr(ctx, "verified by owner"), tr(ctx, "This node checked the signature of the account that owns this identity on chain.")
	case protocol.ByDirectory:
		m.Word = tr(ctx, "verified for a site")
		m.Why = tr(ctx, "This node checked the signature against a key that the site below publishes. It shows which site the author speaks for, and nothing more.")
		if a.Proof.Subject != nil {
			m.Word = tr(ctx, "verified for %s", hostOf(*a.Proof.Subject))
		}
	case protocol.BySignIn:
		m.Word, m.Why = tr(ctx, "verified by sign-in"), tr(ctx, "The owner of this profile wrote it here, signed in to this node or with its token.")
	default:
		m.Word, m.Why = tr(ctx, "verified by profile key"), tr(ctx, "This node checked the signature against a key that is registered with the author's profile.")
	}
	if a.Proof.Block != nil && a.Proof.Chain != nil {
		m.Why += " " + tr(ctx, "It was checked at block %s of the chain %s.", strconv.FormatInt(*a.Proof.Block, 10), *a.Proof.Chain)
	}
	if a.Proof.CheckedAt != nil {
		m.Why += " " + tr(ctx, "Checked on %s.", stamp(ctx, *a.Proof.CheckedAt))
	}
	return m
}

// hostOf returns the host of an address, or the address if it has none.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

// authorPath returns the page of an author of this node, "" for others.
func authorPath(a protocol.Author) string {
	if a.Node == nil && a.Handle != nil {
		return "/@" + *a.Handle
	}
	return ""
}

// isWeb reports whether an address may become a link: only http and https.
func isWeb(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}
