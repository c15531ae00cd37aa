package protocol

import "time"

// A Holder is who holds a chain identity, as far as a node knows without asking the chain; zero when it does not.
type Holder struct {
	Owner   string    // address in lower case; "" when nobody has it, or that is not known
	Since   time.Time // when the node saw that; the zero time when it does not know
	Exact   bool      // Since is when the owner got it; otherwise it had it by then
	Current bool      // the node watches whether that is so
	Moved   int64     // block by which it had changed its owner; 0 for none that is known
}

// ChangedSince reports whether an identity has another owner than when an author was verified with it, or had one in between. What is not
// known counts as no change.
func (h Holder) ChangedSince(p AuthorProof) bool {
	moved := h.Moved > 0
	switch {
	case p.Owner == nil: // the node knew that the author's profile has the identity
		return moved && p.CheckedAt != nil && h.Since.After(*p.CheckedAt)
	case moved && p.Block != nil && *p.Block < h.Moved:
		return h.Exact || h.Owner != *p.Owner
	}
	return h.Owner != *p.Owner && (h.Current || moved && p.Block == nil)
}
