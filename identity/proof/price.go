package proof

import (
	"time"

	"stoa/protocol/pow"
)

// SetFloor sets the lowest level of every challenge from now on; 0 means that of each purpose.
// Easier ones that were issued before are not accepted any more.
func (i *Issuer) SetFloor(level int) { i.floor.Store(int32(level)) }

// Paid records that a proof was accepted for a text: it raises the price of the network's next
// challenges, that of everyone's by the total load, and that of similar texts. text may be nil.
func (i *Issuer) Paid(network string, p pow.Parameters, text *Text) {
	now := i.c.Now()
	i.load.add(network, now)
	if text != nil && p.Data.Text != text.digest { // otherwise Harder has recorded it
		i.alike.add(text, network, now)
	}
}

// recent reports whether a challenge is as hard as a fresh one would be. A network may have paid for
// few writes meanwhile, and the node's load may have doubled once, so that who fetches one challenge
// and solves it succeeds. Accepted proofs whose writes are still under way count too, otherwise many
// could be sent at once. Only a challenge made for a text (Harder) is good for a minute at any price.
func (i *Issuer) recent(p pow.Parameters, network string, now time.Time) bool {
	if i.c.Flat != nil || p.Data.Text != "" && now.Before(time.Unix(p.ExpiresAt, 0).Add(youth-Lifetime)) {
		return true
	}
	present := max(baseLevel[p.Data.Purpose], int(i.floor.Load())) + i.load.spending(network, now)
	return levelOf(p) >= min(present, len(pow.Ladder)-1)
}

// Above returns by how many levels a solved challenge exceeds the least one of its purpose, which
// pays for what waits at one place (protocol.Shared). When nothing harder can be asked for, it is more than
// any place asks.
func (i *Issuer) Above(p pow.Parameters) int {
	if level := levelOf(p); i.c.Flat == nil && level < len(pow.Ladder)-1 {
		return level - baseLevel[p.Data.Purpose]
	}
	return len(pow.Ladder)
}

// Covers reports whether a solved challenge pays for a text: it was issued for exactly this text,
// or is as hard as the purpose requires with the levels for similar texts. Repetition thus costs
// more and is never refused.
func (i *Issuer) Covers(p pow.Parameters, network string, text *Text) bool {
	if i.c.Flat != nil || p.Data.Text == text.digest {
		return true
	}
	steps := i.alike.steps(text, network, i.c.Now())
	return steps == 0 || levelOf(p) >= min(baseLevel[p.Data.Purpose]+steps, len(pow.Ladder)-1)
}

// Harder returns a challenge for a text that the one just solved does not pay for. For a minute it
// is valid for this text, whatever the price is then, so that one round trip is enough. The
// request counts as a repetition, otherwise many could ask at the price of one; and it uses up the
// solved challenge.
func (i *Issuer) Harder(solved pow.Parameters, purpose, network string, text *Text) pow.Challenge {
	now := i.c.Now()
	level := min(i.level(purpose, network, now)+i.alike.steps(text, network, now), len(pow.Ladder)-1)
	i.alike.add(text, network, now)
	i.burn(solved.MAC(i.secret(solved.Data.KeyID)), time.Unix(solved.ExpiresAt, 0))
	return i.issue(purpose, level, text.digest, now)
}

// levelOf returns the level of a challenge, 0 for one of an older ladder.
func levelOf(p pow.Parameters) int {
	for level, step := range pow.Ladder {
		if step.Cost == p.Cost && step.Prefix == p.KeyPrefix {
			return level
		}
	}
	return 0
}

func (i *Issuer) level(purpose, network string, now time.Time) int {
	if i.c.Flat != nil {
		return min(max(*i.c.Flat, 0), len(pow.Ladder)-1)
	}
	base := max(baseLevel[purpose], int(i.floor.Load()))
	return min(base+i.load.steps(network, now), len(pow.Ladder)-1)
}
