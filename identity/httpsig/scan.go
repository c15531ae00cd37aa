package httpsig

import (
	"encoding/base64"
	"errors"
	"strings"
)

// Limits bounds what a verifier reads of one message. Zero fields have defaults.
type Limits struct {
	InputBytes     int // Signature-Input, all lines joined; default 8192
	SignatureBytes int // Signature, all lines joined; default 8192
	OneSignature   int // bytes of one signature; default 1024, an RSA-8192 signature
	Labels         int // signatures for all applications; default 16
	Candidates     int // signatures for this node, each of which costs a verification; default 4
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

// member is one signature of a message: a member of Signature-Input and its counterpart in
// Signature. Ranges point into the parse that contains it.
type member struct {
	label              string
	compFrom, compTo   int // parse.comps
	canonFrom, canonTo int // parse.canon: the @signature-params value
	sigFrom, sigTo     int // parse.sigs
	params             Params
	wrongType          string // a known parameter whose value has the wrong type
	signed             bool   // the label is in Signature
}

// parse is the work space for one message. It is reused: slices keep their capacity, strings are
// slices of the fields.
type parse struct {
	limits  Limits
	s       string // text under the scanner
	i       int
	canon   []byte
	sigs    []byte
	comps   []component
	members []member
	names   []string // parameter names of the item being read

	base  []byte // signature base of the current candidate
	value []byte
}

// read scans both fields into p. Every member of both fields must be well formed, also those for
// other applications: RFC 9421 §4.1 makes the field the unit.
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

// join joins the lines of a field to one dictionary (RFC 9110 §5.3).
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
		if c.name = name; name == siwaReceipt {
			c.name = "x-siwa-receipt"
		}
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

// params reads the parameters of a signature (m), of a component (c), or of something whose
// parameters are ignored (both nil).
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

// comma reads what separates members. more is false at the end of the field; ok is false for
// anything but one comma with optional blanks around it.
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

// siwaReceipt is the one identifier in capitals that is read, against RFC 9421 §2.1: npm @buildersgarden/siwa 0.0.24 covers its receipt
// under this name, and signs a base that has it so.
const siwaReceipt = "X-SIWA-Receipt"
