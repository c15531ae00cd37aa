package meeting_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestMeetingSettings: what the owner writes is what everybody reads; the switch is that of the
// profile, and profile, capability, interface and index say the same.
func TestMeetingSettings(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		h.PutOpen("asha", func(d *protocol.ProfileDraft) { d.Capabilities = nil })
		d := &nodetest.Doors{T: t, House: h, Token: h.OwnerToken("asha")}
		open := func(want bool) {
			t.Helper()
			var p protocol.Profile
			d.Good("GET", "/api/public/agents/asha", "", "", &p)
			require.Equal(t, want, p.Interfaces.Meetings != nil && *p.Interfaces.Meetings != nil)
			require.Equal(t, want, len(p.Capabilities) == 1)
			if p.Agent != nil {
				require.Equal(t, want, p.Agent.AcceptingMeetingRequests)
			}
			var found protocol.Page[protocol.Profile]
			d.Good("GET", "/api/public/agents?capability=schedule-meeting", "", "", &found)
			require.Equal(t, want, len(found.Items) == 1, "the index says the same")
			var info protocol.MeetingInfo
			d.Good("GET", "/api/public/agents/asha/meetings", "", "", &info)
			require.Equal(t, want, info.Accepting)
		}
		put := func(body string, into any) {
			t.Helper()
			d.Good("PUT", "/api/owner/meeting-settings", body, d.Token, into)
		}
		profile := func(agent string) {
			t.Helper()
			d.Good("PUT", "/api/owner/profile", `{"handle":"asha","name":"Asha","kind":"person"`+agent+`}`, d.Token, nil)
		}
		open(false)
		var s protocol.MeetingSettings
		d.Good("GET", "/api/owner/meeting-settings?handle=asha", "", d.Token, &s)
		require.Nil(t, s.UpdatedAt)
		require.Equal(t, []int{15, 30}, s.Durations)
		require.Len(t, s.UsualHours, 5)
		require.False(t, s.Accepting)

		put(`{"handle":"asha","acceptingMeetingRequests":true}`, &s)
		require.True(t, s.Accepting)
		require.NotNil(t, s.UpdatedAt)
		open(true)
		profile("")
		open(true)
		profile(`,"agent":{"name":"Mitra","by":"Stoa","product":"Stoa","acceptingMeetingRequests":false}`)
		open(false)
		put(`{"handle":"asha","acceptingMeetingRequests":true}`, nil)
		open(true)
		profile(`,"agent":{"name":"Mitra","by":"Stoa","product":"Stoa","acceptingMeetingRequests":true}`)
		put(`{"handle":"asha","acceptingMeetingRequests":false,"showSlots":true}`, nil)
		open(false)

		const week = `"usualHours":[{"day":"monday","from":"22:00","to":"26:00"},{"day":"monday","from":"09:00","to":"10:00"},` +
			`{"day":"friday","from":"09:00","to":"10:00"}]`
		put(`{"handle":"asha","acceptingMeetingRequests":true,"showSlots":true,"timezone":"Europe/Berlin","durations":[60,20],`+week+
			`,"slotStep":20,"minNoticeMin":30,"maxDaysAhead":60,"policy":"Yarn only.","questions":["How much?"]}`, nil)
		var info protocol.MeetingInfo
		d.Good("GET", "/api/public/agents/asha/meetings", "", "", &info)
		require.Equal(t, []int{20, 60}, info.Durations)
		require.Equal(t, []string{"monday", "friday"}, info.UsualDays)
		require.Equal(t, "Europe/Berlin", info.TimeZone)
		require.Equal(t, []any{30, 60, "Yarn only.", "owner"}, []any{info.MinNoticeMin, info.MaxDaysAhead, info.Policy, info.Approval})
		require.NotEmpty(t, info.Slots)

		berlin, err := time.LoadLocation("Europe/Berlin")
		require.NoError(t, err)
		from := time.Now().Add(72 * time.Hour).UTC().Truncate(time.Minute)
		ask := func(query string) nodetest.Answer {
			return h.Ask("GET", fmt.Sprintf("/api/public/agents/asha/meetings?from=%s&%s", from.Format(time.RFC3339), query), "")
		}
		ask("durationMin=60&to=" + from.Add(31*24*time.Hour).Format(time.RFC3339)).Into(&info)
		require.NotEmpty(t, info.Slots)
		for _, slot := range info.Slots {
			local := slot.StartsAt.In(berlin)
			require.Equal(t, time.Hour, slot.EndsAt.Sub(slot.StartsAt))
			require.Zero(t, local.Minute()%20)
			night := local.Weekday() == time.Monday && local.Hour() >= 22 || local.Weekday() == time.Tuesday && local.Hour() < 2
			require.True(t, night || local.Hour() == 9 && (local.Weekday() == time.Monday || local.Weekday() == time.Friday), "%s", local)
		}
		for query, fault := range map[string]string{
			"to=" + from.Add(31*24*time.Hour+time.Second).Format(time.RFC3339): "/to", "to=" + from.Format(time.RFC3339): "/to",
			"to=tomorrow": "/to", "durationMin=30": "/durationMin",
		} {
			require.Equal(t, []string{fault}, nodetest.Pointers(ask(query).Problem().Errors), query)
		}
		put(`{"handle":"asha","acceptingMeetingRequests":true,"showSlots":false}`, nil)
		require.Contains(t, ask("").Body.String(), `"slots":null`)
		require.Equal(t, 404, h.Ask("GET", "/api/public/agents/nobody/meetings", "").Code)

		require.NoError(t, h.Admin().DeleteProfile(t.Context(), "asha"))
		h.PutOpen("asha", nil)
		d.Token = h.OwnerToken("asha")
		d.Good("GET", "/api/owner/meeting-settings?handle=asha", "", d.Token, &s)
		require.Nil(t, s.UpdatedAt, "the next owner of the handle has none of the former one's")
		require.False(t, s.Accepting)
		require.NoError(t, h.DB.Check(t.Context()))
	})
}

