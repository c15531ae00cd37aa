package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

const (
	ashasID = "eip155:1:0xaa:1"
	twinID  = "eip155:10:0xaa:7"
)

// enrols makes a profile that is enrolled to an identity of an owner.
func enrols(t *testing.T, db *storage.DB, handle, agent, owner string) {
	t.Helper()
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		p := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}}
		if _, err := tx.Profiles().Put(ctx, p); err != nil {
			return err
		}
		return tx.Enrolments().Begin(ctx, "operator", storage.Enrolment{Handle: handle, ERC8004: agent, KeyID: "k-" + handle, Owner: owner, Block: 9}, []byte("{}"))
	})
}

// TestAgentDocuments: the document of an enrolled identity is due at once, what it shows is the profile's while owner and identity are the
// same, and a link to an identity that is sold ends.
func TestAgentDocuments(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		enrols(t, db, "asha", ashasID, "0xa")
		due := func() (agents []string) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				all, err := tx.AgentDocuments().Due(ctx, 10)
				for _, d := range all {
					agents = append(agents, d.Agent)
				}
				return err
			})
			return agents
		}
		links := func(handle string) (l protocol.AgentLinks) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				p, err := tx.Profiles().ByHandle(ctx, handle)
				if err == nil {
					l = p.Links
				}
				return err
			})
			return l
		}
		at := start.UTC()
		shown := protocol.AgentLinks{Domains: []protocol.AgentLink{{Name: "asha.example", Since: at, CheckedAt: at}},
			AlsoRegistered: []protocol.AgentLink{{Name: twinID, Since: at, CheckedAt: at}}}
		put := func(owner string) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return tx.AgentDocuments().Put(ctx, storage.AgentDocument{Agent: ashasID, URI: "u", ReadAt: tx.Now, NextAt: tx.Now.Add(time.Hour)}, owner, shown)
			})
		}
		do := func(f func(storage.AgentDocuments, context.Context) error) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return f(tx.AgentDocuments(), ctx) })
		}
		require.Equal(t, []string{ashasID}, due())
		put("0xb")
		require.Empty(t, links("asha"), "another owner's")
		put("0xa")
		require.Equal(t, shown, links("asha"))
		require.Empty(t, due())
		do(func(ds storage.AgentDocuments, ctx context.Context) error { return ds.Changed(ctx, ashasID) })
		require.Equal(t, []string{ashasID}, due())

		put("0xa")
		do(func(ds storage.AgentDocuments, ctx context.Context) error { return ds.Doubt(ctx, 1) })
		require.Empty(t, due(), "another chain, whose number begins alike")
		do(func(ds storage.AgentDocuments, ctx context.Context) error { return ds.Doubt(ctx, 10) })
		require.Equal(t, []string{ashasID}, due())
		put("0xa")
		do(func(ds storage.AgentDocuments, ctx context.Context) error { return ds.Sold(ctx, twinID+"1") })
		require.Equal(t, shown, links("asha"))
		do(func(ds storage.AgentDocuments, ctx context.Context) error { return ds.Sold(ctx, twinID) })
		require.Empty(t, links("asha").AlsoRegistered)
		require.Equal(t, shown.Domains, links("asha").Domains)
		require.Equal(t, []string{ashasID}, due())

		put("0xa")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { // the profile is edited
			p, err := tx.Profiles().ForUpdate(ctx, "asha")
			if err == nil {
				_, err = tx.Profiles().Put(ctx, p)
			}
			return err
		})
		require.Equal(t, shown, links("asha"))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			e, err := tx.Enrolments().ByIdentity(ctx, ashasID)
			if err == nil {
				err = tx.Enrolments().End(ctx, "node", e, protocol.EndedByOwner)
			}
			return err
		})
		require.Empty(t, links("asha"))
		require.Empty(t, due())
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.False(t, must.Get(tx.AgentDocuments().TwinIn(ctx, "eip155:10:0xaa"))(t))
			return nil
		})
		enrols(t, db, "bina", ashasID, "0xb")
		require.Empty(t, links("bina"))
		put("0xa")
		require.Empty(t, links("bina"), "read for the owner before")
	})
}

// TestEvict_Documents keeps the readings of identities that profiles have longest.
func TestEvict_Documents(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		enrols(t, db, "asha", ashasID, "0xa")
		for i := range 4 {
			require.NoError(t, storage.Exec(t.Context(), db, `INSERT INTO agent_document (agent, uri, fault, failures, read_at, next_at) VALUES (?, '', '', 0, 9, 9)`,
				fmt.Sprint("eip155:1:0xaa:9", i)))
			require.NoError(t, storage.Exec(t.Context(), db, `INSERT INTO agent_twin (id, agent, at) VALUES (?, ?, ?)`, fmt.Sprint("x", i), "a", i))
		}
		require.Positive(t, evict(t, db, storage.StockDocuments, storage.Cap{Rows: 1, Bytes: 1 << 20}))
		require.Positive(t, evict(t, db, storage.StockTwins, storage.Cap{Rows: 1, Bytes: 1 << 20}))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.AgentDocuments().ByAgent(ctx, ashasID))
		})
	})
}
