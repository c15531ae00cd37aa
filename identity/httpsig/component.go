package httpsig

// component is one covered component: its name, its parameters, and the position of its canonical
// identifier in parse.canon.
type component struct {
	name         string
	arg          string // value of ;key or ;name
	flags        uint8
	unknown      bool // a parameter that is unknown or has the wrong type
	idFrom, idTo int
}

const (
	flagSF uint8 = 1 << iota
	flagKey
	flagBS
	flagReq
	flagTR
	flagName
)

func (c *component) set(name string, v span) {
	var flag uint8
	kind := byte('b')
	switch name {
	case "sf":
		flag = flagSF
	case "bs":
		flag = flagBS
	case "req":
		flag = flagReq
	case "tr":
		flag = flagTR
	case "key":
		flag, kind = flagKey, 's'
	case "name":
		flag, kind = flagName, 's'
	}
	if flag == 0 || v.kind != kind || kind == 'b' && v.num == 0 {
		c.unknown = true
		return
	}
	c.flags |= flag
	if kind == 's' {
		c.arg = v.text
	}
}

// same reports whether two identifiers name the same component: the order of
// parameters does not matter (RFC 9421 §2).
func (c *component) same(d *component) bool {
	return c.flags == d.flags && c.name == d.name && c.arg == d.arg
}

// check refuses an identifier that a signature of such a message cannot contain (RFC 9421 §2.1,
// §2.2). It reads no value.
func (c *component) check(response bool) *Error {
	unsupported := func(why string) *Error { return fail(CodeComponentUnsupported, why) }
	switch {
	case c.unknown:
		return unsupported("unknown component parameter")
	case c.flags&flagTR != 0:
		return unsupported("trailers are not read")
	case c.flags&flagReq != 0 && !response:
		return unsupported("req in a request")
	case len(c.name) > 0 && c.name[0] == '@':
		return c.checkDerived(response)
	case !isFieldName(c.name):
		return unsupported("field name")
	case c.flags&flagName != 0:
		return unsupported("name on a field")
	case c.flags&flagBS != 0 && c.flags&(flagSF|flagKey) != 0:
		return unsupported("bs together with sf or key")
	}
	return nil
}

func (c *component) checkDerived(response bool) *Error {
	allowed := flagReq
	switch c.name {
	case "@query-param":
		if c.flags&flagName == 0 {
			return fail(CodeComponentUnsupported, "@query-param without name")
		}
		allowed |= flagName
	case "@status":
		if !response || c.flags != 0 {
			return fail(CodeComponentUnsupported, "@status in a request")
		}
		return nil
	case "@method", "@target-uri", "@authority", "@scheme", "@request-target", "@path", "@query":
	default:
		return fail(CodeComponentUnsupported, "unknown derived component")
	}
	if c.flags&^allowed != 0 {
		return fail(CodeComponentUnsupported, "parameter on a derived component")
	}
	if response && c.flags&flagReq == 0 {
		return fail(CodeComponentUnsupported, "request component in a response without req")
	}
	return nil
}

// isFieldName accepts lower-case field names only (RFC 9421 §2.1).
func isFieldName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isTchar(s[i]) || 'A' <= s[i] && s[i] <= 'Z' {
			return false
		}
	}
	return s != ""
}
