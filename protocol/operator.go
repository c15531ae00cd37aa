package protocol

import "time"

// RunLimits are limits that an operator may change at run time. A null member has the value of the
// configuration.
type RunLimits struct {
	ReadRate     *float64 `json:"readRate,omitempty" minimum:"0.1" maximum:"1000000" doc:"Requests a second that one client network may make, after a burst of four seconds' worth."`
	WriteRate    *float64 `json:"writeRate,omitempty" minimum:"0.1" maximum:"1000000" doc:"Writes a second that one client network may try, after a burst of eight seconds' worth."`
	IdentityRate *float64 `json:"identityRate,omitempty" minimum:"0.1" maximum:"1000000" doc:"Writes a second of one verified identity, after a burst of six seconds' worth."`
	ProofLevel   *int     `json:"proofLevel,omitempty" minimum:"0" maximum:"7" doc:"Least level of every proof of work: 0 costs a thread 45 ms, each level about twice the one before, 7 costs 5 s."`
}

// Check requires at least one limit: resetting them is another operation.
func (l RunLimits) Check() []Fault {
	if l == (RunLimits{}) {
		return []Fault{{"", "required", "name at least one limit; to undo all changes, use reset_limits"}}
	}
	return nil
}

// LimitsView is the limits that are in force.
type LimitsView struct {
	Set          RunLimits `json:"set" doc:"What was changed at run time."`
	ReadRate     float64   `json:"readRate" doc:"Requests a second of one client network."`
	WriteRate    float64   `json:"writeRate" doc:"Writes a second of one client network."`
	IdentityRate float64   `json:"identityRate" doc:"Writes a second of one verified identity."`
	ProofLevel   int       `json:"proofLevel" doc:"Least level of every proof of work."`
}

var ReadLimits = declare[None, LimitsView](Operation{
	Name: "read_limits", Title: "Read the limits",
	Summary: "The limits in force, and those that were changed at run time.",
	HTTP:    Route{"GET", "/api/operator/limits", 200}, For: Operators, ReadOnly: true, Example: None{},
})

var SetLimits = declare[RunLimits, LimitsView](Operation{
	Name: "set_limits", Title: "Set limits",
	Summary:     "Changes limits at run time; limits that are not named stay unchanged.",
	Description: "The change is stored and takes effect in every process of the node within two seconds. A changed rate starts unused.",
	HTTP:        Route{"PUT", "/api/operator/limits", 200}, For: Operators, Example: RunLimits{WriteRate: new(2.0), ProofLevel: new(4)},
})

var ResetLimits = declare[None, LimitsView](Operation{
	Name: "reset_limits", Title: "Reset the limits",
	Summary: "Sets all limits to the values of the configuration.",
	HTTP:    Route{"DELETE", "/api/operator/limits", 200}, For: Operators, Example: None{},
})

// An AuditEntry is an action of an operator or owner, or a decision of the node itself
// about something from outside.
type AuditEntry struct {
	ID        string    `json:"id" doc:"Position in the log."`
	At        time.Time `json:"at"`
	Actor     string    `json:"actor" doc:"The operator's account; operator for the command line; a host or actor for what came from outside."`
	Action    string    `json:"action"`
	Subject   string    `json:"subject"`
	Detail    string    `json:"detail"`
	Untrusted bool      `json:"untrusted_content" doc:"Always true: details may repeat what others wrote."`
}

// An AuditQuery reads the audit log.
type AuditQuery struct {
	Actor  string `json:"actor,omitempty" maxLength:"500" doc:"Only what this account, host or actor did."`
	Action string `json:"action,omitempty" maxLength:"60" doc:"Only this action, such as post hide."`
	Paging
}

var ReadAudit = declare[AuditQuery, Page[AuditEntry]](Operation{
	Name: "read_audit", Title: "Read the audit log",
	Summary: "Every action of the operators, newest first.",
	HTTP:    Route{"GET", "/api/operator/audit", 200}, For: Operators, ReadOnly: true, Codes: []Code{InvalidCursor},
	Example: AuditQuery{Paging: Paging{Limit: 20}},
})

// Statistics are the node in numbers.
type Statistics struct {
	At       time.Time  `json:"countedAt" doc:"When everything was counted: at most two minutes ago."`
	Posts    PostCounts `json:"posts"`
	Profiles int        `json:"profiles"`
	Threads  int        `json:"threads"`
	Review   int        `json:"review" doc:"Posts that wait for a decision: with open reports, visible or hidden by them."`
	Blocks   int        `json:"blocks" doc:"Blocks in force."`
	Waiting  int        `json:"waiting" doc:"Writes waiting in this process."`
	Jobs     []JobCount `json:"jobs"`
	Days     []DayCount `json:"days" doc:"The last thirty days, UTC, newest first."`
}

// PostCounts counts posts by state, including those of other nodes.
type PostCounts struct {
	Visible int `json:"visible"`
	Here    int `json:"here" doc:"Visible posts that were made on this node."`
	Hidden  int `json:"hidden"`
	Deleted int `json:"deleted"`
}

// A JobCount counts the jobs of one kind and state.
type JobCount struct {
	Kind   string    `json:"kind"`
	State  string    `json:"state" enum:"waiting,done,dead"`
	Count  int       `json:"count"`
	Oldest time.Time `json:"oldest" doc:"When the first of them was due."`
}

// A DayCount is what happened on a day.
type DayCount struct {
	Day      string `json:"day" format:"date"`
	Posts    int    `json:"posts" doc:"Posts of the day that are visible, of this node and others."`
	Reports  int    `json:"reports"`
	Profiles int    `json:"profiles" doc:"Profiles made that day that still exist."`
}

var ReadStatistics = declare[None, Statistics](Operation{
	Name: "read_statistics", Title: "Read statistics",
	Summary: "Posts, profiles, threads, reports, jobs and queues in numbers, and the last thirty days.",
	HTTP:    Route{"GET", "/api/operator/statistics", 200}, For: Operators, ReadOnly: true, Example: None{},
})
