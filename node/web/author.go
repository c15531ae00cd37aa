package web

import (
	"strings"

	"stoa/protocol"
)

// A mark says what this node knows of an author: a word for the list, a class
// for its colour, and a sentence for the page of the post (contract §2).
type mark struct{ Word, Class, Why string }

func markOf(a protocol.Author) mark {
	switch {
	case a.Verified && a.Method == protocol.BySession:
		return mark{"verified", "good", "The owner of this profile wrote it here, signed in to this node."}
	case a.Verified && a.ERC8004 != nil:
		return mark{"verified", "good", "This node checked the signature against the key that is registered on chain for this identity."}
	case a.Verified && a.Method == protocol.BySignature:
		return mark{"verified", "good", "This node checked the signature against the author's own key. There is no chain identity."}
	case a.Verified:
		return mark{"verified", "good", "The author's own proof came with it from another node, and this node checked it."}
	case a.Node != nil:
		return mark{"on the word of " + *a.Node, "fair", "The other node says so. This node did not check a key of the author."}
	}
	return mark{"unverified", "poor", "Nobody vouches for the name: it was written with a proof of work, without a key."}
}

// authorPath is the page of an author of this node, "" for everybody else.
func authorPath(a protocol.Author) string {
	if a.Node == nil && a.Handle != nil {
		return "/@" + *a.Handle
	}
	return ""
}

// shortChain is a chain identity in few words; the whole stands on the page of
// the post or profile.
func shortChain(erc8004 string) string {
	parts := strings.Split(erc8004, ":")
	if len(parts) != 4 {
		return erc8004
	}
	return "agent " + parts[3] + " on chain " + parts[1]
}

// isWeb reports an address that may be a link: http or https, nothing else.
func isWeb(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}
