package node_test

import (
	"bufio"
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

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/out/calendar/calendartest"
	"stoa/node/out/mail"
	"stoa/node/out/mail/mailtest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// runMeetings runs the jobs of meetings that are due, until none is. Where twice is set each is run once more before:
// as after the death of a process between the effect of the job and its commit.
func runMeetings(h *nodetest.House, twice bool) {
	h.T.Helper()
	ctx := context.Background()
	for range 100 {
		jobs, _, err := h.DB.ClaimJobs(ctx, "test", 10, time.Minute)
		require.NoError(h.T, err)
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			handle := h.Meeting.Jobs()[j.Kind]
			var after func(context.Context, *storage.Tx) error
			if handle != nil && twice {
				_, err = handle(ctx, j)
				require.NoError(h.T, err)
			}
			if handle != nil {
				after, err = handle(ctx, j)
				require.NoError(h.T, err)
			}
			require.NoError(h.T, h.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
				if after != nil {
					if err := after(ctx, tx); err != nil {
						return err
					}
				}
				return tx.Jobs().Finish(ctx, j.ID)
			}))
		}
	}
	h.T.Fatal("the jobs do not end")
}

// readInvitation reads calendars, one a line in base64, as another implementation does.
const readInvitation = `
import base64, json, sys
from icalendar import Calendar
for line in sys.stdin:
    cal = Calendar.from_ical(base64.b64decode(line))
    e, = cal.walk('VEVENT')
    print(json.dumps({
        'method': str(cal.get('METHOD', '')), 'uid': str(e['UID']), 'sequence': int(e['SEQUENCE']), 'status': str(e['STATUS']),
        'start': e['DTSTART'].dt.isoformat(), 'end': e['DTEND'].dt.isoformat(), 'organizer': str(e.get('ORGANIZER', '')),
        'attendee': str(e.get('ATTENDEE', '')), 'url': str(e.get('URL', '')), 'location': str(e['LOCATION']), 'alarms': len(e.walk('VALARM')),
    }), flush=True)
`

type invitation struct {
	Method, UID, Status, Start, End, Organizer, Attendee, URL, Location string
	Sequence, Alarms                                                    int
}

// invitationIn returns the calendar among the alternatives of a mail, "" for none, and the text.
func invitationIn(t *testing.T, raw []byte) (calendar []byte, text string) {
	t.Helper()
	m := must.Get(netmail.ReadMessage(bytes.NewReader(raw)))(t)
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
			all := must.Get(io.ReadAll(body))(t)
			text = string(all)
		}
	}
	walk(m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), m.Body)
	return calendar, text
}

