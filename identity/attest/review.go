package attest

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"stoa/identity/key"
	"stoa/protocol"
)

// review repeats what can be repeated of a review: the node's signature of one that was given there, and the rule by which it counts.
// Who the buyer is, and what else they reviewed, only the node knows.
func (c *check) review() {
	var r protocol.Review
	if err := json.Unmarshal(c.doc.Subject.Object, &r); err != nil {
		c.judge("review", fmt.Errorf("the object is no review"), "the object with a review", "PROOF.md §2", "")
		return
	}
	if r.Via == "node" && r.Reason != protocol.ReviewWithdrawn && !r.Hidden {
		c.given(r)
	}
	const compared, section = "counts and reason with the rule", "PROOF.md §5.5"
	switch why, known := judged(r); {
	case !known:
		c.add("counts", Said, compared, section, "the node says: %s", r.Reason)
	case r.Counts && why != r.Reason:
		c.add("counts", Bad, compared, section, "by the rule it is %s, and the node says %s", why, r.Reason)
	case !r.Counts && why.Counts():
		c.add("counts", Said, compared, section, "it would count; the node says: %s", r.Reason)
	case !r.Counts && why != r.Reason:
		c.add("counts", Said, compared, section, "it does not, by the rule: %s; the node says: %s", why, r.Reason)
	default:
		c.add("counts", Good, compared, section, "%s; that nothing else speaks against it is the node's word", why)
	}
}

// judged asks the rule about what a review says of its order or payment; known is false when it says nothing.
func judged(r protocol.Review) (why protocol.ReviewReason, known bool) {
	k := protocol.ReviewCase{Payment: r.Payment != nil}
	if r.Order == nil {
		return k.Judge(), k.Payment
	}
	k.Order = *r.Order
	if minor, fault := (protocol.MoneyDraft{Currency: k.Order.Total.Currency, Amount: protocol.Decimal(k.Order.Floor)}).Minor(); fault == nil {
		k.Floors = protocol.ReviewFloors{k.Order.Total.Currency: minor}
	}
	return k.Judge(), true
}

// given checks what the node has signed of a review that was given there.
func (c *check) given(r protocol.Review) {
	const compared, section = "evidence.signed with the review", "PROOF.md §5.5, RFC 7515"
	if len(c.Keys.Keys) == 0 {
		c.add("review", Open, compared, section, "the key of %s was not given", c.seen.Issuer)
		return
	}
	keys := key.Set{Keys: append([]key.Public(nil), c.Keys.Keys...)}
	for i := range keys.Keys {
		keys.Keys[i].NotBefore, keys.Keys[i].Expires = time.Time{}, time.Time{}
	}
	payload, _, err := keys.VerifyCompact(r.Evidence.Signed, protocol.ReviewType, maxSeen, time.Now())
	var s protocol.ReviewClaims
	if err == nil {
		err = json.Unmarshal(payload, &s)
	}
	text := ""
	if r.Text != "" {
		text = protocol.TextHash(r.Text)
	}
	switch {
	case err != nil:
	case s.Issuer != c.seen.Issuer || s.ID != r.ID || s.Buyer != r.Client || s.TextHash != text || r.Order == nil || s.Receipt != r.Order.Receipt ||
		r.Rating == nil || s.Rating != int64(math.Round(*r.Rating*100)):
		err = fmt.Errorf("the node signed another review")
	}
	c.judge("review", err, compared, section, "of the order with the receipt %s, given or changed on %s", s.Receipt, time.Unix(s.At, 0).UTC().Format(time.RFC3339))
}
