package commit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChangedBy(t *testing.T) {
	t.Parallel()
	const keys, rules = 1, 2
	p := newPlan(SQLite, nil, []Group{{Name: "keys", Tables: []string{"agent_key", "profile"}}, {Name: "rules", Tables: []string{"block", "profile"}}})
	for text, want := range map[string]held{
		`SELECT 1 FROM profile`:                                                      0,
		`SELECT 1 FROM profile WHERE handle = ? FOR UPDATE`:                          0,
		`UPDATE profile SET name = ?`:                                                keys | rules,
		"update\n\tprofile p set name = ?":                                           keys | rules,
		`INSERT INTO "agent_key" (thumbprint) VALUES (?)`:                            keys,
		`INSERT OR REPLACE INTO block (id) SELECT id FROM other`:                     rules,
		`INSERT INTO other (id) SELECT block FROM profile`:                           0,
		`INSERT INTO other (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET block = 1`: 0,
		`DELETE FROM block WHERE id = ?`:                                             rules,
		`DELETE FROM other WHERE id IN (SELECT id FROM block)`:                       0,
		`WITH x AS (DELETE FROM agent_key RETURNING handle) SELECT * FROM x`:         keys,
		`UPDATE other SET n = (SELECT count(*) FROM profile)`:                        0,
	} {
		require.Equal(t, want, p.changedBy(text), text)
	}
}
