package protocol

import "time"

// PeersView is how this node and its peers are connected.
type PeersView struct {
	Head       int64        `json:"head" minimum:"0" doc:"Last number of the log of this node's board."`
	Following  []Followed   `json:"following" doc:"Boards that this node follows, or tries to follow."`
	Delivering []Delivering `json:"delivering" doc:"Inboxes that this node delivers its board to, by address."`
	Policies   []PeerPolicy `json:"policies" doc:"Policies for hosts and their subdomains."`
	Next       *string      `json:"next" doc:"Pass as after for further inboxes; null at the end."`
	Untrusted  bool         `json:"untrusted_content" doc:"Always true: errors may repeat what others wrote."`
}

// Followed is a board that this node follows, or tries to follow.
type Followed struct {
	Address   string     `json:"address" doc:"The board, or the given address until the board is found."`
	State     string     `json:"state" enum:"pending,accepted,rejected,failed" doc:"pending: not found, not reached, or not answered yet. failed: given up."`
	Seq       int64      `json:"seq" minimum:"0" doc:"How far its log has been applied here."`
	Attempts  int        `json:"attempts" minimum:"0" doc:"Failed attempts since the last success."`
	LastError string     `json:"lastError" doc:"Why the last attempt failed; empty if it did not."`
	NextAt    *time.Time `json:"nextAt" doc:"When the next attempt or poll is due; null for none."`
}

// Delivering is an inbox of another server.
type Delivering struct {
	Inbox     string `json:"inbox"`
	State     string `json:"state" enum:"active,slow,dead" doc:"slow: fails, and is tried less often. dead: failed for a week."`
	Seq       int64  `json:"seq" minimum:"0" doc:"How far this node's board log has been delivered to it."`
	Attempts  int    `json:"attempts" minimum:"0" doc:"Failed attempts since the last success."`
	LastError string `json:"lastError"`
}

// A PeerPolicy is the operator's policy for a host.
type PeerPolicy struct {
	Host   string `json:"host"`
	Policy string `json:"policy" enum:"reject,silence,trusted"`
	Note   string `json:"note"`
}

// A PeersQuery pages through the inboxes.
type PeersQuery struct {
	Paging
}

var ListPeers = declare[PeersQuery, PeersView](Operation{
	Name: "list_peers", Title: "List peers",
	Summary: "The boards that this node follows or tries to follow and the inboxes that it delivers to, with the state of each.",
	HTTP:    Route{"GET", "/api/operator/peers", 200}, Doors: HTTP, For: Operators, Access: Operator, Scope: ScopeOperator,
	ReadOnly: true, NoStore: true, Codes: []Code{InvalidCursor}, Example: PeersQuery{Paging: Paging{Limit: 20}},
})
