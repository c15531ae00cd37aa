package cavage

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"stoa/identity/httpsig"
)

// Limits of one signature, in bytes and counts.
const (
	maxField   = 8 << 10
	maxHeaders = 32
	maxParams  = 16
	maxKeyID   = 2 << 10
)

// signature is a parsed Signature field.
type signature struct {
	keyID, algorithm string
	headers          []string // lower case; default (created) (draft-cavage-12 §2.1.6)
	signature        []byte

	created, expires       int64
	hasCreated, hasExpires bool
}

// field returns the parameters of Signature, or of Authorization with the scheme
// Signature. A request with Signature-Input belongs to RFC 9421.
func field(h http.Header) (string, bool) {
	if len(h["Signature-Input"]) > 0 {
		return "", false
	}
	if v := h["Signature"]; len(v) > 0 {
		return strings.Join(v, ", "), true // two lines repeat keyId, which parse refuses
	}
	for _, v := range h["Authorization"] {
		if scheme, rest, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Signature") {
			return rest, true
		}
	}
	return "", false
}

// parse reads name="value" and name=123 parameters. A repeated parameter is
// refused: parsers differ on which copy wins. Unknown parameters are ignored.
func parse(text string) (*signature, *httpsig.Error) {
	bad := func(why string) (*signature, *httpsig.Error) {
		return nil, fail(httpsig.CodeSignatureMalformed, why)
	}
	if len(text) > maxField {
		return nil, fail(httpsig.CodeSignatureTooLarge, "Signature")
	}
	s := &signature{headers: []string{"(created)"}}
	var seen []string
	for rest := strings.Trim(text, " \t"); rest != ""; {
		name, after, ok := strings.Cut(rest, "=")
		if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
			return bad("parameter name")
		}
		if slices.Contains(seen, name) {
			return nil, fail(httpsig.CodeParameterDuplicate, name)
		}
		if seen = append(seen, name); len(seen) > maxParams {
			return bad("parameters")
		}
		var value string
		quoted := strings.HasPrefix(after, `"`)
		if quoted {
			if value, after, ok = strings.Cut(after[1:], `"`); !ok || strings.Contains(value, `\`) {
				return bad(name + ": quoted text")
			}
		} else {
			end := strings.IndexAny(after, ", \t")
			if end < 0 {
				end = len(after)
			}
			value, after = after[:end], after[end:]
		}
		if e := s.set(name, value, quoted); e != nil {
			return nil, e
		}
		after = strings.TrimLeft(after, " \t")
		if after != "" && after[0] != ',' {
			return bad("between parameters")
		}
		if rest = strings.TrimLeft(strings.TrimPrefix(after, ","), " \t"); after != "" && rest == "" {
			return bad("trailing comma")
		}
	}
	return s.complete()
}

func (s *signature) set(name, value string, quoted bool) *httpsig.Error {
	var err error
	switch name {
	case "keyId", "algorithm", "headers", "signature":
		if !quoted {
			return fail(httpsig.CodeSignatureMalformed, name+": not quoted")
		}
	case "created", "expires":
		if quoted {
			return fail(httpsig.CodeSignatureMalformed, name+": quoted")
		}
	}
	switch name {
	case "keyId":
		s.keyID = value
	case "algorithm":
		s.algorithm = value
	case "headers":
		s.headers = strings.Split(strings.ToLower(value), " ")
	case "signature":
		s.signature, err = base64.StdEncoding.DecodeString(value)
		if strings.ContainsAny(value, "\r\n") {
			err = base64.CorruptInputError(0)
		}
	case "created":
		s.created, err = strconv.ParseInt(value, 10, 48)
		s.hasCreated = true
	case "expires":
		s.expires, err = strconv.ParseInt(value, 10, 48)
		s.hasExpires = true
	}
	if err != nil {
		return fail(httpsig.CodeSignatureMalformed, name)
	}
	return nil
}

// complete checks the parameters together.
func (s *signature) complete() (*signature, *httpsig.Error) {
	if s.keyID == "" || len(s.keyID) > maxKeyID || len(s.signature) == 0 {
		return nil, fail(httpsig.CodeSignatureMalformed, "keyId and signature are required")
	}
	switch s.algorithm {
	case "", "hs2019", "rsa-sha256", "rsa-sha512", "ed25519":
	default:
		return nil, fail(httpsig.CodeAlgorithmUnsupported, "algorithm")
	}
	if len(s.headers) > maxHeaders {
		return nil, fail(httpsig.CodeSignatureTooLarge, "headers")
	}
	for i, h := range s.headers {
		if slices.Contains(s.headers[:i], h) {
			return nil, fail(httpsig.CodeComponentDuplicate, "headers")
		}
		switch h {
		case "(request-target)":
		case "(created)", "(expires)":
			// draft-cavage-12 §2.3: not with the algorithm names of older drafts.
			if s.algorithm != "" && s.algorithm != "hs2019" {
				return nil, fail(httpsig.CodeParameterInvalid, h+" needs algorithm hs2019")
			}
			if h == "(created)" && !s.hasCreated || h == "(expires)" && !s.hasExpires {
				return nil, fail(httpsig.CodeParameterMissing, h)
			}
		default:
			if !token(h) {
				return nil, fail(httpsig.CodeComponentUnsupported, "headers")
			}
		}
	}
	return s, nil
}

// token accepts a lower-case field name (RFC 9110 §5.6.2).
func token(s string) bool {
	const chars = "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"
	return s != "" && strings.Trim(s, chars) == ""
}
