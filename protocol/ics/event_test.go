package ics

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func at(t testing.TB, s string) time.Time {
	t.Helper()
	return must.Get(time.Parse(time.RFC3339, s))(t)
}

func meeting(t testing.TB) Event {
	return Event{
		ID: "mtg_01jd0000000000000000000000", Node: "node.example", Summary: "Asha Rao / Ravi K: 30 min",
		Description: "Message from the requester (not verified):\nline 2, with comma; semicolon \\ backslash\n\n2026-12-01 11:00 (Asia/Kolkata)",
		Location:    "https://meet.example/stoa-7f3a", URL: "https://node.example/meetings/mtg_01jd0000000000000000000000",
		Start: at(t, "2026-12-01T11:00:00+05:30"), End: at(t, "2026-12-01T11:30:00+05:30"), Stamp: at(t, "2026-11-20T23:20:05Z"),
		Organizer: Person{"Asha Rao", "calendar@node.example"}, Attendee: Person{"Ravi, K", "ravi@example.org"}, Alarm: 15 * time.Minute,
	}
}

// golden are the objects of one meeting's life.
func golden(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	add := func(name string, raw []byte, err error) {
		t.Helper()
		require.NoError(t, err)
		files[name] = raw
	}
	e := meeting(t)
	raw, err := e.Request()
	add("request.ics", raw, err)
	raw, err = e.Stored()
	add("stored.ics", raw, err)

	e.Sequence, e.Start, e.End, e.Stamp = 1, e.Start.Add(24*time.Hour), e.End.Add(24*time.Hour), e.Stamp.Add(time.Hour)
	raw, err = e.Request()
	add("moved.ics", raw, err)

	e.Sequence, e.Stamp = 2, e.Stamp.Add(time.Hour)
	raw, err = e.Cancel()
	add("cancel.ics", raw, err)

	gone := e
	gone.Cancelled = true
	raw, err = Feed("Meetings of Asha Rao, @asha", []Event{meeting(t), gone})
	add("feed.ics", raw, err)

	e = meeting(t)
	e.Summary = "आशा राव / ராவி: ३० मिनट, एक बहुत लंबा विषय जो एक पंक्ति में नहीं समाता और इसलिए मोड़ा जाता है 🧑‍🎓🏴󠁧󠁢󠁥󠁮󠁧󠁿"
	e.Attendee.Name, e.Location = `רוי "the; boss", 👩🏽‍💻`, "Café Nöde, 3rd floor; ring twice"
	raw, err = e.Request()
	add("words.ics", raw, err)
	return files
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, got := range golden(t) {
		file := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.WriteFile(file, got, 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err, "go test ./protocol/ics -update writes it")
		require.Equal(t, string(want), string(got), name)
		require.True(t, utf8.Valid(got))
		for _, line := range strings.SplitAfter(string(got), "\r\n") {
			require.LessOrEqual(t, len(line), 77, "%s: 75 bytes and CR LF", name)
			require.NotContains(t, strings.TrimSuffix(line, "\r\n"), "\n", name)
		}
		require.NoError(t, must.Err(decode(string(got))), name)
	}
}

// reader prints what icalendar, an implementation in Python, reads in the named files.
const reader = `
import sys, json, icalendar
def text(v):
    return None if v is None else str(v)
out = {}
for name in sys.argv[1:]:
    cal = icalendar.Calendar.from_ical(open(name, 'rb').read())
    assert not cal.errors, cal.errors
    events = []
    for e in cal.walk('VEVENT'):
        assert not e.errors, e.errors
        people = e.get('ATTENDEE')
        events.append({
            'uid': text(e['UID']), 'summary': text(e.get('SUMMARY')), 'description': text(e.get('DESCRIPTION')), 'location': text(e.get('LOCATION')),
            'start': e['DTSTART'].dt.isoformat(), 'end': e['DTEND'].dt.isoformat(), 'stamp': e['DTSTAMP'].dt.isoformat(),
            'sequence': e['SEQUENCE'], 'status': text(e['STATUS']), 'organizer': text(e.get('ORGANIZER')), 'attendee': text(people),
            'name': people.params.get('CN') if people is not None else None,
            'rsvp': people.params.get('RSVP') if people is not None else None,
            'alarms': [str(a['TRIGGER'].dt) for a in e.walk('VALARM')],
        })
    out[name.split('/')[-1]] = {'method': text(cal.get('METHOD')), 'events': events}
print(json.dumps(out))
`

type readEvent struct {
	UID, Summary, Description, Location, Start, End, Stamp, Status, Organizer, Attendee, Name, RSVP string
	Sequence                                                                                        int
	Alarms                                                                                          []string
}

