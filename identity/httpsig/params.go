package httpsig

import "strconv"

// Params are the signature parameters of RFC 9421 §2.3. Times are seconds since
// the epoch. Unknown parameters are part of the signature base and otherwise
// ignored.
type Params struct {
	Created, Expires       int64
	Nonce, KeyID, Tag, Alg string

	HasCreated, HasExpires, HasNonce, HasKeyID, HasTag, HasAlg bool
}

// set stores a known parameter. A wrong type is recorded and refused only if the signature turns
// out to be for this node.
func (m *member) set(name string, v span) {
	want := byte('s')
	var text *string
	var num *int64
	var has *bool
	q := &m.params
	switch name {
	case "created":
		want, num, has = 'i', &q.Created, &q.HasCreated
	case "expires":
		want, num, has = 'i', &q.Expires, &q.HasExpires
	case "nonce":
		text, has = &q.Nonce, &q.HasNonce
	case "keyid":
		text, has = &q.KeyID, &q.HasKeyID
	case "tag":
		text, has = &q.Tag, &q.HasTag
	case "alg":
		text, has = &q.Alg, &q.HasAlg
	default:
		return
	}
	if v.kind != want {
		m.wrongType = name
		return
	}
	*has = true
	if num != nil {
		*num = v.num
	} else {
		*text = v.text
	}
}

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
