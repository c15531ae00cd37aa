package storage

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"

	"github.com/stretchr/testify/require"
)

// A SampleDoc is a document.
type SampleDoc struct {
	Names []string `json:"names"`
}

type sampleBase struct {
	ID      string
	Comment string // hidden by that of sample
}

type sample struct {
	sampleBase
	Comment   string `db:"note"`
	BidAt     time.Time
	FreeAt    time.Time `db:",null"`
	EndedAt   *time.Time
	State     protocol.BidState
	Slot      int     `db:"slot_no,null"`
	Dispute   *string // nil and "" are different
	TokenHash [32]byte
	Key, Doc  []byte
	Sealed    []byte `db:",null"`
	Visitor   string `db:",null,blob"`
	Head      []byte `db:",text"`
	Open      bool
	Count     uint32
	Tags      []string
	SampleDoc `db:"more"`
	Other     SampleDoc
	Names     string `db:"-"`
	Elsewhere string `db:",read"`
	LogURL    string
}

// What a row is stored as is what it is read as, and what is empty is NULL where the tag says so.
func TestRow(t *testing.T) {
	t.Parallel()
	db := must.Get(Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "stoa.db")}))(t)
	defer db.Close()
	rows := tableOf[sample]("sample")
	require.NotContains(t, rows.columns, "elsewhere")
	require.Contains(t, rows.columnsOf("s."), "s.log_url, s.id")
	at := time.UnixMilli(1_700_000_000_000).UTC()
	none := ""
	full := sample{sampleBase: sampleBase{ID: "b", Comment: "kept in no other column"}, Comment: "note", BidAt: at, FreeAt: at, EndedAt: &at,
		State: protocol.BidLive, Slot: 3, Dispute: &none, TokenHash: [32]byte{1, 2}, Key: []byte("k"), Doc: []byte("d"), Sealed: []byte("s"), Visitor: "v\xff",
		Head: []byte("[]"), Open: true, Count: 7, Tags: []string{"x"}, SampleDoc: SampleDoc{[]string{"y"}}, Other: SampleDoc{[]string{"z"}}, LogURL: "https://x"}
	require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		require.NoError(t, tx.exec(ctx, `CREATE TABLE sample (id TEXT PRIMARY KEY, comment TEXT, note TEXT, bid_at INTEGER, free_at INTEGER, ended_at INTEGER,
			state TEXT, slot_no INTEGER, dispute TEXT, token_hash BLOB, key BLOB NOT NULL, doc BLOB NOT NULL, sealed BLOB, visitor BLOB, head TEXT, open INTEGER,
			count INTEGER, tags TEXT, more TEXT, other TEXT, log_url TEXT) STRICT`))
		require.NoError(t, rows.insert(ctx, tx, &full))
		empty := sample{sampleBase: sampleBase{ID: "a"}}
		require.NoError(t, rows.create(ctx, tx, &empty))
		require.ErrorIs(t, rows.create(ctx, tx, &empty), ErrExists)
		found := must.Get(list[sample](ctx, tx, rows.from+`ORDER BY id DESC`))(t)
		require.Equal(t, full, found[0])
		require.Equal(t, []string{}, found[1].Tags)
		empty.Head, empty.Tags = []byte{}, []string{}
		require.Equal(t, empty, found[1])
		nulls, err := find[int](ctx, tx, `SELECT count(*) FROM sample WHERE id = 'a' AND free_at IS NULL AND slot_no IS NULL AND sealed IS NULL AND visitor IS NULL
			AND ended_at IS NULL AND dispute IS NULL AND bid_at = 0 AND tags = '[]'`)
		require.NoError(t, err)
		require.Equal(t, 1, nulls)
		full.Slot, full.Comment, full.State = 4, "changed", protocol.BidHeld
		require.NoError(t, rows.update(ctx, tx, &full, "id", "slot_no"))
		require.NoError(t, rows.put(ctx, tx, &full, "id", "note"))
		now := must.Get(find[sample](ctx, tx, rows.from+`WHERE id = 'b'`))(t)
		full.State = protocol.BidLive
		require.Equal(t, full, now)
		full.ID = "c"
		require.ErrorIs(t, rows.update(ctx, tx, &full, "id", "slot_no"), ErrNotFound)
		require.Equal(t, []time.Time{{}, at}, must.Get(list[time.Time](ctx, tx, `SELECT bid_at FROM sample ORDER BY id`))(t))
		_, err = find[sample](ctx, tx, `SELECT id, 1 AS more_than_it_has FROM sample`)
		require.ErrorContains(t, err, "has no member for the column more_than_it_has")
		require.ErrorContains(t, must.Err(find[sample](ctx, tx, `SELECT 'x' AS bid_at`)), "bid_at")
		p := must.Get(newest[sample](ctx, tx, "samples", "id", 1, "", rows.from+`WHERE id < ? ORDER BY id DESC LIMIT ?`))(t)
		require.Equal(t, "b", p.Items[0].ID)
		p = must.Get(newest[sample](ctx, tx, "samples", "id", 1, *p.Next, rows.from+`WHERE id < ? ORDER BY id DESC LIMIT ?`))(t)
		require.Equal(t, "a", p.Items[0].ID)
		require.Nil(t, p.Next)
		return nil
	}))
}
