package storage_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"stoa/storage"
	"stoa/storage/storagetest"
)

// A process that reaches PostgreSQL through a pooler names no statement. The pooler here
// gives its clients other process numbers, as poolers do.
func TestOpen_Pooler(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		if c.URL == "" {
			return
		}
		plain, err := storage.Open(t.Context(), c)
		require.NoError(t, err)
		require.True(t, storage.Direct(plain))
		require.NoError(t, plain.Close())

		server, err := pgx.ParseConfig(c.URL)
		require.NoError(t, err)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
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
		u, err := url.Parse(c.URL)
		require.NoError(t, err)
		u.Host, u.RawQuery = listener.Addr().String(), "sslmode=disable"
		c.URL = u.String()
		db, err := storage.Open(t.Context(), c)
		require.NoError(t, err)
		defer db.Close()
		require.False(t, storage.Direct(db))
		p := samplePost(start, 1)
		store(t, db, p)
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
