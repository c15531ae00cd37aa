package protocol

// A Shared is how much may wait at one place, a person, a board or a node, of what nobody has
// confirmed, paid or proved yet. Every room asks this one rule, so that strangers never use up what
// known callers need: they fill half of a place at most, the oldest of theirs gives way to what is
// new, and the more of their half is filled, the more work the next one costs. Known callers have
// the rest, and all of it where strangers left it.
type Shared struct{ Most int }

// What is bounded in this way.
var (
	SharedBids     = Shared{300} // unpaid bids on one board
	SharedMeetings = Shared{100} // unconfirmed meeting requests to one person
)

// sharedSteps is by how many levels a proof exceeds the least of its purpose where the strangers'
// half is full.
const sharedSteps = 5

// A Waiting is what waits at a place, by who began it.
type Waiting struct{ Known, Strangers int }

// Known reports whether the node can recognise the caller again: it signed, or is signed in. Who has
// only paid a proof of work, and who has shown nothing, is a stranger.
func (c Caller) Known() bool { return c.Standing&(Owner|Federated) != 0 && !c.Partial }

// Strangers is how much strangers may fill together: half, and at least one.
func (s Shared) Strangers() int { return max(1, (s.Most+1)/2) }

// Admit makes room for one more of a caller's, and returns how many of those that wait end for it,
// the oldest first: of strangers, and of known callers only where these fill the place alone.
func (s Shared) Admit(c Caller, w Waiting) (giveWay Waiting) {
	if !c.Known() {
		return Waiting{Strangers: max(0, w.Strangers+1-s.Strangers())}
	}
	over := max(0, w.Known+w.Strangers+1-s.Most)
	giveWay.Strangers = min(over, w.Strangers)
	giveWay.Known = over - giveWay.Strangers
	return giveWay
}

// Full reports whether there is no room for one more where nothing can give way: what known callers began,
// or proved, and what cannot be undone.
func (s Shared) Full(known bool, w Waiting) bool {
	return w.Known+w.Strangers >= s.Most || !known && w.Strangers >= s.Strangers()
}

// Steps is by how many levels a stranger's proof exceeds the least of its purpose while so many of
// the strangers' wait.
func (s Shared) Steps(strangers int) int {
	return min(sharedSteps, strangers*sharedSteps/s.Strangers())
}

// Price refuses a stranger whose proof is too easy for what waits, with pow-required and the number of
// steps for a fresh challenge. One level less is enough, since others come while a challenge is solved.
func Price(c Caller, steps int) error {
	if c.Standing != Proof || c.Above >= steps-1 {
		return nil
	}
	e := Errorf(PowRequired, "many requests of strangers wait here, so this costs more; solve the challenge in this answer and send the same request again")
	e.Steps = steps
	return e
}
