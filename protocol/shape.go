package protocol

import (
	"reflect"
	"strings"
)

// A shape is a form of text that many inputs have: the struct tag shape names it.
type shape struct {
	pattern string
	fold    func(string) string // to the form that is stored; nil changes nothing
	fault   func(string) Fault  // of a text, without its pointer; no fault has no code; nil finds none
}

// A TextRule is what a text of a field must be, beyond the limits that JSON Schema has.
type TextRule struct {
	line, visible bool
	fault         func(string) Fault
}

// RuleOf returns the rule of a field, or of each item of one that is a list: by its tags line (without breaks and tabs), visible
// (something of it is seen, if it is given) and shape; nil for none.
func RuleOf(tag reflect.StructTag) *TextRule {
	r := TextRule{tag.Get("line") != "", tag.Get("visible") != "", textShapes[tag.Get("shape")].fault}
	if !r.line && !r.visible && r.fault == nil {
		return nil
	}
	return &r
}

// Faults returns the faults of a text at a pointer; none for an empty one.
func (r *TextRule) Faults(at, s string) (faults []Fault) {
	if r == nil || s == "" {
		return nil
	}
	if r.line && !IsLine(s) {
		faults = append(faults, Fault{at, "not-one-line", "must be one line, without breaks and tabs"})
	}
	if r.visible && Blank(s) {
		faults = append(faults, Fault{at, "blank", "must contain a visible character"})
	}
	if r.fault != nil {
		if f := r.fault(s); f.Code != "" {
			faults = append(faults, Fault{at, f.Code, f.Detail})
		}
	}
	return faults
}

// known refuses what is not one of the codes of a standard.
func known(code func(string) bool, name, detail string) func(string) Fault {
	return func(s string) Fault {
		if code(s) {
			return Fault{}
		}
		return Fault{Code: name, Detail: detail}
	}
}

// id is the rest of an id after its prefix (contract §1).
const id = `_[0-7][0-9a-hjkmnp-tv-z]{25}`

// handle is a handle as people write it.
const handle = `@?[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])`

var textShapes = map[string]shape{
	"account":      {pattern: `^(?:acc` + id + `|` + handle + `)$`, fold: CleanHandle}, // or the handle of one of its profiles
	"base64url":    {pattern: `^[A-Za-z0-9_-]*$`},
	"address":      {pattern: `^https://`, fault: known(isAddress, "wrong-shape", "must be an https address with a host, and without user name and password")},
	"bid-id":       {pattern: `^bid` + id + `$`},
	"block-id":     {pattern: `^blk` + id + `$`},
	"calendar-id":  {pattern: `^cal` + id + `$`},
	"complaint-id": {pattern: `^cmp` + id + `$`},
	"callback":     {fault: callback},
	"closes":       {pattern: `^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`},
	"country":      {pattern: `^[A-Z]{2}$`, fault: known(IsRegion, "unknown-region", "not an ISO 3166-1 code such as IN")},
	"currency":     {pattern: `^[A-Z]{3}$`}, // ISO 4217
	"decimal":      {pattern: `^[0-9]{1,15}([.][0-9]{1,4})?$`},
	"feed-id":      {pattern: `^feed` + id + `$`},
	"handle":       {pattern: `^` + handle + `$`, fold: CleanHandle},
	"kept-handle":  {pattern: HandlePattern},
	"keyid":        {pattern: `^[A-Za-z0-9_-]{43}$`}, // RFC 7638
	"label":        {pattern: `^[^\t\n]{1,60}$`},
	"language": {pattern: `^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$`,
		fault: known(IsLanguage, "unknown-language", "not a BCP 47 language tag such as en, hi or pt-BR")},
	"mail":       {fault: known(isMail, "not-an-address", "must be a mail address such as asha@example.org")},
	"mail-code":  {pattern: `^[A-Za-z0-9_-]{32}$`},
	"message-id": {pattern: `^msg` + id + `$`},
	"meeting-id": {pattern: `^mtg` + id + `$`},
	"moment":     {pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?$`},
	"name":       {pattern: `^[a-z][a-z0-9-]{1,39}$`}, // of a part within a profile
	"note-id":    {pattern: `^note` + id + `$`},
	"opens":      {pattern: `^([01][0-9]|2[0-3]):[0-5][0-9]$`},
	"passkey-id": {pattern: `^psk` + id + `$`},
	"passphrase": {pattern: `^[!-~]([ -~]*[!-~])?$`},
	"post-id":    {pattern: `^post` + id + `$`},
	"post-tag":   {pattern: PostTagPattern, fold: FoldTag},
	"receipt-id": {pattern: `^rcpt` + id + `$`},
	"review-id":  {pattern: `^rev` + id + `$`},
	"refund-id":  {pattern: `^rfd` + id + `$`},
	"region": {pattern: `^[A-Z]{2}(-[A-Z0-9]{1,3})?$`,
		fault: known(IsRegion, "unknown-region", "not an ISO 3166 code such as IN or IN-KA")},
	"session-id": {pattern: `^ses` + id + `$`},
	"sha256":     {pattern: `^[0-9a-f]{64}$`},
	"tag":        {pattern: TagPattern},
	"thread-id":  {pattern: `^thr` + id + `$`},
	"order-id":   {pattern: `^ord` + id + `$`},
	"token-id":   {pattern: `^tok` + id + `$`},
	"until":      {pattern: `^(([01][0-9]|2[0-5]):[0-5][0-9]|26:00)$`},
	"utr":        {pattern: utrPattern, fold: FoldUTR},
	"vpa":        {pattern: vpaPattern, fold: strings.TrimSpace},
	"zone":       {fold: FoldZone},
}

// Optional reports whether an input may leave a field out.
func Optional(tag reflect.StructTag) bool {
	_, options, _ := strings.Cut(tag.Get("json"), ",")
	return strings.Contains(options, "omit") || tag.Get("required") == "false"
}

// PatternOf returns the regular expression that a field, or each item of one that
// is a list, has to match: that of its tag shape, or its tag pattern; "" for none.
// It panics when no shape has the name.
func PatternOf(tag reflect.StructTag) string {
	name, ok := tag.Lookup("shape")
	if !ok {
		return tag.Get("pattern")
	}
	s, known := textShapes[name]
	if !known {
		panic("no shape has the name " + name)
	}
	return s.pattern
}
