package commit

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stoa/protocol"
)

// unavailableEvery is how often at most the log says that the database is unavailable.
const unavailableEvery = time.Second

// Available converts the error of an unreachable database to overloaded, which
// callers answer with 503 and Retry-After, and returns others unchanged. A server
// that restarts closes its connections, refuses new ones, and then answers that it
// is starting up.
func (db *DB) Available(ctx context.Context, err error) error {
	if err == nil || db.engine != Postgres || ctx.Err() != nil || !unreachable(err) {
		return err
	}
	now := db.now().UnixMilli()
	if last := db.unavailableAt.Load(); now-last >= unavailableEvery.Milliseconds() && db.unavailableAt.CompareAndSwap(last, now) {
		cause := err
		if e, ok := errors.AsType[*protocol.Error](err); ok && e.Err != nil {
			cause = e.Err
		}
		db.log.Error("the database is unavailable", "err", cause)
	}
	return Overloaded("the database is unavailable; try again in a moment", err)
}

// readOnlyServer is the code of a write that a standby refuses.
const readOnlyServer = "25006"

func isStandby(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == readOnlyServer
}

func unreachable(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		// Connection exceptions; no memory, disk or connections left; cancelled, shutdown, crash, start; an error of the system;
		// a lock or an idle transaction that took too long for the server.
		return slices.Contains([]string{"08", "53", "57", "58"}, e.Code[:min(2, len(e.Code))]) ||
			slices.Contains([]string{readOnlyServer, "25P03", "55P03"}, e.Code)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	for _, lost := range []error{driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, errAway, errSilent, errHeldUp} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return strings.Contains(err.Error(), "conn closed") // pgx has no value for it
}
