package httpsig

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Limits bounds what a verifier reads of one message. Zero fields take the
// defaults.
type Limits struct {
	InputBytes     int // Signature-Input, all lines joined; default 8192
	SignatureBytes int // Signature, all lines joined; default 8192
	OneSignature   int // bytes of one signature; default 1024, an RSA-8192 signature
	Labels         int // signatures of all applications; default 16
	Candidates     int // signatures for us, each costing a verification; default 4
	Components     int // covered components of one signature; default 32
	Params         int // parameters of one signature or one component; default 16
}

func (l Limits) orDefault() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.InputBytes, 8<<10)
	def(&l.SignatureBytes, 8<<10)
	def(&l.OneSignature, 1024)
	def(&l.Labels, 16)
	def(&l.Candidates, 4)
	def(&l.Components, 32)
	def(&l.Params, 16)
	return l
}

// member is one signature of a message: a member of Signature-Input with its
// counterpart in Signature. Ranges point into the parse that holds it.
type member struct {
	label              string
	compFrom, compTo   int // parse.comps
	canonFrom, canonTo int // parse.canon: the @signature-params value
	sigFrom, sigTo     int // parse.sigs
	params             Params
	wrongType          string // a known parameter whose value has the wrong type
	signed             bool   // the label stood in Signature
}

// parse is the work space for one message. It is reused: slices keep their
// capacity, strings are slices of the fields.
type parse struct {
	limits  Limits
	s       string // text under the scanner
	i       int
	canon   []byte
	sigs    []byte
	comps   []component
	members []member
	names   []string // parameter names of the item being read

	base  []byte // signature base of the candidate being judged
	value []byte
}

// span is the scanned value of a parameter.
type span struct {
	kind byte   // 's' string, 'i' integer, 'b' boolean, 'o' any other type
	text string // string without its escapes
	num  int64  // integer, or 1 for true
}

// read scans both fields into p. Every member of both fields must be well formed,
// also those of other applications: RFC 9421 §4.1 makes the field the unit.
func (p *parse) read(input, signature []string) *Error {
	p.canon, p.sigs, p.comps, p.members = p.canon[:0], p.sigs[:0], p.comps[:0], p.members[:0]
	if e := p.readInput(join(input)); e != nil {
		return e
	}
	if e := p.readSignatures(join(signature)); e != nil {
		return e
	}
	for i := range p.members {
		if !p.members[i].signed {
			return fail(CodeLabelMismatch, "label only in Signature-Input")
		}
	}
	return nil
}

// join makes one dictionary of the lines of a field (RFC 9110 §5.3).
func join(lines []string) string {
	if len(lines) == 1 {
		return lines[0]
	}
	return strings.Join(lines, ", ")
}

func (p *parse) readInput(s string) *Error {
	if len(s) > p.limits.InputBytes {
		return fail(CodeSignatureTooLarge, "Signature-Input")
	}
	bad := func(detail string) *Error { return fail(CodeSignatureInputMalformed, detail) }
	p.s, p.i = s, 0
	p.skipSP()
	for more := p.i < len(s); more; {
		label, ok := p.key()
		if !ok {
			return bad("label")
		}
		if p.find(label) != nil {
			return fail(CodeLabelDuplicate, label) // RFC 9421 §4.1; RFC 9651 would keep the last
		}
		if len(p.members) >= p.limits.Labels {
			return fail(CodeTooManySignatures, "labels")
		}
		if !p.take('=') || !p.take('(') {
			return bad("member is not an inner list")
		}
		m := member{label: label, compFrom: len(p.comps), canonFrom: len(p.canon)}
		if e := p.innerList(&m); e != nil {
			return e
		}
		if e := p.params(&m, nil); e != nil {
			return e
		}
		m.compTo, m.canonTo = len(p.comps), len(p.canon)
		p.members = append(p.members, m)
		if more, ok = p.comma(); !ok {
			return bad("between members")
		}
	}
	return nil
}

// innerList reads the component identifiers after '(' and the ')'.
func (p *parse) innerList(m *member) *Error {
	p.canon = append(p.canon, '(')
	for n := 0; ; n++ {
		p.skipSP()
		if p.take(')') {
			p.canon = append(p.canon, ')')
			return nil
		}
		if n >= p.limits.Components {
			return fail(CodeSignatureTooLarge, "components")
		}
		if n > 0 {
			p.canon = append(p.canon, ' ')
		}
		c := component{idFrom: len(p.canon)}
		name, ok := p.quoted()
		if !ok {
			return fail(CodeSignatureInputMalformed, "component identifier is not a string")
		}
		c.name = name
		if e := p.params(nil, &c); e != nil {
			return e
		}
		c.idTo = len(p.canon)
		p.comps = append(p.comps, c)
		if p.i < len(p.s) && p.s[p.i] != ' ' && p.s[p.i] != ')' {
			return fail(CodeSignatureInputMalformed, "inner list")
		}
	}
}

