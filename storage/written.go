package storage

import (
	"context"

	"stoa/protocol"
)

// What a profile of this node wrote to others: threads that it began, bids on other boards, meeting requests. Their tables have its handle
// in the column writer_handle.

const writtenBy = `WHERE writer_handle = ? AND id < ? ORDER BY id DESC LIMIT ?`

// Written returns the threads that a profile began with others, newest first.
func (ts Threads) Written(ctx context.Context, handle string, limit int, after string) (protocol.Page[StoredThread], error) {
	return newest[StoredThread](ctx, ts.tx, "written threads", "id", limit, after, threadTable.from+writtenBy, handle)
}

// Written returns the bids that a profile made, newest first.
func (bs Bids) Written(ctx context.Context, handle string, limit int, after string) (protocol.Page[StoredBid], error) {
	return newest[StoredBid](ctx, bs.tx, "written bids", "id", limit, after, bidTable.from+writtenBy, handle)
}

// Written returns the meeting requests that a profile made, newest first.
func (ms Meetings) Written(ctx context.Context, handle string, limit int, after string) (protocol.Page[StoredMeeting], error) {
	return newest[StoredMeeting](ctx, ms.tx, "written meetings", "id", limit, after, meetingTable.from+writtenBy, handle)
}
