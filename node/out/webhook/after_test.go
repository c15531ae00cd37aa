package webhook_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/webhook"
)

// TestAfter: what follows a failed attempt (contract §4).
func TestAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	retry := func(after time.Duration) error {
		return &webhook.Failure{Kind: webhook.ErrRetry, Status: 503, RetryAfter: after}
	}
	for _, tt := range []struct {
		name        string
		sent        error
		tries       int
		until       time.Duration
		least, most time.Duration // of the pause, 0 for no further attempt
	}{
		{"the first", retry(0), 1, time.Hour, 3750 * time.Millisecond, 6250 * time.Millisecond},
		{"the third", retry(0), 3, time.Hour, 15 * time.Second, 25 * time.Second},
		{"the thirtieth", retry(0), 30, 2 * time.Hour, 45 * time.Minute, 75 * time.Minute},
		{"the receiver asks for more", retry(3 * time.Hour), 1, 4 * time.Hour, 3 * time.Hour, 3 * time.Hour},
		{"the receiver asks for less", retry(time.Second), 3, time.Hour, 15 * time.Second, 25 * time.Second},
		{"after the end", retry(0), 1, 3 * time.Second, 0, 0},
		{"the receiver asks for more than is left", retry(3 * time.Hour), 1, time.Hour, 0, 0},
		{"an error of this node", errors.New("no key"), 1, time.Hour, 3750 * time.Millisecond, 6250 * time.Millisecond},
		{"gone", &webhook.Failure{Kind: webhook.ErrGone, Status: 410}, 1, time.Hour, 0, 0},
		{"refused", &webhook.Failure{Kind: webhook.ErrRefused}, 1, time.Hour, 0, 0},
	} {
		f, at := webhook.After(tt.sent, tt.tries, now, now.Add(tt.until))
		if known, ok := errors.AsType[*webhook.Failure](tt.sent); ok {
			require.Same(t, known, f, tt.name)
		} else {
			require.Equal(t, &webhook.Failure{Kind: webhook.ErrRetry, Text: "this node could not send it"}, f, tt.name)
		}
		if tt.most == 0 {
			require.Zero(t, at, tt.name)
			continue
		}
		require.GreaterOrEqual(t, at.Sub(now), tt.least, tt.name)
		require.LessOrEqual(t, at.Sub(now), tt.most, tt.name)
	}
}
