package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

const personFile = `{"draft":{"handle":"asha","name":"Asha","kind":"person","headline":"","description":""},"unlisted":false,` +
	`"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}`

const roomsGood = `{"attention":{"open":true,"draft":{"rules":"Yarn only.","floor":"500","slots":3,"categories":[{"name":"Wool","floor":"600"}]},` +
	`"updatedAt":"2026-01-01T00:00:00Z"},"paymentAccount":{"provider":"upi","vpa":"asha@okbank"},` +
	`"meetings":{"open":true,"rules":{"policy":"Yarn.","questions":["Which?"]},"updatedAt":"2026-01-01T00:00:00Z"},` +
	`"calendars":[{"address":"https://cal.example/dav/","user":"asha","calendars":[{"url":"https://cal.example/dav/home/","name":"Home"},` +
	`{"url":"https://evil.example/dav/","name":"Other"}],"reads":["https://cal.example/dav/home/","https://evil.example/dav/","https://cal.example/none/"],` +
	`"writes":"https://evil.example/dav/","createdAt":"2026-01-01T00:00:00Z"}]}`

// TestRead_RoomsForm: settings obey the rules of the operations that write them, have no secret, and open nothing.
func TestRead_RoomsForm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, old, with string
		code            protocol.Code // "" for one that is taken
	}{
		{"good", "", "", ""},
		{"only a calendar", roomsGood[1:strings.Index(roomsGood, `"calendars"`)], "", ""},
		{"long rules", "Yarn only.", strings.Repeat("x", 2001), protocol.InvalidRequest},
		{"a direction override", "Yarn only.", "Y\u202e", protocol.InvalidRequest},
		{"a floor that is no amount", `"500"`, `true`, protocol.InvalidRequest},
		{"no floor", `"500"`, `"0"`, protocol.InvalidRequest},
		{"too many slots", `"slots":3`, `"slots":101`, protocol.InvalidRequest},
		{"another's handle", `"rules":"Yarn only."`, `"handle":"ravi","rules":"x"`, protocol.InvalidRequest},
		{"a category below the floor", `"600"`, `"400"`, protocol.InvalidRequest},
		{"a secret of the provider", `"vpa"`, `"keySecret":"s","vpa"`, protocol.InvalidRequest},
		{"another provider", `"provider":"upi"`, `"provider":"cash"`, protocol.InvalidRequest},
		{"an unknown room", `"meetings"`, `"salon":{},"meetings"`, protocol.InvalidRequest},
		{"many questions", `["Which?"]`, `["a","b","c","d"]`, protocol.InvalidRequest},
		{"a long question", `Which?`, strings.Repeat("x", 201), protocol.InvalidRequest},
		{"a zone that is none", `"policy"`, `"timezone":"Mars/Olympus","policy"`, protocol.InvalidRequest},
		{"a password", `"user":"asha"`, `"user":"asha","password":"x"`, protocol.InvalidRequest},
		{"sealed", `"user":"asha"`, `"user":"asha","sealed":"x"`, protocol.InvalidRequest},
		{"a colon in the user", `"user":"asha"`, `"user":"as:ha"`, protocol.InvalidRequest},
		{"no list", `"calendars":[{"address"`, `"calendars":{"address"`, protocol.InvalidRequest},
		{"a calendar here", "https://cal.example/dav/\",\"user\"", "http://127.0.0.1:22/\",\"user\"", ""},
		{"too long", "Yarn only.", strings.Repeat("x", maxWhole), protocol.InvalidRequest},
		{"six calendars", "", "", protocol.InvalidRequest},
		{"of a business", "", "", protocol.InvalidRequest},
	} {
		h, rooms, profile := newHome(t, "https://n2.example", nil), roomsGood, personFile
		if tt.old != "" {
			require.Contains(t, rooms, tt.old, tt.name)
			rooms = strings.Replace(rooms, tt.old, tt.with, 1)
		}
		switch tt.name {
		case "six calendars":
			at := strings.Index(rooms, `"calendars":[`) + len(`"calendars":[`)
			rooms = rooms[:at] + strings.Repeat(rooms[at:len(rooms)-2]+",", 5) + rooms[at:]
		case "of a business":
			profile = strings.Replace(profile, `"person"`, `"business"`, 1)
		}
		report, err := h.imports(packed(t, []part{{name: profileFile, body: profile}, {name: roomsFile, body: rooms}}, nil), Order{By: operator})
		require.Equal(t, tt.code, protocol.CodeOf(err), "%s: %v", tt.name, err)
		h.write(func(ctx context.Context, tx *storage.Tx) error {
			p, err := tx.Profiles().ByHandle(ctx, "asha")
			if tt.code != "" {
				require.ErrorIs(t, err, storage.ErrNotFound, tt.name)
				return nil
			}
			require.NoError(t, err)
			require.Equal(t, protocol.Rooms{}, p.Open(), tt.name)
			accounts, err := tx.PaymentAccounts().OfProfile(ctx, "asha")
			require.Empty(t, accounts, "a file does not say where money goes")
			require.NoError(t, err)
			all, err := tx.Calendars().OfProfile(ctx, "asha")
			if tt.name == "a calendar here" {
				require.Empty(t, all)
				require.Contains(t, strings.Join(report.Notes, "\n"), "a calendar server was left out")
				return err
			}
			require.Len(t, all, 1)
			require.Empty(t, all[0].Sealed)
			require.Equal(t, protocol.CalendarNoPassword, all[0].Failed)
			require.Equal(t, []protocol.FoundCalendar{{URL: "https://cal.example/dav/home/", Name: "Home"}}, all[0].Found)
			require.Equal(t, []string{"https://cal.example/dav/home/"}, all[0].Reads, "a password goes to its server only")
			require.Empty(t, all[0].Writes)
			return err
		})
		require.NoError(t, h.DB.Check(t.Context()))
	}
}