// TestMeetingSettings_Faults: each rule that the tags of the input cannot express.
func TestMeetingSettings_Faults(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	token := h.OwnerToken("asha")
	seven := strings.TrimSuffix(strings.Repeat(`{"day":"monday","from":"%02d:00","to":"%02d:30"},`, 7), ",")
	hours := []any{}
	for i := range 7 {
		hours = append(hours, i, i)
	}
	for body, fault := range map[string]string{
		`"timezone":"IST"`:   "/timezone",
		`"timezone":"Local"`: "/timezone",
		`"durations":[4]`:    "/durations/0",
		`"durations":[241]`:  "/durations/0",
		`"usualHours":[{"day":"monday","from":"10:00","to":"10:00"}]`:                                              "/usualHours/0/to",
		`"usualHours":[{"day":"monday","from":"10:00","to":"26:01"}]`:                                              "/usualHours/0/to",
		`"usualHours":[{"day":"monday","from":"10:00","to":"12:00"},{"day":"monday","from":"11:00","to":"13:00"}]`: "/usualHours/1",
		`"usualHours":[` + fmt.Sprintf(seven, hours...) + `]`:                                                      "/usualHours/6",
		`"dateOverrides":[{"date":"2026-02-30"}]`:                                                                  "/dateOverrides/0/date",
		`"dateOverrides":[{"date":"2026-12-25"},{"date":"2026-12-25"}]`:                                            "/dateOverrides/1/date",
		`"dateOverrides":[{"date":"2026-12-25","windows":[{"from":"11:00","to":"10:00"}]}]`:                        "/dateOverrides/0/windows/0/to",
		`"travel":[{"from":"2026-12-02","to":"2026-12-01","timezone":"Europe/Berlin"}]`:                            "/travel/0/to",
		`"travel":[{"from":"2026-12-01","to":"2026-12-02","timezone":"Mars/Base"}]`:                                "/travel/0/timezone",
		`"travel":[{"from":"2026-12-01","to":"2026-12-05","timezone":"Europe/Berlin"},
			{"from":"2026-12-05","to":"2026-12-07","timezone":"Asia/Tokyo"}]`: "/travel/1",
		`"location":"a\nb"`:        "/location",
		`"questions":["a","  "]`:   "/questions/1",
		`"minNoticeMin":14`:        "/minNoticeMin",
		`"maxDaysAhead":91`:        "/maxDaysAhead",
		`"bufferBefore":121`:       "/bufferBefore",
		`"outsideHours":"perhaps"`: "/outsideHours",
	} {
		a := h.Ask("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,`+body+`}`, "Authorization", "Bearer "+token)
		require.Equal(t, 422, a.Code, body)
		require.Equal(t, []string{fault}, nodetest.Pointers(a.Problem().Errors), body)
	}
}
