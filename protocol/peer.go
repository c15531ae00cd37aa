package protocol

import "time"

// PeersView is how this node and its peers are connected.
type PeersView struct {
	Head       int64        `json:"head" minimum:"0" doc:"Last number of the log of this node's board."`
	Following  []Followed   `json:"following" doc:"Boards that this node follows, or tries to follow."`
	Delivering []Delivering `json:"delivering" doc:"Inboxes that this node delivers its board to, by address."`
	Policies   []PeerPolicy `json:"policies" doc:"Policies for hosts and their subdomains."`
	Reports    []LogReport  `json:"reports" doc:"What nodes that follow this one report of its log, at most 100, for 30 days or until the log has a new epoch."`
	Next       *string      `json:"next" doc:"Pass as after for further inboxes; null at the end."`
	Untrusted  bool         `json:"untrusted_content" doc:"Always true: errors may repeat what others wrote."`
}

// Followed is a board that this node follows, or tries to follow.
type Followed struct {
	Address   string     `json:"address" doc:"The board, or the given address until the board is found."`
	State     string     `json:"state" enum:"pending,accepted,rejected,failed" doc:"pending: not found, not reached, or not answered yet. failed: given up."`
	Seq       int64      `json:"seq" minimum:"0" doc:"How far its log has been applied here."`
	Behind    int64      `json:"behind" minimum:"0" doc:"Entries of its log that are not applied here yet, by what it said when it was last read."`
	Attempts  int        `json:"attempts" minimum:"0" doc:"Failed attempts since the last success."`
	LastError string     `json:"lastError" doc:"Why the last attempt failed; empty if it did not."`
	NextAt    *time.Time `json:"nextAt" doc:"When the next attempt or poll is due; null for none."`
	CheckedAt *time.Time `json:"checkedAt" doc:"When its log was last asked for, in vain or not; null for never. Without failed attempts, everything until then has arrived."`

	Conflict *LogConflict `json:"conflict,omitempty" doc:"Its log contradicts what was taken of it, and nothing more is taken until it begins a new epoch, or reread_peer or unfollow_peer."`
}

// A LogConflict is that a log contradicts, within one epoch, what a node took of it before.
type LogConflict struct {
	Kind   string    `json:"kind" enum:"fork,fallback,tree" doc:"fork: a number that was taken has another entry now. fallback: the log ends before the last entry that was taken. tree: two signed checkpoints of the log contradict each other, or an entry is not the one in its tree."`
	Epoch  string    `json:"epoch"`
	Seq    int64     `json:"seq" minimum:"0" doc:"Number of the entry that was taken, or, of two checkpoints, the size of the one that was accepted."`
	Ours   string    `json:"ours" doc:"Hash of the entry that was taken, or what the tree has: of two checkpoints the root that was accepted. Empty where it is not known."`
	Theirs string    `json:"theirs" doc:"Hash of the entry that the log has instead, or at its end, or the other root; empty where it is not known."`
	At     time.Time `json:"at" doc:"When it was found or reported."`
}

// A LogReport is what a node that follows this one reports of the log of this node.
type LogReport struct {
	Host     string      `json:"host"`
	Conflict LogConflict `json:"conflict" doc:"What the host says: its entry, and that of this node."`
}

// ConflictEvidence is a conflict with the documents that show it.
type ConflictEvidence struct {
	Conflict       LogConflict `json:"conflict"`
	OursDocument   string      `json:"oursDocument" doc:"The entry that was taken, as received: JSON with the board's proof. Of a tree the signed checkpoint. Empty where it is not known."`
	TheirsDocument string      `json:"theirsDocument" doc:"The other entry or checkpoint or, of a fallback, the signed head of the log. Empty where the log has none."`
	Untrusted      bool        `json:"untrusted_content" doc:"Always true."`
}

// Delivering is an inbox of another server.
type Delivering struct {
	Inbox     string     `json:"inbox"`
	State     string     `json:"state" enum:"active,slow,dead" doc:"slow: fails, and is tried less often. dead: failed for a week."`
	Seq       int64      `json:"seq" minimum:"0" doc:"How far this node's board log has been delivered to it."`
	Behind    int64      `json:"behind" minimum:"0" doc:"Entries of the log that it has not been told of."`
	Attempts  int        `json:"attempts" minimum:"0" doc:"Failed attempts since the last success."`
	LastError string     `json:"lastError"`
	LastAt    *time.Time `json:"lastAt" doc:"The last successful delivery; null for none."`
	NextAt    *time.Time `json:"nextAt" doc:"When it is tried again; null unless it fails."`
	Stoa      bool       `json:"stoa" doc:"It is a stoa node, which reads the log itself when it missed something."`
}

