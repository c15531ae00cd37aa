package commit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamedBy(t *testing.T) {
	t.Parallel()
	const posts, feed, log, words = 1, 2, 4, 8
	p := newPlan(SQLite, []Buffer{
		{Insert: Insert{Into: `INSERT INTO post (seq) VALUES `, Row: `(?)`}},
		{Insert: Insert{Into: `INSERT INTO feed (seq, subject_id) VALUES `, Row: `(?, ?)`}, Tables: []string{"tally"}, Key: "subject_id", KeyAt: 1},
		{Insert: Insert{Into: `INSERT INTO log_waiting (seq) VALUES `, Row: `(?)`}, Tables: []string{"log", "stream"}},
		{Insert: Insert{Into: `INSERT INTO post_word (rowid, words) VALUES `, Row: `(?, ?)`}},
	}, nil)
	for text, want := range map[string]named{
		`SELECT 1`:                                       {},
		`SELECT 1 FROM post`:                             {all: posts},
		"SELECT 1 FROM\n\tpost\tp":                       {all: posts},
		`SELECT 1 FROM report, "post"`:                   {all: posts},
		`SELECT post.id FROM (SELECT * FROM post) post`:  {all: posts},
		`SELECT post_id FROM report`:                     {},
		`SELECT 1 FROM log l JOIN post p ON p.id = l.id`: {all: log | posts},
		`DELETE FROM log_waiting`:                        {all: log},
		`INSERT INTO post_word (post_word) VALUES (?)`:   {all: words},
		`LOCK TABLE profile_word`:                        {},
		`SELECT head FROM tally`:                         {all: feed},
		`UPDATE feed SET doc = ? WHERE subject_id = ?`:   {all: feed, byKey: feed},
		`SELECT subject_id FROM feed WHERE seq = ?`:      {all: feed},
		`UPDATE feed SET doc = ? WHERE subject_id = ? AND EXISTS (SELECT 1 FROM feed)`:  {all: feed},
		`UPDATE feed SET doc = ? WHERE subject_id = ? AND n < (SELECT head FROM tally)`: {all: feed},
	} {
		require.Equal(t, want, p.namedBy(text), text)
	}
}