// params reads the parameters of a signature (m), of a component (c), or of
// something whose parameters mean nothing (both nil).
func (p *parse) params(m *member, c *component) *Error {
	p.names = p.names[:0]
	for p.take(';') {
		p.skipSP()
		p.canon = append(p.canon, ';')
		name, ok := p.key()
		if !ok {
			return fail(CodeSignatureInputMalformed, "parameter name")
		}
		for _, seen := range p.names {
			if seen == name { // unknown names too: RFC 9651 would keep the last
				return fail(CodeParameterDuplicate, name)
			}
		}
		if len(p.names) >= p.limits.Params {
			return fail(CodeSignatureTooLarge, "parameters")
		}
		p.names = append(p.names, name)
		p.canon = append(p.canon, name...)
		v := span{kind: 'b', num: 1}
		if p.take('=') {
			if v, ok = p.bareItem(); !ok {
				return fail(CodeSignatureInputMalformed, "value of parameter "+name)
			}
		}
		if m != nil {
			m.set(name, v)
		}
		if c != nil {
			c.set(name, v)
		}
	}
	return nil
}

// bareItem reads a value and appends "=" and its canonical form, or nothing for
// true (RFC 9651 §4.1.1.2).
func (p *parse) bareItem() (span, bool) {
	if p.i >= len(p.s) {
		return span{}, false
	}
	mark := len(p.canon)
	p.canon = append(p.canon, '=')
	switch c := p.s[p.i]; {
	case c == '"':
		text, ok := p.quoted()
		return span{kind: 's', text: text}, ok
	case c == '-' || isDigit(c):
		return p.number()
	case c == '?':
		if p.i+1 >= len(p.s) || p.s[p.i+1] != '0' && p.s[p.i+1] != '1' {
			return span{}, false
		}
		on := p.s[p.i+1] == '1'
		p.i += 2
		if on {
			p.canon = p.canon[:mark]
			return span{kind: 'b', num: 1}, true
		}
		p.canon = append(p.canon, "?0"...)
		return span{kind: 'b'}, true
	case c == '*' || isAlpha(c):
		from := p.i
		for p.i < len(p.s) && (isTchar(p.s[p.i]) || p.s[p.i] == ':' || p.s[p.i] == '/') {
			p.i++
		}
		p.canon = append(p.canon, p.s[from:p.i]...)
		return span{kind: 'o'}, true
	}
	return p.rare()
}

// number reads an Integer (RFC 9651 §4.2.4). Decimals take the slow path.
func (p *parse) number() (span, bool) {
	from, digits, negative := p.i, 0, p.s[p.i] == '-'
	if negative {
		p.i++
	}
	var n int64
	for ; p.i < len(p.s) && isDigit(p.s[p.i]); p.i++ {
		if digits++; digits > 15 {
			return span{}, false
		}
		n = n*10 + int64(p.s[p.i]-'0')
	}
	if digits == 0 {
		return span{}, false
	}
	if p.i < len(p.s) && p.s[p.i] == '.' {
		p.i = from
		return p.rare()
	}
	if negative {
		n = -n
	}
	p.canon = appendInt(p.canon, n)
	return span{kind: 'i', num: n}, true
}

// rare reads the types that no known parameter has, Decimal, Byte Sequence, Date
// and Display String: it finds the end of the value and leaves the rest to
// httpsfv.
func (p *parse) rare() (span, bool) {
	from := p.i
	switch c := p.s[p.i]; {
	case c == ':':
		end := strings.IndexByte(p.s[from+1:], ':')
		if end < 0 {
			return span{}, false
		}
		p.i = from + 1 + end + 1
	case c == '%':
		if !strings.HasPrefix(p.s[from:], `%"`) {
			return span{}, false
		}
		end := strings.IndexByte(p.s[from+2:], '"') // quotes inside are percent-encoded
		if end < 0 {
			return span{}, false
		}
		p.i = from + 2 + end + 1
	case c == '@' || c == '-' || isDigit(c):
		for p.i++; p.i < len(p.s) && (isDigit(p.s[p.i]) || p.s[p.i] == '.' || p.s[p.i] == '-'); p.i++ {
		}
	default:
		return span{}, false
	}
	item, err := httpsfv.UnmarshalItem([]string{p.s[from:p.i]})
	if err != nil {
		return span{}, false
	}
	text, err := httpsfv.Marshal(item)
	p.canon = append(p.canon, text...)
	return span{kind: 'o'}, err == nil
}

