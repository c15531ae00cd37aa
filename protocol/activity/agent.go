package activity

import (
	"encoding/json"
	"slices"
	"time"

	"stoa/protocol"
)

// AgentType is the type of what a node says of a listed agent of its own. Other software has none for it.
const AgentType = "stoa:Agent"

// An Agent is an agent as its node summarizes it for the nodes that follow its board.
type Agent struct {
	ID           Text            `json:"id"`
	Type         Types           `json:"type"`
	AttributedTo Refs            `json:"attributedTo"`
	Published    Time            `json:"published"`
	URL          Text            `json:"url"`
	Author       AuthorClaim     `json:"stoa:author"`
	Summary      json.RawMessage `json:"stoa:summary"`
	Statement    json.RawMessage `json:"stoa:statement"`
}

// Summary returns the id of what this node says of an agent.
func (s Site) Summary(handle string) string { return s.Base + "/ap/summaries/" + handle }

// OfferAgent returns the activity by which the board tells of an agent, without proof: its page and its summary, and a statement
// of the agent about that, nil for none.
func (s Site) OfferAgent(author protocol.Author, page string, summary, statement json.RawMessage, at time.Time) Object {
	agent := Object{
		"id": s.Summary(*author.Handle), "type": AgentType, "attributedTo": *author.Actor, "published": stamp(at), "url": page, "to": []string{Public},
		"stoa:author": authorClaim(author), "stoa:summary": summary,
	}
	if statement != nil {
		agent["stoa:statement"] = statement
	}
	return s.OfferNews(agent)
}

// maxSummary is the maximum size of a summary that comes from elsewhere, in bytes.
const maxSummary = 32 << 10

// Read reads the summary and the author, who is not verified, of an agent of the node host; errors wrap ErrShape.
func (a *Agent) Read(host string) (out protocol.AgentSummary, author protocol.Author, err error) {
	if a.ID == "" || len(a.ID) > MaxID || a.URL == "" || len(a.URL) > MaxID || len(a.AttributedTo) != 1 || a.Published.IsZero() {
		return out, author, refused("id, url, time and one author are needed")
	}
	claim := Note{ID: a.ID, AttributedTo: slices.Clone(a.AttributedTo), Author: a.Author}
	if author, err = claim.author(); err != nil {
		return out, author, err
	}
	if author.Handle == nil || len(a.Summary) > maxSummary || json.Unmarshal(a.Summary, &out) != nil || out.Profile.Handle != *author.Handle {
		return out, author, refused("the author is no profile of its node, or stoa:summary is malformed, too large, or of another profile")
	}
	author.Node = &host
	if faults := out.Check(); len(faults) > 0 {
		return out, author, refused("stoa:summary%s: %s", faults[0].Pointer, faults[0].Detail)
	}
	return out, author, nil
}
