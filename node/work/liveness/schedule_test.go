package liveness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
)

func plain(d time.Duration) time.Duration { return d }

func TestNext(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	before := now.Add(-daily)
	up := storage.Probe{Kind: storage.ProbeHTTP, Alive: protocol.LivenessAlive, AnsweredAt: before}
	fresh := storage.Probe{Kind: storage.ProbeHTTP, Alive: protocol.LivenessUnknown}
	key := storage.Probe{Kind: storage.ProbeChain, Alive: protocol.LivenessAlive, AnsweredAt: before}
	failed := func(p storage.Probe, alive protocol.Liveness, n int, o Outcome) storage.Probe {
		p.Alive, p.Failures, p.Outcome = alive, n, string(o)
		return p
	}
	answered := failed(up, protocol.LivenessAlive, 0, Answered)
	answered.AnsweredAt = now
	for _, c := range []struct {
		name  string
		was   storage.Probe
		o     Outcome
		want  storage.Probe
		pause time.Duration
	}{
		{"answers again", up, Answered, answered, daily},
		{"answers at last", failed(up, protocol.LivenessDead, 9, Failing), Answered, answered, daily},
		{"fails once", up, Failing, failed(up, protocol.LivenessAlive, 1, Failing), time.Hour},
		{"fails twice", failed(up, protocol.LivenessAlive, 1, Failing), Unreachable, failed(up, protocol.LivenessDead, 2, Unreachable), daily},
		{"never answered", fresh, Missing, failed(fresh, protocol.LivenessDead, 1, Missing), time.Hour},
		{"private address", fresh, Refused, failed(fresh, protocol.LivenessDead, 1, Refused), time.Hour},
		{"fails for the fifth time", failed(fresh, protocol.LivenessDead, 4, Failing), Failing, failed(fresh, protocol.LivenessDead, 5, Failing), weekly},
		{"fails for the hundredth time", failed(fresh, protocol.LivenessDead, 99, Failing), Failing, failed(fresh, protocol.LivenessDead, 100, Failing), weekly},
		{"does not want us", up, Disallowed, failed(up, protocol.LivenessUnknown, 0, Disallowed), daily},
		{"this node", fresh, Own, failed(fresh, protocol.LivenessUnknown, 0, Own), weekly},
		{"revoked", key, Missing, failed(key, protocol.LivenessDead, 1, Missing), time.Hour},
		{"chain away", key, Undecided, failed(key, protocol.LivenessAlive, 0, Undecided), 15 * time.Minute},
		{"no chain", key, NoChain, failed(key, protocol.LivenessUnknown, 0, NoChain), daily},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, due := next(c.was, c.o, now, plain)
			require.Equal(t, c.want, got)
			require.Equal(t, now.Add(c.pause), due)
		})
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for n := range 8 {
		got = append(got, backoff(n+1))
	}
	require.Equal(t, []time.Duration{time.Hour, daily, 2 * daily, 4 * daily, weekly, weekly, weekly, weekly}, got)
	for range 1000 {
		d := jitter(daily)
		require.GreaterOrEqual(t, d, 20*time.Hour)
		require.LessOrEqual(t, d, 28*time.Hour)
	}
}
