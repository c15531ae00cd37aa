package httpsig

// buildBase writes the signature base of a member into p.base (RFC 9421 §2.5). It checks all
// identifiers before it reads any value, so that the same message always fails for the same
// reason.
func (p *parse) buildBase(m *Message, sig *member) *Error {
	comps := p.comps[sig.compFrom:sig.compTo]
	for i := range comps {
		if e := comps[i].check(m.response()); e != nil {
			return e
		}
		for j := range i {
			if comps[i].same(&comps[j]) {
				return fail(CodeComponentDuplicate, comps[i].name)
			}
		}
	}
	b := p.base[:0]
	for i := range comps {
		c := &comps[i]
		b = append(b, p.canon[c.idFrom:c.idTo]...)
		b = append(b, ": "...)
		var e *Error
		if b, e = p.appendValue(b, m, c); e != nil {
			p.base = b
			return e
		}
		b = append(b, '\n')
	}
	b = append(b, `"@signature-params": `...)
	p.base = append(b, p.canon[sig.canonFrom:sig.canonTo]...)
	return nil
}
