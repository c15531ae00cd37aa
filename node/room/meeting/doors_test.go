package meeting_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// TestMeeting walks a request with a proof of work over HTTP: the page of the mail's link, the person's
// decision, the mails, whats_new of both sides, and the page that stops mail.
func TestMeeting(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		box := &nodetest.Postbox{}
		h.Accounts.Mail = box
		h.Hosted("asha")
		d := &nodetest.Doors{T: t, House: h, Token: h.OwnerToken("asha")}
		h.Work()
		d.Good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"location":"https://meet.example/{slug}"}`, d.Token, nil)
		starts := time.Now().UTC().Add(48 * time.Hour).Truncate(time.Minute)
		ask := func(body string) nodetest.Answer {
			return h.Ask("POST", "/api/public/agents/asha/meetings", fmt.Sprintf(`{"requester":"Ravi","purpose":"Yarn <b>","durationMin":30,"startsAt":%q,%s}`,
				starts.Format(time.RFC3339), body), "Proof-Of-Work", h.Proof("meeting"))
		}
		require.Equal(t, 401, h.Ask("POST", "/api/public/agents/asha/meetings", fmt.Sprintf(
			`{"requester":"R","email":"r@example.org","purpose":"p","durationMin":30,"startsAt":%q}`, starts.Format(time.RFC3339))).Code, "a proof is needed")
		for body, fault := range map[string]string{
			`"email":"nonsense"`: "/email", `"email":""`: "/email", `"email":"root@localhost.localdomain.local"`: "/email", `"email":"a@127.0.0.1"`: "/email",
			`"email":"r@example.org","timezone":"Mars/Base"`:            "/timezone",
			`"email":"r@example.org","callbackUrl":"http://x.example/"`: "/callbackUrl",
		} {
			require.Equal(t, []string{fault}, nodetest.Pointers(ask(body).Problem().Errors), body)
		}
		a := ask(`"email":"ravi@example.org"`).Is(201)
		require.NotContains(t, a.Body.String(), "ravi@example.org")
		made := nodetest.As[protocol.MeetingReceipt](a)
		require.Equal(t, protocol.MeetingUnconfirmed, made.Request.State)

		l := box.Next(t, h)
		require.NotContains(t, l.Text, "Yarn")
		tickets := nodetest.MeetingLinkInMail.FindAllStringSubmatch(l.Text, -1)
		require.Len(t, tickets, 2, "to confirm, and to stop mail")
		for range 2 {
			shown := h.Ask("GET", "/meeting-link?ticket="+tickets[0][1], "", "Accept", nodetest.Accept).Is(200)
			require.Equal(t, []string{"no-store", "no-referrer"}, []string{shown.Header().Get("Cache-Control"), shown.Header().Get("Referrer-Policy")})
			p := nodetest.ParsePage(t, "/meeting-link", shown.Body.String())
			p.WellFormed()
			require.Contains(t, p.Text(), "Did you ask for this meeting?")
			require.NotContains(t, p.Text(), "Yarn")
		}
		var mine protocol.Page[protocol.OwnMeeting]
		d.Good("GET", "/api/owner/meetings", "", d.Token, &mine)
		require.Empty(t, mine.Items, "invisible until it is confirmed")
		require.Equal(t, 403, h.Ask("POST", "/meeting-link", "ticket="+tickets[0][1]+"&do=confirm", "Content-Type", "application/x-www-form-urlencoded",
			"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Code)
		require.Equal(t, 303, h.SendForm("/meeting-link", url.Values{"ticket": {tickets[0][1]}, "do": {"confirm"}}).Code)
		require.Equal(t, 410, h.SendForm("/meeting-link", url.Values{"ticket": {tickets[0][1]}, "do": {"confirm"}}).Code, "once")
		d.Good("GET", "/api/owner/meetings?state=submitted", "", d.Token, &mine)
		require.Len(t, mine.Items, 1)
		require.Equal(t, "ravi@example.org", *mine.Items[0].Email)
		require.True(t, mine.Items[0].Confirmed)

		id := made.Request.ID
		d.Good("POST", "/api/owner/meetings/"+id+"/approve", `{"answer":"See you."}`, d.Token, nil)
		approved := box.Next(t, h)
		require.Regexp(t, `https://meet.example/stoa-[a-z2-7]{20}`, approved.Text)
		require.Contains(t, approved.Text, "See you.")
		var got protocol.MeetingRequest
		d.Good("GET", "/api/public/meetings/"+id, "", made.StatusToken, &got)
		require.Equal(t, protocol.MeetingApproved, got.State)
		require.Contains(t, approved.Text, *got.Location)
		require.Equal(t, 404, h.Ask("GET", "/api/public/meetings/"+id, "").Code)
		require.Equal(t, 422, h.Ask("GET", "/api/public/meetings/"+id+"?statusToken="+made.StatusToken, "").Code, "in no address")
		require.NoError(t, h.DB.Numbered(t.Context()))
		for token, states := range map[string]int{made.StatusToken: 2, d.Token: 2} {
			var news protocol.Digest
			d.Good("GET", "/api/public/since", "", token, &news)
			require.Len(t, news.Requests, states)
			require.Equal(t, protocol.Move{ID: id, State: "approved", At: got.History[2].At}, news.Requests[1])
		}
		require.Error(t, h.Admin().DeleteProfile(t.Context(), "asha"), "a requester expects it")
		d.Good("POST", "/api/public/meetings/"+id+"/cancel", `{"statusToken":"`+made.StatusToken+`"}`, "", &got)
		require.Equal(t, protocol.MeetingCancelled, got.State)
		require.Equal(t, 1, got.Sequence)
		require.Contains(t, box.Next(t, h).Text, "was cancelled")

		stop := tickets[1][1]
		require.Contains(t, h.Ask("GET", "/meeting-link?ticket="+stop, "", "Accept", nodetest.Accept).Body.String(), "No more mail about meetings?")
		require.Equal(t, 200, h.Ask("POST", "/api/public/meeting-link", `{"do":"stop","ticket":"`+stop+`"}`).Code, "a program")
		again := nodetest.As[protocol.MeetingReceipt](ask(`"email":"RAVI+again@example.org"`))
		require.Equal(t, protocol.MeetingUnconfirmed, again.Request.State, "who names the mailbox learns nothing")
		require.Equal(t, 401, h.Ask("GET", "/api/public/meeting-link", "").Code)
		require.NoError(t, h.DB.Check(t.Context()))
		require.NoError(t, h.Admin().DeleteProfile(t.Context(), "asha"))
		require.Equal(t, 404, h.Ask("GET", "/api/public/meetings/"+id, "", "Authorization", "Bearer "+made.StatusToken).Code, "it goes with the profile")
	})
}

