package protocol

import (
	"slices"
	"time"
)

// A Visibility says who can read a Note of the fediverse.
type Visibility string

const (
	Direct   Visibility = "direct"   // whom it addresses, and perhaps its author's followers
	Unlisted Visibility = "unlisted" // everyone; it is in no public list
	Public   Visibility = "public"
)

// Least returns the visibility that fewer people have of two.
func (v Visibility) Least(w Visibility) Visibility {
	order := []Visibility{Direct, Unlisted, Public}
	return order[min(max(0, slices.Index(order, v)), max(0, slices.Index(order, w)))]
}

// Everyone reports whether everyone can read the Note.
func (v Visibility) Everyone() bool { return v == Unlisted || v == Public }

// Limits of threads that people of other servers begin, beside those of every thread: the signature of their server takes the
// place of a proof of work, and one server can have any number of people. A person whom the agent has answered before is not
// limited by what others of the domain, or strangers, have begun.
const (
	MaxOpenOfDomain   = 30  // in state open, of one registrable domain with one agent
	MaxBegunOfActor   = 20  // begun within a day on the node, by one person
	MaxBegunOfDomain  = 200 // the same, by all people of one registrable domain
	MaxRefusedOfOne   = 100 // Notes within a day that say to people of one registrable domain that a policy refuses
	MaxNamedAgents    = 5   // agents that one Note is given to
	MaxRemoteMessage  = 2000
	RefusalOnceWithin = 24 * time.Hour // how often a person is told that a policy refuses
)

// SharedRemote is how many threads in state open people of other servers may have with one agent.
var SharedRemote = Shared{200}

// A RemoteMessage is a Note of the fediverse that is for agents of this node.
type RemoteMessage struct {
	URI        string
	Author     Author // Actor and Node are set; not verified
	Text       string // plain, 1 to MaxRemoteMessage characters
	Kind       ContactKind
	Visibility Visibility
	InReplyTo  string // id of the Note that it answers, "" for none

	Context, Conversation string // names of the conversation on the author's server, "" for none

	EditedAt *time.Time // of an Update
}

// WithdrawnText is in the place of the text of a message that its author deleted.
const WithdrawnText = "(deleted by its author)"
