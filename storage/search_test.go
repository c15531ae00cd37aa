package storage_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// hans are n characters that differ, each a word.
func hans(n int) string {
	s := make([]rune, n)
	for i := range s {
		s[i] = 0x4e00 + rune(i)
	}
	return string(s)
}

func TestListPosts_FullText(t *testing.T) {
	t.Parallel()
	texts := []string{
		"Hand-made PAPER from Jaipur",
		"Crème brûlée für Zoë in ＦＵＬＬ width",
		"जयपुर में हाथ से बना काग़ज़ चाहिए, दो सौ शीट",
		"हिन्दी की किताबें",
		"日本語の紙を探しています",
		"Привет, бумага ручной работы",
		"100 sheets OR NOT \"quoted\" paper* NEAR(x) col:on",
		"தமிழ் நூல்",
		"मुम्बई का चाँद, पण्डित जी का जन्म ₹५०० संस्कृत",
		"❤️love 1️⃣st ΟΔΟΣ a\u200eb\u200fc 42",
	}
	cases := []struct {
		q    string
		want []int
	}{
		{"paper", []int{6, 2, 0}}, {"PAPER jaipur", []int{2, 0}}, {"made hand", []int{0}}, {"pap", nil},
		{"creme brulee", []int{1}}, {"Crème", []int{1}}, {"zoe", []int{1}}, {"full", []int{1}},
		{"जयपुर", []int{2, 0}}, {"हाथ से", []int{2}}, {"कागज", []int{6, 2, 0}}, {"हिंदी", []int{3}}, {"मुंबई", []int{8}}, {"बम्बई", nil}, {"चांद", []int{8}},
		{"पंडित", []int{8}}, {"पण्डित", []int{8}}, {"जन्म", []int{8}}, {"जंम", []int{8}}, {"५००", []int{8}}, {"500", []int{8}}, {"संस्कृत", []int{8}},
		{"love", []int{9}}, {"❤️", nil}, {"1st", []int{9}}, {"οδος", []int{9}}, {"ΟΔΟΣ", []int{9}}, {"abc", []int{9}}, {"ab", nil}, {"٤٢", []int{9}},
		{strings.Repeat("紙", 200), []int{4}}, {hans(200), nil}, {strings.Repeat("﷽", 200), nil}, {"काग़ज़", []int{6, 2, 0}}, {"किताबें", []int{3}},
		{"किताब", nil}, {"हिन्दी", []int{3}}, {"हिन\u200dदी", []int{3}}, {"हिन्\u200dदी", []int{3}}, {"ह", nil},
		{"日本", []int{4}}, {"紙", []int{4}}, {"бумага", []int{5}}, {"ПРИВЕТ", []int{5}}, {"தமிழ்", []int{7}},
		{"not or", []int{6}}, {`"quoted"`, []int{6}}, {"paper*", []int{6, 2, 0}}, {"near x", []int{6}}, {"col:on", []int{6}}, {"-paper", []int{6, 2, 0}},
		{"paper AND nothing", []int{6}}, {"' OR 1=1 --", nil}, {"\ue000koffer", nil},
		{"!!!", nil}, {"\"", nil}, {"  ", nil}, {"***", nil}, {"()", nil}, {"😀", nil},
	}
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		ids := map[string]int{}
		for n, text := range texts {
			p := samplePost(start.Add(time.Duration(n)*time.Second), int64(n))
			p.Title, p.Body, p.Tags = text[:0]+"x"+string(rune('a'+n))+"y", text, nil
			store(t, db, p)
			ids[p.ID] = n
		}
		for _, c := range cases {
			var got []int
			for _, id := range walkBoard(t, db, protocol.BoardQuery{Q: c.q, Sort: protocol.SortNew}) {
				got = append(got, ids[id])
			}
			require.Equal(t, c.want, got, "%q", c.q)
		}
		require.Len(t, walkBoard(t, db, protocol.BoardQuery{Q: "xgy"}), 1, "the title is searched")
	})
}

// However a search is cut into steps, it finds the same.
func TestFind_Steps(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for n := range 40 {
				p := samplePost(start.Add(time.Duration(n)*time.Second), int64(n))
				p.Body = "common"
				if n%4 == 0 && n < 20 {
					p.Body = "common seldom"
				}
				if err := tx.Posts().Insert(ctx, p); err != nil {
					return err
				}
			}
			return nil
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, word := range []string{"common", "seldom", "absent"} {
				for _, limit := range []int{1, 3, 10, 50} {
					want := must.Get(storage.FindPosts(ctx, tx, []string{word}, math.MaxInt64, limit, 1000, 1000, 1000))(t)
					for _, s := range [][3]int{{5, 100, 10}, {5, 2, 10}, {5, 2, 1000}, {1, 0, 2}, {30, 5, 35}} {
						got := must.Get(storage.FindPosts(ctx, tx, []string{word}, math.MaxInt64, limit, s[0], s[1], s[2]))(t)
						require.Equal(t, want, got, "%s %d %v", word, limit, s)
						if len(want) > 1 { // from the middle
							got = must.Get(storage.FindPosts(ctx, tx, []string{word}, want[0], limit-1, s[0], s[1], s[2]))(t)
							require.Equal(t, want[1:], got[:len(want)-1], "%s %d %v", word, limit, s)
						}
					}
				}
			}
			return nil
		})
	})
}

