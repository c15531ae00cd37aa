package protocol

import "time"

// Health is how the node is, for its operators.
type Health struct {
	At        time.Time     `json:"at"`
	Version   string        `json:"version"`
	StartedAt time.Time     `json:"startedAt" doc:"When this process was started."`
	Engine    string        `json:"engine" enum:"sqlite,postgres"`
	Bytes     int64         `json:"bytes" minimum:"0" doc:"Size of the database."`
	BackupAt  *time.Time    `json:"backupAt" doc:"When the node, or stoa admin backup, last made a copy; null for never."`
	Backup    BackupHealth  `json:"backup"`
	Waiting   int           `json:"waiting" minimum:"0" doc:"Writes waiting in this process."`
	Review    int           `json:"review" minimum:"0" doc:"Posts that wait for an operator's decision, up to 10,000."`
	Overdue   int           `json:"overdueComplaints" minimum:"0" doc:"Complaints whose due date is over, up to 10,000."`
	Jobs      []JobHealth   `json:"jobs" doc:"By kind, of those that have jobs which wait or were given up."`
	Stocks    []StockUse    `json:"stocks" doc:"What other servers and strangers can make grow, each with its cap; when it reaches one, the oldest rows are deleted."`
	StocksAt  time.Time     `json:"stocksAt" doc:"When the stocks were measured: at most twenty minutes ago."`
	Chains    []ChainHealth `json:"chains" doc:"Chains that identities are checked on."`
	Mail      MailHealth    `json:"mail"`
	Payments  PayHealth     `json:"payments"`
	Peers     []PeerCount   `json:"peers" doc:"Inboxes that are delivered to, by state."`
	Conflicts int           `json:"conflicts" minimum:"0" doc:"Followed boards whose log contradicts what was taken of it; list_peers names them."`
	Reported  int           `json:"reported" minimum:"0" doc:"Nodes that report this of the log of this node; list_peers has the reports."`
	CheckUp   *CheckUp      `json:"checkUp" doc:"What the last examination found (look_again, stoa doctor); null before the first."`
	Untrusted bool          `json:"untrusted_content" doc:"Always true: errors may repeat what others wrote."`
}

// BackupHealth is how the backups are that the node makes by itself.
type BackupHealth struct {
	Place        string     `json:"place" doc:"The directory or bucket; empty where the node makes none by itself."`
	MadeAt       *time.Time `json:"madeAt" doc:"When the last one was made, also by stoa admin backup; null for never."`
	Name         string     `json:"name" doc:"Of the last one that is in the place."`
	Bytes        int64      `json:"bytes" minimum:"0"`
	Rows         int64      `json:"rows" minimum:"0"`
	Seconds      float64    `json:"seconds" minimum:"0" doc:"How long it took."`
	Encrypted    bool       `json:"encrypted" doc:"To the recipients of the setting backup-recipient."`
	CheckedAt    *time.Time `json:"checkedAt" doc:"When one was last restored on trial, and was as it said; null for never."`
	CheckSeconds float64    `json:"checkSeconds" minimum:"0"`
	Failures     int        `json:"failures" minimum:"0" doc:"In a row."`
	LastError    string     `json:"lastError"`
	NextAt       *time.Time `json:"nextAt" doc:"When the next one is due."`
	Running      bool       `json:"running" doc:"One is being made."`
}

// A JobHealth says where the jobs of one kind are.
type JobHealth struct {
	Kind      string     `json:"kind"`
	Due       int        `json:"due" minimum:"0" doc:"To be run now, or running; up to 10,000."`
	Sleeping  int        `json:"sleeping" minimum:"0" doc:"To be run later; up to 10,000."`
	Retrying  int        `json:"retrying" minimum:"0" doc:"Of the first thousand that wait, those that failed before."`
	Dead      int        `json:"dead" minimum:"0" doc:"Given up; up to 10,000."`
	LastError string     `json:"lastError" doc:"Of one that retries, else of the newest that was given up."`
	DueAt     *time.Time `json:"dueAt" doc:"When the first that waits is or was due; null for none."`
}

