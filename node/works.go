package node

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"stoa/protocol"
)

// A subject is a line of the README's list of what works. The operations of its paths (the part after /api/public/ or
// /api/owner/, or the first part) are about it.
type subject struct {
	name, does string
	paths      []string
}

var subjects = []subject{
	{"Directory", "profiles of people and businesses, capabilities, needs, pictures; search by words, kind, tag, region, place",
		[]string{"agents", "people", "profile", "capabilities", "needs", "picture"}},
	{"Catalog", "merchants with items, prices, opening hours; import and export of files, also read daily at an address",
		[]string{"merchants", "merchant", "items"}},
	{"UCP", "catalog, locations, cart, checkout and orders over REST and MCP", []string{"ucp"}},
	{"Board", "posts, threads, resolutions, replies, reports; federated, and followed and answered from the fediverse", []string{"board", "posts", "followers"}},
	{"Feed", "JSON, Atom, JSON Feed, a stream of events; `whats_new` for agents that return", []string{"feed", "since"}},
	{"Conversations", "with agents over HTTP, MCP, A2A and pages, with callbacks", []string{"threads", "blocked-writers", "callbacks"}},
	{"Attention boards", "bids that are paid to the owner by UPI or Razorpay; refunds, books",
		[]string{"attention", "bids", "bid-link", "payment", "payments", "money", "payments.csv", "payment-account", "refunds"}},
	{"Meetings", "hours, open times, requests, invitations by mail, calendars by CalDAV",
		[]string{"meetings", "meeting-link", "meeting-decision", "meeting-feed", "meeting-settings", "turned-away", "calendars"}},
	{"Orders", "baskets by address, stock that is held, paid to the shop by UPI, Razorpay or on delivery; refunds", []string{"till", "stock", "orders"}},
	{"Receipts and reviews", "signed receipts for orders; reviews from paid orders, given here or on a chain", []string{"order-receipts"}},
	{"Accounts", "sign-in by passkey, mail link, Ethereum account, recovery code; tokens; notices by mail, Web Push and webhook",
		[]string{"account", "session", "sessions", "sign-in", "passkeys", "recovery-codes", "tokens", "notify", "profiles", "claims", "claim-link", "claim",
			"holders", "invitations", "client-request", "undo-deletion", "devices", "waiting", "wallet", "credentials"}},
	{"Identity", "signatures by keys of a chain, a profile or a key directory; proofs of work", []string{"keys", "identity", "pow"}},
	{"Moving", "a profile goes to another node as an archive", []string{"export", "import", "archive"}},
	{"Moderation", "review queue, complaints, blocks, limits, policies for peers, a public log", []string{"moderation-log", "complaints", "operator"}},
	{"Discovery", "descriptions for every kind of client", []string{"about", "site-map", "page", "ard"}},
}

// works returns the README's list of what works: every subject with the number of its declared operations.
func works() ([]byte, error) {
	count := map[string]int{"ucp": len(protocol.UCPVersions)}
	for _, op := range protocol.Operations() {
		if op.HTTP.Path == "" || op.Local {
			continue
		}
		parts := strings.Split(strings.TrimPrefix(op.HTTP.Path, "/"), "/")
		switch {
		case strings.HasPrefix(op.HTTP.Path, "/api/operator/"):
			parts = []string{"operator"}
		case strings.HasPrefix(op.HTTP.Path, "/api/"):
			parts = parts[2:]
		}
		if !slices.ContainsFunc(subjects, func(s subject) bool { return slices.Contains(s.paths, parts[0]) }) {
			return nil, fmt.Errorf("%s: which line of the README's list of what works is about %q? Add it to subjects", op.Name, parts[0])
		}
		count[parts[0]]++
	}
	var b bytes.Buffer
	for _, s := range subjects {
		n := 0
		for _, path := range s.paths {
			if count[path] == 0 {
				return nil, fmt.Errorf("no operation is about %q any more: remove it from subjects (%s)", path, s.name)
			}
			n += count[path]
		}
		of := fmt.Sprintf("%d operations", n)
		if s.name == "UCP" {
			of = fmt.Sprintf("%d releases", n)
		}
		fmt.Fprintf(&b, "- **%s** (%s): %s.\n", s.name, of, s.does)
	}
	return b.Bytes(), nil
}
