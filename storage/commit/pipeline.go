package commit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// A pipeline collects statements of which no result is needed before the next one, and
// sends them to PostgreSQL together, so that they take one round trip. After one that
// fails the server runs none of the rest.
type pipeline struct{ batch pgx.Batch }

// exec appends a statement. It keeps no reference to args, and reports no changed rows.
func (p *pipeline) exec(_ context.Context, query string, args ...any) (int64, error) {
	p.batch.Queue(Postgres.rebind(query), slices.Clone(args)...)
	return 0, nil
}

// query appends a statement whose rows read gets.
func (p *pipeline) query(query string, args []any, read func(pgx.Rows) error) {
	p.batch.Queue(Postgres.rebind(query), args...).Query(read)
}

func (p *pipeline) len() int { return p.batch.Len() }

// send runs the statements and returns how many succeeded before the first that did not.
func (p *pipeline) send(ctx context.Context, c *conn) (done int, err error) {
	e := c.bun.Conn.Raw(func(raw any) error {
		results := raw.(*stdlib.Conn).Conn().SendBatch(ctx, &p.batch)
		for _, q := range p.batch.QueuedQueries {
			if q.Fn != nil {
				err = q.Fn(results)
			} else {
				_, err = results.Exec()
			}
			if err != nil {
				text, _, _ := strings.Cut(q.SQL, "(")
				err = fmt.Errorf("%s: %w", strings.TrimSpace(text), err)
				break
			}
			done++
		}
		if closing := results.Close(); err == nil {
			err = closing
		}
		return nil
	})
	if err == nil {
		err = e
	}
	return done, err
}
