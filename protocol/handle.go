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

var alike = strings.NewReplacer("-", "", "0", "o", "1", "l", "i", "l", "m", "rn", "w", "vv")

// HandleSkeleton is the same for two handles that a reader takes for each other. It is the skeleton of UTS 39 §4 for the characters that handles have,
// with hyphens left out and i as l.
func HandleSkeleton(s string) string { return alike.Replace(s) }
