package calendar

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/protocol/ics"
	"stoa/protocol/netx"
	"stoa/protocol/schedule"
)

// Bounds of what a server answers.
const (
	maxEvents  = 10_000 // of one range
	maxText    = 200    // bytes of a name
	maxChanges = 3      // of an event by others while it is written or deleted
)

// CalDAV is a calendar on a CalDAV server.
type CalDAV struct {
	Client         *http.Client // of package outbound, with Timeout and MaxBody
	URL            string       // of the calendar, a collection: as Discover returns it
	User, Password string
	Zone           *time.Location // of the owner, for dates and for times without zone
	Mails          []string       // addresses of the owner, in lower case
	Node           string         // host name of this node: its own events are not busy
}

// Name implements Calendar.
func (c *CalDAV) Name() string { return "caldav" }

// query asks for the events that a filter finds. Expansion is done here: some servers do not do it
// and say nothing.
const query = `<?xml version="1.0" encoding="utf-8"?>
<c:calendar-query xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:prop><c:calendar-data/></d:prop>` +
	`<c:filter><c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT">%s</c:comp-filter></c:comp-filter></c:filter>` +
	`</c:calendar-query>`

// recurring are the filters that find each recurring event, whenever it takes place.
var recurring = []string{`<c:prop-filter name="RRULE"/>`, `<c:prop-filter name="RDATE"/>`}

// events returns the events that touch a range, by the server's own account, and all that recur: Xandikos (2026) leaves recurring
// events with a time zone out of a time range. A server that cannot find those by a property has named all that it knows of.
func (c *CalDAV) events(ctx context.Context, from, to time.Time) (all []response, err error) {
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	const form = "20060102T150405Z"
	day := 24 * time.Hour // the server does not know the owner's zone
	touching := fmt.Sprintf(`<c:time-range start="%s" end="%s"/>`, from.UTC().Add(-day).Format(form), to.UTC().Add(day).Format(form))
	if all, err = c.multistatus(ctx, "REPORT", base, "1", fmt.Sprintf(query, touching)); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, r := range all {
		known[r.Href] = true
	}
	for _, filter := range recurring {
		more, err := c.multistatus(ctx, "REPORT", base, "1", fmt.Sprintf(query, filter))
		if err == ErrTemporary || errors.Is(err, context.Canceled) { // the answer was lost; any other is a refusal
			return nil, err
		}
		for _, r := range more {
			if !known[r.Href] {
				known[r.Href], all = true, append(all, r)
			}
		}
	}
	return all, nil
}

// Busy implements Calendar.
func (c *CalDAV) Busy(ctx context.Context, from, to time.Time) ([]schedule.Interval, error) {
	found, err := c.events(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if len(found) > maxEvents {
		return nil, ErrTooMuch
	}
	reader := ics.Calendar{Zone: c.Zone, Mails: c.Mails, Node: c.Node}
	var busy []schedule.Interval
	budget := ics.BusyBudget
	for _, r := range found {
		data := r.prop().Data
		if strings.TrimSpace(data) == "" {
			continue
		}
		spans, err := reader.Busy(data, from, to, &budget)
		if budget < 0 || len(busy)+len(spans) > maxEvents {
			return nil, ErrTooMuch
		}
		if err == nil { // an event that cannot be read does not hide the others
			busy = append(busy, spans...)
		}
	}
	return busy, nil
}

// Tag returns a text that changes with every change of the calendar, "" where the server has none
// (RFC 6578 §4, and the older getctag).
func (c *CalDAV) Tag(ctx context.Context) (string, error) {
	base, err := c.base()
	if err != nil {
		return "", err
	}
	found, err := c.multistatus(ctx, "PROPFIND", base, "0", `<?xml version="1.0" encoding="utf-8"?>`+
		`<d:propfind xmlns:d="DAV:" xmlns:s="http://calendarserver.org/ns/"><d:prop><s:getctag/><d:sync-token/></d:prop></d:propfind>`)
	if err != nil || len(found) == 0 {
		return "", err
	}
	p := found[0].prop()
	return cmp.Or(p.Sync, p.CTag), nil
}

// Make makes a calendar for events next to this one, and returns its address. id is a path segment, and
// the same one each time: a calendar that is there already is taken.
func (c *CalDAV) Make(ctx context.Context, id, name string) (string, error) {
	base, err := c.base()
	if err != nil {
		return "", err
	}
	var title strings.Builder
	if err := xml.EscapeText(&title, []byte(name)); err != nil {
		return "", err
	}
	at := base.JoinPath("..", id, "/")
	resp, err := c.do(ctx, "MKCALENDAR", at, map[string]string{"Content-Type": "application/xml; charset=utf-8"}, // RFC 4791 §5.3.1
		`<?xml version="1.0" encoding="utf-8"?><c:mkcalendar xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop><d:displayname>`+
			title.String()+`</d:displayname><c:supported-calendar-component-set><c:comp name="VEVENT"/></c:supported-calendar-component-set>`+
			`</d:prop></d:set></c:mkcalendar>`)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return at.String(), nil
	}
	there := *c
	there.URL = at.String()
	if _, err := there.Tag(ctx); err == nil { // it was made before the answer to an earlier attempt was lost
		return at.String(), nil
	}
	return "", refusal(resp.StatusCode)
}

