package liveness

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
)

// product is this node's product token in robots.txt files (RFC 9309 §2.2.1).
const product = "stoa"

const (
	maxRobots = 500 << 10 // bytes that are read (RFC 9309 §2.5: at least 500 KiB)
	maxRules  = 1000
	maxPath   = 1024 // bytes of a rule's path
)

// rules are those that a robots.txt has for one product. Without any, everything is allowed.
type rules []rule

type rule struct {
	allow bool
	path  string // normalized, may contain * and end in $
}

// parseRobots returns the rules of the groups that name the product or, when none does, of the
// groups for all crawlers (RFC 9309 §2.2). It ignores lines that it does not know.
func parseRobots(text []byte, name string) rules {
	var ours, all rules
	named := false // a group names this product, even one without rules
	toUs, toAll, inRules := false, false, false
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range bytes.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		path := string(bytes.TrimSpace(value))
		switch strings.ToLower(string(bytes.TrimSpace(key))) {
		case "user-agent":
			if inRules { // a new group
				toUs, toAll, inRules = false, false, false
			}
			if strings.HasPrefix(path, "*") {
				toAll = true
			} else if strings.EqualFold(token(path), name) {
				toUs, named = true, true
			}
		case "allow", "disallow":
			inRules = true
			r := rule{allow: strings.EqualFold(string(bytes.TrimSpace(key)), "allow"), path: normalize(path)}
			if path == "" || len(r.path) > maxPath {
				continue
			}
			if toUs && len(ours) < maxRules {
				ours = append(ours, r)
			}
			if toAll && len(all) < maxRules {
				all = append(all, r)
			}
		}
	}
	if named {
		return ours
	}
	return all
}

// token returns the product token at the beginning of a value (RFC 9309 §2.2.1).
func token(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
	})
	if end < 0 {
		return s
	}
	return s[:end]
}

// allows reports whether the most specific rule that matches the address allows it. Of equally
// specific rules, allow wins. Without a match it is allowed (RFC 9309 §2.2.2).
func (r rules) allows(u *url.URL) bool {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if path == "/robots.txt" {
		return true
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	path = normalize(path)
	allowed, length := true, -1
	for _, one := range r {
		if n := len(one.path); (n > length || n == length && one.allow) && matchPath(one.path, path) {
			allowed, length = one.allow, n
		}
	}
	return allowed
}

// matchPath matches from the beginning of the path. * matches anything, $ at the end matches the
// end (RFC 9309 §2.2.3). The first match of each piece is enough, since pieces contain no
// wildcards.
func matchPath(pattern, path string) bool {
	anchored := strings.HasSuffix(pattern, "$")
	pieces := strings.Split(strings.TrimSuffix(pattern, "$"), "*")
	rest, ok := strings.CutPrefix(path, pieces[0])
	if !ok {
		return false
	}
	for i, piece := range pieces[1:] {
		if anchored && i == len(pieces)-2 { // the last piece must match at the end
			return strings.HasSuffix(rest, piece)
		}
		at := strings.Index(rest, piece)
		if at < 0 {
			return false
		}
		rest = rest[at+len(piece):]
	}
	return !anchored || rest == ""
}

// normalize rewrites a path so that equivalent paths are equal strings: only what needs
// percent-encoding has it, in upper case (RFC 9309 §2.2.2, RFC 3986 §6.2.2).
func normalize(path string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' && i+2 < len(path) {
			if d, err := strconv.ParseUint(path[i+1:i+3], 16, 8); err == nil {
				if unreserved(byte(d)) {
					b.WriteByte(byte(d))
				} else {
					b.WriteString(strings.ToUpper(path[i : i+3]))
				}
				i += 2
				continue
			}
		}
		if c <= ' ' || c >= 0x7f {
			b.WriteString("%" + string(digits[c>>4]) + string(digits[c&15]))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
