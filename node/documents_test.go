package node_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// A domain is a host with registration documents.
type domain struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]http.HandlerFunc
	asked map[string]int
}

func newDomain(t *testing.T) *domain {
	d := &domain{files: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		serve := d.files[r.URL.Path]
		d.asked[r.URL.Path]++
		d.mu.Unlock()
		if serve == nil {
			serve = http.NotFound
		}
		serve(w, r)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *domain) name() string { return strings.TrimPrefix(d.URL, "http://") }

func (d *domain) serve(path string, h http.HandlerFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[path] = h
}

// puts serves a document that names identities.
func (d *domain) puts(path string, ids ...erc8004.ID) {
	d.serve(path, written(registrationsOf(ids...)))
}

func written(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(s)) }
}

const ofDomain = "/.well-known/agent-registration.json"

func registrationsOf(ids ...erc8004.ID) string {
	var all []string
	for _, id := range ids {
		all = append(all, fmt.Sprintf(`{"agentId":%s,"agentRegistry":"eip155:%d:%s"}`, id.AgentID, id.ChainID, id.Registry.Hex()))
	}
	return `{"type":"https://eips.ethereum.org/EIPS/eip-8004#registration-v1","name":"Asha","registrations":[` + strings.Join(all, ",") + `]}`
}

// A docReader is a stage with profiles whose documents the node reads.
type docReader struct {
	*nodetest.Stage
	t *testing.T
}

// registeredWith registers an identity with an agentURI that is made from it, and a key.
func registeredWith(c *nodetest.EVM, account int, uri func(erc8004.ID) string) (erc8004.ID, key.Pair) {
	id, pair := identityOn(c, account)
	c.Must(c.Registrar(account).SetAgentURI(c.T.Context(), id.AgentID, uri(id)))
	c.Do("final")
	return id, pair
}

func at(address string) func(erc8004.ID) string { return func(erc8004.ID) string { return address } }

func (s docReader) enrol(handle string, id erc8004.ID, pair key.Pair) {
	s.PutProfile(fmt.Appendf(nil, `{"handle":%q,"name":"Asha","kind":"person"}`, handle))
	require.NoError(s.t, s.Admin().AddKey(s.t.Context(), handle, pair, true))
	require.NoError(s.t, s.Admin().EnrolIdentity(s.t.Context(), handle, id.String(), pair.Thumbprint()))
}

func (s docReader) reading(id erc8004.ID) (d storage.AgentDocument) {
	require.NoError(s.t, s.DB.Read(s.t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		d, err = tx.AgentDocuments().ByAgent(ctx, id.String())
		return storage.IfMissing(err, nil)
	}))
	return d
}

// again waits until the document was read after now, which is as if a day were over.
func (s docReader) again(id erc8004.ID) storage.AgentDocument {
	s.t.Helper()
	nodetest.Tick()
	began := time.Now()
	require.NoError(s.t, s.DB.Write(s.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.AgentDocuments().Changed(ctx, id.String())
	}))
	return s.read(id, began)
}

func (s docReader) read(id erc8004.ID, since time.Time) (d storage.AgentDocument) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { d = s.reading(id); return d.ReadAt.After(since.Add(-time.Millisecond)) }, time.Minute, 20*time.Millisecond)
	return d
}

func (s docReader) links(handle string) (domains, also []string) {
	p := nodetest.As[protocol.Profile](s.Ask("GET", "/api/public/agents/"+handle, "").Is(200))
	for _, l := range p.Identity.Domains {
		domains = append(domains, l.Name)
	}
	for _, l := range p.Identity.AlsoRegistered {
		also = append(also, l.Name)
	}
	return domains, also
}

func (s docReader) page(handle string) string {
	return s.Ask("GET", "/@"+handle, "", "Accept", "text/html").Is(200).Body.String()
}

