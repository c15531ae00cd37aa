// Package web is the pages' door: HTML for people, made from the same read operations as the API,
// so that pages and API cannot disagree. Every page works without script. The templates
// (github.com/a-h/templ) escape text that others wrote, keep its line breaks by style only, and
// set it apart visibly, with what this node knows about its author. The package has no state but
// its embedded files and reads everything through hall.Invoke.
//
// It is one folder, since every page is made of the same fields, cards and layout, which templates
// of other packages could use only if all of them were exported. Files are named by page; own… and
// account… are pages of who is signed in, operator… those of operators.
package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/a-h/templ"

	"stoa/identity"
	"stoa/identity/httpsig"
	"stoa/node/door/web/words"
	"stoa/node/hall"
	"stoa/protocol"
)

// A Config is what the pages are made from. All fields but Accounts and Words are required.
type Config struct {
	Table *hall.Table
	Base  string // public address of the node, without a slash at the end
	Name  string // what the operator calls the node
	// Network returns the keyed hash of the client's network.
	Network func(r *http.Request) string
	// Census counts the listed profiles, those of them that are alive, and those whose identity
	// the node has checked on chain.
	Census func(ctx context.Context) (listed, answering, verified int, err error)
	// InUse returns the values of filters that listed profiles and shops have, the most frequent first.
	InUse func(ctx context.Context) (InUse, error)
	// Held returns who holds a chain identity, without asking the chain; nil for a node that reads none.
	Held func(ctx context.Context, agent string) (protocol.Holder, error)
	// QR draws a text as a QR code, an SVG whose text alternative is label.
	QR       func(text, label string) ([]byte, error)
	Accounts Accounts // nil when the node has no accounts
	// Registries are the chain registries that the node reads identities from.
	Registries []Registry
	// Registering says how far the registration of an agent is to which a key shall belong. The reads are counted for a network.
	Registering func(ctx context.Context, network, agent, keyid string) (Registering, error)
	// Version returns a number that grows whenever stored data may have changed: pages are kept until it does.
	Version          func() uint64
	Texts            Texts  // of the operator; nil for none
	GrievanceOfficer string // who takes complaints: name, address, mail; "" for none
	Contact          string // where to report vulnerabilities, mailto: or https: URL; "" for none
	PushKey          string // public key of the node for Web Push, base64url
	// Live keeps the pages of conversations up to date.
	Live Live
	// Words are the languages of the pages: all of them when it is nil.
	Words *words.Set
	// Problem renders an error for a reader that did not ask for HTML.
	Problem func(w http.ResponseWriter, err error)
}

// InUse are values to choose from in the filters of the directory.
type InUse struct{ Regions, Capabilities, Tags, Categories, Cities []string }

// A Registry is a registry of identities on a chain.
type Registry struct {
	ChainID uint64
	Address string // of its contract, in hex
}

// Registering says how far the registration of an identity is.
type Registering struct {
	Owner string        // of the token, in lower case; "" while the chain has none
	Named bool          // it names the key
	Final bool          // and for good
	Wait  time.Duration // until that, about; 0 when nothing is known
}

// A Web renders the pages of one node.
type Web struct {
	Config
	host  string
	kept  *hall.Cache[*rendered]
	types map[string]map[string]string // operation → field of its query → JSON Schema type
}

// New returns the pages' door.
func New(c Config) *Web {
	s := &Web{Config: c, types: map[string]map[string]string{}, kept: hall.NewCache[*rendered](c.Version)}
	if u, err := url.Parse(c.Base); err == nil {
		s.host = u.Host
	}
	if s.Name == "" {
		s.Name = s.host
	}
	if s.Words == nil {
		s.Words = words.All()
	}
	for _, p := range pages {
		if p.twin != nil {
			s.types[p.twin.Name] = typesOf(c.Table.Schemas, p.twin)
		}
	}
	for _, op := range []*protocol.Operation{protocol.ListThreads.Operation, protocol.GetThread.Operation, protocol.ListReviewQueue.Operation,
		protocol.ListPeers.Operation, protocol.ListBlocks.Operation, protocol.ListJobs.Operation, protocol.ReadAudit.Operation} {
		s.types[op.Name] = typesOf(c.Table.Schemas, op)
	}
	return s
}

