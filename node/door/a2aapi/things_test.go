package a2aapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
)

// TestA2A_Things: bids and meeting requests are among the tasks of who made them, and have streams: of a guest with the status token, of an
// agent with its signature.
func TestA2A_Things(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Served(t, change, served("any"))
		h.Meeting.Mail = nodetest.NoMeetingMail
		h.PutOpen("asha", nil)
		d := &nodetest.Doors{T: t, House: h, Token: h.OwnerToken("asha")}
		d.Reopen(protocol.PayUPI)
		d.Good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"durations":[30]}`, d.Token, nil)
		all := h.Agents(2)
		me, other := all[0], all[1]
		const bidding = `{"data":{"operation":"bid_for_attention","input":{"amount":500,"message":"Yarn."}}}`

		// A guest follows its bid from the beginning, and comes back with the token of its receipt.
		stream := opens(h, "SendStreamingMessage", said("b", bidding, ""), "")
		task := *stream.next().Task
		require.Equal(t, a2a.InputRequired, task.Status.State)
		made := must.JSON[protocol.BidReceipt](task.Artifacts[0].Parts[0].Data)(t)
		require.NotEmpty(t, made.PaymentURL)
		about := fmt.Sprintf(`{"id":%q}`, task.ID)
		later := opens(h, "SubscribeToTask", about, made.StatusToken)
		require.Equal(t, a2a.InputRequired, later.next().Task.Status.State)
		secret := made.PaymentURL[len(h.Base+"/pay/"):]
		d.Good("POST", "/api/public/payment/claim", `{"utr":"`+nodetest.NewUTR()+`","payToken":"`+secret+`"}`, "", nil)
		for _, s := range []*streamed{stream, later} {
			require.Contains(t, string(s.next().ArtifactUpdate.Artifact.Parts[0].Data), `"claimed"`)
			require.Equal(t, a2a.Working, s.next().StatusUpdate.Status.State)
		}
		d.Good("POST", "/api/owner/bids/"+task.ID+"/confirm", `{}`, d.Token, nil)
		for _, s := range []*streamed{stream, later} {
			require.NotNil(t, s.next().ArtifactUpdate)
			require.Equal(t, a2a.Completed, s.next().StatusUpdate.Status.State)
			require.Nil(t, s.next())
		}
		list := func(a nodetest.A2AAnswer) (l a2a.TaskList) {
			require.Nil(t, a.Error, "%s", a.Raw)
			require.NoError(t, json.Unmarshal(a.Result, &l))
			return l
		}
		of := list(plain(h, "/a2a/asha", "ListTasks", `{"includeArtifacts":true}`, "Authorization", "Bearer "+made.StatusToken))
		require.Len(t, of.Tasks, 1)
		require.Equal(t, []any{task.ID, a2a.Completed, 1}, []any{of.Tasks[0].ID, of.Tasks[0].Status.State, len(of.Tasks[0].Artifacts)})

		// An agent's list has all three kinds, each in its state, and nobody else's.
		written := me.Write("asha", "w", "Hello", "").Task(t)
		bid := me.Do("/a2a/asha", "SendMessage", said("b-2", bidding, "")).Task(t)
		at := time.Now().UTC().Add(50 * time.Hour).Format("2006-01-02T15:04:00Z")
		meeting := me.Do("/a2a/asha", "SendMessage", said("m", fmt.Sprintf(`{"data":{"operation":"request_meeting","input":{"requester":"Ravi",
			"email":"r@example.org","purpose":"Yarn.","durationMin":30,"startsAt":%q}}}`, at), "")).Task(t)
		ids := func(params string) (ids []string) {
			l := list(me.Do("/a2a/asha", "ListTasks", params))
			require.Len(t, l.Tasks, l.TotalSize)
			for _, task := range l.Tasks {
				ids = append(ids, task.ID)
			}
			return ids
		}
		require.ElementsMatch(t, []string{written.ID, bid.ID, meeting.ID}, ids(`{}`))
		require.ElementsMatch(t, []string{written.ID, meeting.ID}, ids(`{"status":"TASK_STATE_SUBMITTED"}`))
		require.Equal(t, []string{bid.ID}, ids(fmt.Sprintf(`{"contextId":%q}`, bid.ID)))
		require.Zero(t, list(other.Do("/a2a/asha", "ListTasks", `{}`)).TotalSize)
		code, _ := codeOf(other.Do("/a2a/asha", "SubscribeToTask", fmt.Sprintf(`{"id":%q}`, meeting.ID)))
		require.Equal(t, -32001, code, "another caller's")
		followed := make(chan string, 1)
		go func() {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"SubscribeToTask","params":{"id":%q}}`, meeting.ID)
			r, _ := http.NewRequestWithContext(t.Context(), "POST", h.Base+"/a2a/asha", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			res, err := me.RoundTrip(r)
			if err != nil {
				t.Error(err)
				close(followed)
				return
			}
			all, _ := io.ReadAll(res.Body)
			followed <- string(all)
		}()
		require.Eventually(t, func() bool { return h.Contact.Hub.Count() == 1 }, time.Minute, time.Millisecond)
		d.Good("POST", "/api/owner/meetings/"+meeting.ID+"/approve", `{}`, d.Token, nil)
		require.Contains(t, <-followed, `"state":"TASK_STATE_COMPLETED"`)
		require.Equal(t, []string{meeting.ID}, ids(`{"status":"TASK_STATE_COMPLETED"}`))
		code, _ = codeOf(me.Do("/a2a/asha", "SubscribeToTask", fmt.Sprintf(`{"id":%q}`, meeting.ID)))
		require.Equal(t, -32004, code, "what is over")
		require.Equal(t, a2a.Canceled, me.Do("/a2a/asha", "CancelTask", fmt.Sprintf(`{"id":%q}`, bid.ID)).Task(t).Status.State)
		require.Equal(t, []string{bid.ID}, ids(`{"status":"TASK_STATE_CANCELED"}`))
	})
}
