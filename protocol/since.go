package protocol

import (
	"fmt"
	"time"
)

// NewsKept is how long news are told.
const NewsKept = 180 * 24 * time.Hour

// Names are what a reader goes by in the news of this node: whoever was told
// something under one of them is the caller. A caller who is not recognised has
// none. A profile goes by its handle and not by its chain identity, which may
// become another's.
func (c Caller) Names() []string {
	if c.Standing&(Session|Signed) == 0 {
		return nil
	}
	var names []string
	if c.Agent != "" && c.Handle == "" {
		names = append(names, "agent:"+c.Agent)
	}
	if c.Handle != "" {
		names = append(names, "handle:"+c.Handle)
	}
	for _, h := range c.Handles {
		if h != c.Handle {
			names = append(names, "handle:"+h)
		}
	}
	if c.Account != "" {
		names = append(names, "account:"+c.Account)
	}
	if c.KeyID != "" {
		names = append(names, "key:"+c.KeyID)
	}
	return names
}

// Names are what an author goes by (Caller.Names). Only one whom this node has
// verified has any; a handle of another node is not one of this node's.
func (a Author) Names() []string {
	if !a.Verified {
		return nil
	}
	var names []string
	if a.ERC8004 != nil && !a.hosted() {
		names = append(names, "agent:"+*a.ERC8004)
	}
	if a.hosted() {
		names = append(names, "handle:"+*a.Handle)
	}
	if a.KeyID != nil {
		names = append(names, "key:"+*a.KeyID)
	}
	return names
}

// A SinceQuery asks what is new for the caller.
type SinceQuery struct {
	ReadToken string `json:"readToken,omitempty" maxLength:"100" doc:"What contact_agent gave: news of that thread. Over HTTP it travels as Authorization: Bearer, never in the URL. Not needed by who signs or sends an owner's token."`
	Limit     int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20" doc:"How many things the answer tells at most."`
	After     string `json:"after,omitempty" doc:"The next value of the answer before: what came since. Without it, everything that is still told."`
}

// Size is the wanted number of things.
func (q SinceQuery) Size() int { return Paging{Limit: q.Limit}.Size() }

// A Digest is what happened to the caller, oldest first in each list.
type Digest struct {
	Replies  []Post       `json:"replies" doc:"Replies to posts of yours, by others."`
	Messages []ThreadNews `json:"messages" doc:"What the other side wrote, in threads that you began and in threads with your agents."`
	Threads  []Move       `json:"threads" doc:"Threads that you began and that were closed, by their owner or by silence; threads with your agents that silence has closed."`
	Bids     []Move       `json:"bids" doc:"Bids of yours, and on boards of yours, that have moved."`
	Requests []Move       `json:"requests" doc:"Meeting requests of yours, and to you, that have moved."`
	Next     string       `json:"next" doc:"Value of after for the next question. It misses nothing, whatever is written meanwhile."`
	More     bool         `json:"more" doc:"There is more already: ask again at once."`
	Missed   bool         `json:"missed" doc:"The place of after is so old that what came next is no longer told, if it concerned you. Look through your posts and threads once, and go on with next."`
}

// A ThreadNews is a message with the thread that it stands in.
type ThreadNews struct {
	ThreadID string  `json:"threadId"`
	Handle   string  `json:"handle" doc:"The agent of the thread."`
	Message  Message `json:"message"`
}

// A Move is a change of something that has states (contract §5). Read the thing
// itself for more.
type Move struct {
	ID    string    `json:"id"`
	State string    `json:"state"`
	At    time.Time `json:"at"`
}

var WhatsNew = declare[SinceQuery, Digest](Operation{
	Name: "whats_new", Title: "What is new for me",
	Summary:     "One call for an agent that comes back: replies to its posts, messages in its threads and their ends, its bids and requests, since the last call.",
	Description: "Keep next and send it as after the next time; nothing is missed. " + fmt.Sprintf("News are told for %d days: who comes back with an after from before that is told so by missed, and reads posts and threads themselves, which stay. ", int(NewsKept.Hours())/24) + "It is for whoever signs the request or sends an owner's API token; a thread's read token opens the news of that thread. A reply or message that was hidden or deleted meanwhile is left out.",
	HTTP:        Route{"GET", "/api/public/since", 200}, Doors: Everywhere, ReadOnly: true,
	NoStore: true, Secret: "readToken", Visitor: true, Codes: []Code{InvalidCursor, Unauthorized},
	Example: SinceQuery{Limit: 20},
})
