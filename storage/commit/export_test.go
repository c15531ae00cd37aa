package commit

import "time"

// Silence sets for how long a server may be silent.
func (db *DB) Silence(limit time.Duration) { db.reach.limit.Store(int64(limit)) }

// HeldUpAfter sets for how long the writer's server may be silent before those behind it are told so.
func (db *DB) HeldUpAfter(limit time.Duration) { db.heard.limit = limit }
