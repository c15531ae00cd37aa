package liveness

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/outbound"
	"stoa/storage"
)

const agent = "stoa/test (+https://n1.example/; asks whether listed endpoints answer)"

// prober asks addresses on loopback, as a node for development may.
func prober() *Prober {
	return &Prober{Agent: agent, Log: slog.New(slog.DiscardHandler),
		Client: outbound.New(outbound.Options{AllowPrivate: true, UserAgent: agent, Timeout: time.Second, MaxBody: 64 << 20})}
}

// host serves and writes down what it was asked.
type host struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func serve(t *testing.T, robots string, h http.HandlerFunc) *host {
	t.Helper()
	s := &host{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
		s.mu.Unlock()
		switch {
		case r.Header.Get("User-Agent") != agent:
			http.Error(w, "who are you?", http.StatusTeapot)
		case r.URL.Path == "/robots.txt" && robots != "":
			io.WriteString(w, robots)
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		default:
			h(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestAsk(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, "", status(200))
	for _, c := range []struct {
		name    string
		robots  string
		handler http.HandlerFunc
		outcome Outcome
		asked   []string // after robots.txt
	}{
		{"page", "", status(200), Answered, []string{"HEAD /x?y=1"}},
		{"wants a key", "", status(401), Answered, []string{"HEAD /x?y=1"}},
		{"POST only", "", status(405), Answered, []string{"HEAD /x?y=1", "GET /x?y=1"}},
		{"no HEAD", "", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "HEAD" {
				w.WriteHeader(501)
			}
		}, Answered, []string{"HEAD /x?y=1", "GET /x?y=1"}},
		{"HEAD lies", "", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "HEAD" {
				w.WriteHeader(404)
			}
		}, Answered, []string{"HEAD /x?y=1", "GET /x?y=1"}},
		{"not there", "", status(404), Missing, []string{"HEAD /x?y=1", "GET /x?y=1"}},
		{"gone", "", status(410), Missing, []string{"HEAD /x?y=1", "GET /x?y=1"}},
		{"broken", "", status(503), Failing, []string{"HEAD /x?y=1", "GET /x?y=1"}},
		{"hangs up", "", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Unreachable, []string{"HEAD /x?y=1"}},
		{"too slow", "", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, Unreachable, []string{"HEAD /x?y=1"}},
		{"allowed", "User-agent: *\nDisallow: /private\n", status(200), Answered, []string{"HEAD /x?y=1"}},
		{"disallowed", "User-agent: *\nDisallow: /x\n", status(200), Disallowed, nil},
		{"disallowed to us", "User-agent: *\nAllow: /\n\nUser-agent: stoa\nDisallow: /\n", status(200), Disallowed, nil},
		{"moved within", "", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/x" {
				http.Redirect(w, r, "/z", http.StatusFound)
			}
		}, Answered, []string{"HEAD /x?y=1", "HEAD /z"}},
		{"moved away", "", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/there", http.StatusFound)
		}, Answered, []string{"HEAD /x?y=1"}},
		{"in circles", "", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x?y=1", http.StatusFound) }, Answered,
			[]string{"HEAD /x?y=1", "HEAD /x?y=1", "HEAD /x?y=1", "HEAD /x?y=1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.robots, c.handler)
			p := prober()
			require.Equal(t, c.outcome, p.askHTTP(t.Context(), s.URL+"/x?y=1", "127.0.0.1"))
			s.mu.Lock()
			defer s.mu.Unlock()
			require.Equal(t, append([]string{"GET /robots.txt"}, c.asked...), s.asked)
		})
	}
	t.Cleanup(func() {
		elsewhere.mu.Lock()
		defer elsewhere.mu.Unlock()
		require.Empty(t, elsewhere.asked, "who is elsewhere did not list itself")
	})
}

// However long an answer is, only its beginning is read.
func TestAsk_HugeBody(t *testing.T) {
	t.Parallel()
	sent := make(chan int64, 1)
	s := serve(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "HEAD" {
			w.WriteHeader(501)
			return
		}
		n, _ := io.CopyN(w, zeros{}, 512<<20)
		sent <- n
	})
	require.Equal(t, Answered, prober().askHTTP(t.Context(), s.URL+"/", "127.0.0.1"))
	require.Less(t, <-sent, int64(64<<20))

	announced := serve(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "HEAD" {
			w.WriteHeader(501)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(1<<40))
		w.Write([]byte("x"))
	})
	require.Equal(t, Answered, prober().askHTTP(t.Context(), announced.URL+"/", "127.0.0.1"))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// RFC 9309 §2.3.1: a missing robots.txt allows everything, one that fails
