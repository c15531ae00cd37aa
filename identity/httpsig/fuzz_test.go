package httpsig

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func seeds(f *testing.F, add func(input, signature string, m *Message, body []byte)) {
	for _, file := range []struct {
		name  string
		cases int
	}{{"adversarial.json", 81}, {"rfc9421.json", 20}, {"web-bot-auth.json", 11}, {"npm-clients.json", 13}} {
		v := readVectors(f, file.name, file.cases)
		for _, c := range v.Cases {
			m, body := c.message(f)
			add(join(m.Header["Signature-Input"]), join(m.Header["Signature"]), m, body)
		}
	}
}

// FuzzScan compares the scanner with httpsfv both ways: what we accept it accepts
// and writes the same; what it accepts, without duplicates, of the shape of
// RFC 9421, we accept.
func FuzzScan(f *testing.F) {
	seeds(f, func(input, signature string, _ *Message, _ []byte) { f.Add(input, signature) })
	f.Add(`a=("x" "y";a=1.50;b=*t/:;c=:AA==:;d=@-1;e=%"%c3%a9";f=?0;g=?1;h="\"\\" );x=-007;y=-0.0;z="a"`, `a=:AB==:;q=1`)
	f.Fuzz(func(t *testing.T, input, signature string) {
		p := &parse{limits: Limits{}.orDefault()}
		e := p.read([]string{input}, []string{signature})
		d, err := httpsfv.UnmarshalDictionary([]string{input})
		s, errSig := httpsfv.UnmarshalDictionary([]string{signature})
		if e == nil {
			require.NoError(t, err)
			require.NoError(t, errSig)
			require.Len(t, d.Names(), len(p.members))
			require.Len(t, s.Names(), len(p.members))
			for _, sig := range p.members {
				v, _ := d.Get(sig.label)
				text := must.Get(httpsfv.Marshal(httpsfv.List{v.(httpsfv.InnerList)}))(t)
				require.Equal(t, text, string(p.canon[sig.canonFrom:sig.canonTo]))
				b, _ := s.Get(sig.label)
				require.Equal(t, string(b.(httpsfv.Item).Value.([]byte)), string(p.sigs[sig.sigFrom:sig.sigTo]))
				for i, item := range v.(httpsfv.InnerList).Items {
					require.Equal(t, item.Value, p.comps[sig.compFrom+i].name)
				}
			}
			return
		}
		switch e.Code {
		case CodeSignatureTooLarge, CodeTooManySignatures, CodeLabelDuplicate, CodeParameterDuplicate, CodeLabelMismatch:
			return // stricter than RFC 9651 on purpose
		}
		require.False(t, err == nil && errSig == nil && shaped(d, s), "refused what httpsfv accepts: %v", e)
	})
}

// shaped reports whether both dictionaries have the member types of RFC 9421 §4.
func shaped(d, s *httpsfv.Dictionary) bool {
	for _, name := range d.Names() {
		v, _ := d.Get(name)
		list, ok := v.(httpsfv.InnerList)
		if !ok {
			return false
		}
		for _, item := range list.Items {
			if _, ok := item.Value.(string); !ok {
				return false
			}
		}
	}
	for _, name := range s.Names() {
		v, _ := s.Get(name)
		item, ok := v.(httpsfv.Item)
		if !ok {
			return false
		}
		if _, ok := item.Value.([]byte); !ok {
			return false
		}
	}
	return true
}

// FuzzVerify looks for panics, errors without a code, and results that cannot be
// carried as evidence.
func FuzzVerify(f *testing.F) {
	_, _, k, _ := vectorRequest(f)
	seeds(f, func(input, signature string, m *Message, body []byte) {
		if m.Status == 0 {
			f.Add(m.Method, m.RawPath, m.RawQuery, input, signature, m.Header.Get("Signature-Agent"), m.Header.Get("Content-Digest"), "one", body)
		}
	})
	f.Fuzz(func(t *testing.T, method, path, query, input, signature, agent, digest, note string, body []byte) {
		m := &Message{Method: method, RawPath: path, RawQuery: query, HasQuery: query != "", Target: NewTarget("https", "node.example"), Header: http.Header{
			"Signature-Input": {input}, "Signature": {signature}, "Signature-Agent": {agent}, "Content-Digest": {digest},
			"Content-Type": {"application/json"}, "X-Note": strings.Split(note, "|"),
		}}
		for _, q := range []*Policy{WritePolicy(), ReadPolicy(), FederationPolicy(), {}} {
			v := &Verifier{Keys: anyKey(k), AllowTestKeys: true, Now: clock(epoch)}
			res, err := v.Verify(t.Context(), m, body, q)
			if err != nil {
				e := err.(*Error)
				require.NotEmpty(t, e.Code)
				require.GreaterOrEqual(t, e.Status(), 400)
				continue
			}
			require.NotEmpty(t, res.Covered.String())
			if e, err := Capture(m, body, res); err == nil {
				_, _, err := e.Open()
				require.NoError(t, err)
			}
		}
	})
}

func FuzzEvidence(f *testing.F) {
	m, body, k, _ := vectorRequest(f)
	v := &Verifier{Keys: anyKey(k), AllowTestKeys: true, Now: clock(epoch)}
	res := must.Get(v.Verify(f.Context(), m, body, WritePolicy()))(f)
	e := must.Get(Capture(m, body, res))(f)
	raw := must.Get(json.Marshal(e))(f)
	f.Add(raw)
	f.Add([]byte(`{"type":"HttpMessageSignature","method":"GET","targetUri":"https://a/","signatureInput":"a=(\"@method\" \"@target-uri\")",` +
		`"signature":"a=:AAAA:","components":{},"body":""}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := ParseEvidence(raw)
		if err != nil {
			return
		}
		m, body, err := e.Open()
		if err != nil {
			return
		}
		q := WritePolicy()
		q.At = epoch
		res, err := v.Verify(t.Context(), &m, body, q)
		if err != nil {
			return
		}
		require.Equal(t, e, must.Get(Capture(&m, body, res))(t), "evidence has one form")
	})
}