// A view is a page before it is written.
type view struct {
	Title       string
	Description string           // one sentence for search engines
	Picture     string           // https address of a picture for link previews; "" for that of the node
	Path        string           // in the table of pages, to mark the current page in the navigation
	Start       string           // its path without query, where a refused form begins again
	Address     string           // canonical address for search engines, "" when the page should not be indexed
	JSON        string           // address of the same data as JSON, "" for none
	Markdown    string           // address of the same page as Markdown, "" for none
	InMarkdown  bool             // it is answered as Markdown
	Activity    string           // address of the same thing as an ActivityPub object, "" for none
	Source      string           // path of the feed for feed readers, without its extension, "" for none
	Selection   string           // query of that feed, with its question mark, "" for none
	Linked      any              // the page as JSON-LD, nil for none
	Next        string           // path of the next page of a listing, "" on the last
	Refused     *protocol.Error  // why the page's form was refused, nil when it was not
	Stray       []protocol.Fault // those faults of Refused that belong to no field of the form
	Hidden      bool             // its author alone may read it: no program is to keep it or to show a preview
	Private     bool             // only for this reader: must not be cached
	Secret      bool             // its address opens something: no Referer field contains it
	Helps       bool             // it has a countdown, a text to copy, or a form that the fragment of the address fills
	Uploads     bool             // it has a form with a file
	SignIn      bool             // it has forms that a passkey or a wallet fills
	Wallet      bool             // a wallet of the browser registers an identity on it
	Who         string           // name of the account that is signed in, on a private page; "" for none
	Waits       int              // how much waits for its owner
	Zone        bool             // it asks for the reader's time zone
	Push        bool             // it has the button by which a browser asks to be notified
	Join        bool             // it has the form to join
	Near        bool             // it has a field for a place, and may ask for the reader's position
	Live        bool             // its script keeps it up to date
	Onward      string           // address to which the browser goes on by itself, "" for none
	Refresh     int              // seconds after which the browser loads the page again, 0 for never
	Status      int              // HTTP status, when it is not 200
	Request     string           // id of the request, shown on error pages
	Data        any              // the data that the page was made from, for get_current_page
	Kind        string           // of protocol.CurrentPage, "" for a page that is not public
	Handle      string           // whose page it is, "" for nobody's
	Of          string           // the profile that a page of the account is about, "" for none
	Owner       *ownerNav        // the navigation of an account's pages, nil elsewhere
	Body        templ.Component

	back    string // where the switch of languages returns to
	key     string // under which the page is kept for everyone, "" for one that is not
	version uint64 // of what it was made from
}

// answerKey is of the header of the answer to a signed request, in the request's context.
type answerKey struct{}

// answeredBy returns a signed request with the header of its answer, for invoke.
func answeredBy(w http.ResponseWriter, r *http.Request) *http.Request {
	if !httpsig.Signed(r.Header) {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), answerKey{}, w.Header()))
}

// read invokes a read operation as the reader of a page.
func read[In, Out any](s *Web, r *http.Request, op protocol.Op[In, Out], args any) (Out, error) {
	var out Out
	raw, err := json.Marshal(args)
	if err != nil {
		return out, err
	}
	res, err := s.invoke(r.Context(), r, op.Name, raw)
	if err != nil {
		return out, err
	}
	out, ok := res.Value.(Out)
	if !ok {
		return out, protocol.Errorf(protocol.Internal, "%s gave %T", op.Name, res.Value)
	}
	return out, nil
}

func (s *Web) invoke(ctx context.Context, r *http.Request, op string, args []byte) (hall.Result, error) {
	res, err := s.Table.Invoke(ctx, hall.Request{
		Op: op, Args: args, Door: "page",
		Evidence: identity.Evidence{Request: r, Network: s.Network(r)},
	})
	if head, ok := ctx.Value(answerKey{}).(http.Header); ok && res.Caller.Standing == protocol.Signed {
		head.Del("Accept-Signature") // the router's: it is signed as it is wanted
	}
	return res, err
}
