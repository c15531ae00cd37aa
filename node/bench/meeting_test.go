package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

const (
	meetingOwners  = 1000
	meetingsOfEach = 10
)

// BenchmarkMeetings measures meeting requests on a node that stores 10,000 of them for
// 1,000 owners, on SQLite with synchronous=FULL: get_meeting_info with the open times of
// 31 days of a person with 93 approved meetings in them, asked on one connection and
// each time from the database (p95-ms); and approvals beside signed board posts of the
// same run, over HTTP on 64 connections.
func BenchmarkMeetings(b *testing.B) {
	n := nodetest.Start(b)
	target := must.Get(httpsig.ParseTarget(n.Base))(b)
	keys := make([]key.Pair, 100)
	for i := range meetingOwners {
		pair := n.Hosted(meetingOwner(i))
		keys[i%len(keys)] = pair
	}
	tomorrow := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	fillMeetings(b, n, tomorrow)
	busy := n.OwnerToken(meetingOwner(0))
	n.Ask("PUT", "/api/owner/meeting-settings", `{"acceptingMeetingRequests":true,"showSlots":true,"timezone":"Asia/Kolkata"}`,
		"Authorization", "Bearer "+busy).Is(200)
	var info protocol.MeetingInfo
	res := must.Get(http.Get(n.URL + openTimes(tomorrow)))(b)
	require.NoError(b, json.NewDecoder(res.Body).Decode(&info))
	res.Body.Close()
	require.Greater(b, len(info.Slots), 100)

	asked := 0 // over all runs: no target twice, so that no answer is a kept one
	b.Run("info", func(b *testing.B) {
		u := must.Get(url.Parse(n.URL))(b)
		conn := must.Get(net.Dial("tcp", u.Host))(b)
		defer conn.Close()
		reader := newAnswerReader(conn)
		took := make([]time.Duration, 0, b.N)
		b.ResetTimer()
		for range b.N {
			asked++
			at, from := time.Now(), tomorrow.Add(time.Duration(asked)*time.Second)
			must.Get(fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", openTimes(from), u.Host))(b)
			require.NoError(b, reader.next())
			took = append(took, time.Since(at))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
	})
	b.Run("post", func(b *testing.B) {
		signedWrites(b, n, target, func(i int) (string, []byte, key.Pair) {
			body := fmt.Appendf(nil, `{"kind":"offer","title":"Post %d","body":"Two hundred sheets of hand-made paper from Jaipur, number %d."}`, i, i)
			return "/api/public/board", body, keys[i%len(keys)]
		})
	})
	var tokens []string
	for i := range 100 {
		tokens = append(tokens, n.OwnerToken(meetingOwner(1+i)))
	}
	rounds := 0 // over all runs: each approval takes a time of the person
	b.Run("approve", func(b *testing.B) {
		ids := waiting(b, n, b.N, tomorrow.Add(time.Duration(60+rounds)*24*time.Hour), len(tokens))
		rounds += 1 + b.N/len(tokens)
		u := must.Get(url.Parse(n.URL))(b)
		before := cpuTime()
		poundEach(b, u.Host, func(i int64) []byte {
			return fmt.Appendf(nil, "POST /api/owner/meetings/%s/approve HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
				"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", ids[i-1], u.Host, tokens[int(i-1)%len(tokens)])
		})
		b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
		require.NoError(b, n.DB.Read(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for _, id := range ids {
				m, err := tx.Meetings().ByID(ctx, id)
				if err != nil {
					return err
				}
				require.Equal(b, protocol.MeetingApproved, m.State)
			}
			return nil
		}))
	})
}

// openTimes is the target of the open times of the first owner for 31 days.
func openTimes(from time.Time) string {
	return fmt.Sprintf("/api/public/agents/%s/meetings?limit=1000&from=%s&to=%s", meetingOwner(0), from.Format(time.RFC3339),
		from.Add(protocol.MaxSlotRange).Format(time.RFC3339))
}

func meetingOwner(i int) string { return fmt.Sprintf("person-%d", i) }

// fillMeetings stores 10,000 requests: each owner's ten in every state, and for the first
// owner three approved ones a day.
func fillMeetings(b *testing.B, n *nodetest.House, from time.Time) {
	b.Helper()
	states := []protocol.MeetingState{
		protocol.MeetingSubmitted, protocol.MeetingApproved, protocol.MeetingDeclined, protocol.MeetingCancelled, protocol.MeetingDone,
	}
	require.NoError(b, n.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for day := range 31 {
			for i := range 3 {
				if err := insertMeeting(ctx, tx, 0, protocol.MeetingApproved, from.Add(time.Duration(24*day+5+2*i)*time.Hour)); err != nil {
					return err
				}
			}
		}
		for i := 1; i < meetingOwners; i++ {
			for k := range meetingsOfEach {
				if err := insertMeeting(ctx, tx, i, states[k%len(states)], from.Add(time.Duration(24*k+5)*time.Hour)); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// waiting stores requests that wait for decisions of so many owners in turn, and returns
// their ids.
func waiting(b *testing.B, n *nodetest.House, count int, from time.Time, owners int) (ids []string) {
	b.Helper()
	require.NoError(b, n.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
		ids = nil
		for i := range count {
			m, _ := nodetest.StoredMeeting(protocol.MeetingSubmitted, from.Add(time.Duration(i/owners)*time.Hour))
			m.Handle, m.AskedAt, m.DueAt = meetingOwner(1+i%owners), tx.Now, m.StartsAt
			if err := tx.Meetings().Insert(ctx, m); err != nil {
				return err
			}
			ids = append(ids, m.ID)
		}
		return nil
	}))
	return ids
}

func insertMeeting(ctx context.Context, tx *storage.Tx, owner int, state protocol.MeetingState, at time.Time) error {
	m, _ := nodetest.StoredMeeting(state, at)
	m.Handle, m.AskedAt = meetingOwner(owner), tx.Now
	return tx.Meetings().Insert(ctx, m)
}
