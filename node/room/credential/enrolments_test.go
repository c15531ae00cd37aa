package credential

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/protocol/must"
)

// What could not be decided waits for its time: neither the next step nor requests
// under the identity have the chain asked sooner.
func TestEnrolments_Retries(t *testing.T) {
	t.Parallel()
	reader := must.Get(erc8004.NewReader(erc8004.Config{}))(t)
	w := NewEnrolments(nil, &Chain{Reader: reader}, slog.New(slog.DiscardHandler))
	began := time.Now()
	w.later("eip155:1:0xabc:7")
	w.blocksLater(1)
	w.suspect("eip155:1:0xabc:7")
	w.step(t.Context()) // looks at nothing, or there would have to be a database
	for _, at := range []time.Time{w.due["eip155:1:0xabc:7"], w.lost[1]} {
		require.WithinRange(t, at, began.Add(enrolmentRetry), time.Now().Add(enrolmentRetry))
	}
	w.changed(erc8004.Changes{Chain: 1, Agents: []string{"eip155:1:0xabc:7"}}) // the chain told of it
	require.Zero(t, w.due["eip155:1:0xabc:7"])
}