var errBase64 = errors.New("base64")

func (p *parse) readSignatures(s string) *Error {
	if len(s) > p.limits.SignatureBytes {
		return fail(CodeSignatureTooLarge, "Signature")
	}
	bad := func(detail string) *Error { return fail(CodeSignatureMalformed, detail) }
	p.s, p.i = s, 0
	p.skipSP()
	for more := p.i < len(s); more; {
		label, ok := p.key()
		if !ok {
			return bad("label")
		}
		if !p.take('=') || !p.take(':') {
			return bad("member is not a byte sequence")
		}
		m := p.find(label)
		if m == nil {
			return fail(CodeLabelMismatch, "label only in Signature")
		}
		if m.signed {
			return fail(CodeLabelDuplicate, label)
		}
		m.signed, m.sigFrom = true, len(p.sigs)
		if err := p.byteSequence(); err != nil {
			return bad("byte sequence")
		}
		m.sigTo = len(p.sigs)
		if m.sigTo-m.sigFrom > p.limits.OneSignature {
			return fail(CodeSignatureTooLarge, label)
		}
		mark := len(p.canon)
		if e := p.params(nil, nil); e != nil {
			if e.Code == CodeSignatureInputMalformed {
				e.Code = CodeSignatureMalformed
			}
			return e
		}
		p.canon = p.canon[:mark]
		if more, ok = p.comma(); !ok {
			return bad("between members")
		}
	}
	return nil
}

// byteSequence decodes base64 up to ':' into p.sigs.
func (p *parse) byteSequence() error {
	end := strings.IndexByte(p.s[p.i:], ':')
	if end < 0 {
		return errBase64
	}
	text := p.s[p.i : p.i+end]
	for i := 0; i < len(text); i++ { // encoding/base64 would skip CR and LF
		if c := text[i]; !isAlpha(c) && !isDigit(c) && c != '+' && c != '/' && c != '=' {
			return errBase64
		}
	}
	p.i += end + 1
	var err error
	p.value = append(p.value[:0], text...)
	p.sigs, err = base64.StdEncoding.AppendDecode(p.sigs, p.value)
	return err
}

func (p *parse) find(label string) *member {
	for i := range p.members {
		if p.members[i].label == label {
			return &p.members[i]
		}
	}
	return nil
}

// comma reads what stands between members. more is false at the end of the
// field; ok is false for anything else than one comma with blanks around it.
func (p *parse) comma() (more, ok bool) {
	p.skipOWS()
	if p.i == len(p.s) {
		return false, true
	}
	if !p.take(',') {
		return false, false
	}
	p.skipOWS()
	return true, p.i < len(p.s) // a trailing comma is an error
}

// key reads an RFC 9651 key.
func (p *parse) key() (string, bool) {
	from := p.i
	if p.i >= len(p.s) || !isLower(p.s[p.i]) && p.s[p.i] != '*' {
		return "", false
	}
	for p.i < len(p.s) {
		c := p.s[p.i]
		if !isLower(c) && !isDigit(c) && c != '_' && c != '-' && c != '.' && c != '*' {
			break
		}
		p.i++
	}
	return p.s[from:p.i], true
}

// quoted reads an sf-string, appends it as it stands, which is its canonical form,
// and returns the text without escapes. It allocates only when there are escapes.
func (p *parse) quoted() (string, bool) {
	from := p.i
	if !p.take('"') {
		return "", false
	}
	escapes := false
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			p.canon = append(p.canon, p.s[from:p.i]...)
			text := p.s[from+1 : p.i-1]
			if escapes {
				text = unescape(text)
			}
			return text, true
		case c == '\\':
			if p.i >= len(p.s) || p.s[p.i] != '"' && p.s[p.i] != '\\' {
				return "", false
			}
			escapes = true
			p.i++
		case c < 0x20 || c >= 0x7f:
			return "", false
		}
	}
	return "", false
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (p *parse) take(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *parse) skipSP() {
	for p.i < len(p.s) && p.s[p.i] == ' ' {
		p.i++
	}
}

func (p *parse) skipOWS() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t') {
		p.i++
	}
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return isLower(c) || 'A' <= c && c <= 'Z' }

// isTchar is RFC 9110 §5.6.2.
func isTchar(c byte) bool {
	return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