// TestRead_RoomsHere: what the profile here has set stays, with replace also what bids depend on.
func TestRead_RoomsHere(t *testing.T) {
	t.Parallel()
	h := newHome(t, "https://n2.example", nil)
	h.profile("asha")
	h.write(func(ctx context.Context, tx *storage.Tx) error {
		terms, _ := protocol.AttentionDraft{Rules: "Mine."}.Terms()
		require.NoError(t, tx.AttentionBoards().Put(ctx, &storage.AttentionBoard{Handle: "asha", Open: true, Terms: terms}))
		return tx.Meetings().PutSettings(ctx, &storage.MeetingSettings{Handle: "asha", Open: true, Rules: protocol.MeetingRules{Policy: "Mine."}})
	})
	raw := packed(t, []part{{name: profileFile, body: personFile}, {name: roomsFile, body: roomsGood}}, nil)
	for _, replace := range []bool{false, true} {
		report := must.Get(h.imports(raw, Order{By: operator, ImportRequest: protocol.ImportRequest{Replace: replace}}))(t)
		h.write(func(ctx context.Context, tx *storage.Tx) error {
			b := must.Get(tx.AttentionBoards().ByHandle(ctx, "asha"))(t)
			require.True(t, b.Open)
			require.Equal(t, "Mine.", b.Terms.Rules)
			p := must.Get(tx.Profiles().ByHandle(ctx, "asha"))(t)
			s, err := tx.Meetings().Settings(ctx, p)
			require.Equal(t, !replace, s.Open)
			require.Equal(t, map[bool]string{false: "Mine.", true: "Yarn."}[replace], s.Rules.Policy)
			require.Len(t, must.Get(tx.Calendars().OfProfile(ctx, "asha"))(t), 1, "once")
			return err
		})
		require.Equal(t, replace, strings.Contains(strings.Join(report.Notes, "\n"), "the attention board here keeps its rules"))
	}
}

// meetingLine returns a line of meetings.ndjson.
func meetingLine(t *testing.T, change func(*meetingRecord)) string {
	at := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	m := meetingRecord{ID: protocol.NewID(protocol.MeetingID, at), State: "done", Requester: "Ravi", Author: authorRecord{Name: "Ravi",
		Method: "pow"}, Purpose: "Yarn",
		StartsAt: at, EndsAt: at.Add(time.Hour), CreatedAt: at, History: []stepRecord{{"submitted", at, ""}, {"approved", at, ""}, {"done", at, ""}}}
	if change != nil {
		change(&m)
	}
	raw := must.Get(json.Marshal(m))(t)
	return string(raw) + "\n"
}

