package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/out/calendar/calendartest"
	"stoa/protocol"
)

// TestEnrolment_SoldMeetings: a person sells the token of the chain identity while requests wait, a meeting is
// approved, and a calendar is connected. Requests, calendar and feed stay with the profile and its account, which
// decides and is read and written as before; the buyer of the identity gets no part in them, nor in what the seller
// asked of others.
func TestEnrolment_SoldMeetings(t *testing.T) {
	t.Parallel()
	server := calendartest.Radicale(t)
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) { testSoldMeetings(t, server, change) })
}

func testSoldMeetings(t *testing.T, server string, change func(*node.Config)) {
	s := nodetest.NewStage(t, "", change, func(c *node.Config) { c.AllowPrivatePeers = true })
	s.Meeting.Mail = nodetest.NoMeetingMail
	s.Watch()
	s.Work()
	a := enrolled(s, "asha", 0)
	s.Hosted("bina")
	d := &nodetest.Doors{T: t, House: s.House, Token: a.token}
	opens := func(handle, token string) {
		d.Good("PUT", "/api/owner/meeting-settings", `{"handle":"`+handle+`","acceptingMeetingRequests":true}`, token, nil)
	}
	opens("asha", a.token)
	opens("bina", s.OwnerToken("bina"))

	var account protocol.CalendarAccount
	d.Good("POST", "/api/owner/calendars", fmt.Sprintf(`{"handle":"asha","address":%q,"user":%q,"password":%q}`, server, calendartest.User, calendartest.Password),
		a.token, &account)
	require.Eventually(t, func() bool {
		d.Good("GET", "/api/owner/calendars/"+account.ID, "", a.token, &account)
		return !account.Checking && account.Writes != nil
	}, time.Minute, 50*time.Millisecond)
	at := time.Now().UTC().Add(72 * time.Hour).Truncate(time.Hour)
	approved, waiting := d.Asked("approved@example.org", at), d.Asked("waiting@example.org", at.Add(time.Hour))
	written := func(id string) string {
		t.Helper()
		require.Eventually(t, func() bool {
			var m protocol.OwnMeeting
			d.Good("GET", "/api/owner/meetings/"+id, "", a.token, &m)
			return m.Calendar.State == protocol.CalendarWritten
		}, time.Minute, 50*time.Millisecond)
		return calendartest.Objects(t, server, calendartest.Collection)[calendartest.Collection+id+".ics"]
	}
	d.Good("POST", "/api/owner/meetings/"+approved.Request.ID+"/approve", `{}`, a.token, nil)
	require.Contains(t, written(approved.Request.ID), "\nSEQUENCE:0\r")
	var feed protocol.MeetingFeed
	d.Good("POST", "/api/owner/meeting-feed", `{"handle":"asha"}`, a.token, &feed)

	var asHandle, asIdentity protocol.MeetingReceipt
	asks := func(pair key.Pair, mailbox string, into *protocol.MeetingReceipt) {
		t.Helper()
		body := fmt.Sprintf(`{"requester":"A","email":%q,"purpose":"Secret","durationMin":30,"startsAt":%q}`, mailbox, nodetest.MachineZ(at))
		got := a.signs(pair, "POST", "/api/public/agents/bina/meetings", body)
		require.Equal(t, 201, got.Code, "%s", got.Body)
		got.Into(into)
	}
	asks(a.pair, "asha@example.org", &asHandle)

	buyers := nodetest.NewPair(t)
	s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(1).Address()))
	a.ends(protocol.EndedByOwner, a.pair)
	s.Chain.Publish(1, 1, a.id, buyers)
	s.Chain.Do("final")
	a.grants(buyers, "")

	for path, body := range map[string]string{
		"GET /api/owner/meetings": "", "GET /api/owner/calendars": "", "GET /api/owner/meeting-settings": "",
		"GET /api/owner/meetings/" + approved.Request.ID:               "",
		"POST /api/owner/meetings/" + waiting.Request.ID + "/approve":  `{}`,
		"POST /api/owner/meetings/" + waiting.Request.ID + "/decline":  `{}`,
		"POST /api/owner/meetings/" + approved.Request.ID + "/move":    fmt.Sprintf(`{"startsAt":%q}`, nodetest.MachineZ(at.Add(24*time.Hour))),
		"POST /api/owner/meetings/" + approved.Request.ID + "/cancel":  `{}`,
		"PUT /api/owner/meeting-settings":                              `{"handle":"asha","acceptingMeetingRequests":false}`,
		"POST /api/owner/calendars":                                    fmt.Sprintf(`{"handle":"asha","address":%q,"user":"thief","password":"x"}`, server),
		"GET /api/owner/calendars/" + account.ID:                       "",
		"PUT /api/owner/calendars/" + account.ID:                       `{"create":"Mine now"}`,
		"POST /api/owner/calendars/" + account.ID + "/check":           `{}`,
		"DELETE /api/owner/calendars/" + account.ID:                    "",
		"POST /api/owner/meeting-feed":                                 `{"handle":"asha"}`,
		"DELETE /api/owner/meeting-feed":                               `{"handle":"asha"}`,
		"GET /api/public/meetings/" + approved.Request.ID:              "",
		"GET /api/public/meetings/" + asHandle.Request.ID:              "",
		"POST /api/public/meetings/" + asHandle.Request.ID + "/cancel": `{}`,
	} {
		method, path, _ := strings.Cut(path, " ")
		refused := a.signs(buyers, method, path, body)
		require.Contains(t, []int{403, 404}, refused.Code, "%s %s: %s", method, path, refused.Body)
		require.NotContains(t, refused.Body.String(), "example.org")
	}

	// The profile goes on: who asked is answered, and the calendar follows.
	d.Good("POST", "/api/owner/meetings/"+waiting.Request.ID+"/approve", `{}`, a.token, nil)
	require.Contains(t, written(waiting.Request.ID), "\nSEQUENCE:0\r")
	d.Good("POST", "/api/owner/meetings/"+approved.Request.ID+"/move", fmt.Sprintf(`{"startsAt":%q}`, nodetest.MachineZ(at.Add(24*time.Hour))), a.token, nil)
	require.Eventually(t, func() bool { return strings.Contains(written(approved.Request.ID), "\nSEQUENCE:1\r") }, time.Minute, 50*time.Millisecond)
	require.Contains(t, s.Ask("GET", strings.TrimPrefix(feed.URL, s.Base), "").Body.String(), waiting.Request.ID)
	var kept protocol.MeetingRequest
	d.Good("GET", "/api/public/meetings/"+asHandle.Request.ID, "", a.token, &kept)
	require.Equal(t, protocol.MeetingSubmitted, kept.State, "the profile asked")

	// What the buyer asks is the identity's alone; who buys that does not read it either, and its token ends at the sale.
	asks(buyers, "buyer@example.org", &asIdentity)
	require.Equal(t, 200, a.signs(buyers, "GET", "/api/public/meetings/"+asIdentity.Request.ID, "").Code)
	next := nodetest.NewPair(t)
	s.Chain.Must(s.Chain.Registrar(1).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(2).Address()))
	s.Chain.Publish(2, 2, a.id, next)
	s.Chain.Do("final")
	a.grants(next, "")
	require.Equal(t, 404, a.signs(next, "GET", "/api/public/meetings/"+asIdentity.Request.ID, "").Code)
	require.Equal(t, 404, a.signs(next, "POST", "/api/public/meetings/"+asIdentity.Request.ID+"/cancel", `{}`).Code)
	require.Eventually(t, func() bool { // once the node has read of the sale
		return s.Ask("GET", "/api/public/meetings/"+asIdentity.Request.ID, "", "Authorization", "Bearer "+asIdentity.StatusToken).Code == 404
	}, time.Minute, 20*time.Millisecond)

	// A token that is revoked ends at once; the calendar and the meetings remain.
	lost, token, err := s.Admin().CreateAccountToken(t.Context(), "asha", "lost", 0, protocol.ScopeMeetings)
	require.NoError(t, err)
	d.Good("GET", "/api/owner/calendars/"+account.ID, "", lost, &account)
	d.Good("DELETE", "/api/owner/tokens/"+token.ID, "", a.token, nil)
	require.Equal(t, 401, s.Ask("GET", "/api/owner/meetings", "", "Authorization", "Bearer "+lost).Code)
	d.Good("POST", "/api/owner/meetings/"+approved.Request.ID+"/cancel", `{}`, a.token, nil)
	require.Eventually(t, func() bool {
		return calendartest.Objects(t, server, calendartest.Collection)[calendartest.Collection+approved.Request.ID+".ics"] == ""
	}, time.Minute, 50*time.Millisecond)
	require.NoError(t, s.DB.Check(context.Background()))
}