// nothing, and what cannot be reached is not asked further.
func TestAsk_RobotsFails(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]Outcome{500: Failing, 503: Failing, 429: Failing, 403: Answered, 404: Answered, 410: Answered} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				w.WriteHeader(code)
				return
			}
			asked++
		}))
		require.Equal(t, want, prober().askHTTP(t.Context(), s.URL+"/x", "127.0.0.1"), code)
		require.Equal(t, want == Answered, asked > 0, code)
		s.Close()
		require.Equal(t, Unreachable, prober().askHTTP(t.Context(), s.URL+"/x", "127.0.0.1"))
	}
	huge := serve(t, strings.Repeat("# "+strings.Repeat("x", 1000)+"\n", 1000)+"User-agent: *\nDisallow: /\n", status(200))
	require.Equal(t, Answered, prober().askHTTP(t.Context(), huge.URL+"/x", "127.0.0.1"), "what comes after 500 KiB is not read")
}

// A robots.txt that redirects is followed in its own domain. One that leads to
// someone else asks nobody there: an address that is listed must not be a way to
// have any other asked.
func TestAsk_RobotsMoved(t *testing.T) {
	t.Parallel()
	victim := serve(t, "User-agent: *\nDisallow: /\n", status(200))
	elsewhere := strings.Replace(victim.URL, "127.0.0.1", "localhost", 1)
	for _, tt := range []struct {
		name, to string
		want     Outcome
	}{
		{"within", "/text/robots.txt", Answered},
		{"to another port of the host", victim.URL + "/robots.txt", Disallowed},
		{"away", elsewhere + "/search?q=expensive", Disallowed},
		{"in circles", "/robots.txt", Disallowed},
		{"to another scheme", "ftp://127.0.0.1/robots.txt", Disallowed},
	} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/robots.txt":
				http.Redirect(w, r, tt.to, http.StatusFound)
			case "/text/robots.txt":
				io.WriteString(w, "User-agent: *\nDisallow: /no\n")
			default:
				asked++
			}
		}))
		require.Equal(t, tt.want, prober().askHTTP(t.Context(), s.URL+"/x", "127.0.0.1"), tt.name)
		require.Equal(t, tt.want == Answered, asked > 0, tt.name)
		s.Close()
	}
	for _, a := range victim.asked {
		require.NotContains(t, a, "expensive")
	}
}

// Outside of development nothing private is asked, whatever the address.
func TestAsk_OnlyThePublicInternet(t *testing.T) {
	t.Parallel()
	s := serve(t, "", status(200))
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	p := prober()
	p.Client = outbound.New(outbound.Options{Timeout: time.Second})
	for _, target := range []string{"https://127.0.0.1", "https://[::1]/", "https://169.254.169.254/latest", "https://10.1.2.3/"} {
		require.Equal(t, Refused, p.askHTTP(t.Context(), target+"/x", "127.0.0.1"), target)
	}
	for _, target := range []string{s.URL, "https://127.0.0.1:" + port, "http://example.com/", "https://example.com:8443/"} {
		require.Equal(t, Unasked, p.askHTTP(t.Context(), target+"/x", "127.0.0.1"), "%s: who is not asked is not dead", target)
	}
	require.Empty(t, s.asked)
	p.Self = "n1.example"
	require.Equal(t, Own, p.ask(t.Context(), storage.Probe{Kind: storage.ProbeHTTP, Target: "https://n1.example/x", Host: "n1.example"}))
}

// robots.txt is fetched once a day, not with each address.
func TestAsk_RemembersRobots(t *testing.T) {
	t.Parallel()
	s := serve(t, "User-agent: *\nDisallow: /no\n", status(200))
	p := prober()
	for range 3 {
		require.Equal(t, Answered, p.askHTTP(t.Context(), s.URL+"/yes", "127.0.0.1"))
		require.Equal(t, Disallowed, p.askHTTP(t.Context(), s.URL+"/no", "127.0.0.1"))
	}
	require.Equal(t, []string{"GET /robots.txt", "HEAD /yes", "HEAD /yes", "HEAD /yes"}, s.asked)
	for i := range 3 * robotsMost {
		p.robots.Put(fmt.Sprint(i), nil, 0, time.Now().Add(time.Hour))
	}
	require.LessOrEqual(t, p.robots.Len(), robotsMost)
}