// TestRead_MeetingForm: a request that is not of the form is refused.
func TestRead_MeetingForm(t *testing.T) {
	t.Parallel()
	h := newHome(t, "https://n2.example", nil)
	body := func(change func(*meetingRecord)) string { return meetingLine(t, change) }
	edit := func(old, with string) string { return strings.Replace(body(nil), old, with, 1) }
	many := func(n int) string { return strings.Repeat(body(nil), n) }
	for name, c := range map[string]struct {
		body string
		good bool
	}{
		"good":                 {body(nil), true},
		"a state that is none": {edit(`"state":"done"`, `"state":"gone"`), false},
		"not confirmed":        {edit(`"state":"done"`, `"state":"unconfirmed"`), false},
		"another id":           {edit(`"mtg_`, `"thr_`), false},
		"a token":              {edit(`"purpose"`, `"tokenHash":"x","purpose"`), false},
		"a callback":           {edit(`"purpose"`, `"callback":"https://x.example/","purpose"`), false},
		"another's handle":     {edit(`"purpose"`, `"handle":"ravi","purpose"`), false},
		"long purpose":         {body(func(m *meetingRecord) { m.Purpose = strings.Repeat("x", 501) }), false},
		"blank purpose":        {body(func(m *meetingRecord) { m.Purpose = " " }), false},
		"no mail address":      {body(func(m *meetingRecord) { m.Email = "x" }), false},
		"ends before":          {body(func(m *meetingRecord) { m.EndsAt = m.StartsAt }), false},
		"a day long":           {body(func(m *meetingRecord) { m.EndsAt = m.StartsAt.Add(24 * time.Hour) }), false},
		"in another age":       {body(func(m *meetingRecord) { m.StartsAt, m.EndsAt = time.Time{}, time.Time{}.Add(time.Hour) }), false},
		"no history":           {body(func(m *meetingRecord) { m.History = []stepRecord{} }), false},
		"a long history":       {body(func(m *meetingRecord) { m.History = make([]stepRecord, maxSteps+1) }), false},
		"a long note":          {body(func(m *meetingRecord) { m.History[0].Note = strings.Repeat("x", 301) }), false},
		"a number as name":     {edit(`"Ravi"`, `7`), false},
		"as many as may be":    {many(maxMeetings), true},
		"too many":             {many(maxMeetings + 1), false},
	} {
		raw := packed(t, []part{{name: profileFile, body: personFile}, {name: meetingsFile, body: c.body}}, nil)
		_, err := h.imports(raw, Order{By: operator, ImportRequest: protocol.ImportRequest{DryRun: true}})
		if c.good {
			require.NoError(t, err, name)
			continue
		}
		require.Equal(t, protocol.InvalidRequest, protocol.CodeOf(err), "%s: %v", name, err)
	}
}

// TestRead_Meetings: no request of an archive takes place, waits, or is opened here, in whatever state it comes.
func TestRead_Meetings(t *testing.T) {
	t.Parallel()
	h := newHome(t, "https://n2.example", nil)
	now := time.Now().UTC().Truncate(time.Millisecond)
	past, coming := now.Add(-48*time.Hour), now.Add(48*time.Hour)
	long := now.Add(-40 * 24 * time.Hour)
	var lines strings.Builder
	want, ids := map[string]string{}, map[string]time.Time{}
	for state, over := range map[string][2]string{ // what becomes of one that is over, and of one that is coming
		"submitted": {"expired", "expired"}, "proposed": {"expired", "expired"}, "approved": {"done", "expired"}, "declined": {"declined", "declined"},
		"withdrawn": {"withdrawn", "withdrawn"}, "expired": {"expired", "expired"}, "cancelled": {"cancelled", "cancelled"}, "done": {"done", "expired"},
		"no_show": {"no_show", "expired"},
	} {
		for i, at := range []time.Time{past, coming, long} {
			lines.WriteString(meetingLine(t, func(m *meetingRecord) {
				m.State, m.StartsAt, m.EndsAt, m.Email, m.Confirmed = state, at, at.Add(time.Hour), "ravi@example.org", true
				m.History = []stepRecord{{state, at, ""}}
				want[m.ID], ids[m.ID] = over[i%2], at
			}))
		}
	}
	raw := packed(t, []part{{name: profileFile, body: personFile}, {name: meetingsFile, body: lines.String()}}, nil)
	for n := range 2 {
		report := must.Get(h.imports(raw, Order{By: operator}))(t)
		require.Equal(t, []protocol.ImportCount{{New: len(want)}, {Same: len(want)}}[n], report.Meetings, fmt.Sprint(report.Notes))
	}
	h.write(func(ctx context.Context, tx *storage.Tx) error {
		seen := map[[32]byte]bool{}
		for id, state := range want {
			m := must.Get(tx.Meetings().ByID(ctx, id))(t)
			require.Equal(t, state, string(m.State))
			require.Equal(t, state, string(m.History[len(m.History)-1].State))
			require.Equal(t, len(m.History), m.Moves)
			require.False(t, m.MovedAt.After(tx.Now))
			require.True(t, m.DueAt.IsZero())
			require.False(t, m.Confirmed, "the word of a node that did not sign")
			require.Equal(t, m.Mail == "", m.MailUntil.IsZero())
			if ids[id].Equal(long) && len(m.History) == 1 {
				require.Empty(t, m.Mail, "the address is deleted 30 days after the meeting")
			}
			require.False(t, m.MailUntil.After(tx.Now.Add(protocol.MeetingMailKept)))
			require.False(t, seen[m.TokenHash])
			seen[m.TokenHash] = true
		}
		require.Empty(t, must.Get(tx.Meetings().Taken(ctx, "asha", past.Add(-time.Hour), coming.Add(48*time.Hour)))(t))
		return nil
	})
	another := strings.NewReplacer(`"asha"`, `"ravi"`).Replace(personFile)
	report := must.Get(h.imports(packed(t, []part{{name: profileFile, body: another}, {name: meetingsFile, body: lines.String()}},
		func(m *manifest) { m.Handle = "ravi" }),
		Order{By: operator}))(t)
	require.Equal(t, protocol.ImportCount{LeftOut: len(want)}, report.Meetings, "those of another")
	require.NoError(t, h.DB.Check(t.Context()))
}