// A mailed is a node with a real mail server, which hands over answers by LMTP, and with a calendar of asha on a real
// calendar server.
type mailed struct {
	*nodetest.House
	*nodetest.Doors
	test     *testing.T
	server   *mailtest.Server
	sender   *mail.Sender
	calendar string // address of the calendar server
	objects  io.Writer
	read     *bufio.Reader // what another implementation reads in objects
	path     string        // of the calendar on it
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

func openMailed(t *testing.T, calendar string, change func(*node.Config)) *mailed {
	server := mailtest.Start(t)
	key := filepath.Join(t.TempDir(), "dkim.pem")
	require.NoError(t, mail.WriteKey(key))
	h := nodetest.New(t, change, func(c *node.Config) {
		c.SMTP, c.SMTPSecurity, c.MailFrom, c.DKIMKey, c.DKIMSelector, c.LMTP = server.Addr, mail.Plain, "calendar@node.example", key, "s1", "unix:"+server.Socket
		c.AllowPrivatePeers = true
	})
	server.Let(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.ServeLMTP(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-done) })
	h.Hosted("asha")
	m := &mailed{House: h, test: t, server: server, sender: h.Sender(), calendar: calendar}
	reader := exec.Command(os.Getenv("STOA_TEST_RADICALE"), "-c", readInvitation)
	reader.Stderr = os.Stderr
	in := must.Get(reader.StdinPipe())(t)
	out := must.Get(reader.StdoutPipe())(t)
	require.NoError(t, reader.Start())
	t.Cleanup(func() { in.Close(); require.NoError(t, reader.Wait()) })
	m.objects, m.read = in, bufio.NewReader(out)
	m.Doors = &nodetest.Doors{T: t, House: h, Token: h.OwnerToken("asha")}
	m.Good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"location":"https://meet.example/{slug}"}`, m.Token, nil)
	m.connect()
	return m
}

// connect connects asha to the calendar server, where the node makes a calendar for meetings.
func (m *mailed) connect() {
	t := m.test
	login := fmt.Sprintf(`{"handle":"asha","address":%q,"user":%q,"password":%q}`, m.calendar, calendartest.User, calendartest.Password)
	connected := m.House.Ask("POST", "/api/owner/calendars", login, "Authorization", "Bearer "+m.Token)
	require.NotContains(t, connected.Body.String(), calendartest.Password)
	a := nodetest.As[protocol.CalendarAccount](connected)
	runMeetings(m.House, true)
	m.Good("PUT", "/api/owner/calendars/"+a.ID, `{"create":"Meetings"}`, m.Token, nil)
	runMeetings(m.House, true)
	m.Good("GET", "/api/owner/calendars/"+a.ID, "", m.Token, &a)
	require.Nil(t, a.LastError)
	require.NotNil(t, a.Writes)
	m.path = strings.TrimPrefix(*a.Writes, m.calendar)
}

// onCalendar checks what the calendar server has: one event as its invitation is, or none for nil.
func (m *mailed) onCalendar(want *invitation) {
	t := m.test
	t.Helper()
	all := calendartest.Objects(t, m.calendar, m.path)
	if want == nil {
		require.Empty(t, all)
		return
	}
	require.Len(t, all, 1)
	got := m.reads([]byte(all[m.path+strings.Split(want.UID, "@")[0]+".ics"]))
	require.Equal(t, []any{want.UID, want.Sequence, want.Start, want.End, want.Location}, []any{got.UID, got.Sequence, got.Start, got.End, got.Location})
	require.Equal(t, []string{"", "", ""}, []string{got.Method, got.Organizer, got.Attendee}, "the server has nobody to mail")
}

// ask asks for a meeting and confirms it by the link of the mail, which has no calendar.
func (m *mailed) ask(mailbox string, at time.Time) (made protocol.MeetingReceipt) {
	t := m.test
	a := m.House.Ask("POST", "/api/public/agents/asha/meetings", fmt.Sprintf(
		`{"requester":"Ravi","purpose":"Yarn","durationMin":30,"startsAt":%q,"email":%q,"timezone":"Europe/Berlin"}`, at.Format(time.RFC3339), mailbox),
		"Proof-Of-Work", m.Proof("meeting")).Is(201)
	a.Into(&made)
	runMeetings(m.House, false)
	raw := m.server.Next(t)
	calendar, text := invitationIn(t, raw)
	require.Nil(t, calendar)
	require.NotContains(t, text, "Yarn")
	ticket := nodetest.MeetingLinkInMail.FindStringSubmatch(text)[1]
	require.Equal(t, 303, m.SendForm("/meeting-link", url.Values{"ticket": {ticket}, "do": {"confirm"}}).Code)
	return made
}

// files checks what calendar programs read of an approved meeting: its file, by the status token or a secret address, and
// asha's feed.
func (m *mailed) files(made protocol.MeetingReceipt, address string) {
	t, id := m.test, made.Request.ID
	file := m.House.Ask("GET", "/api/public/meetings/"+id+"/event.ics", "", "Authorization", "Bearer "+made.StatusToken).Is(200)
	require.Equal(t, "text/calendar; charset=utf-8", file.Header().Get("Content-Type"))
	require.Equal(t, 404, m.House.Ask("GET", "/api/public/meetings/"+id+"/event.ics", "").Code)
	var f protocol.MeetingFeed
	m.Good("POST", "/api/owner/meeting-feed", `{"handle":"asha"}`, m.Token, &f)
	for _, address := range []string{f.URL, address} {
		path := strings.TrimPrefix(address, m.Base)
		got := m.House.Ask("GET", path, "")
		require.Equal(t, 200, got.Code, path)
		require.Contains(t, got.Body.String(), id)
		for name, want := range map[string]string{"Content-Type": "text/calendar; charset=utf-8", "Cache-Control": "private, no-cache", "X-Robots-Tag": "noindex"} {
			require.Equal(t, want, got.Header().Get(name))
		}
		require.Equal(t, 304, m.House.Ask("GET", path, "", "If-None-Match", got.Header().Get("ETag")).Code)
		require.Equal(t, 404, m.House.Ask("GET", path[:len(path)-8]+"x.ics", "").Code)
	}
}

func (m *mailed) does(what, id, body string) {
	m.Good("POST", "/api/owner/meetings/"+id+"/"+what, body, m.Token, nil)
}

func (m *mailed) own(id string) (got protocol.OwnMeeting) {
	m.Good("GET", "/api/owner/meetings/"+id, "", m.Token, &got)
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
	return m.reads(calendar)
}

// reads reads an iCalendar object by another implementation.
func (m *mailed) reads(object []byte) (got invitation) {
	t := m.test
	t.Helper()
	must.Get(fmt.Fprintln(m.objects, base64.StdEncoding.EncodeToString(object)))(t)
	line := must.Get(m.read.ReadBytes('\n'))(t)
	require.NoError(t, json.Unmarshal(line, &got))
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

// TestMeetings_Servers walks meetings with a real mail server and a real calendar server, by the doors of requester
// and owner alone: a request is confirmed by mail, an approval is one invitation and one event, a move and a
// cancellation raise SEQUENCE in both, an answer comes back by LMTP, cancels and removes the event, and a mailbox that
// does not exist is known. Each job of the node dies once between its effect and its commit, in the second of the
// rounds.
func TestMeetings_Servers(t *testing.T) {
	t.Parallel()
	calendar := calendartest.Radicale(t)
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		m := openMailed(t, calendar, change)
		for n, dies := range []bool{false, true} {
			at := time.Now().UTC().Add(time.Duration(48+n*48) * time.Hour).Truncate(time.Minute)
			mailbox := fmt.Sprintf("ravi%d@example.org", n)
			made := m.ask(mailbox, at)
			id := made.Request.ID
			m.onCalendar(nil)
			m.does("approve", id, `{}`)
			m.onCalendar(nil)
			runMeetings(m.House, dies)
			first := m.invitation(dies)
			want := invitation{
				Method: "REQUEST", UID: id + "@" + strings.TrimPrefix(m.Base, "http://"), Status: "CONFIRMED", Start: at.Format("2006-01-02T15:04:05+00:00"),
				End: at.Add(30 * time.Minute).Format("2006-01-02T15:04:05+00:00"), Attendee: "mailto:" + mailbox, Alarms: 1,
				Organizer: first.Organizer, URL: *m.own(id).Location, Location: *m.own(id).Location,
			}
			require.Equal(t, want, first)
			require.Regexp(t, `^mailto:calendar\+a-[0-9a-z]{26}-[0-9a-f]{16}@node.example$`, first.Organizer)
			m.onCalendar(&want)
			own := m.own(id)
			require.Equal(t, []any{protocol.MeetingMailSent, protocol.CalendarWritten, "Meetings"}, []any{own.Mail, own.Calendar.State, *own.Calendar.Calendar})
			if !dies {
				m.files(made, *own.ICS)
			}

			m.answers(first, "ACCEPTED")
			require.Eventually(t, func() bool { return m.own(id).Attendance != nil }, time.Minute, 20*time.Millisecond)
			require.Equal(t, protocol.AnswerAccepted, m.own(id).Attendance.Answer)

			later := at.Add(24 * time.Hour)
			m.does("move", id, fmt.Sprintf(`{"startsAt":%q}`, later.Format(time.RFC3339)))
			runMeetings(m.House, dies)
			second := m.invitation(dies)
			want.Sequence, want.Start, want.End = 1, later.Format("2006-01-02T15:04:05+00:00"), later.Add(30*time.Minute).Format("2006-01-02T15:04:05+00:00")
			require.Equal(t, want, second)
			m.onCalendar(&want)
			require.Nil(t, m.own(id).Attendance, "of the former time")

			m.answers(first, "DECLINED") // of the former time
			m.answers(second, "DECLINED")
			m.answers(second, "DECLINED")
			require.Eventually(t, func() bool { return m.own(id).State == protocol.MeetingCancelled }, time.Minute, 20*time.Millisecond)
			runMeetings(m.House, dies)
			gone := m.invitation(dies)
			require.Equal(t, []any{"CANCEL", 2, "CANCELLED", want.UID, 0}, []any{gone.Method, gone.Sequence, gone.Status, gone.UID, gone.Alarms})
			require.Len(t, m.own(id).History, 5, "cancelled once")
			m.onCalendar(nil)

			other := m.ask(fmt.Sprintf("other%d@example.org", n), later).Request.ID
			m.does("approve", other, `{}`)
			runMeetings(m.House, dies)
			free := m.invitation(dies)
			require.Equal(t, want.Start, free.Start, "the time is free")
			m.onCalendar(&free)
			m.does("cancel", other, `{}`)
			runMeetings(m.House, dies)
			gone = m.invitation(dies)
			require.Equal(t, []any{"CANCEL", 1}, []any{gone.Method, gone.Sequence})
			m.onCalendar(nil)
			require.Equal(t, protocol.CalendarRemoved, m.own(other).Calendar.State)
			require.Empty(t, m.server.Rest())
		}

		// The mailbox is gone: the report comes back by LMTP.
		r := nodetest.As[protocol.MeetingReceipt](m.House.Ask("POST", "/api/public/agents/asha/meetings", fmt.Sprintf(
			`{"requester":"Ravi","purpose":"Yarn","durationMin":30,"startsAt":%q,"email":"gone@example.org"}`,
			time.Now().UTC().Add(300*time.Hour).Truncate(time.Minute).Format(time.RFC3339)), "Proof-Of-Work", m.Proof("meeting")).Is(201))
		runMeetings(m.House, false)
		require.Eventually(t, func() (bounced bool) {
			require.NoError(t, m.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
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
	mailing := func(c *node.Config) {
		c.SMTP, c.SMTPSecurity, c.MailFrom = "127.0.0.1:25", mail.Plain, "stoa@node.example"
	}
	for setting, fault := range map[string]string{
		"unix:lmtp": "absolute path", "0.0.0.0:24": "of this machine", "mail.example.org:24": "of this machine", "24": "of this machine",
		"unix:/" + strings.Repeat("x", 100): "at most 100", "127.0.0.1:0": "", "unix:" + dir + "/a": "",
	} {
		c := nodetest.Config(t, mailing, func(c *node.Config) { c.LMTP = setting })
		if err := c.Validate(); fault == "" {
			require.NoError(t, err, setting)
		} else {
			require.ErrorContains(t, err, fault, setting)
		}
	}
	require.ErrorContains(t, nodetest.Config(t, func(c *node.Config) { c.LMTP = "127.0.0.1:0" }).Validate(), "no mail is sent")

	l, err := node.ListenLMTP("unix:" + dir + "/s")
	require.NoError(t, err)
	_, err = node.ListenLMTP("unix:" + dir + "/s")
	require.ErrorIs(t, err, node.ErrConfig, "it is in use")
	info := must.Get(os.Stat(dir + "/s"))(t)
	require.Equal(t, os.FileMode(0o660), info.Mode().Perm())
	l.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	l, err = node.ListenLMTP("unix:" + dir + "/s")
	require.NoError(t, err, "its process is dead")
	require.NoError(t, l.Close())
	require.NoError(t, os.WriteFile(dir+"/file", nil, 0o600))
	_, err = node.ListenLMTP("unix:" + dir + "/file")
	require.ErrorIs(t, err, node.ErrConfig, "another file is not deleted")
}
