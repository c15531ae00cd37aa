package protocol

import "time"

// PeersView is how this node and the others are connected.
type PeersView struct {
	Head       int64        `json:"head" minimum:"0" doc:"Last number of the log of this node's board."`
	Following  []Followed   `json:"following" doc:"Boards that this node follows, or tries to."`
	Delivering []Delivering `json:"delivering" doc:"Inboxes that are told what happens on this node's board, by address."`
	Policies   []PeerPolicy `json:"policies" doc:"How hosts are treated, with those below them."`
	Next       *string      `json:"next" doc:"Pass as after for further inboxes; null at the end."`
	Untrusted  bool         `json:"untrusted_content" doc:"Always true: errors may repeat what others wrote."`
}

// Followed is a board that this node follows, or tries to.
type Followed struct {
	Address   string     `json:"address" doc:"The board; until it is found, the address that was given."`
	State     string     `json:"state" enum:"pending,accepted,rejected,failed" doc:"pending: not found, not reached, or not answered yet. failed: given up."`
	Seq       int64      `json:"seq" minimum:"0" doc:"How far its log has been applied here."`
	Attempts  int        `json:"attempts" minimum:"0" doc:"How often it was tried in vain since it last worked."`
	LastError string     `json:"lastError" doc:"Why the last try failed; empty when it did not."`
	NextAt    *time.Time `json:"nextAt" doc:"When it is tried, or looked at, next; null when it is not."`
}

// Delivering is an inbox of another server.
type Delivering struct {
	Inbox     string `json:"inbox"`
	State     string `json:"state" enum:"active,slow,dead" doc:"slow: fails, and is tried less often. dead: failed for a week."`
	Seq       int64  `json:"seq" minimum:"0" doc:"How far it has the log of this node's board."`
	Attempts  int    `json:"attempts" minimum:"0" doc:"How often it was tried in vain since it last worked."`
	LastError string `json:"lastError"`
}

// A PeerPolicy is the operator's word on a host.
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
	Summary: "The boards that this node follows or tries to, the inboxes it delivers to, and how each fares.",
	HTTP:    Route{"GET", "/api/operator/peers", 200}, Doors: HTTP, For: Operators, Access: Operator, Scope: ScopeOperator,
	ReadOnly: true, NoStore: true, Codes: []Code{InvalidCursor}, Example: PeersQuery{Paging: Paging{Limit: 20}},
})
