package node_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// meeting makes what an operation about meetings is about: a request to asha, in the state in which the
// operation can do something. It sets the arguments that name it, and reports whether the operation is one
// of these.
func meeting(d *nodetest.Doors, op *protocol.Operation, args map[string]any) bool {
	d.T.Helper()
	soon := time.Now().UTC().Add(48 * time.Hour).Truncate(time.Minute)
	state, starts := protocol.MeetingSubmitted, soon.Add(time.Duration(rand.IntN(40_000))*time.Minute)
	switch op {
	case protocol.RequestMeeting.Operation:
		takesMeetings(d)
		args["handle"], args["email"], args["startsAt"] = "asha", newMailbox(), soon.Format(time.RFC3339)
		return true
	case protocol.PickMeetingTime.Operation:
		state = protocol.MeetingProposed
		args["startsAt"] = starts.Format(time.RFC3339)
	case protocol.MoveMeeting.Operation, protocol.CancelOwnMeeting.Operation:
		state = protocol.MeetingApproved
		if op == protocol.MoveMeeting.Operation {
			args["startsAt"] = starts.Add(30 * time.Minute).Format(time.RFC3339)
		}
	case protocol.MarkNoShow.Operation:
		state, starts = protocol.MeetingDone, soon.Add(-72*time.Hour)
	case protocol.ProposeMeetingTimes.Operation:
		args["times"] = []any{starts.Add(30 * time.Minute).Format(time.RFC3339)}
	case protocol.GetMeetingICS.Operation:
		state = protocol.MeetingApproved
	case protocol.GetMeeting.Operation, protocol.CancelMeeting.Operation, protocol.GetOwnMeeting.Operation, protocol.ApproveMeeting.Operation,
		protocol.DeclineMeeting.Operation:
	default:
		return false
	}
	r, token := nodetest.StoredMeeting(state, starts)
	if state == protocol.MeetingDone {
		r.DueAt = time.Time{}
	}
	require.NoError(d.T, d.House.DB.Write(d.T.Context(), func(ctx context.Context, tx *storage.Tx) error { return insertFree(d, ctx, tx, r) }))
	args["id"] = r.ID
	if op.Secret == "statusToken" {
		args["statusToken"] = token
	}
	return true
}

// newMailbox returns an address that nobody asked from.
func newMailbox() string { return fmt.Sprintf("r%x@example.org", rand.Uint64()) }

// insertFree stores a request; what was approved before is cancelled, so that its time is free.
func insertFree(d *nodetest.Doors, ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting) error {
	all, err := tx.Meetings().Taken(ctx, r.Handle, time.Now(), time.Now().Add(100*24*time.Hour))
	if err != nil {
		return err
	}
	for _, t := range all {
		old, err := tx.Meetings().ByID(ctx, t.ID)
		if err != nil {
			return err
		}
		old.State = protocol.MeetingCancelled
		if err := tx.Meetings().Save(ctx, old); err != nil {
			return err
		}
	}
	return tx.Meetings().Insert(ctx, r)
}

// takesMeetings makes asha take meeting requests at any time, and ends those that wait.
func takesMeetings(d *nodetest.Doors) {
	d.T.Helper()
	d.Good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"durations":[15,30],"maxWaiting":100}`, d.Token, nil)
	for _, state := range []string{"submitted", "proposed"} {
		var found protocol.Page[protocol.OwnMeeting]
		d.Good("GET", "/api/owner/meetings?handle=asha&limit=100&state="+state, "", d.Token, &found)
		for _, r := range found.Items {
			if r.State == protocol.MeetingState(state) {
				d.Good("POST", "/api/owner/meetings/"+r.ID+"/decline", `{}`, d.Token, nil)
			}
		}
	}
}
