package storage

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// notMoved are the tables, and columns as table.column, that a move to the other engine does not copy, and why.
var notMoved = map[string]string{
	"goose_db_version":   "each database has its own",
	"compatible":         "each database has its own",
	"generation":         "counts changes for the caches of running processes: begins again",
	"tally":              "the counter of the feed, which is the sequence feed_number on PostgreSQL: set",
	"log_waiting":        "on PostgreSQL only; empty, because what waits is numbered first",
	"post_word":          "rebuilt from the posts",
	"item_word":          "rebuilt from the items",
	"profile_word":       "on SQLite only; rebuilt from the profiles",
	"profile_rank.words": "on PostgreSQL only; rebuilt from the profiles",
	"remote_agent_word":  "rebuilt from the agents of other nodes",
	"ard_entry_word":     "rebuilt from the entries of other directories",
}

// seeded are the tables in which a new database has rows, which those of the source replace.
var seeded = []string{"follower_count", "job", "profile_clock", "secret"}

// A movedTable is a table as both engines have it.
type movedTable struct {
	name    string
	columns []string          // by name
	types   map[string]string // of PostgreSQL, by column
	key     []string
	counter string // the column that the database numbers, "" for none
	empty   []string
}

// where leaves out the rows that belong to the database and not to the node.
func (t *movedTable) where() string {
	if t.name == "secret" {
		return ` WHERE name NOT IN ('` + settingPrefix + movingSetting + `', '` + settingPrefix + movedSetting + `')`
	}
	return ` WHERE TRUE`
}

// A schema is the tables of a database: their columns with types, and what else is known.
type schema struct {
	columns map[string]map[string]string
	key     map[string][]string
	counter map[string]string
}

const (
	sqliteColumns = `SELECT l.name, x.name, x.type FROM pragma_table_list l JOIN pragma_table_xinfo(l.name) x
		WHERE l.schema = 'main' AND l.type IN ('table', 'virtual') AND l.name NOT LIKE 'sqlite~_%' ESCAPE '~'`
	// The primary key, or the columns of a unique index where there is none.
	sqliteKeys = `SELECT l.name, x.name FROM pragma_table_list l JOIN pragma_table_xinfo(l.name) x
			WHERE l.schema = 'main' AND l.type = 'table' AND x.pk > 0 ORDER BY l.name, x.pk`
	sqliteUnique = `SELECT l.name, x.name FROM pragma_table_list l JOIN pragma_index_list(l.name) i JOIN pragma_index_info(i.name) x
			WHERE l.schema = 'main' AND l.type = 'table' AND i."unique" AND i.origin = 'c' AND NOT i.partial
			AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(l.name) k WHERE k.pk > 0) ORDER BY l.name, x.seqno`
	postgresColumns = `SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace AND a.attnum > 0 AND NOT a.attisdropped`
	postgresCounters = `SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace AND a.attidentity <> '' AND NOT a.attisdropped`
)

func (db *DB) readSchema(ctx context.Context, c *sql.Conn) (s schema, err error) {
	s = schema{map[string]map[string]string{}, map[string][]string{}, map[string]string{}}
	each := func(query string, columns int, add func(v [3]string)) {
		if err != nil {
			return
		}
		var rows *sql.Rows
		if rows, err = c.QueryContext(ctx, query); err != nil {
			return
		}
		defer rows.Close()
		for rows.Next() {
			var v [3]string
			if err = rows.Scan([]any{&v[0], &v[1], &v[2]}[:columns]...); err != nil {
				return
			}
			add(v)
		}
		err = rows.Err()
	}
	column := func(v [3]string) {
		if s.columns[v[0]] == nil {
			s.columns[v[0]] = map[string]string{}
		}
		s.columns[v[0]][v[1]] = v[2]
	}
	if db.engine == enginePostgres {
		each(postgresColumns, 3, column)
		each(postgresCounters, 2, func(v [3]string) { s.counter[v[0]] = v[1] })
		return s, err
	}
	each(sqliteColumns, 3, column)
	key := func(v [3]string) {
		if !slices.Contains(s.key[v[0]], v[1]) {
			s.key[v[0]] = append(s.key[v[0]], v[1])
		}
	}
	each(sqliteKeys, 2, key)
	each(sqliteUnique, 2, key)
	return s, err
}

// matchSchemas finds the tables to move. What one engine alone has, or has otherwise, is an error unless notMoved says why.
func matchSchemas(lite, pg schema) (all []*movedTable, err error) {
	for _, name := range names(lite.columns, pg.columns) {
		if notMoved[name] != "" {
			continue
		}
		t := &movedTable{name: name, types: pg.columns[name], key: lite.key[name], counter: pg.counter[name]}
		for _, c := range names(lite.columns[name], pg.columns[name]) {
			switch {
			case notMoved[name+"."+c] != "":
				if pg.columns[name][c] != "" {
					t.empty = append(t.empty, c)
				}
			case !sameType(lite.columns[name][c], pg.columns[name][c]):
				return nil, fmt.Errorf("move: %s.%s is %q on SQLite and %q on PostgreSQL: a move cannot copy it", name, c, lite.columns[name][c], pg.columns[name][c])
			default:
				t.columns = append(t.columns, c)
			}
		}
		if len(t.key) == 0 {
			return nil, fmt.Errorf("move: the table %s has no key", name)
		}
		all = append(all, t)
	}
	return all, nil
}

func sameType(lite, pg string) bool {
	switch lite {
	case "INTEGER":
		return slices.Contains([]string{"bigint", "integer", "smallint", "boolean"}, pg)
	case "TEXT":
		return pg == "text"
	case "BLOB":
		return pg == "bytea"
	}
	return false
}

func (t *movedTable) list() string { return strings.Join(t.columns, ", ") }

func names[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
