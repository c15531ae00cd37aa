package meeting

import (
	"context"
	"encoding/binary"
	"time"

	"stoa/protocol"
	"stoa/protocol/schedule"
	"stoa/protocol/sorting"
	"stoa/storage"
)

// staleAfter is how old busy times may be before they are marked: two readings failed.
const staleAfter = 3 * protocol.BusyFor

// busyOf returns the busy times of a person's calendars that touch a range, as they were read last. stale
// says that a calendar was not read for a while; after a day its times do not count any more.
func busyOf(ctx context.Context, tx *storage.Tx, handle string, from, to time.Time) (busy []schedule.Interval, stale bool, err error) {
	all, err := tx.Calendars().Busy(ctx, handle)
	for _, one := range all {
		age := tx.Now.Sub(one.ReadAt)
		stale = stale || age > staleAfter
		if age <= protocol.BusyKept {
			busy = append(busy, unpack(one.Spans, from, to)...)
		}
	}
	return busy, stale, err
}

// pack returns intervals, in any order, as those that do not touch: the seconds between them and their
// lengths, as varints.
func pack(spans []schedule.Interval) []byte {
	sorting.Stable(spans, func(a, b schedule.Interval) int { return a.Start.Compare(b.Start) })
	packed, last := []byte{}, int64(0)
	for i := 0; i < len(spans); {
		start, end := spans[i].Start.Unix(), spans[i].End.Unix()
		for i++; i < len(spans) && spans[i].Start.Unix() <= end; i++ {
			end = max(end, spans[i].End.Unix())
		}
		if start < last || end <= start {
			continue
		}
		packed = binary.AppendUvarint(packed, uint64(start-last))
		packed = binary.AppendUvarint(packed, uint64(end-start))
		last = end
	}
	return packed
}

// unpack returns the packed intervals that touch a range, in order.
func unpack(packed []byte, from, to time.Time) (spans []schedule.Interval) {
	first, end := from.Unix(), int64(0)
	for len(packed) > 0 {
		gap, n := binary.Uvarint(packed)
		length, k := binary.Uvarint(packed[max(n, 0):])
		if n <= 0 || k <= 0 {
			return spans
		}
		packed = packed[n+k:]
		start := end + int64(gap)
		if end = start + int64(length); end <= first {
			continue
		}
		i := schedule.Interval{Start: time.Unix(start, 0).UTC(), End: time.Unix(end, 0).UTC()}
		if !i.Start.Before(to) {
			return spans
		}
		spans = append(spans, i)
	}
	return spans
}