// A PeerPolicy is the operator's policy for a host.
type PeerPolicy struct {
	Host   string `json:"host"`
	Policy string `json:"policy" enum:"reject,silence,allow,trusted"`
	Note   string `json:"note"`
}

// A PeersQuery pages through the inboxes.
type PeersQuery struct {
	Paging
}

var ListPeers = declare[PeersQuery, PeersView](Operation{
	Name: "list_peers", Title: "List peers",
	Summary: "The boards that this node follows or tries to follow and the inboxes that it delivers to, with the state of each.",
	HTTP:    Route{"GET", "/api/operator/peers", 200}, For: Operators, ReadOnly: true, Codes: []Code{InvalidCursor},
	Example: PeersQuery{Paging: Paging{Limit: 20}},
})

// A PeerAddress is the address of another node, of its board or of an inbox.
type PeerAddress struct {
	URL string `json:"url" minLength:"1" maxLength:"2000" doc:"Address of the node, such as https://n1.example, or of its board, as list_peers shows it."`
}

// FollowPeer has the running node follow a board at once, or try for a day.
var FollowPeer = declare[PeerAddress, None](Operation{
	Name: "follow_peer", Title: "Follow a board",
	Summary: "Follows the board of another node: within a second, or with retries for a day.",
	HTTP:    Route{"POST", "/api/operator/peers/follow", 204}, For: Operators, Example: PeerAddress{URL: "https://n1.example"},
})

// UnfollowPeer has the running node stop following a board, and tell it so.
var UnfollowPeer = declare[PeerAddress, None](Operation{
	Name: "unfollow_peer", Title: "Stop following a board",
	Summary: "Stops following a board, or trying to; the posts that were received stay.",
	HTTP:    Route{"POST", "/api/operator/peers/unfollow", 204}, For: Operators, Codes: []Code{NotFound},
	Example: PeerAddress{URL: "https://n1.example/ap/board"},
})

// RetryPeer has the running node try a peer at once that fails.
var RetryPeer = declare[PeerAddress, None](Operation{
	Name: "retry_peer", Title: "Try a peer now",
	Summary: "Reads a followed board, sends an unanswered follow again, or delivers to an inbox, now instead of at the next time.",
	HTTP:    Route{"POST", "/api/operator/peers/retry", 204}, For: Operators, Codes: []Code{NotFound},
	Example: PeerAddress{URL: "https://n1.example/ap/board"},
})

// A PeerReread is a followed board whose log is read again.
type PeerReread struct {
	PeerAddress
	Forget bool `json:"forget,omitempty" doc:"Also deletes the posts of its node since the conflict that its node does not have any more; of a log that fell back, those of the last 7 days."`
}

// RereadPeer has the running node read a followed log from its beginning.
var RereadPeer = declare[PeerReread, None](Operation{
	Name: "reread_peer", Title: "Read a followed log again",
	Summary: "Reads the log of a followed board from its beginning, and takes what it has now; " +
		"this ends a conflict. Posts that were received stay, unless they are to be forgotten.",
	HTTP: Route{"POST", "/api/operator/peers/reread", 204}, For: Operators, Codes: []Code{NotFound},
	Example: PeerReread{PeerAddress: PeerAddress{URL: "https://n1.example/ap/board"}},
})

// ReadConflict reads what shows that the log of a followed board contradicts itself.
var ReadConflict = declare[PeerAddress, ConflictEvidence](Operation{
	Name: "read_log_conflict", Title: "Read the evidence of a conflict",
	Summary: "Both documents that show that the log of a followed board contradicts what was taken of it.",
	HTTP:    Route{"GET", "/api/operator/peers/conflict", 200}, For: Operators, ReadOnly: true, Codes: []Code{NotFound},
	Example: PeerAddress{URL: "https://n1.example/ap/board"},
})

// A PolicyChange says how a host and its subdomains are treated from now on.
type PolicyChange struct {
	Host   string `json:"host" minLength:"1" maxLength:"253" doc:"Host in lower case ASCII, with or without a port; * for all hosts without a policy that are not followed."`
	Policy string `json:"policy" enum:"reject,silence,allow,trusted,none"`
	Note   string `json:"note,omitempty" maxLength:"1000" doc:"Why; for the operators only."`
}

// SetPeerPolicy sets how a host is treated.
var SetPeerPolicy = declare[PolicyChange, None](Operation{
	Name: "set_peer_policy", Title: "Set the policy for a host",
	Summary:     "Refuses a host and its subdomains, hides what comes from it, admits it whatever the policy for all is, counts its reports, or none.",
	Description: "When a host is silenced no more, the newest thousand of its posts that were hidden for that are shown.",
	HTTP:        Route{"PUT", "/api/operator/peers/policy", 204}, For: Operators,
	Example: PolicyChange{Host: "spam.example", Policy: "silence", Note: "Nothing but advertising."},
})