// A StockUse is how much of its cap a stock uses.
type StockUse struct {
	Name     string `json:"name"`
	Rows     int    `json:"rows" minimum:"0"`
	MaxRows  int    `json:"maxRows" minimum:"0"`
	Bytes    int64  `json:"bytes" minimum:"0"`
	MaxBytes int64  `json:"maxBytes" minimum:"0"`
}

// ChainHealth is the state of a chain.
type ChainHealth struct {
	ChainID  uint64     `json:"chainId"`
	Trouble  string     `json:"trouble" doc:"Why it cannot be read; empty when it can."`
	Block    uint64     `json:"block" doc:"The last block that was seen; 0 before the first."`
	BlockAt  *time.Time `json:"blockAt" doc:"When that block was made."`
	LookedAt *time.Time `json:"lookedAt" doc:"The last look. After a quarter of an hour without a request that needs it, the chain is not looked at."`
}

// MailHealth is whether the node sends mail, and what of it waits.
type MailHealth struct {
	State     string `json:"state" enum:"off,log,smtp" doc:"log: letters are only written to the log, for development."`
	Waiting   int    `json:"waiting" minimum:"0" doc:"Letters to be sent now or later."`
	Retrying  int    `json:"retrying" minimum:"0" doc:"Of these, letters that could not be sent yet."`
	Dead      int    `json:"dead" minimum:"0" doc:"Letters that were given up."`
	LastError string `json:"lastError"`
}

// PayHealth is what waits at payment providers.
type PayHealth struct {
	Accounts  int    `json:"accounts" minimum:"0" doc:"Payment accounts of owners, up to 10,000."`
	Retrying  int    `json:"retrying" minimum:"0" doc:"Requests to providers that failed and are tried again."`
	Dead      int    `json:"dead" minimum:"0" doc:"Those that were given up."`
	LastError string `json:"lastError"`
}

// A PeerCount counts the inboxes in one state.
type PeerCount struct {
	State string `json:"state" enum:"active,slow,dead"`
	Count int    `json:"count" minimum:"0" doc:"Up to 10,000."`
	Lag   int64  `json:"lag" minimum:"0" doc:"Entries of the log that the furthest behind has not been told of."`
}

// ReadHealth says how the node is.
var ReadHealth = declare[None, Health](Operation{
	Name: "read_health", Title: "Read the health of the node",
	Summary: "Version, database, jobs by kind, storage against its caps, chains, mail and payments.",
	HTTP:    Route{"GET", "/api/operator/health", 200}, For: Operators, ReadOnly: true, Example: None{},
})

// A TrafficQuery selects the span of the counts.
type TrafficQuery struct {
	Span string `json:"span,omitempty" enum:"day,month" default:"day" doc:"day: the last 24 hours, by hour. month: the last 30 days, by day."`
}

// Traffic is what the node did, step by step.
type Traffic struct {
	Span  string        `json:"span" enum:"day,month"`
	Steps []TrafficStep `json:"steps" doc:"Hours or days, UTC, oldest first. The last one is not over; counts come up to a minute late."`
}

// A TrafficStep is what the node did within an hour or a day.
type TrafficStep struct {
	At         time.Time `json:"at" doc:"Its beginning."`
	Reads      int64     `json:"reads" minimum:"0" doc:"Reading operations that were answered, at every door."`
	Writes     int64     `json:"writes" minimum:"0" doc:"Operations that changed something."`
	Proofs     int64     `json:"proofs" minimum:"0" doc:"Of the writes, those that a proof of work paid for."`
	Reports    int64     `json:"reports" minimum:"0" doc:"Of the writes, reports of posts."`
	Deliveries int64     `json:"deliveries" minimum:"0" doc:"Activities that other servers took."`
	Failures   int64     `json:"failures" minimum:"0" doc:"Deliveries that failed; most are tried again."`
}

// ReadTraffic reads what the node did over the last day or month.
var ReadTraffic = declare[TrafficQuery, Traffic](Operation{
	Name: "read_traffic", Title: "Read what the node did",
	Summary: "Reads, writes, proofs of work, reports and deliveries over the last day or month.",
	HTTP:    Route{"GET", "/api/operator/traffic", 200}, For: Operators, ReadOnly: true, Example: TrafficQuery{Span: "month"},
})
