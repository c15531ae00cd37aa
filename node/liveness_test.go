package node_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// An endpoint is asked by the job that a starting node queues, and what came of
// it shows in the profile, in the metrics and in the counts.
func TestLiveness(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		ctx := context.Background()
		agent := make(chan string, 8)
		up := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			agent <- r.Header.Get("User-Agent")
			w.WriteHeader(http.StatusMethodNotAllowed)
		}))
		defer up.Close()
		h.Prober().Client = up.Client()
		put := func(handle, endpoint string) {
			require.NoError(t, h.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
				_, err := h.Directory.Put(ctx, tx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: "A", Kind: protocol.Business,
					Capabilities: []protocol.Capability{{ID: "quote", Name: "Quote", Description: "d", Endpoint: endpoint}}}})
				return err
			}))
		}
		put("asha", up.URL+"/a2a")
		put("ravi", "https://127.0.0.1:1/nobody")
		jobs, _, err := h.DB.ClaimJobs(ctx, "test", 8, time.Minute)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		require.Equal(t, storage.ProbeJob, jobs[0].Kind)
		require.Eventually(t, func() bool { // new addresses are asked within a minute
			require.NoError(t, h.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
				for _, handle := range []string{"asha", "ravi"} {
					probes, err := tx.Probes().OfProfile(ctx, handle)
					if err != nil {
						return err
					}
					for _, p := range probes {
						if p.AskedAt.IsZero() {
							if err := tx.Probes().Settle(ctx, p, tx.Now); err != nil {
								return err
							}
						}
					}
				}
				return nil
			}))
			_, err := h.Prober().Job(ctx, jobs[0])
			require.NoError(t, err)
			var asha, ravi protocol.Profile
			h.Ask("GET", "/api/public/agents/asha", "").Into(&asha)
			h.Ask("GET", "/api/public/agents/ravi", "").Into(&ravi)
			if asha.Alive == nil || ravi.Alive == nil {
				return false
			}
			require.True(t, *asha.Alive)
			require.WithinDuration(t, time.Now(), *asha.LastSeenAt, time.Minute)
			require.False(t, *ravi.Alive)
			require.Nil(t, ravi.LastSeenAt)
			return true
		}, time.Minute, 50*time.Millisecond)
		require.Equal(t, "stoa/test (+"+h.Base+"/; asks whether listed endpoints answer)", <-agent)

		require.Contains(t, h.Metrics(), `stoa_probes_total{outcome="answered"} 1`)
		require.Contains(t, h.Metrics(), `stoa_probes_total{outcome="unreachable"} 1`)
		var info struct {
			Usage struct {
				Users                     struct{ Total, ActiveMonth, ActiveHalfyear int }
				LocalPosts, LocalComments int
			}
			Metadata struct {
				Agents struct{ Listed, Answering, Verified int }
			}
		}
		h.Ask("GET", "/nodeinfo/2.1", "").Into(&info)
		require.Equal(t, struct{ Listed, Answering, Verified int }{2, 1, 0}, info.Metadata.Agents)
		require.Equal(t, struct{ Total, ActiveMonth, ActiveHalfyear int }{2, 1, 1}, info.Usage.Users)
		require.Contains(t, h.Ask("GET", "/api/public/about", "").Body.String(), "Agents: 2 listed; 1 of them answered or showed themselves of late; 0 with")
	})
}

// A signed request shows that its agent is alive.
func TestLiveness_Signed(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	pair := h.Hosted("asha")
	require.Equal(t, 201, h.Signed(pair, nodetest.GoodPost, nil).Code)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, h.Sightings().Run(ctx))
	p := nodetest.As[protocol.Profile](h.Ask("GET", "/api/public/agents/asha", ""))
	require.True(t, *p.Alive)
	require.WithinDuration(t, time.Now(), *p.LastSeenAt, time.Minute)
}

func TestLiveness_Off(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.NoProbes = true })
	jobs, _, err := h.DB.ClaimJobs(context.Background(), "test", 8, time.Minute)
	require.NoError(t, err)
	require.Empty(t, jobs)
}