// Whatever a visitor types, a search answers, on both engines with the same.
func FuzzListPosts_Q(f *testing.F) {
	for _, q := range []string{"paper", `"`, "'", `a" OR "b`, "-", "NEAR(", "हिन्दी", "\x00", "a\xffb", "\ue000v", "😀 x", "\\", "a & b | !c :*", "日本語"} {
		f.Add(q)
	}
	db := storagetest.Open(f)
	p := samplePost(start, 1)
	write(f, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().Insert(ctx, p) })
	f.Fuzz(func(t *testing.T, q string) {
		require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Posts().List(ctx, protocol.BoardQuery{Q: q, Kind: p.Kind})
			if err != nil {
				return err
			}
			if _, err = tx.Profiles().List(ctx, protocol.AgentQuery{Q: q, Tag: q, Capability: q}); protocol.CodeOf(err) == protocol.Validation {
				return nil // a phrase that is not closed, an operator without its value
			}
			return err
		}))
	})
}

func TestListProfiles(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		put := func(p *storage.StoredProfile) bool {
			return writes(t, db, func(ctx context.Context, tx *storage.Tx) (bool, error) { return tx.Profiles().Put(ctx, p) })
		}
		asha := &storage.StoredProfile{ERC8004: "eip155:1:0xabc:7", KeyHash: "kh", IdentityNote: "note", Draft: protocol.ProfileDraft{
			Handle: "asha", Name: "Asha", Kind: protocol.Person, Headline: "Dyes cloth", Regions: []string{"IN-RJ"}, Tags: []string{"dye"},
			Capabilities: []protocol.Capability{{ID: "dye-cloth", Name: "Dyeing", Description: "Indigo vats", Tags: []string{"indigo"}}},
			Needs:        []protocol.Need{{ID: "n1", Description: "wants alum"}}}}
		shop := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "paper-shop", Name: "काग़ज़ घर", Kind: protocol.Business,
			Regions: []string{"IN", "US-CA"}}}
		require.True(t, put(asha))
		require.True(t, put(shop))
		find := func(q protocol.AgentQuery) (handles []string) {
			q.Limit = 1
			for {
				p := reads(t, db, func(ctx context.Context, tx *storage.Tx) (storage.AgentPage, error) {
					return tx.Profiles().List(ctx, q)
				})
				for _, i := range p.Items {
					handles = append(handles, i.Draft.Handle)
				}
				if p.Next == nil {
					return handles
				}
				q.After = *p.Next
			}
		}
		both := []string{"paper-shop", "asha"}
		for _, c := range []struct {
			q    protocol.AgentQuery
			want []string
		}{
			{protocol.AgentQuery{}, both}, {protocol.AgentQuery{Kind: protocol.Person}, both[1:]}, {protocol.AgentQuery{Region: "IN"}, both},
			{protocol.AgentQuery{Region: "IN-RJ"}, both[1:]}, {protocol.AgentQuery{Region: "US"}, both[:1]}, {protocol.AgentQuery{Region: "US-CA"}, both[:1]},
			{protocol.AgentQuery{Tag: "dye"}, both[1:]}, {protocol.AgentQuery{Tag: "indigo"}, nil},
			{protocol.AgentQuery{Capability: "dye-cloth"}, both[1:]}, {protocol.AgentQuery{Capability: "indigo"}, both[1:]},
			{protocol.AgentQuery{Capability: "dye"}, nil},
			{protocol.AgentQuery{HasIdentity: ptr(true)}, both[1:]}, {protocol.AgentQuery{HasIdentity: ptr(false)}, both[:1]},
			{protocol.AgentQuery{Q: "alum"}, both[1:]}, {protocol.AgentQuery{Q: "काग़ज़"}, both[:1]}, {protocol.AgentQuery{Q: "cloth", Kind: protocol.Business}, nil},
			{protocol.AgentQuery{Q: "cloth", Kind: protocol.Person, Region: "IN", Tag: "dye", Capability: "indigo", HasIdentity: ptr(true)}, both[1:]},
			{protocol.AgentQuery{Q: "?!"}, nil},
		} {
			require.Equal(t, c.want, find(c.q), "%+v", c.q)
		}

		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, asha, must.Get(tx.Profiles().ByHandle(ctx, "asha"))(t))
			require.ErrorIs(t, must.Err(tx.Profiles().ByHandle(ctx, "nobody")), storage.ErrNotFound)
			n, err := tx.Profiles().Count(ctx)
			require.Equal(t, 2, n)
			return err
		})
		asha.Draft.Headline, asha.Draft.Tags = "Weaves", nil
		require.False(t, put(asha))
		require.Empty(t, find(protocol.AgentQuery{Q: `"dyes"`}))
		require.Empty(t, find(protocol.AgentQuery{Tag: "dye"}))
		require.Equal(t, both[1:], find(protocol.AgentQuery{Q: "weaves"}))

		shop.ERC8004 = "eip155:1:0xabc:7"
		err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Profiles().Put(ctx, shop)) })
		require.ErrorIs(t, err, storage.ErrExists)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "asha") })
		require.Empty(t, find(protocol.AgentQuery{Q: "weaves"}))
		require.Equal(t, both[:1], find(protocol.AgentQuery{}))
	})
}
