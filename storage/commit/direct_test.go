package commit_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage/commit"
)

// A process that reaches PostgreSQL through a pooler names no statement. The pooler here
// gives its clients other process numbers, as poolers do.
func TestOpen_Pooler(t *testing.T) {
	eachConfig(t, func(t *testing.T, c commit.Config) {
		if c.URL == "" {
			return
		}
		plain := must.Get(commit.Open(t.Context(), c))(t)
		require.True(t, plain.Direct())
		require.NoError(t, plain.Close())

		server := must.Get(pgx.ParseConfig(c.URL))(t)
		listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer listener.Close()
		go func() {
			for {
				client, err := listener.Accept()
				if err != nil {
					return
				}
				go pool(client, server)
			}
		}()
		u := must.Get(url.Parse(c.URL))(t)
		u.Host, u.RawQuery = listener.Addr().String(), "sslmode=disable"
		c.URL = u.String()
		c.Migrate = func(context.Context, commit.Engine, *sql.DB) error { return nil }
		db := must.Get(commit.Open(t.Context(), c))(t)
		defer db.Close()
		require.False(t, db.Direct())
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return hold(tx, 1, "asha") }))
		for range 2 {
			require.ErrorIs(t, db.Lookup(t.Context(), `SELECT owner FROM thing WHERE n = ?`, 2).Scan(new(string)), commit.ErrNotFound)
		}
	})
}

// pool connects a client to a server and changes the number of the process in
// BackendKeyData, the message K.
func pool(client net.Conn, server *pgx.ConnConfig) {
	defer client.Close()
	network, address := pgconn.NetworkAddress(server.Host, server.Port)
	conn, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer conn.Close()
	go io.Copy(conn, client)
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		if head[0] == 'K' {
			binary.BigEndian.PutUint32(body, 1)
		}
		if _, err := client.Write(append(append([]byte{}, head...), body...)); err != nil {
			return
		}
	}
}