// Put implements Calendar.
func (c *CalDAV) Put(ctx context.Context, m Meeting) error {
	at, err := c.place(m)
	if err != nil {
		return err
	}
	condition := [2]string{"If-None-Match", "*"}
	for range maxChanges {
		err := c.change(ctx, http.MethodPut, at, condition, string(m.Object))
		if !errors.Is(err, errChanged) {
			return err
		}
		there, err := c.event(ctx, at)
		switch {
		case errors.Is(err, ErrNotFound): // it was deleted meanwhile, or the server refuses for a reason of its own
			condition = [2]string{"If-None-Match", "*"}
			continue
		case err != nil:
			return err
		case there.uid != m.UID:
			return ErrConflict
		case there.sequence >= m.Sequence:
			return nil
		}
		condition = [2]string{"If-Match", there.etag}
	}
	return fmt.Errorf("%w: the event was changed again and again", ErrTemporary)
}

// Delete implements Calendar.
func (c *CalDAV) Delete(ctx context.Context, m Meeting) error {
	at, err := c.place(m)
	if err != nil {
		return err
	}
	for range maxChanges {
		there, err := c.event(ctx, at)
		switch {
		case errors.Is(err, ErrNotFound):
			return nil
		case err != nil:
			return err
		case there.uid != m.UID:
			return ErrConflict
		}
		err = c.change(ctx, http.MethodDelete, at, [2]string{"If-Match", there.etag}, "")
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	return fmt.Errorf("%w: the event was changed again and again", ErrTemporary)
}

// errChanged means that a condition on the event's version was not met.
var errChanged = errors.New("the event is another one")

// An event is what is in a place of the calendar.
type event struct {
	uid, etag string
	sequence  int
}

func (c *CalDAV) event(ctx context.Context, at *url.URL) (event, error) {
	resp, err := c.do(ctx, http.MethodGet, at, nil, "")
	if err != nil {
		return event{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return event{}, refusal(resp.StatusCode)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return event{}, unreadable(err)
	}
	e := event{etag: resp.Header.Get("ETag")}
	if e.uid, e.sequence, _ = ics.Identify(string(text)); e.etag == "" || strings.HasPrefix(e.etag, "W/") {
		e.etag = "*" // RFC 4791 §5.3.4 wants a strong one; without it any version is replaced
	}
	return e, nil
}

// change writes or deletes an event on a condition.
func (c *CalDAV) change(ctx context.Context, method string, at *url.URL, condition [2]string, body string) error {
	headers := map[string]string{condition[0]: condition[1]}
	if body != "" {
		headers["Content-Type"] = "text/calendar; charset=utf-8"
	}
	resp, err := c.do(ctx, method, at, headers, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case resp.StatusCode == http.StatusPreconditionFailed:
		return errChanged
	case resp.StatusCode == http.StatusConflict && method == http.MethodPut:
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		if strings.Contains(string(why), "no-uid-conflict") {
			return ErrConflict // RFC 4791 §5.3.2.1: the UID is in another place, where the owner moved it
		}
		return ErrNotFound // RFC 4918 §9.7.1: there is no such collection
	}
	return refusal(resp.StatusCode)
}

// place returns the address of a meeting's event.
func (c *CalDAV) place(m Meeting) (*url.URL, error) {
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	strange := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-'
	}
	if m.ID == "" || strings.ContainsFunc(m.ID, strange) {
		return nil, fmt.Errorf("meeting id %q is no path segment", m.ID)
	}
	return base.JoinPath(m.ID + ".ics"), nil
}

// base returns the address of the calendar, with a slash at the end.
func (c *CalDAV) base() (*url.URL, error) {
	u, err := parse(c.URL)
	if err != nil {
		return nil, err
	}
	return u.JoinPath("/"), nil
}

// parse reads an address that an owner wrote: https, or http on this machine.
func parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(raw) > 2000 {
		return nil, ErrAddress
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && netx.IsLoopback(u.Hostname())) {
		return nil, ErrAddress
	}
	return u, nil
}

