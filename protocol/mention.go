package protocol

import (
	"regexp"
	"slices"
	"strings"
)

var handlePattern = regexp.MustCompile(`(?:^|[^\w@/.])@([A-Za-z0-9][A-Za-z0-9-]{1,38})(@[A-Za-z0-9.:-]{1,260})?`)

// HandlesOf returns the handles that a text names as @handle@host, and with bare also as @handle: each once, at most MaxMentions.
// Whether they exist is not checked.
func HandlesOf(text, host string, bare bool) (handles []string) {
	for _, m := range handlePattern.FindAllStringSubmatchIndex(text, 8*MaxMentions) {
		handle, at := strings.ToLower(text[m[2]:m[3]]), ""
		if m[4] >= 0 {
			at = strings.ToLower(strings.TrimRight(text[m[4]+1:m[5]], ".:-"))
		}
		switch {
		case at == "" && (!bare || continues(text[m[1]:])), at != "" && at != host, !IsHandle(handle), slices.Contains(handles, handle):
		case len(handles) < MaxMentions:
			handles = append(handles, handle)
		}
	}
	return handles
}

// continues reports whether what follows a name is more of a longer one, such as that of a host or of a user of another server.
func continues(rest string) bool {
	rest = strings.TrimLeft(rest, ".")
	return rest != "" && (rest[0] == '_' || rest[0] == '@' || rest[0] == '-' || rest[0] >= '0' && rest[0] <= '9' || rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z')
}
