package storage

import (
	"context"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

// A waits is what of one kind waits for the owner of a profile.
type waits struct {
	Handle string
	What   protocol.WaitKind
	N      int       `db:"n"`
	Until  time.Time `db:",null"`
}

// boardOf and tillOf are the board and the till of the profile p.
const (
	boardOf = `(SELECT id FROM attention_board WHERE handle = p.handle)`
	tillOf  = `(SELECT id FROM till WHERE handle = p.handle)`
)

// waiting are the rules of what waits for the owner of the profile p: which rows, and when the first of them ends; "" for never.
var waiting = []struct {
	what       protocol.WaitKind
	rows, ends string
}{
	{protocol.PaymentsWait, `bid WHERE board = ` + boardOf + ` AND state = 'claimed'`, `hold_until`},
	{protocol.DisputesWait, `bid WHERE board = ` + boardOf + ` AND dispute IS NOT NULL`, ``},
	{protocol.RefundsWait, `refund WHERE board = ` + boardOf + ` AND state <> 'done' AND state IN ('manual', 'failed')`, ``},
	{protocol.OrdersWait, `shop_order WHERE till = ` + tillOf + ` AND state = 'awaiting_payment' AND (claimed OR account = '')`, `hold_until`},
	{protocol.OrdersWait, `shop_order WHERE till = ` + tillOf + ` AND state = 'paid'`, ``},
	{protocol.OrdersWait, `refund WHERE board = ` + tillOf + ` AND state <> 'done' AND state IN ('manual', 'failed')`, ``},
	{protocol.MeetingsWait, `meeting WHERE handle = p.handle AND state = 'submitted' AND shown`, `due_at`},
	{protocol.MessagesWait, `thread WHERE handle = p.handle AND unread > 0 AND messages > seen`, ``},
}

// waitsQuery reads what waits for the owners of n profiles. Of each kind it reads 100 rows at most.
func waitsQuery(n int) string {
	var parts []string
	for _, w := range waiting {
		ends := `NULL`
		if w.ends != "" {
			ends = `(SELECT min(` + w.ends + `) FROM ` + w.rows + `)`
		}
		parts = append(parts, `SELECT p.handle, '`+string(w.what)+`' AS what, (SELECT count(*) FROM (SELECT 1 FROM `+w.rows+` LIMIT 100) r) AS n, `+
			ends+` AS until FROM profile p WHERE p.handle IN (`+marks(n)+`)`)
	}
	return strings.Join(parts, ` UNION ALL `)
}

// Waits returns what waits for the owner of some profiles.
func (ps Profiles) Waits(ctx context.Context, handles []string) (all []protocol.Wait, err error) {
	if len(handles) == 0 {
		return nil, nil
	}
	var args []any
	for range waiting {
		for _, h := range handles {
			args = append(args, h)
		}
	}
	found, err := list[waits](ctx, ps.tx, waitsQuery(len(handles)), args...)
	for _, w := range found {
		if w.N == 0 {
			continue
		}
		at := slices.IndexFunc(all, func(x protocol.Wait) bool { return x.Handle == w.Handle && x.What == w.What })
		if at < 0 {
			at, all = len(all), append(all, protocol.Wait{Handle: w.Handle, What: w.What})
		}
		x := &all[at]
		x.Count = min(100, x.Count+w.N)
		if !w.Until.IsZero() && (x.Until == nil || w.Until.Before(*x.Until)) {
			x.Until = &w.Until
		}
	}
	return all, err
}
