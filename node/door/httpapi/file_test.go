package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// deadlines is a connection whose deadlines can be read.
type deadlines struct {
	http.ResponseWriter
	read time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { return nil }

// TestUpload_LeastRate: who sends a byte now and then is cut, who sends steadily
// has the time it takes.
func TestUpload_LeastRate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		every time.Duration
		piece int
		cut   bool
	}{
		{"a byte each eight seconds", 8 * time.Second, 1, true},
		{"a kilobyte a second", time.Second, 1 << 10, true},
		{"sixteen kilobytes a second", time.Second, 16 << 10, false},
		{"all at once, and then a stop of fifteen seconds each", 15 * time.Second, 256 << 10, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := &deadlines{}
				u := &upload{body: bytes.NewReader(make([]byte, 1<<20)), control: http.NewResponseController(conn), op: protocol.ImportArchive.Operation, start: time.Now()}
				start, piece := time.Now(), make([]byte, tt.piece)
				var err error
				for err == nil {
					require.LessOrEqual(t, time.Until(u.due(time.Now())), fileGrace)
					got := 0
					for got < len(piece) && err == nil {
						var n int
						n, err = u.Read(piece[got:])
						got += n
						require.False(t, conn.read.After(time.Now().Add(fileGrace)))
					}
					time.Sleep(tt.every)
				}
				if !tt.cut {
					require.ErrorIs(t, err, io.EOF)
					return
				}
				require.Equal(t, protocol.InvalidRequest, protocol.CodeOf(err))
				require.Less(t, time.Since(start), 2*fileGrace)
			})
		})
	}
	u := &upload{body: iotest.ErrReader(io.ErrUnexpectedEOF), control: http.NewResponseController(&deadlines{}), op: protocol.ImportArchive.Operation,
		start: time.Now().Add(-2 * time.Hour), got: 1 << 40}
	require.ErrorContains(t, must.Err(u.Read(make([]byte, 1))), "longer than an hour")
}
