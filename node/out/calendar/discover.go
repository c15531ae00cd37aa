package calendar

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"stoa/protocol"
	"stoa/protocol/netx"
)

// Bounds of a discovery.
const (
	maxSteps     = 8 // requests
	maxCalendars = 50
)

// A Collection is a calendar that a server has for its user.
type Collection struct {
	URL  string
	Name string // as the owner called it, cleaned; may be empty
}

// A Found is what a server has for its user.
type Found struct {
	Calendars []Collection
	Mails     []string // the user's addresses on the server, in lower case
}

const (
	askPrincipal = `<d:current-user-principal/><d:resourcetype/><d:displayname/><c:calendar-home-set/><c:supported-calendar-component-set/>`
	askHome      = `<c:calendar-home-set/><c:calendar-user-address-set/>`
	askCalendars = `<d:resourcetype/><d:displayname/><c:supported-calendar-component-set/>`
)

// Discover finds the calendars of the user, from the address of a server, of the user's own place
// or of a calendar (RFC 6764 §6, RFC 5397, RFC 4791 §6.2). Only URL, User and Password of c count.
// The password is sent to hosts of the same site only, and never over plain http to another machine.
// ErrNotFound when there is no calendar that holds events.
func (c *CalDAV) Discover(ctx context.Context) (*Found, error) {
	start, err := parse(c.URL)
	if err != nil {
		return nil, err
	}
	s := &search{c, start, maxSteps}
	found := &Found{}
	at, props, err := s.ask(ctx, start, "0", askPrincipal)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) || err == nil && len(props) > 0 && !leads(props[0].prop()) {
		var again error
		if at, props, again = s.ask(ctx, start.ResolveReference(&url.URL{Path: "/.well-known/caldav"}), "0", askPrincipal); again == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	if len(props) == 0 {
		return nil, ErrNotFound
	}
	p := props[0].prop()
	if p.events() {
		found.Calendars = append(found.Calendars, Collection{at.String(), p.name()})
	}
	if principal, ok := s.resolve(at, p.Principal); ok {
		if at, props, err = s.ask(ctx, principal, "0", askHome); err != nil {
			return nil, err
		}
		if len(props) > 0 {
			p = props[0].prop()
		}
		found.Mails = mails(p.Mails)
	}
	if home, ok := s.resolve(at, p.Home); ok {
		if at, props, err = s.ask(ctx, home, "1", askCalendars); err != nil {
			return nil, err
		}
		found.add(s, at, props)
	}
	if len(found.Calendars) == 0 {
		return nil, ErrNotFound
	}
	return found, nil
}

// leads reports whether the properties say where to go on, or are those of a calendar.
func leads(p prop) bool { return p.events() || len(p.Principal.Hrefs)+len(p.Home.Hrefs) > 0 }

func (f *Found) add(s *search, at *url.URL, props []response) {
	for _, r := range props {
		p := r.prop()
		u, ok := s.resolve(at, hrefs{[]string{r.Href}})
		if !ok || !p.events() || len(f.Calendars) == maxCalendars {
			continue
		}
		if !slices.ContainsFunc(f.Calendars, func(c Collection) bool { return strings.TrimSuffix(c.URL, "/") == strings.TrimSuffix(u.String(), "/") }) {
			f.Calendars = append(f.Calendars, Collection{u.String(), p.name()})
		}
	}
}

func mails(h hrefs) (list []string) {
	for _, href := range h.Hrefs {
		scheme, address, _ := strings.Cut(strings.TrimSpace(href), ":")
		if bare, err := protocol.ParseMail(address); strings.EqualFold(scheme, "mailto") && err == nil && len(list) < 20 {
			list = append(list, bare)
		}
	}
	return list
}

// A search is one discovery.
type search struct {
	*CalDAV
	start *url.URL
	left  int // requests
}

// ask reads properties, and follows redirects within the site. It returns the address that answered.
func (s *search) ask(ctx context.Context, at *url.URL, depth, props string) (*url.URL, []response, error) {
	for ; s.left > 0; s.left-- {
		found, err := s.multistatus(ctx, "PROPFIND", at, depth, `<?xml version="1.0" encoding="utf-8"?>`+
			`<d:propfind xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:prop>`+props+`</d:prop></d:propfind>`)
		m, redirected := errors.AsType[*moved](err)
		if !redirected {
			s.left--
			return at, found, err
		}
		to, ok := s.resolve(at, hrefs{[]string{m.to}})
		if !ok {
			return nil, nil, ErrAddress
		}
		at = to
	}
	return nil, nil, ErrNotFound
}

// resolve returns the first address that a server names. It must be of the same site as the one that
// the owner wrote, over https when that is, since the password is sent there.
func (s *search) resolve(at *url.URL, h hrefs) (*url.URL, bool) {
	if len(h.Hrefs) == 0 || strings.TrimSpace(h.Hrefs[0]) == "" {
		return nil, false
	}
	to, err := at.Parse(strings.TrimSpace(h.Hrefs[0]))
	if err != nil {
		return nil, false
	}
	if _, err := parse(to.String()); err != nil || to.Scheme != s.start.Scheme {
		return nil, false
	}
	return to, to.Host == s.start.Host || netx.Registrable(to.Hostname()) == netx.Registrable(s.start.Hostname()) && to.Scheme == "https"
}
