package protocol

import "time"

// A JobQuery selects jobs.
type JobQuery struct {
	State string `json:"state,omitempty" enum:"waiting,dead,done" default:"dead" doc:"waiting: to be run, running, or asleep until runAt. dead: given up. done: those of the last 14 days."`
	Kind  string `json:"kind,omitempty" maxLength:"60" doc:"Only jobs of this kind. Those that wait then come in the order in which they are due."`
	Paging
}

// A Job is a durable job.
type Job struct {
	ID        int64      `json:"id"`
	Kind      string     `json:"kind"`
	Lane      string     `json:"lane" doc:"At most one job of a lane runs at a time; empty for no such limit."`
	State     string     `json:"state" enum:"waiting,dead,done"`
	Attempt   int        `json:"attempt" doc:"1 on the first run."`
	RunAt     time.Time  `json:"runAt" doc:"Not before; while it runs, when its lease ends."`
	DoneAt    *time.Time `json:"doneAt" doc:"When it was done or given up."`
	LastError string     `json:"lastError"`
	Untrusted bool       `json:"untrusted_content" doc:"Always true: errors may repeat what others wrote."`
}

// ListJobs lists jobs of one state.
var ListJobs = declare[JobQuery, Page[Job]](Operation{
	Name: "list_jobs", Title: "List jobs",
	Summary: "The durable jobs of one state, newest first: what waits, what was given up and why.",
	HTTP:    Route{"GET", "/api/operator/jobs", 200}, For: Operators, ReadOnly: true, Codes: []Code{InvalidCursor},
	Example: JobQuery{State: "dead"},
})

// A JobRef names one job.
type JobRef struct {
	ID int64 `json:"id" minimum:"1" doc:"Id of the job."`
}

// RequeueJob has a dead job tried again.
var RequeueJob = declare[JobRef, None](Operation{
	Name: "requeue_job", Title: "Try a dead job again",
	Summary: "Makes a dead job wait again, from its first attempt.",
	HTTP:    Route{"POST", "/api/operator/jobs/{id}/requeue", 204}, For: Operators, Codes: []Code{NotFound, Conflict}, Example: JobRef{ID: 4711},
})

// DropJob deletes a dead job.
var DropJob = declare[JobRef, None](Operation{
	Name: "drop_job", Title: "Delete a dead job",
	Summary: "Deletes a job that was given up: what it was to do is never done.",
	HTTP:    Route{"DELETE", "/api/operator/jobs/{id}", 204}, For: Operators, Codes: []Code{NotFound}, Example: JobRef{ID: 4711},
})