// TestDocuments: a domain that names the identity of a profile is shown with it, and no longer when it does not, when the identity is sold,
// or when its agentURI leads elsewhere. No request waits for a host.
func TestDocuments(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		c, d, other := nodetest.NewEVM(t), newDomain(t), newDomain(t)
		id, pair := registeredWith(c, 0, at(d.URL+"/asha.json"))
		d.puts("/asha.json", id)
		d.puts(ofDomain, id)
		s := docReader{c.Start(change), t}
		s.enrol("asha", id, pair)
		first := s.read(id, time.Time{}.Add(time.Second))
		require.Empty(t, first.Fault)
		domains, _ := s.links("asha")
		require.Equal(t, []string{d.name()}, domains)
		require.Contains(t, s.page("asha"), "<code>"+d.name()+"</code> names this identity, at least since ")
		require.Contains(t, s.Ask("GET", "/@asha", "", "Accept", "text/html", "Accept-Language", "hi").Body.String(), "इस पहचान का नाम देता है")
		var status protocol.IdentityStatus
		token := "Bearer " + s.OwnerToken("asha")
		s.Ask("GET", "/api/owner/identity?handle=asha", "", "Authorization", token).Is(200).Into(&status)
		require.NotNil(t, status.Document)
		require.Equal(t, d.name(), status.Domains[0].Name)

		// What its domain is asked for a second time changes only when that was.
		since := status.Domains[0].Since
		s.again(id)
		s.Ask("GET", "/api/owner/identity?handle=asha", "", "Authorization", token).Is(200).Into(&status)
		require.Equal(t, since, status.Domains[0].Since)
		require.True(t, status.Domains[0].CheckedAt.After(since))

		// A domain that does not answer says nothing else; one that names another does.
		d.serve(ofDomain, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
		failed := s.again(id)
		require.Contains(t, failed.Fault, "status 503")
		require.Less(t, failed.NextAt.Sub(failed.ReadAt), time.Hour)
		domains, _ = s.links("asha")
		require.Equal(t, []string{d.name()}, domains)
		stranger := erc8004.ID{ChainID: id.ChainID, Registry: id.Registry, AgentID: big.NewInt(77)}
		d.puts(ofDomain, stranger)
		s.again(id)
		domains, _ = s.links("asha")
		require.Empty(t, domains)
		require.NotContains(t, s.page("asha"), "names this identity")

		// A new agentURI is read when the chain's events tell of it.
		other.puts("/.well-known/asha.json", id)
		before := time.Now()
		c.Must(c.Registrar(0).SetAgentURI(t.Context(), id.AgentID, other.URL+"/.well-known/asha.json"))
		s.read(id, before)
		require.Eventually(t, func() bool { domains, _ = s.links("asha"); return len(domains) == 1 && domains[0] == other.name() }, time.Minute, 20*time.Millisecond)

		// Sold: the link goes with the identity, and is not the buyer's before it was read for it.
		c.Must(c.Registrar(0).Transfer(t.Context(), id.AgentID, c.Registrar(1).Address()))
		require.Eventually(t, func() bool { domains, _ = s.links("asha"); return len(domains) == 0 }, time.Minute, 20*time.Millisecond)
		require.Zero(t, s.reading(id))
		other.puts("/.well-known/asha.json", stranger)
		buyers := nodetest.NewPair(t)
		c.Publish(1, 1, id, buyers)
		c.Do("final")
		s.PutProfile([]byte(`{"handle":"bina","name":"Bina","kind":"person"}`))
		require.NoError(t, s.Admin().AddKey(t.Context(), "bina", buyers, true))
		require.Eventually(t, func() bool {
			return s.Admin().EnrolIdentity(t.Context(), "bina", id.String(), buyers.Thumbprint()) == nil
		}, time.Minute, 20*time.Millisecond)
		require.Contains(t, s.read(id, before).Fault, "do not name this identity")
		domains, _ = s.links("bina")
		require.Empty(t, domains)
	})
}

// TestDocuments_Hostile: what a document, a host or a domain does against the rules shows nothing, and its owner is told why.
func TestDocuments_Hostile(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		c := nodetest.NewEVM(t)
		victim, _ := identityOn(c, 1)
		inline := func(id erc8004.ID) string {
			return "data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(registrationsOf(id)))
		}
		cases := []struct {
			handle, fault string
			uri           func(*domain) func(erc8004.ID) string
			serve         func(*domain, erc8004.ID)
		}{
			{"named", "do not name this identity", nil, func(d *domain, _ erc8004.ID) { d.puts("/a.json", victim) }},
			{"shared", "does not name this identity", nil, func(d *domain, id erc8004.ID) { d.puts("/a.json", id); d.puts(ofDomain, victim) }},
			{"bare", "answers with status 404", nil, func(d *domain, id erc8004.ID) { d.puts("/a.json", id) }},
			{"inward", "has no public address", nil, func(d *domain, _ erc8004.ID) {
				d.serve("/a.json", func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
				})
			}},
			{"away", "answers with status 302", nil, func(d *domain, id erc8004.ID) {
				d.puts("/a.json", id)
				elsewhere := newDomain(t)
				elsewhere.puts(ofDomain, id)
				d.serve(ofDomain, func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)+ofDomain, http.StatusFound)
				})
			}},
			{"large", "bytes", nil, func(d *domain, _ erc8004.ID) {
				d.serve("/a.json", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 10<<20)) })
			}},
			{"slow", "does not answer in time", nil, func(d *domain, _ erc8004.ID) {
				d.serve("/a.json", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			}},
			{"twice", "at most 64 are read", nil, func(d *domain, id erc8004.ID) {
				all := make([]erc8004.ID, 65)
				for i := range all {
					all[i] = id
				}
				d.puts("/a.json", all...)
			}},
			{"folder", `the scheme "ipfs"`, func(*domain) func(erc8004.ID) string { return at("ipfs://bafybei/1.json") }, nil},
			{"within", "", func(*domain) func(erc8004.ID) string { return inline }, nil},
			{"nothing", "no agentURI", func(*domain) func(erc8004.ID) string { return at("") }, nil},
		}
		ids := map[string]erc8004.ID{}
		pairs := map[string]key.Pair{}
		for i, k := range cases {
			d := newDomain(t)
			uri := at(d.URL + "/a.json")
			if k.uri != nil {
				uri = k.uri(d)
			}
			id, pair := registeredWith(c, i%8, uri)
			d.puts(ofDomain, id)
			if k.serve != nil {
				d.files = map[string]http.HandlerFunc{}
				k.serve(d, id)
			}
			ids[k.handle], pairs[k.handle] = id, pair
		}
		s := docReader{c.Start(change), t}
		for _, k := range cases {
			s.enrol(k.handle, ids[k.handle], pairs[k.handle])
		}
		began := time.Now()
		require.Equal(t, 200, s.Ask("GET", "/@slow", "").Code)
		require.Less(t, time.Since(began), 4*time.Second, "no request waits for a document")
		for _, k := range cases {
			got := s.read(ids[k.handle], time.Time{}.Add(time.Second))
			if k.fault == "" {
				require.Empty(t, got.Fault, k.handle)
			} else {
				require.Contains(t, got.Fault, k.fault, k.handle)
			}
			domains, also := s.links(k.handle)
			require.Empty(t, domains, k.handle)
			require.Empty(t, also, k.handle)
			require.NotContains(t, s.page(k.handle), "names this identity", k.handle)
		}
	})
}

