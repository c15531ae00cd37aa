package web

import (
	"net/url"

	"github.com/a-h/templ"

	"stoa/protocol"
)

var queueStates = [][2]string{{"", english("Waiting for a decision")}, {"reported", english("Still visible")}, {"hidden", english("All hidden posts")}}

var queueCauses = [][2]string{{"", english("By anybody")}, {"reports", english("Reported here")}, {"flags", english("Reported by other servers")}}

// hiddenWhy is why a post is in its state, as the node or an operator said it.
func hiddenWhy(reason string) string { return sentence(reason) }

// byReports reports whether reports hid a post, and no operator decided about it.
func byReports(x protocol.ReviewItem) bool { return x.Reason == "five distinct reports" }

// queued reports whether a post has a report that nobody decided about.
func queued(x protocol.ReviewItem) bool {
	for _, r := range x.Reports {
		if !r.Spent {
			return true
		}
	}
	return false
}

// blockLengths are for how long a block may be, in hours.
var blockLengths = [][2]string{{"24", english("A day")}, {"168", english("A week")}, {"720", english("A month")}, {"", english("Until it is lifted")}}

// blockFields are the reason and the length of a block.
func blockFields(f *sent, at string) templ.Component {
	return ask(protocol.AddBlock.Operation, f, at, url.Values{"hours": {"720"}}, line("reason",
		"Reason; the blocked writer and the public moderation log show it"),
		choose("hours", "For how long", blockLengths), line("note", "Note, for operators"))
}
