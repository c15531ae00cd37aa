package storage

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeldBy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]held{
		`SELECT 1`:                                       0,
		`SELECT 1 FROM post`:                             heldPosts,
		"SELECT 1 FROM\n\tpost\tp":                       heldPosts,
		`SELECT 1 FROM report, "post"`:                   heldPosts,
		`SELECT post.id FROM (SELECT * FROM post) post`:  heldPosts,
		`SELECT post_id FROM report`:                     0,
		`DELETE FROM post_tag`:                           heldTags,
		`SELECT 1 FROM log l JOIN post p ON p.id = l.id`: heldLog | heldPosts,
		`INSERT INTO post_word (post_word) VALUES (?)`:   heldWords,
		`LOCK TABLE profile_word`:                        0,
		`SELECT head FROM tally`:                         heldFeed | heldNews,
		`UPDATE feed SET doc = ? WHERE subject_id = ?`:   heldFeed | bySubject,
		`SELECT subject_id FROM feed WHERE seq = ?`:      heldFeed,
		`UPDATE feed SET doc = ? WHERE subject_id = ? AND EXISTS (SELECT 1 FROM feed)`: heldFeed,
	} {
		require.Equal(t, want, heldBy(text), text)
	}
}

// Whatever a batch holds back is of a table that statements settle, and no model of
// bun, whose statements do not, is of such a table.
func TestHeldIn(t *testing.T) {
	t.Parallel()
	for _, e := range []engine{engineSQLite, enginePostgres} {
		for i, r := range []insert{postInsert, tagInsert, writerInsert, logInsert, postWords.insert(e), feedInsert, newsInsert} {
			require.Equal(t, held(1<<i), heldBy(strings.Fields(r.into)[2]), r.into)
		}
	}
	require.Equal(t, heldLog, heldBy(strings.Fields(waitingInsert.into)[2]))

	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	models := 0
	for _, name := range files {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, table := range regexp.MustCompile(`bun:"table:(\w+)`).FindAllStringSubmatch(string(source), -1) {
			require.Zero(t, heldIn[table[1]], "%s: %s", name, table[1])
			models++
		}
	}
	require.NotZero(t, models)
}
