package httpsig

import "strings"

// coverage is the set of covered components that policies ask for.
type coverage uint16

const (
	coverMethod coverage = 1 << iota
	coverTargetURI
	coverAuthority
	coverPath
	coverQuery
	coverQueryParam
	coverDigest
	coverContentType
	coverContentEncoding
	coverAgent
	coverIdentity
	coverRelatedAuthority
	coverUCPAgent
	coverIdempotencyKey
	coverReceipt
	coverKey
)

// coverageOf returns the coverage of a signature whose base could be built.
func coverageOf(comps []component) coverage {
	var cov coverage
	for i := range comps {
		c := &comps[i]
		switch c.flags {
		case 0, flagSF:
			switch c.name {
			case "@method":
				cov |= coverMethod
			case "@target-uri":
				cov |= coverTargetURI
			case "@authority":
				cov |= coverAuthority
			case "@path":
				cov |= coverPath
			case "@query":
				cov |= coverQuery
			case "content-digest":
				cov |= coverDigest
			case "content-type":
				cov |= coverContentType
			case "content-encoding":
				cov |= coverContentEncoding
			case "signature-agent":
				cov |= coverAgent
			case "ucp-agent":
				cov |= coverUCPAgent
			case "idempotency-key":
				cov |= coverIdempotencyKey
			case "agent-identity":
				if c.flags == 0 {
					cov |= coverIdentity
				}
			case "signature-key":
				cov |= coverKey
			case "x-siwa-receipt":
				if c.flags == 0 {
					cov |= coverReceipt
				}
			}
		case flagKey, flagKey | flagSF:
			if c.name == "signature-agent" {
				cov |= coverAgent
			}
		case flagName:
			cov |= coverQueryParam
		case flagReq:
			if c.name == "@authority" {
				cov |= coverRelatedAuthority
			}
		}
	}
	return cov
}

// Covered is the list of components that a verified signature covers. Handlers ask it, not the
// header, whether a value is reliable.
type Covered struct {
	list string // the inner list as signed, `("@method" "x";key="a")`
}

// String returns the list as it was signed, without signature parameters.
func (c Covered) String() string { return c.list }

// idEnd finds the blank or parenthesis after an identifier, skipping quoted text.
func idEnd(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ' ', ')':
			if !quoted {
				return i
			}
		}
	}
	return len(s)
}

// Has reports whether the component with this name and no parameters is covered:
// Has("content-type"), Has("@path").
func (c Covered) Has(name string) bool { return c.hasID(`"` + name + `"`) }

// QueryParam reports whether the query parameter with this decoded name is
// covered, by itself or with the whole query.
func (c Covered) QueryParam(name string) bool {
	return c.Has("@query") || c.Has("@target-uri") ||
		c.hasID(`"@query-param";name="`+string(appendFormEncoded(nil, name))+`"`)
}

func (c Covered) hasID(id string) bool {
	for rest := strings.TrimPrefix(c.list, "("); rest != "" && rest != ")"; {
		end := idEnd(rest)
		if rest[:end] == id {
			return true
		}
		rest = strings.TrimPrefix(rest[end:], " ")
	}
	return false
}
