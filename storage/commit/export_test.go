package commit

// Direct reports whether PostgreSQL is asked by named statements.
func (db *DB) Direct() bool { return db.direct }
