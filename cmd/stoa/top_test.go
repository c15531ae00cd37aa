package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSample(t *testing.T) {
	t.Parallel()
	at := func(seconds int, processes ...string) sample {
		s := sample{time.Unix(int64(seconds), 0), map[string]float64{}}
		for _, p := range processes {
			require.NoError(t, s.read(strings.NewReader(p)))
		}
		return s
	}
	s := span{
		at(0, "# TYPE stoa_x counter\nstoa_x{kind=\"a\"} 10\nstoa_x{kind=\"b\"} 100\nstoa_xx 7\nstoa_jobs{kind=\"mail\",state=\"dead\"} 3\n"),
		at(10, "stoa_x{kind=\"a\"} 30\nstoa_x{kind=\"b\"} 5\nstoa_jobs{kind=\"mail\",state=\"dead\"} 4\n",
			"stoa_x{kind=\"a\"} 5\nstoa_jobs{kind=\"mail\",state=\"dead\"} 4\n"),
	}
	require.InDelta(t, 3.0, s.rate("stoa_x"), 1e-9, "20 and 5 more of a; b began again, with 5")
	require.InDelta(t, 2.5, s.rate("stoa_x", `kind="a"`), 1e-9)
	require.InDelta(t, 4.0, s.to.sum("stoa_jobs", `state="dead"`), 1e-9, "two processes have one database")
	require.Equal(t, []string{"a", "b"}, s.labels("stoa_x", "kind"))

	h := span{at(0, `h_bucket{op="p",le="0.1"} 0`+"\n"), at(1, `h_bucket{op="p",le="0.1"} 50
h_bucket{op="p",le="1"} 100
h_bucket{op="p",le="+Inf"} 100
`)}
	require.InDelta(t, .05, h.quantile(.25, "h"), 1e-9)
	require.InDelta(t, .55, h.quantile(.75, "h", `op="p"`), 1e-9)
	require.Nil(t, known(h.quantile(.5, "h", `op="q"`)))
	require.Error(t, h.from.read(strings.NewReader("<html>\n")))
}

// TestTop looks at a node that is asked meanwhile.
func TestTop(t *testing.T) {
	t.Parallel()
	port := freePorts(t, 2)
	operator := fmt.Sprintf("127.0.0.1:%d", port+1)
	s := newServerProcess(t, port, "--operator-listen", operator)
	end := make(chan struct{})
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for {
			select {
			case <-end:
				return
			case <-time.After(10 * time.Millisecond):
				if res, err := http.Get(s.url + "/api/public/board"); err == nil {
					res.Body.Close()
				}
			}
		}
	}()
	var v topView
	require.Eventually(t, func() bool { // what is asked between two looks is answered there when the machine has time for it
		out, errs, code := stoa(t, "", "top", "--at", operator, "--every", "300ms", "--json", "--once")
		return code == 0 && errs == "" && json.Unmarshal([]byte(out), &v) == nil && v.Operations > 0
	}, time.Minute, time.Millisecond)
	require.Equal(t, "sqlite", v.Engine)
	require.Equal(t, "read_board", v.Slow[0].Name)
	require.NotNil(t, v.Median)
	require.Eventually(t, func() bool {
		out, _, _ := stoa(t, "", "top", "--at", operator, "--every", "300ms")
		require.NotContains(t, out, "\x1b", "what is no terminal gets no control sequences")
		return strings.Contains(out, "read_board")
	}, time.Minute, time.Millisecond)
	close(end)
	<-asked
	s.kill()
	_, errs, code := stoa(t, "", "top", "--at", operator)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "is the node running")
	_, _, code = stoa(t, "", "top", "--every", "1ms")
	require.Equal(t, 2, code)
}
