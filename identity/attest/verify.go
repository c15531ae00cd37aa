package attest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/identity/key"
	"stoa/protocol"
)

// A Result is the result of one step.
type Result string

const (
	Good Result = "ok"     // shown here
	Bad  Result = "failed" // shown to be wrong
	Said Result = "said"   // the node says so, and nothing here shows it
	Open Result = "open"   // not shown, for want of something that the verifier was not given
	Past Result = "past"   // what the document says was so, and is not so now; this decides nothing
)

// A Verdict is the result of all steps.
type Verdict string

const (
	Verified  Verdict = "verified"
	Refused   Verdict = "refused"
	Undecided Verdict = "undecided"
)

// A Step is one comparison. Names are fixed by docs/PROOF.md.
type Step struct {
	Name     string `json:"step"`
	Result   Result `json:"result"`
	Compared string `json:"compared"` // what was compared
	Value    string `json:"value"`    // with which value, or why it failed
	Section  string `json:"section"`  // of the standard
}

// A Report is what a verification found.
type Report struct {
	Verdict Verdict             `json:"verdict"`
	Kind    string              `json:"kind"`
	ID      string              `json:"id"`
	Level   protocol.ProofLevel `json:"level"`
	Seen    *time.Time          `json:"seen"` // when the node says it saw the object; null when its signature was not verified
	Steps   []Step              `json:"steps"`
}

// Options are what the verifier trusts.
type Options struct {
	Node   string   // address of the node that must have signed; "" for any
	Keys   key.Set  // of the node; empty when they are not known
	Blocks []string // hashes of blocks, 0x and lower case, that are known to be of the chain
}

// check is one verification under way.
type check struct {
	Options
	doc  Document
	raw  []byte
	seen Seen
	Report
}

func (c *check) add(name string, r Result, compared, section, format string, args ...any) {
	c.Steps = append(c.Steps, Step{Name: name, Result: r, Compared: compared, Value: fmt.Sprintf(format, args...), Section: section})
}

// judge adds a step that is good without an error.
func (c *check) judge(name string, err error, compared, section, format string, args ...any) bool {
	if err != nil {
		c.add(name, Bad, compared, section, "%s", err)
		return false
	}
	c.add(name, Good, compared, section, format, args...)
	return true
}

// Verify verifies a proof document. Faults of the document are steps of the report: there is always a verdict.
func Verify(ctx context.Context, raw []byte, o Options) Report {
	c := &check{Options: o, raw: raw}
	if c.document() {
		c.node()
		c.author(ctx)
		c.log()
		if c.Kind == KindReview {
			c.review()
		}
	}
	c.Verdict = c.conclude()
	return c.Report
}

// Conclude adds a step that the caller has made, and decides again.
func (r *Report) Conclude(s Step) {
	r.Steps = append(r.Steps, s)
	c := check{Report: *r}
	r.Verdict = c.conclude()
}

// conclude decides by the steps. What the node says is enough only where the author's level claims no more.
func (c *check) conclude() Verdict {
	has := func(r Result) bool { return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Result == r }) }
	switch {
	case has(Bad):
		return Refused
	case has(Open), has(Said) && outside(c.Level):
		return Undecided
	}
	return Verified
}

// outside reports whether an author of this level is vouched for by somebody else than the node.
func outside(l protocol.ProofLevel) bool { return byChain(l) || l == protocol.ByDirectory }

func byChain(l protocol.ProofLevel) bool {
	return l == protocol.ByChainKey || l == protocol.ByOwner || l == protocol.ByWallet
}

// document checks the form, and the hash of the object.
func (c *check) document() bool {
	const compared, section = "subject.hash with the SHA-256 of subject.object", "PROOF.md §2, RFC 8785"
	var err error
	if c.doc, err = Parse(c.raw); err != nil {
		return c.judge("document", err, compared, section, "")
	}
	s := c.doc.Subject
	c.Kind, c.ID = s.Kind, s.ID
	hash, err := Hash(s.Object)
	if err == nil && hash != s.Hash {
		err = fmt.Errorf("the object has %s, and the document says %s", hash, s.Hash)
	}
	if err == nil && (s.ID == "" || !strings.HasPrefix(s.URL, "http")) {
		err = fmt.Errorf("the object has no id or no address")
	}
	return c.judge("document", err, compared, section, "%s", hash)
}

// node checks what the node has signed.
func (c *check) node() {
	const compared, section = "seen, and what it says about the document", "PROOF.md §3, RFC 7515, RFC 8037"
	payload, err := peek(c.doc.Seen)
	if err != nil {
		c.judge("node", err, compared, section, "")
		return
	}
	if err := json.Unmarshal(payload, &c.seen); err != nil {
		c.judge("node", fmt.Errorf("the payload of seen is malformed"), compared, section, "")
		return
	}
	whole, err := bare(c.raw)
	switch s, d := c.seen, c.doc.Subject; {
	case err != nil:
	case s.Document != whole:
		err = fmt.Errorf("the document has %s, and the node signed %s", whole, s.Document)
	case s.Object != d.Hash || s.Subject != d.ID:
		err = fmt.Errorf("the node signed this for another object")
	case c.Node != "" && s.Issuer != c.Node:
		err = fmt.Errorf("%s signed, and not %s", s.Issuer, c.Node)
	case !strings.HasPrefix(d.URL, s.Issuer+"/"):
		err = fmt.Errorf("the object is shown at %s, and %s signed", d.URL, s.Issuer)
	}
	if err != nil {
		c.judge("node", err, compared, section, "")
		return
	}
	c.Level = c.seen.Level
	at := time.Unix(c.seen.At, 0).UTC()
	if len(c.Keys.Keys) == 0 {
		c.add("node", Open, compared, section, "the key of %s was not given", c.seen.Issuer)
		return
	}
	// iat says since when the node has the object, and not when it signed: the times of a key (nbf, exp) have nothing to be compared with.
	keys := key.Set{Keys: slices.Clone(c.Keys.Keys)}
	for i := range keys.Keys {
		keys.Keys[i].NotBefore, keys.Keys[i].Expires = time.Time{}, time.Time{}
	}
	_, k, err := keys.VerifyCompact(c.doc.Seen, SeenType, maxSeen, at)
	if c.judge("node", err, compared, section, "%s saw it on %s, key %s", c.seen.Issuer, at.Format(time.RFC3339), k.Thumbprint) {
		c.Report.Seen = &at
	}
}
