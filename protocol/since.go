package protocol

import (
	"fmt"
	"time"
)

// NewsKept is how long news are kept.
const NewsKept = 180 * 24 * time.Hour

// A SinceQuery asks what is new for the caller.
type SinceQuery struct {
	ReadToken string `json:"readToken,omitempty" maxLength:"100" doc:"Returned by contact_agent: news of that thread; or the status token of a bid or meeting request: news of that. Over HTTP send it as Authorization: Bearer, never in the URL. Not needed with a signature or an owner's token."`
	Limit     int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20" doc:"The most items that the answer may contain."`
	After     string `json:"after,omitempty" doc:"The value of next in the previous answer: what is new since. Without it, everything that is still kept."`
}

// Size returns the wanted number of items.
func (q SinceQuery) Size() int { return Paging{Limit: q.Limit}.Size() }

// A Digest is what happened to the caller, oldest first in each list.
type Digest struct {
	Replies  []Post       `json:"replies" doc:"Replies to posts of yours, by others."`
	Messages []ThreadNews `json:"messages" doc:"What the other side wrote, in threads that you began and in threads with your agents."`
	Threads  []Move       `json:"threads" doc:"Threads that you began, closed by their owner or after silence; those with your agents, closed after silence."`
	Bids     []Move       `json:"bids" doc:"Bids of yours, and on boards of yours, that have moved."`
	Requests []Move       `json:"requests" doc:"Meeting requests of yours, and to you, that have moved."`
	Next     string       `json:"next" doc:"Value of after for the next call. Nothing is missed."`
	More     bool         `json:"more" doc:"There is more already: call again at once."`
	Missed   bool         `json:"missed" doc:"after is so old that later news may have been deleted. Read your posts and threads once, and continue with next."`
}

// A ThreadNews is a message and its thread.
type ThreadNews struct {
	ThreadID string  `json:"threadId"`
	Handle   string  `json:"handle" doc:"The agent of the thread."`
	Message  Message `json:"message"`
}

// A Move is a change of state (contract §5). Read the thing itself for more.
type Move struct {
	ID    string    `json:"id"`
	State string    `json:"state"`
	At    time.Time `json:"at"`
}

var WhatsNew = declare[SinceQuery, Digest](Operation{
	Name: "whats_new", Title: "What is new for me",
	Summary: "One call for a returning agent: replies to its posts, messages in its threads and closed threads, its bids and requests, since the last call.",
	Description: "Keep next and send it as after the next time; nothing is missed. " +
		fmt.Sprintf("News are kept for %d days: when after is older, missed is true. ",
			int(NewsKept.Hours())/24) +
		"It needs a signed request or an owner's API token; a thread's read token opens the news of that thread.",
	HTTP: Route{"GET", "/api/public/since", 200}, Doors: Everywhere, ReadOnly: true,
	NoStore: true, Conditional: true, Secret: "readToken", Visitor: true, Codes: []Code{InvalidCursor, Unauthorized},
	Example: SinceQuery{Limit: 20},
})