func (c *CalDAV) do(ctx context.Context, method string, at *url.URL, headers map[string]string, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, at.String(), strings.NewReader(body))
	if err != nil {
		return nil, ErrAddress
	}
	req.SetBasicAuth(c.User, c.Password)
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	client := *c.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // only a discovery follows them
	resp, err := client.Do(req)
	if err != nil {
		return nil, unreadable(err)
	}
	return resp, nil
}

// unreadable returns the kind of an answer that did not come or is too long. The cause is not kept:
// it has addresses that the server named.
func unreadable(err error) error {
	_, refused := errors.AsType[*outbound.Refused](err)
	switch {
	case refused:
		return ErrAddress
	case errors.Is(err, outbound.ErrBodyTooLarge):
		return ErrTooMuch
	case errors.Is(err, context.Canceled):
		return context.Canceled
	}
	return ErrTemporary
}

func refusal(status int) error {
	switch {
	case status == http.StatusUnauthorized:
		return ErrCredentials
	case status == http.StatusNotFound, status == http.StatusGone:
		return ErrNotFound
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status == http.StatusTooManyRequests,
		status >= 500 && status != http.StatusNotImplemented && status != http.StatusInsufficientStorage:
		return fmt.Errorf("%w: status %d", ErrTemporary, status)
	}
	return fmt.Errorf("%w: status %d", ErrForbidden, status)
}

// multistatus sends a request whose answer is a list of resources (RFC 4918 §13).
func (c *CalDAV) multistatus(ctx context.Context, method string, at *url.URL, depth, body string) ([]response, error) {
	resp, err := c.do(ctx, method, at, map[string]string{"Depth": depth, "Content-Type": "application/xml; charset=utf-8"}, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return nil, &moved{resp.Header.Get("Location")}
	}
	if resp.StatusCode != http.StatusMultiStatus {
		if resp.StatusCode/100 == 2 {
			return nil, ErrNotFound // something else than a calendar answers
		}
		return nil, refusal(resp.StatusCode)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, unreadable(err)
	}
	var found struct {
		Responses []response `xml:"DAV: response"`
	}
	if err := xml.Unmarshal(raw, &found); err != nil {
		return nil, fmt.Errorf("%w: the answer is not XML", ErrTemporary)
	}
	return found.Responses, nil
}

// moved is a redirect. It is an error of the kind ErrNotFound to those who do not follow it.
type moved struct{ to string }

func (m *moved) Error() string { return ErrNotFound.Error() }
func (m *moved) Unwrap() error { return ErrNotFound }

type response struct {
	Href      string `xml:"DAV: href"`
	Propstats []struct {
		Status string `xml:"DAV: status"`
		Prop   prop   `xml:"DAV: prop"`
	} `xml:"DAV: propstat"`
}

type hrefs struct {
	Hrefs []string `xml:"DAV: href"`
}

type prop struct {
	CTag       string `xml:"http://calendarserver.org/ns/ getctag"`
	Sync       string `xml:"DAV: sync-token"`
	Principal  hrefs  `xml:"DAV: current-user-principal"`
	Home       hrefs  `xml:"urn:ietf:params:xml:ns:caldav calendar-home-set"`
	Mails      hrefs  `xml:"urn:ietf:params:xml:ns:caldav calendar-user-address-set"`
	Name       string `xml:"DAV: displayname"`
	Data       string `xml:"urn:ietf:params:xml:ns:caldav calendar-data"`
	Type       kind   `xml:"DAV: resourcetype"`
	Components struct {
		Comps []struct {
			Name string `xml:"name,attr"`
		} `xml:"urn:ietf:params:xml:ns:caldav comp"`
	} `xml:"urn:ietf:params:xml:ns:caldav supported-calendar-component-set"`
}

type kind struct {
	Calendar *struct{} `xml:"urn:ietf:params:xml:ns:caldav calendar"`
}

// prop returns the properties that the server has.
func (r response) prop() prop {
	for _, p := range r.Propstats {
		if strings.Contains(p.Status, " 200") {
			return p.Prop
		}
	}
	return prop{}
}

// events reports whether a resource is a calendar that holds events.
func (p prop) events() bool {
	comps := p.Components.Comps
	return p.Type.Calendar != nil &&
		(len(comps) == 0 || slices.ContainsFunc(comps, func(c struct {
			Name string `xml:"name,attr"`
		}) bool {
			return strings.EqualFold(c.Name, "VEVENT")
		}))
}

// name returns the display name, cleaned.
func (p prop) name() string {
	return protocol.Clip(protocol.OneLine(protocol.CleanText(p.Name)), maxText)
}
