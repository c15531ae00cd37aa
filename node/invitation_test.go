package node

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"net/smtp"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/provider/mail"
	"stoa/node/provider/mail/mailtest"
	"stoa/protocol"
	"stoa/storage"
)

// runMeetings runs the jobs of meetings that are due, until none is. Where twice is set each is run once more before:
// as after the death of a process between the effect of the job and its commit.
func (h *house) runMeetings(twice bool) {
	h.t.Helper()
	ctx := context.Background()
	for range 100 {
		jobs, _, err := h.db.ClaimJobs(ctx, "test", 10, time.Minute)
		require.NoError(h.t, err)
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			handle := map[storage.JobKind]func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error){
				storage.MeetingMailJob: h.meeting.SendMail, storage.MeetingDueJob: h.meeting.Due, storage.MeetingRemindJob: h.meeting.Remind,
			}[j.Kind]
			var after func(context.Context, *storage.Tx) error
			if handle != nil && twice {
				_, err = handle(ctx, j)
				require.NoError(h.t, err)
			}
			if handle != nil {
				after, err = handle(ctx, j)
				require.NoError(h.t, err)
			}
			require.NoError(h.t, h.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
				if after != nil {
					if err := after(ctx, tx); err != nil {
						return err
					}
				}
				return tx.Jobs().Finish(ctx, j.ID)
			}))
		}
	}
	h.t.Fatal("the jobs do not end")
}

// readInvitation is the calendar of a mail, as another implementation reads it.
const readInvitation = `
import sys, json
from icalendar import Calendar
cal = Calendar.from_ical(sys.stdin.buffer.read())
e, = cal.walk('VEVENT')
print(json.dumps({
    'method': str(cal['METHOD']), 'uid': str(e['UID']), 'sequence': int(e['SEQUENCE']), 'status': str(e['STATUS']),
    'start': e['DTSTART'].dt.isoformat(), 'end': e['DTEND'].dt.isoformat(), 'organizer': str(e['ORGANIZER']), 'attendee': str(e['ATTENDEE']),
    'url': str(e.get('URL', '')), 'location': str(e['LOCATION']), 'alarms': len(e.walk('VALARM')),
}))
`

type invitation struct {
	Method, UID, Status, Start, End, Organizer, Attendee, URL, Location string
	Sequence, Alarms                                                    int
}

// invitationIn returns the calendar among the alternatives of a mail, "" for none, and the text.
func invitationIn(t *testing.T, raw []byte) (calendar []byte, text string) {
	t.Helper()
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	require.NoError(t, err)
	var walk func(kind, encoding string, body io.Reader)
	walk = func(kind, encoding string, body io.Reader) {
		media, params, err := mime.ParseMediaType(kind)
		require.NoError(t, err)
		switch encoding {
		case "base64":
			body = base64.NewDecoder(base64.StdEncoding, body)
		case "quoted-printable": // NextPart decoded that of parts
			body = quotedprintable.NewReader(body)
		}
		switch {
		case strings.HasPrefix(media, "multipart/"):
			for parts := multipart.NewReader(body, params["boundary"]); ; {
				p, err := parts.NextPart()
				if err == io.EOF {
					return
				}
				require.NoError(t, err)
				walk(p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p)
			}
		case media == "text/calendar":
			calendar, err = io.ReadAll(body)
			require.NoError(t, err)
			require.Contains(t, string(calendar), "METHOD:"+params["method"])
		case media == "text/plain":
			all, err := io.ReadAll(body)
			require.NoError(t, err)
			text = string(all)
		}
	}
	walk(m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), m.Body)
	return calendar, text
}

// A mailed is a node with a real mail server, which hands over answers by LMTP.
type mailed struct {
	*house
	*doors
	test   *testing.T
	server *mailtest.Server
	sender *mail.Sender
	python string
}

// lookup answers for the DNS with the key of a sender.
func lookup(s *mail.Sender) func(string) ([]string, error) {
	return func(name string) ([]string, error) {
		for _, r := range s.CheckDNS(context.Background(), func(context.Context, string) ([]string, error) { return nil, nil }) {
			if r.Name == name {
				return []string{r.Want}, nil
			}
		}
		return nil, fmt.Errorf("no record %s", name)
	}
}

