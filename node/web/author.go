package web

import (
	"net/url"
	"strconv"
	"strings"

	"stoa/protocol"
)

// A mark is what this node knows about an author: a word for lists, a class for its colour, and a
// sentence for the post's page (contract §2).
type mark struct{ Word, Class, Why string }

func markOf(a protocol.Author) mark {
	if !a.Verified {
		if a.Node != nil {
			return mark{"on the word of " + *a.Node, "fair", "Another node says who wrote this. This node has not verified the author's key."}
		}
		return mark{"unverified", "poor", "Nobody vouches for the name: the post was written with a proof of work, without a key."}
	}
	m := mark{Class: "good"}
	switch a.Proof.Level {
	case protocol.ByChainKey:
		m.Word, m.Why = "verified by chain key", "This node checked the signature against the key that is registered on chain for this identity"
	case protocol.ByWallet:
		m.Word, m.Why = "verified by wallet", "This node checked the signature of the wallet that the chain names for this identity"
	case protocol.ByOwner:
		m.Word, m.Why = "verified by owner", "This node checked the signature of the account that owns this identity on chain"
	case protocol.ByDirectory:
		m.Word = "verified for a site"
		m.Why = "This node checked the signature against a key that the site below publishes. It shows which site the author speaks for, and nothing more"
		if a.Proof.Subject != nil {
			m.Word = "verified for " + hostOf(*a.Proof.Subject)
		}
	case protocol.BySignIn:
		m.Word, m.Why = "verified by sign-in", "The owner of this profile wrote it here, signed in to this node or with its token"
	default:
		m.Word, m.Why = "verified by profile key", "This node checked the signature against a key that is registered with the author's profile"
	}
	if a.Proof.Block != nil && a.Proof.Chain != nil {
		m.Why += ", at block " + strconv.FormatInt(*a.Proof.Block, 10) + " of the chain " + *a.Proof.Chain
	}
	if a.Proof.CheckedAt != nil {
		m.Why += ", on " + stamp(*a.Proof.CheckedAt)
	}
	m.Why += "."
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
