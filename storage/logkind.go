package storage

// A LogKind says what an entry of a board's log tells of a post or a bid.
type LogKind string

const (
	LogCreate  LogKind = "create"
	LogUpdate  LogKind = "update"
	LogDelete  LogKind = "delete"
	LogHide    LogKind = "hide"
	LogRestore LogKind = "restore"
)
