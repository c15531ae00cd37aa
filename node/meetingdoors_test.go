package node_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/pow"
)

// TestMeeting_Doors: a meeting from the request to its end by MCP alone, and by A2A with the owner at MCP: the mailbox
// is confirmed by the mail's link, the owner approves, and the requester follows, as the tools and tasks say.
func TestMeeting_Doors(t *testing.T) {
	t.Parallel()
	h, d, box := nodetest.MeetingHouse(t, `,"location":"https://meet.example/{slug}"`)
	me := h.Agents(1)[0]
	confirm := func() {
		t.Helper()
		ticket := nodetest.MeetingLinkInMail.FindStringSubmatch(box.Next(t, h).Text)[1]
		require.Equal(t, 200, h.Ask("POST", "/api/public/meeting-link", `{"do":"confirm","ticket":"`+ticket+`"}`).Code)
	}
	owner := func(tool, args string, into any) {
		t.Helper()
		got := h.Tool(tool, args, "Authorization", "Bearer "+d.Token)
		require.False(t, got.IsError, "%s", got.Body)
		require.NoError(t, json.Unmarshal(got.Structured, into))
	}
	call := func(tool, args string, into any) {
		t.Helper()
		got := h.Tool(tool, args)
		require.False(t, got.IsError, "%s", got.Body)
		require.NoError(t, json.Unmarshal(got.Structured, into))
	}
	at := time.Now().UTC().Add(72 * time.Hour).Truncate(time.Hour)
	wish := func(mail string, at time.Time) string {
		return fmt.Sprintf(`{"handle":"asha","requester":"Ravi","email":%q,"purpose":"Yarn.","durationMin":30,"startsAt":%q}`, mail, nodetest.MachineZ(at))
	}

	// By MCP.
	var info protocol.MeetingInfo
	call("get_meeting_info", `{"handle":"asha"}`, &info)
	require.Equal(t, []any{true, true, []int{15, 30}}, []any{info.Accepting, info.ConfirmsMail, info.Durations})
	refused := h.Tool("request_meeting", wish("ravi@example.org", at))
	require.Equal(t, protocol.PowRequired, refused.Refused.Code)
	solution, err := pow.Solve(t.Context(), *refused.Refused.Challenge)
	require.NoError(t, err)
	var made protocol.MeetingReceipt
	call("request_meeting", nodetest.WithProof(t, wish("ravi@example.org", at), solution), &made)
	require.Equal(t, protocol.MeetingUnconfirmed, made.Request.State)
	require.Contains(t, made.Request.Note, "opens it within 24 hours")
	confirm()
	id, token := made.Request.ID, fmt.Sprintf(`{"id":%q,"statusToken":%q}`, made.Request.ID, made.StatusToken)
	var now protocol.MeetingRequest
	call("get_meeting", token, &now)
	require.Equal(t, protocol.MeetingSubmitted, now.State)
	var list protocol.Page[protocol.OwnMeeting]
	owner("list_meetings", `{"state":"submitted"}`, &list)
	require.Equal(t, id, list.Items[0].ID)
	var own protocol.OwnMeeting
	owner("propose_meeting_times", fmt.Sprintf(`{"id":%q,"times":[%q]}`, id, nodetest.MachineZ(at.Add(24*time.Hour))), &own)
	box.Next(t, h)
	call("get_meeting", token, &now)
	require.Equal(t, protocol.MeetingProposed, now.State)
	call("pick_meeting_time", strings.TrimSuffix(token, "}")+fmt.Sprintf(`,"startsAt":%q}`, nodetest.MachineZ(now.Proposals[0].StartsAt)), &now)
	require.Equal(t, protocol.MeetingApproved, now.State)
	require.NotNil(t, now.ICS)
	require.Equal(t, 200, h.Ask("GET", strings.TrimPrefix(*now.ICS, h.Base), "").Code)
	require.Contains(t, box.Next(t, h).Text, *now.Location)
	require.Equal(t, protocol.NotFound, h.Tool("get_meeting", fmt.Sprintf(`{"id":%q}`, id)).Refused.Code, "not without its token")
	call("cancel_meeting", token, &now)
	require.Equal(t, protocol.MeetingCancelled, now.State)
	box.Next(t, h)

	// By A2A.
	task := me.Do("/a2a/asha", "SendMessage", fmt.Sprintf(`{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":{"operation":"request_meeting",`+
		`"input":%s}}]}}`, wish("agent@example.org", at))).Task(t)
	require.Equal(t, a2a.InputRequired, task.Status.State, "the mailbox has to be confirmed")
	confirm()
	require.Equal(t, a2a.Submitted, me.GetTask("asha", task.ID).Task(t).Status.State)
	owner("approve_meeting", fmt.Sprintf(`{"id":%q}`, task.ID), &own)
	done := me.GetTask("asha", task.ID).Task(t)
	require.Equal(t, a2a.Completed, done.Status.State)
	require.NoError(t, json.Unmarshal(done.Artifacts[0].Parts[0].Data, &now))
	require.Equal(t, *own.Location, *now.Location)
	require.NotNil(t, now.AddToCalendar)
}
