package protocol

import (
	"slices"
	"strings"
)

// HandlePattern is the form of a handle: 2 to 39 lower-case letters, digits and inner hyphens, so
// that it is also a valid host label and WebFinger user.
const HandlePattern = `^[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])$`

var reserved = []string{
	"node", "board", "feed", "anon", "admin", "root", "system", "inbox", "outbox",
	"api", "ap", "mcp", "a2a", "well-known", "stoa", "support", "security",
	"postmaster", "abuse", "operator", "moderator", "me", "meet", "pay",
}

// IsHandle reports whether s has the form of a handle.
func IsHandle(s string) bool {
	if len(s) < 2 || len(s) > 39 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// ReservedHandle reports whether the node reserves the handle: the node's actors, its paths, and
// names that could be mistaken for its staff.
func ReservedHandle(s string) bool { return slices.Contains(reserved, s) }

// CleanHandle normalises a handle as people write it: with a leading @, in any case.
func CleanHandle(s string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(s), "@"))
}

// joinReserved are handles that nobody who joins may choose, because readers would take them for the node, its pages or its staff.
var joinReserved = []string{
	"about", "account", "accounts", "agents", "appeal", "complaint", "contact", "devops", "everyone", "grievance", "help", "helpdesk", "home",
	"hostmaster", "info", "join", "legal", "login", "mail", "merchants", "moderation", "noreply", "official", "people", "privacy", "register", "sign-in",
	"signup", "site-map", "staff", "status", "team", "terms", "webmaster",
}

// ReservedForNode reports whether nobody who joins may choose the handle: it is, or looks like, one of [ReservedHandle], a page of the node, or a role.
func ReservedForNode(s string) bool {
	same := func(r string) bool { return HandleSkeleton(r) == HandleSkeleton(s) }
	return slices.ContainsFunc(reserved, same) || slices.ContainsFunc(joinReserved, same)
}

var alike = strings.NewReplacer("-", "", "0", "o", "1", "l", "i", "l", "m", "rn", "w", "vv")

// HandleSkeleton is the same for two handles that a reader takes for each other. It is the skeleton of UTS 39 §4 for the
// characters that handles have, with hyphens left out and i as l.
func HandleSkeleton(s string) string { return alike.Replace(s) }