// TestDocuments_Twins: identities on two chains are shown with each other when the documents of both name both and one account has both; a
// claim of one side is not shown, and a sale of either ends it.
func TestDocuments_Twins(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		c, second := nodetest.NewEVM(t), nodetest.NewEVMOf(t, 7331)
		d := newDomain(t)
		mine, pair := registeredWith(c, 0, at(d.URL+"/both.json"))
		theirs, theirPair := registeredWith(second, 0, at(d.URL+"/both.json"))
		foreign, _ := registeredWith(second, 1, at(d.URL+"/both.json")) // another owner's, whose document names all
		d.puts("/both.json", mine, theirs, foreign)
		two := func(o *node.Config) { o.Chain = []string{c.Flag(""), second.Flag("")} }
		s := docReader{&nodetest.Stage{House: nodetest.Start(t, change, two), Chain: c}, t}
		s.enrol("asha", mine, pair)
		s.enrol("asha-too", theirs, theirPair)
		for _, id := range []erc8004.ID{mine, theirs} {
			s.read(id, time.Time{}.Add(time.Second))
		}
		_, also := s.links("asha")
		require.Equal(t, []string{theirs.String()}, also)
		_, also = s.links("asha-too")
		require.Equal(t, []string{mine.String()}, also)
		require.Contains(t, s.page("asha"), "Also registered as <code>"+theirs.String()+"</code>, at least since ")

		many := []erc8004.ID{mine}
		for i := range int64(8) {
			many = append(many, erc8004.ID{ChainID: theirs.ChainID, Registry: theirs.Registry, AgentID: big.NewInt(1000 + i)})
		}
		d.puts("/both.json", append(many, theirs)...)
		s.again(mine)
		_, also = s.links("asha")
		require.Empty(t, also, "the chain is asked about eight only")
		d.puts("/both.json", mine, theirs, foreign)

		// Two documents, each of which names both, and then one of which does not.
		d.puts("/theirs.json", theirs, mine)
		set := func(path string) {
			t.Helper()
			nodetest.Tick()
			before := time.Now()
			second.Must(second.Registrar(0).SetAgentURI(t.Context(), theirs.AgentID, d.URL+path))
			s.read(theirs, before)
			s.again(mine)
		}
		set("/theirs.json")
		_, also = s.links("asha")
		require.Equal(t, []string{theirs.String()}, also)
		d.puts("/alone.json", theirs)
		set("/alone.json")
		_, also = s.links("asha")
		require.Empty(t, also, "one side's claim")
		_, also = s.links("asha-too")
		require.Empty(t, also)

		// A sale of the other one ends it before the next reading, and the document of the seller does not bring it back.
		set("/both.json")
		require.NoError(t, s.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.AgentDocuments().Postpone(ctx, mine.String(), tx.Now.Add(time.Hour))
		}))
		_, also = s.links("asha")
		require.Equal(t, []string{theirs.String()}, also)
		second.Must(second.Registrar(0).Transfer(t.Context(), theirs.AgentID, second.Registrar(2).Address()))
		require.Eventually(t, func() bool { _, also = s.links("asha"); return len(also) == 0 }, time.Minute, 20*time.Millisecond)
		s.again(mine)
		_, also = s.links("asha")
		require.Empty(t, also)
	})
}
