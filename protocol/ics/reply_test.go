package ics

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

const uid = "mtg_01jd0000000000000000000000@node.example"

// answer is a calendar as mail programs write it; lines end with LF here.
func answer(method string, event ...string) string {
	return "BEGIN:VCALENDAR\nPRODID:-//Google Inc//Google Calendar 70.9054//EN\nVERSION:2.0\nCALSCALE:GREGORIAN\nMETHOD:" + method +
		"\nBEGIN:VEVENT\nUID:" + uid + "\n" + strings.Join(event, "\n") + "\nEND:VEVENT\nEND:VCALENDAR\n"
}

var declined = []string{
	"DTSTART:20261201T053000Z", "DTEND:20261201T060000Z", "DTSTAMP:20261121T101010Z", "ORGANIZER;CN=Asha Rao:mailto:calendar@node.example",
	"ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=DECLINED;CN=\"Ravi, K\"\n ;X-NUM-GUESTS=0:mailto:Ravi@example.org", "SEQUENCE:0", "STATUS:CONFIRMED",
	"COMMENT:I am ill\\, sorry.\\nRavi",
}

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

func wrapped(s string) string {
	s = base64.StdEncoding.EncodeToString([]byte(s))
	var b strings.Builder
	for ; len(s) > 76; s = s[76:] {
		b.WriteString(s[:76] + "\n")
	}
	return b.String() + s + "\n"
}

const headers = "From: Ravi K <ravi@example.org>\nTo: calendar@node.example\nSubject: Declined\nMIME-Version: 1.0\n"

// gmail nests the calendar and attaches it.
func gmail(calendar string) string {
	return headers + "Content-Type: multipart/mixed; boundary=\"0000aa\"\n\n--0000aa\nContent-Type: multipart/alternative; boundary=\"0000bb\"\n\n" +
		"--0000bb\nContent-Type: text/plain; charset=\"UTF-8\"\n\nRavi has declined.\n--0000bb\nContent-Type: text/html; charset=\"UTF-8\"\n\n<p>Ravi</p>\n" +
		"--0000bb\nContent-Type: text/calendar; charset=\"UTF-8\"; method=REPLY\nContent-Transfer-Encoding: 7bit\n\n" + calendar + "\n--0000bb--\n\n" +
		"--0000aa\nContent-Type: application/ics; name=\"invite.ics\"\nContent-Disposition: attachment; filename=\"invite.ics\"\n" +
		"Content-Transfer-Encoding: base64\n\n" + wrapped(crlf(calendar)) + "--0000aa--\n"
}

// outlook puts the calendar next to the texts.
func outlook(calendar string) string {
	return headers + "Content-Type: multipart/alternative;\n\tboundary=\"_000_x_\"\n\n--_000_x_\nContent-Type: text/plain; charset=\"us-ascii\"\n\n\n" +
		"--_000_x_\nContent-Type: text/calendar; charset=\"utf-8\"; method=REPLY\nContent-Transfer-Encoding: base64\n\n" + wrapped(crlf(calendar)) + "--_000_x_--\n"
}

func flat(calendar string) string {
	return headers + "Content-Type: text/calendar; method=REPLY; charset=utf-8; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n" +
		strings.ReplaceAll(calendar, "=", "=3D")
}

func TestReadReply(t *testing.T) {
	t.Parallel()
	want := Reply{
		Method: MethodReply, UID: uid, Sequence: 0, Stamp: at(t, "2026-11-21T10:10:10Z"), From: "ravi@example.org",
		Answers: map[string]string{"ravi@example.org": Declined}, Comment: "I am ill, sorry.\nRavi",
	}
	for name, form := range map[string]func(string) string{"Gmail": gmail, "Outlook": outlook, "one part": flat} {
		for _, mail := range []string{form(answer("REPLY", declined...)), crlf(form(answer("reply", declined...)))} {
			r, err := ReadReply([]byte(mail))
			require.NoError(t, err, name)
			require.Equal(t, &want, r, name)
			id, ok := r.ID("NODE.example")
			require.True(t, ok)
			require.Equal(t, "mtg_01jd0000000000000000000000", id)
			_, ok = r.ID("other.example")
			require.False(t, ok)
		}
	}
	// outlook.com names no organizer and no sequence, and writes Windows names of zones.
	r := must.Get(ReadReply([]byte(outlook(answer("REPLY", "ATTENDEE;PARTSTAT=accepted:MAILTO:ravi@EXAMPLE.org", "DTSTAMP:20261121T101010Z",
		"DTSTART;TZID=India Standard Time:20261201T110000")))))(t)
	require.Equal(t, -1, r.Sequence)
	require.Equal(t, Accepted, r.Answers["ravi@example.org"])
	require.Zero(t, r.Start, "only a COUNTER proposes a time")
}

