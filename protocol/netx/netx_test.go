package netx

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRegistrable(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"a.b.example.org": "example.org", "a.b.example.org:8443": "example.org", "x.github.io": "x.github.io", "192.0.2.1:8443": "192.0.2.1",
		"192.0.2.1":               "192.0.2.1",
		"[2001:db8:0:1ff::1]:443": "2001:db8:0:100::/56", "[2001:db8:0:101::2]": "2001:db8:0:100::/56", "[::ffff:192.0.2.1]": "192.0.2.1",
		"127.0.0.1:8080": "127.0.0.1:8080", "localhost:80": "localhost", "a.example.org.": "example.org",
	} {
		require.Equal(t, want, Registrable(host), host)
	}
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "a.localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"notlocalhost": false, "localhost.example": false, "": false, "10.0.0.1": false, "::2": false,
	} {
		require.Equal(t, want, IsLoopback(host), host)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now, most := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), 24*time.Hour
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "90": 90 * time.Second, "99999999999": most, "86401": most,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
		now.AddDate(1, 0, 0).Format(http.TimeFormat): most,
	} {
		require.Equal(t, want, RetryAfter(value, now, most), value)
	}
	for d, want := range map[time.Duration]int{0: 1, time.Nanosecond: 1, time.Second: 1, time.Second + 1: 2, time.Minute: 60} {
		require.Equal(t, want, Seconds(d), d)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{0: 1, 1: 1, 2: 2, 3: 4, 7: 64, 8: 100, math.MaxInt: 100} {
		require.Equal(t, want*time.Second, Backoff(time.Second, 100*time.Second, n), n)
	}
	require.Equal(t, 7*24*time.Hour, Backoff(24*time.Hour, 7*24*time.Hour, 1000))
	for range 1000 {
		d := Jitter(time.Hour)
		require.True(t, d >= 45*time.Minute && d <= 75*time.Minute, d)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	body := []byte("a text")
	tag := Tag(body)
	for _, tt := range []struct {
		method string
		has    []string // If-None-Match
		status int
		text   string
	}{
		{http.MethodGet, nil, http.StatusOK, "a text"},
		{http.MethodHead, nil, http.StatusOK, ""},
		{http.MethodGet, []string{`"another"`}, http.StatusOK, "a text"},
		{http.MethodGet, []string{tag}, http.StatusNotModified, ""},
		{http.MethodGet, []string{`"another", W/` + tag}, http.StatusNotModified, ""},
		{http.MethodGet, []string{`"another"`, tag}, http.StatusNotModified, ""},
		{http.MethodGet, []string{"*"}, http.StatusNotModified, ""},
	} {
		r := httptest.NewRequest(tt.method, "/", nil)
		r.Header["If-None-Match"] = tt.has
		w := httptest.NewRecorder()
		Serve(w, r, "text/plain", body)
		require.Equal(t, tt.status, w.Code, tt)
		require.Equal(t, tag, w.Header().Get("ETag"), tt)
		require.Equal(t, tt.text, w.Body.String(), tt)
		if tt.status == http.StatusOK {
			require.Equal(t, "6", w.Header().Get("Content-Length"), tt)
		}
	}
}