func openMailed(t *testing.T, change func(*Config)) *mailed {
	python := os.Getenv("STOA_TEST_RADICALE")
	if python == "" {
		t.Skip("STOA_TEST_RADICALE=$(.ci/radicale) names a Python with icalendar")
	}
	server := mailtest.Start(t)
	key := filepath.Join(t.TempDir(), "dkim.pem")
	require.NoError(t, mail.WriteKey(key))
	h := newHouse(t, change, func(c *Config) {
		c.SMTP, c.SMTPSecurity, c.MailFrom, c.DKIMKey, c.DKIMSelector, c.LMTP = server.Addr, mail.Plain, "calendar@node.example", key, "s1", "unix:"+server.Socket
	})
	server.Let(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.receiver().Serve(ctx, h.lmtp) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-done) })
	hostedAgent(t, h.Node, "asha")
	m := &mailed{house: h, test: t, server: server, sender: h.accounts.Mail.(letters).Sender, python: python}
	m.doors = &doors{t: t, n: h.Node, house: h, token: ownerToken(t, h.Node, "asha")}
	m.good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"location":"https://meet.example/{slug}"}`, m.token, nil)
	return m
}

// ask asks for a meeting and confirms it by the link of the mail, which has no calendar.
func (m *mailed) ask(mailbox string, at time.Time) (made protocol.MeetingReceipt) {
	t := m.test
	a := m.house.ask("POST", "/api/public/agents/asha/meetings", fmt.Sprintf(
		`{"requester":"Ravi","purpose":"Yarn","durationMin":30,"startsAt":%q,"email":%q,"timezone":"Europe/Berlin"}`, at.Format(time.RFC3339), mailbox),
		"Proof-Of-Work", m.proof("meeting"))
	require.Equal(t, 201, a.Code, "%s", a.Body)
	a.into(&made)
	m.runMeetings(false)
	raw := m.server.Next(t)
	calendar, text := invitationIn(t, raw)
	require.Nil(t, calendar)
	require.NotContains(t, text, "Yarn")
	ticket := meetingLinkInMail.FindStringSubmatch(text)[1]
	require.Equal(t, 200, m.sendForm("/meeting-link", url.Values{"ticket": {ticket}, "do": {"confirm"}}).Code)
	return made
}

func (m *mailed) does(what, id, body string) {
	m.good("POST", "/api/owner/meetings/"+id+"/"+what, body, m.token, nil)
}

func (m *mailed) own(id string) (got protocol.OwnMeeting) {
	m.good("GET", "/api/owner/meetings/"+id, "", m.token, &got)
	return got
}

// invitation returns the mail that was sent: its signature is valid, and another implementation reads it. Where
// each job ran twice it comes twice, byte for byte, so that a mailbox knows it.
func (m *mailed) invitation(twice bool) (got invitation) {
	t := m.test
	all := [][]byte{m.server.Next(t)}
	if twice {
		own := func(raw []byte) string { return string(raw[bytes.Index(raw, []byte("DKIM-Signature:")):]) }
		all = append(all, m.server.Next(t))
		require.Equal(t, own(all[0]), own(all[1]))
	}
	require.Empty(t, m.server.Rest())
	require.Equal(t, []string{"node.example"}, mail.Signers(all[0], lookup(m.sender)))
	calendar, _ := invitationIn(t, all[0])
	c := exec.CommandContext(t.Context(), m.python, "-c", readInvitation)
	c.Stdin, c.Stderr = bytes.NewReader(calendar), os.Stderr
	out, err := c.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &got))
	return got
}

// answers sends the answer of a mail program through the mail server.
func (m *mailed) answers(i invitation, answer string) {
	to := strings.TrimPrefix(i.Organizer, "mailto:")
	object := "BEGIN:VCALENDAR\r\nPRODID:x\r\nVERSION:2.0\r\nMETHOD:REPLY\r\nBEGIN:VEVENT\r\nUID:" + i.UID + "\r\nDTSTAMP:" +
		time.Now().UTC().Format("20060102T150405Z") + fmt.Sprintf("\r\nSEQUENCE:%d\r\nATTENDEE;PARTSTAT=%s:%s\r\n", i.Sequence, answer, i.Attendee) +
		"END:VEVENT\r\nEND:VCALENDAR\r\n"
	from := strings.TrimPrefix(i.Attendee, "mailto:")
	raw := "From: " + from + "\r\nTo: " + to + "\r\nSubject: " + answer + "\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n" + answer +
		"\r\n--b\r\nContent-Type: text/calendar; charset=UTF-8; method=REPLY\r\n\r\n" + object + "\r\n--b--\r\n"
	require.NoError(m.test, smtp.SendMail(m.server.Addr, nil, from, []string{to}, []byte(raw)))
}

// TestInvitation walks meetings with a real mail server: a request is confirmed by mail, an approval is one
// invitation, a move and a cancellation raise SEQUENCE, an answer comes back by LMTP and cancels, and a mailbox that does
// not exist is known. Each job of the node dies once between its effect and its commit, in the second of the rounds.
func TestInvitation(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, change func(*Config)) {
		m := openMailed(t, change)
		for n, dies := range []bool{false, true} {
			at := time.Now().UTC().Add(time.Duration(48+n*48) * time.Hour).Truncate(time.Minute)
			mailbox := fmt.Sprintf("ravi%d@example.org", n)
			id := m.ask(mailbox, at).Request.ID
			m.does("approve", id, `{}`)
			m.runMeetings(dies)
			first := m.invitation(dies)
			want := invitation{
				Method: "REQUEST", UID: id + "@" + strings.TrimPrefix(m.Base, "http://"), Status: "CONFIRMED", Start: at.Format("2006-01-02T15:04:05+00:00"),
				End: at.Add(30 * time.Minute).Format("2006-01-02T15:04:05+00:00"), Attendee: "mailto:" + mailbox, Alarms: 1,
				Organizer: first.Organizer, URL: *m.own(id).Location, Location: *m.own(id).Location,
			}
			require.Equal(t, want, first)
			require.Regexp(t, `^mailto:calendar\+a-[0-9a-z]{26}-[0-9a-f]{16}@node.example$`, first.Organizer)
			require.Equal(t, protocol.MeetingMailSent, m.own(id).Mail)

			m.answers(first, "ACCEPTED")
			require.Eventually(t, func() bool { return m.own(id).Attendance != nil }, time.Minute, 20*time.Millisecond)
			require.Equal(t, protocol.AnswerAccepted, m.own(id).Attendance.Answer)

			later := at.Add(24 * time.Hour)
			m.does("move", id, fmt.Sprintf(`{"startsAt":%q}`, later.Format(time.RFC3339)))
			m.runMeetings(dies)
			second := m.invitation(dies)
			want.Sequence, want.Start, want.End = 1, later.Format("2006-01-02T15:04:05+00:00"), later.Add(30*time.Minute).Format("2006-01-02T15:04:05+00:00")
			require.Equal(t, want, second)
			require.Nil(t, m.own(id).Attendance, "of the former time")

			m.answers(first, "DECLINED") // of the former time
			m.answers(second, "DECLINED")
			m.answers(second, "DECLINED")
			require.Eventually(t, func() bool { return m.own(id).State == protocol.MeetingCancelled }, time.Minute, 20*time.Millisecond)
			m.runMeetings(dies)
			gone := m.invitation(dies)
			require.Equal(t, []any{"CANCEL", 2, "CANCELLED", want.UID, 0}, []any{gone.Method, gone.Sequence, gone.Status, gone.UID, gone.Alarms})
			require.Len(t, m.own(id).History, 5, "cancelled once")

			other := m.ask(fmt.Sprintf("other%d@example.org", n), later).Request.ID
			m.does("approve", other, `{}`)
			m.runMeetings(dies)
			require.Equal(t, want.Start, m.invitation(dies).Start, "the time is free")
			m.does("cancel", other, `{}`)
			m.runMeetings(dies)
			require.Equal(t, "CANCEL", m.invitation(dies).Method)
			require.Empty(t, m.server.Rest())
		}

		// The mailbox is gone: the report comes back by LMTP.
		made := m.house.ask("POST", "/api/public/agents/asha/meetings", fmt.Sprintf(
			`{"requester":"Ravi","purpose":"Yarn","durationMin":30,"startsAt":%q,"email":"gone@example.org"}`,
			time.Now().UTC().Add(300*time.Hour).Truncate(time.Minute).Format(time.RFC3339)), "Proof-Of-Work", m.proof("meeting"))
		require.Equal(t, 201, made.Code)
		var r protocol.MeetingReceipt
		made.into(&r)
		m.runMeetings(false)
		require.Eventually(t, func() (bounced bool) {
			require.NoError(t, m.db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				stored, err := tx.Meetings().ByID(ctx, r.Request.ID)
				if err == nil {
					bounced = stored.Sent == protocol.MeetingMailBounced
				}
				return err
			}))
			return bounced
		}, time.Minute, 50*time.Millisecond)
	})
}

// TestLMTP_Setting: what the setting may be, and that a socket that a dead process left is replaced.
func TestLMTP_Setting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mailing := func(c *Config) { c.SMTP, c.SMTPSecurity, c.MailFrom = "127.0.0.1:25", mail.Plain, "stoa@node.example" }
	for setting, fault := range map[string]string{
		"unix:lmtp": "absolute path", "0.0.0.0:24": "of this machine", "mail.example.org:24": "of this machine", "24": "of this machine",
		"unix:/" + strings.Repeat("x", 100): "at most 100", "127.0.0.1:0": "", "unix:" + dir + "/a": "",
	} {
		c := testConfig(t, mailing, func(c *Config) { c.LMTP = setting })
		if err := c.Validate(); fault == "" {
			require.NoError(t, err, setting)
		} else {
			require.ErrorContains(t, err, fault, setting)
		}
	}
	require.ErrorContains(t, testConfig(t, func(c *Config) { c.LMTP = "127.0.0.1:0" }).Validate(), "no mail is sent")

	l, err := listenLMTP("unix:" + dir + "/s")
	require.NoError(t, err)
	_, err = listenLMTP("unix:" + dir + "/s")
	require.ErrorIs(t, err, ErrConfig, "it is in use")
	info, err := os.Stat(dir + "/s")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o660), info.Mode().Perm())
	l.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	l, err = listenLMTP("unix:" + dir + "/s")
	require.NoError(t, err, "its process is dead")
	require.NoError(t, l.Close())
	require.NoError(t, os.WriteFile(dir+"/file", nil, 0o600))
	_, err = listenLMTP("unix:" + dir + "/file")
	require.ErrorIs(t, err, ErrConfig, "another file is not deleted")
}