func TestReadReply_Counter(t *testing.T) {
	t.Parallel()
	for times, want := range map[string][2]string{
		"DTSTART:20261202T053000Z\nDTEND:20261202T060000Z":                                                 {"2026-12-02T05:30:00Z", "2026-12-02T06:00:00Z"},
		"DTSTART;TZID=India Standard Time:20261202T110000\nDTEND;TZID=India Standard Time:20261202T114500": {"2026-12-02T05:30:00Z", "2026-12-02T06:15:00Z"},
		"DTSTART;TZID=\"W. Europe Standard Time\":20261202T110000\nDURATION:PT1H30M":                       {"2026-12-02T10:00:00Z", "2026-12-02T11:30:00Z"},
		"DTSTART;TZID=/freeassociation.sourceforge.net/America/Argentina/Buenos_Aires:20261202T110000":     {"2026-12-02T14:00:00Z", ""},
		"DTSTART;TZID=Custom:20261202T110000":                                                              {"", ""},
		"DTSTART:20261202T110000":                                                                          {"", ""},
		"DTSTART;VALUE=DATE:20261202":                                                                      {"", ""},
		"DTSTART:20261202T053000Z\nDTEND:20261202T053000Z":                                                 {"2026-12-02T05:30:00Z", ""},
		"DTSTART:20261232T053000Z":                                                                         {"", ""},
		"X-MICROSOFT-CDO-BUSYSTATUS:BUSY":                                                                  {"", ""},
	} {
		r, err := ReadReply([]byte(gmail(answer("COUNTER", "ATTENDEE;PARTSTAT=TENTATIVE:mailto:ravi@example.org", "SEQUENCE:3", times))))
		require.NoError(t, err, times)
		require.Equal(t, MethodCounter, r.Method)
		require.Equal(t, 3, r.Sequence)
		shown := func(x time.Time) string {
			if x.IsZero() {
				return ""
			}
			return x.UTC().Format(time.RFC3339)
		}
		require.Equal(t, want, [2]string{shown(r.Start), shown(r.End)}, times)
	}
}

// TestReadReply_Not: what is no answer, or hostile, is refused; nothing of it is kept.
func TestReadReply_Not(t *testing.T) {
	t.Parallel()
	good := "ATTENDEE;PARTSTAT=ACCEPTED:mailto:ravi@example.org"
	deep := headers + "Content-Type: multipart/mixed; boundary=b0\n\n"
	for i := range 20 {
		deep += "--b" + string(rune('0'+i)) + "\nContent-Type: multipart/mixed; boundary=b" + string(rune('1'+i)) + "\n\n"
	}
	many := headers + "Content-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\nContent-Type: text/plain\n\nx\n", 60) +
		"--b\nContent-Type: text/calendar\n\n" + answer("REPLY", good) + "--b--\n"
	for name, mail := range map[string]string{
		"nothing":            "",
		"no mail":            "x",
		"only text":          headers + "\nhello",
		"no sender":          "To: x@example.org\n\nhello",
		"two senders":        strings.Replace(flat(answer("REPLY", good)), "From: ", "From: a@example.org, ", 1),
		"two From":           "From: a@example.org\n" + flat(answer("REPLY", good)),
		"sender is no mail":  strings.Replace(flat(answer("REPLY", good)), "<ravi@example.org>", "<ravi>", 1),
		"REQUEST":            flat(answer("REQUEST", good)),
		"PUBLISH":            flat(answer("PUBLISH", good)),
		"no attendee":        flat(answer("REPLY", "STATUS:CONFIRMED")),
		"attendee no mail":   flat(answer("REPLY", "ATTENDEE;PARTSTAT=ACCEPTED:tel:+123")),
		"two events":         flat(answer("REPLY", good, "END:VEVENT", "BEGIN:VEVENT", "UID:x@node.example", good)),
		"no event":           flat(strings.ReplaceAll(answer("REPLY", good), "VEVENT", "VTODO")),
		"no end":             flat(strings.Replace(answer("REPLY", good), "END:VCALENDAR", "", 1)),
		"parameter, no end":  flat(answer("REPLY", good, "A;B=C")),
		"quote, no end":      flat(answer("REPLY", good, `A;B="C:`)),
		"UID too long":       flat(answer("REPLY", good, "X:y")[:140] + strings.Repeat("u", 400)),
		"nested components":  flat(answer("REPLY", good, strings.Repeat("BEGIN:X\n", 1000), strings.Repeat("END:X\n", 1000))),
		"deep":               deep,
		"many parts":         many,
		"calendar too long":  flat(answer("REPLY", good, "DESCRIPTION:"+strings.Repeat("x", maxCalendar))),
		"mail too long":      flat(answer("REPLY", good)) + strings.Repeat("x", MaxMail),
		"base64 that is not": strings.Replace(outlook(answer("REPLY", good)), "QkVHSU4", "!!!!!!!", 1),
	} {
		r, err := ReadReply([]byte(mail))
		require.Error(t, err, name)
		require.Nil(t, r, name)
	}
	require.ErrorIs(t, must.Err(ReadReply([]byte(headers+"\nhello"))), ErrNoReply)
}

func FuzzReadReply(f *testing.F) {
	for _, form := range []func(string) string{gmail, outlook, flat} {
		f.Add([]byte(form(answer("REPLY", declined...))))
	}
	f.Add([]byte(gmail(answer("COUNTER", "ATTENDEE:mailto:ravi@example.org", "DTSTART;TZID=India Standard Time:20261202T110000", "DURATION:P1DT2H"))))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := ReadReply(raw)
		if (err == nil) != (r != nil) {
			t.Fatal(r, err)
		}
		if r == nil {
			return
		}
		if r.From == "" || r.UID == "" || len(r.Answers) == 0 || !r.End.IsZero() && !r.End.After(r.Start) {
			t.Fatalf("%+v", r)
		}
	})
}
