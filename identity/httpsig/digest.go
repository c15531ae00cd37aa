package httpsig

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"strings"

	"github.com/dunglas/httpsfv"
)

// ContentDigest returns the Content-Digest value of body with sha-256 (RFC 9530 §2).
func ContentDigest(body []byte) string {
	sum := sha256.Sum256(body)
	b := make([]byte, 0, 64)
	b = append(b, "sha-256=:"...)
	b = base64.StdEncoding.AppendEncode(b, sum[:])
	return string(append(b, ':'))
}

// VerifyContentDigest checks the lines of a Content-Digest field against the
// bytes of the content as transferred. sha-256 and sha-512 are understood; each
// one present must match, others are ignored. The error is an *Error with
// CodeDigestMissing, CodeDigestMalformed, CodeDigestUnsupported or
// CodeDigestMismatch.
func VerifyContentDigest(lines []string, body []byte) error {
	if e := verifyDigest(lines, body); e != nil {
		return e
	}
	return nil
}

func verifyDigest(lines []string, body []byte) *Error {
	if len(lines) == 0 {
		return fail(CodeDigestMissing, "")
	}
	if sum, ok := singleSHA256(lines); ok {
		if got := sha256.Sum256(body); got != sum {
			return fail(CodeDigestMismatch, "sha-256")
		}
		return nil
	}
	d, err := httpsfv.UnmarshalDictionary(trimmed(lines))
	if err != nil {
		return fail(CodeDigestMalformed, "not a dictionary")
	}
	known := 0
	for _, alg := range []string{"sha-256", "sha-512"} {
		v, ok := d.Get(alg)
		if !ok {
			continue
		}
		known++
		item, _ := v.(httpsfv.Item)
		want, ok := item.Value.([]byte)
		if !ok {
			return fail(CodeDigestMalformed, alg+" is not a byte sequence")
		}
		var got []byte
		if alg == "sha-256" {
			sum := sha256.Sum256(body)
			got = sum[:]
		} else {
			sum := sha512.Sum512(body)
			got = sum[:]
		}
		if len(want) != len(got) {
			return fail(CodeDigestMalformed, alg+": length")
		}
		if !bytes.Equal(want, got) {
			return fail(CodeDigestMismatch, alg)
		}
	}
	if known == 0 {
		return fail(CodeDigestUnsupported, "want sha-256 or sha-512")
	}
	return nil
}

// singleSHA256 reads the usual value, one sha-256 member, without allocating. It
// declines everything else.
func singleSHA256(lines []string) (sum [sha256.Size]byte, ok bool) {
	const head, encoded = "sha-256=:", 44
	if len(lines) != 1 {
		return sum, false
	}
	s := strings.Trim(lines[0], " \t")
	if len(s) != len(head)+encoded+1 || s[:len(head)] != head || s[len(s)-1] != ':' {
		return sum, false
	}
	var text [encoded]byte
	copy(text[:], s[len(head):])
	if bytes.ContainsAny(text[:], "\r\n") {
		return sum, false
	}
	var out [encoded]byte
	n, err := base64.StdEncoding.Decode(out[:], text[:])
	copy(sum[:], out[:])
	return sum, err == nil && n == sha256.Size
}