// TestA2A_Meeting: a request over A2A is a task, whose state is that of the request.
func TestA2A_Meeting(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h, d, box := nodetest.MeetingHouse(t, `,"durations":[15,30],"location":"https://meet.example/{slug}"`, change)
		all := h.Agents(2)
		me, other := all[0], all[1]
		state := func(id string) a2a.State { return me.GetTask("asha", id).Task(t).Status.State }
		ask := func(messageID string, hours int) a2a.Task {
			at := time.Now().UTC().Add(time.Duration(hours) * time.Hour).Format("2006-01-02T15:04:00Z")
			task := me.Do("/a2a/asha", "SendMessage", fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"data":{"operation":"request_meeting",`+
				`"input":{"requester":"Ravi","email":"%s@example.org","purpose":"Yarn.","durationMin":30,"startsAt":%q}}}]}}`, messageID, messageID, at)).Task(t)
			require.Equal(t, a2a.InputRequired, task.Status.State, "the mailbox has to be confirmed")
			l := box.Next(t, h)
			for l.To != messageID+"@example.org" { // of another request
				l = box.Next(t, h)
			}
			ticket := nodetest.MeetingLinkInMail.FindStringSubmatch(l.Text)[1]
			h.Ask("POST", "/api/public/meeting-link", `{"do":"confirm","ticket":"`+ticket+`"}`).Is(200)
			require.Equal(t, a2a.Submitted, state(task.ID))
			return task
		}
		decides := func(id, what, body string) {
			d.Good("POST", "/api/owner/meetings/"+id+"/"+what, body, d.Token, nil)
		}
		task := ask("m-1", 48)
		var made protocol.MeetingReceipt
		require.NoError(t, json.Unmarshal(task.Artifacts[0].Parts[0].Data, &made))
		require.Equal(t, made.Request.ID, task.ID)
		require.Contains(t, string(other.GetTask("asha", task.ID).Raw), `"code":-32001`)
		decides(task.ID, "propose", `{"times":["`+time.Now().UTC().Add(72*time.Hour).Format("2006-01-02T15:04:00Z")+`"]}`)
		require.Equal(t, a2a.InputRequired, state(task.ID))
		require.Equal(t, a2a.Canceled, me.Do("/a2a/asha", "CancelTask", `{"id":"`+task.ID+`"}`).Task(t).Status.State)
		task = ask("m-2", 50)
		decides(task.ID, "approve", `{}`)
		done := me.GetTask("asha", task.ID).Task(t)
		require.Equal(t, a2a.Completed, done.Status.State)
		var now protocol.MeetingRequest
		require.NoError(t, json.Unmarshal(done.Artifacts[0].Parts[0].Data, &now))
		require.Contains(t, *now.Location, "https://meet.example/")
		require.NotNil(t, now.AddToCalendar)
		require.Contains(t, string(me.Do("/a2a/asha", "CancelTask", `{"id":"`+task.ID+`"}`).Raw), `"code":-32002`)
		decides(task.ID, "cancel", `{}`)
		require.Equal(t, a2a.Completed, state(task.ID), "a task that has ended stays as it ended")
		task = ask("m-3", 52)
		decides(task.ID, "decline", `{}`)
		require.Equal(t, a2a.Rejected, state(task.ID))
	})
}
