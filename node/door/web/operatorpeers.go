package web

import (
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// failures are parts of errors, and what they mean.
var failures = [][2]string{
	{"connection refused", english("No server listens there.")}, {"no such host", english("The name is not known.")},
	{"certificate", english("Its certificate is not valid.")}, {"deadline exceeded", english("It did not answer in time.")},
	{"imeout", english("It did not answer in time.")}, {"connection reset", english("It broke the connection off.")}, {"EOF",
		english("It broke the connection off.")},
	{"answered 401", english("It does not accept this node's signature.")}, {"answered 403", english("It refuses this node.")},
	{"answered 404", english("There is nothing at that address any more.")}, {"answered 410", english("There is nothing at that address any more.")},
	{"answered 429", english("It asks this node to slow down.")}, {"answered 5", english("It answers with an error of its own.")},
	{"goes back", english("Its log is shorter than before: it was restored from a backup without a new epoch.")},
}

// errorWords returns what an error means, "" when that is not known.
func errorWords(text string) string {
	for _, f := range failures {
		if strings.Contains(text, f[0]) {
			return f[1]
		}
	}
	return ""
}

var policies = [][2]string{
	{"silence", english("Silenced: its posts are stored hidden")}, {"allow", english("Allowed, whatever the policy for * is")},
	{"trusted", english("Trusted: its reports count")},
	{"reject", english("Refused: nothing is taken from it or sent to it")},
}

// blockHost is the form that blocks the host of an address.
func blockHost(o *operatorView, address string) templ.Component {
	return posted("", "", o.here(), once(), hidden("do", "add_node_block", "kind", "host", "value", hostOf(address)), submitsQuietly("Block"))
}

func followedMark(p protocol.Followed) templ.Component {
	switch {
	case p.State == "accepted" && p.Attempts == 0:
		return worded("good", "Up to date")
	case p.State == "accepted":
		return worded("bad", "Does not answer")
	case p.State == "rejected":
		return worded("bad", "It refused")
	case p.State == "failed":
		return worded("bad", "Given up")
	}
	return worded("fair", "Pending")
}

func deliveringMark(p protocol.Delivering) templ.Component {
	switch {
	case p.State == "dead":
		return worded("bad", "Down for a week")
	case p.State == "slow":
		return worded("fair", "Fails")
	case p.Behind > 0:
		return worded("fair", "Catching up")
	}
	return worded("good", "Up to date")
}

func directoryMark(d protocol.ARDDirectory) templ.Component {
	switch d.State {
	case "current":
		return worded("good", "Up to date")
	case "pending":
		return worded("fair", "Pending")
	}
	return worded("bad", "Does not answer")
}
