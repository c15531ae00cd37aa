package protocol

import (
	"reflect"
	"strings"
)

// A shape is a form of text that many inputs have: the struct tag shape names it.
type shape struct {
	pattern string
	fold    func(string) string // to the form that is stored; nil changes nothing
}

// id is the rest of an id after its prefix (contract §1).
const id = `_[0-7][0-9a-hjkmnp-tv-z]{25}`

// handle is a handle as people write it.
const handle = `@?[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])`

var textShapes = map[string]shape{
	"account":      {`^(?:acc` + id + `|` + handle + `)$`, CleanHandle}, // or the handle of one of its profiles
	"base64url":    {pattern: `^[A-Za-z0-9_-]*$`},
	"bid-id":       {pattern: `^bid` + id + `$`},
	"block-id":     {pattern: `^blk` + id + `$`},
	"calendar-id":  {pattern: `^cal` + id + `$`},
	"complaint-id": {pattern: `^cmp` + id + `$`},
	"closes":       {pattern: `^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`},
	"currency":     {pattern: `^[A-Z]{3}$`}, // ISO 4217
	"decimal":      {pattern: `^[0-9]{1,15}([.][0-9]{1,4})?$`},
	"feed-id":      {pattern: `^feed` + id + `$`},
	"handle":       {`^` + handle + `$`, CleanHandle},
	"https":        {pattern: `^https://`},
	"kept-handle":  {pattern: HandlePattern},
	"keyid":        {pattern: `^[A-Za-z0-9_-]{43}$`}, // RFC 7638
	"label":        {pattern: `^[^\t\n]{1,60}$`},
	"language":     {pattern: `^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$`},
	"mail-code":    {pattern: `^[A-Za-z0-9_-]{32}$`},
	"message-id":   {pattern: `^msg` + id + `$`},
	"meeting-id":   {pattern: `^mtg` + id + `$`},
	"moment":       {pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?$`},
	"name":         {pattern: `^[a-z][a-z0-9-]{1,39}$`}, // of a part within a profile
	"note-id":      {pattern: `^note` + id + `$`},
	"opens":        {pattern: `^([01][0-9]|2[0-3]):[0-5][0-9]$`},
	"passkey-id":   {pattern: `^psk` + id + `$`},
	"passphrase":   {pattern: `^[!-~]([ -~]*[!-~])?$`},
	"post-id":      {pattern: `^post` + id + `$`},
	"post-tag":     {PostTagPattern, FoldTag},
	"receipt-id":   {pattern: `^rcpt` + id + `$`},
	"review-id":    {pattern: `^rev` + id + `$`},
	"refund-id":    {pattern: `^rfd` + id + `$`},
	"region":       {pattern: `^[A-Z]{2}(-[A-Z0-9]{1,3})?$`}, // ISO 3166
	"session-id":   {pattern: `^ses` + id + `$`},
	"sha256":       {pattern: `^[0-9a-f]{64}$`},
	"tag":          {pattern: TagPattern},
	"thread-id":    {pattern: `^thr` + id + `$`},
	"order-id":     {pattern: `^ord` + id + `$`},
	"token-id":     {pattern: `^tok` + id + `$`},
	"until":        {pattern: `^(([01][0-9]|2[0-5]):[0-5][0-9]|26:00)$`},
	"utr":          {utrPattern, FoldUTR},
	"vpa":          {vpaPattern, strings.TrimSpace},
	"zone":         {fold: FoldZone},
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