// TestReader: another implementation reads every text, time and person as it was written.
func TestReader(t *testing.T) {
	t.Parallel()
	python := os.Getenv("STOA_TEST_RADICALE")
	if python == "" {
		t.Skip("STOA_TEST_RADICALE=$(.ci/radicale) names a Python with icalendar")
	}
	args := []string{"-c", reader}
	for name := range golden(t) {
		args = append(args, filepath.Join("testdata", name))
	}
	out := must.Get(exec.CommandContext(t.Context(), python, args...).Output())(t)
	var read map[string]struct {
		Method string
		Events []readEvent
	}
	require.NoError(t, json.Unmarshal(out, &read), string(out))
	e := meeting(t)
	want := readEvent{
		UID: "mtg_01jd0000000000000000000000@node.example", Summary: e.Summary, Description: e.Description, Location: e.Location,
		Start: "2026-12-01T05:30:00+00:00", End: "2026-12-01T06:00:00+00:00", Stamp: "2026-11-20T23:20:05+00:00", Status: "CONFIRMED",
		Organizer: "mailto:calendar@node.example", Attendee: "mailto:ravi@example.org", Name: "Ravi, K", RSVP: "TRUE", Alarms: []string{"-1 day, 23:45:00"},
	}
	require.Equal(t, "REQUEST", read["request.ics"].Method)
	require.Equal(t, []readEvent{want}, read["request.ics"].Events)

	stored := want
	stored.Organizer, stored.Attendee, stored.Name, stored.RSVP = "", "", "", ""
	require.Empty(t, read["stored.ics"].Method)
	require.Equal(t, []readEvent{stored}, read["stored.ics"].Events)

	moved := want
	moved.Sequence, moved.Start, moved.End, moved.Stamp = 1, "2026-12-02T05:30:00+00:00", "2026-12-02T06:00:00+00:00", "2026-11-21T00:20:05+00:00"
	require.Equal(t, "REQUEST", read["moved.ics"].Method)
	require.Equal(t, []readEvent{moved}, read["moved.ics"].Events)

	gone := moved
	gone.Sequence, gone.Stamp, gone.Status, gone.RSVP, gone.Alarms = 2, "2026-11-21T01:20:05+00:00", "CANCELLED", "", []string{}
	require.Equal(t, "CANCEL", read["cancel.ics"].Method)
	require.Equal(t, []readEvent{gone}, read["cancel.ics"].Events)

	gone.Organizer, gone.Attendee, gone.Name = "", "", ""
	require.Equal(t, "PUBLISH", read["feed.ics"].Method)
	require.Equal(t, []readEvent{stored, gone}, read["feed.ics"].Events)

	words := read["words.ics"].Events[0]
	require.Equal(t, "Café Nöde, 3rd floor; ring twice", words.Location)
	require.Equal(t, `רוי 'the; boss', 👩🏽‍💻`, words.Name)
	require.True(t, strings.HasSuffix(words.Summary, "🧑‍🎓🏴󠁧󠁢󠁥󠁮󠁧󠁿"), words.Summary)
}

// TestNames: a name from anywhere stays one parameter of one line.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                                  "",
		"Ravi":                              `;CN="Ravi"`,
		`Ravi "R" K`:                        `;CN="Ravi 'R' K"`,
		"Ravi;PARTSTAT=ACCEPTED:mailto:":    `;CN="Ravi;PARTSTAT=ACCEPTED:mailto:"`,
		"a\r\nATTENDEE:mailto:x@y.z":        `;CN="a ATTENDEE:mailto:x@y.z"`,
		"a\u202eb\u2066c":                   `;CN="abc"`,
		"\x00\x1b[1m":                       `;CN="[1m"`,
		"\"\"\"":                            `;CN="'''"`,
		"שָׁלוֹם":                           `;CN="שָׁלוֹם"`,
		"e" + strings.Repeat("\u0301", 100): `;CN="e` + strings.Repeat("\u0301", 16) + `"`,
		strings.Repeat("n", 300):            `;CN="` + strings.Repeat("n", 99) + `…"`,
		strings.Repeat("n", 98) + "👩🏽‍💻abcd": `;CN="` + strings.Repeat("n", 98) + `…"`,
	} {
		require.Equal(t, want, named(name))
		e := meeting(t)
		e.Attendee.Name, e.Organizer.Name, e.Summary, e.Location = name, name, name, name
		raw := must.Get(e.Request())(t)
		c := must.Get(decode(string(raw)))(t)
		require.Len(t, c.children, 1)
		require.Len(t, c.children[0].children, 1)
		people := 0
		for _, p := range c.children[0].props {
			if p.name == "ATTENDEE" {
				people++
				require.Equal(t, "NEEDS-ACTION", p.params["PARTSTAT"])
				require.Equal(t, "mailto:ravi@example.org", p.value)
			}
		}
		require.Equal(t, 1, people)
	}
}

// TestEvent_Refused: nothing is written that has no UID, no length or no address.
func TestEvent_Refused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Event){
		"no id":          func(e *Event) { e.ID = "" },
		"line in the id": func(e *Event) { e.ID = "a\r\nX:y" },
		"no node":        func(e *Event) { e.Node = "" },
		"at in the node": func(e *Event) { e.Node = "a@b" },
		"no length":      func(e *Event) { e.End = e.Start },
		"no organizer":   func(e *Event) { e.Organizer.Mail = "" },
		"two attendees":  func(e *Event) { e.Attendee.Mail = "a@example.org,b@example.org" },
		"line in a mail": func(e *Event) { e.Attendee.Mail = "a@example.org\r\nX:y" },
	} {
		e := meeting(t)
		change(&e)
		require.Error(t, must.Err(e.Request()), name)
		raw, _ := e.Cancel()
		require.Nil(t, raw, "%s: nothing was written in part", name)
	}
	e := meeting(t)
	e.Location, e.URL = "https://meet.example/a b\r\nX:y", "javascript:alert(1)"
	raw := must.Get(e.Stored())(t)
	require.NotContains(t, string(raw), "\r\nX:")
	require.NotContains(t, string(raw), "javascript")
	require.NotContains(t, string(raw), "CONFERENCE")
	e.Attendee.Mail = "a%b?c@example.org"
	raw = must.Get(e.Request())(t)
	require.Contains(t, string(raw), "mailto:a%25b%3Fc@example.org")
}

// TestSameBytes: the same state of a meeting has the same bytes, in any zone.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	e := meeting(t)
	first := must.Get(e.Request())(t)
	e.Start, e.End, e.Stamp = e.Start.UTC(), e.End.In(time.FixedZone("", 3600)), e.Stamp.Local()
	second := must.Get(e.Request())(t)
	require.Equal(t, string(first), string(second))
	require.NotContains(t, string(first), "TZID")
}
