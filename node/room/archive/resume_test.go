package archive_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/room/archive"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func archiveFile(t testing.TB, raw []byte) *os.File {
	f := must.Get(os.Create(t.TempDir() + "/archive"))(t)
	t.Cleanup(func() { f.Close() })
	must.Get(f.Write(raw))(t)
	return f
}

// arrived says what a node has of a profile: nothing at all is "".
func arrived(t testing.TB, n *nodetest.House, handle string) (what string) {
	require.NoError(t, n.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.Profiles().ByHandle(ctx, handle); err == nil {
			what += "profile "
		}
		posts := must.Get(tx.Posts().ListOwn(ctx, handle, 100, ""))(t)
		all := map[string]int{"posts": len(posts.Items)}
		for after := posts.Next; after != nil; after = posts.Next {
			posts = must.Get(tx.Posts().ListOwn(ctx, handle, 100, *after))(t)
			all["posts"] += len(posts.Items)
		}
		for after, more := "", true; more; {
			threads := must.Get(tx.Threads().List(ctx, handle, "", 100, after))(t)
			all["threads"] += len(threads.Items)
			for _, thread := range threads.Items {
				messages := must.Get(tx.Threads().MessagesFrom(ctx, thread.ID, 1, protocol.MaxThreadMessages))(t)
				require.Len(t, messages, thread.Messages, "a thread and its messages are one")
			}
			if more = threads.Next != nil; more {
				after = *threads.Next
			}
		}
		for _, kind := range []string{"posts", "threads"} {
			if all[kind] > 0 {
				what += fmt.Sprintf("%d %s ", all[kind], kind)
			}
		}
		return nil
	}))
	return what
}

// many makes an archive of asha larger: so many more posts and threads, each with
// ids of its own.
func many(t testing.TB, raw []byte, posts, threads int) []byte {
	at := time.Now().Add(-24 * time.Hour)
	return forged(t, raw, func(name, body string) string {
		lines := strings.SplitAfter(body, "\n")
		switch name {
		case "posts.ndjson":
			for i := range posts {
				p := must.JSON[map[string]any]([]byte(lines[0]))(t)
				uri := p["uri"].(string)
				id := protocol.NewID(protocol.PostID, at.Add(time.Duration(i)*time.Millisecond))
				delete(p, "statement")
				p["id"], p["uri"], p["title"] = id, strings.Replace(uri, p["id"].(string), id, 1), fmt.Sprintf("Post number %d", i)
				line := must.Get(json.Marshal(p))(t)
				body += string(line) + "\n"
			}
		case "threads.ndjson":
			begin := strings.LastIndex(body, `{"thread"`)
			thread := body[begin:]
			for i := range threads {
				more := thread
				for _, prefix := range []string{protocol.ThreadID, protocol.MessageID} {
					for _, id := range nodetest.TypeID.FindAllString(thread, -1) {
						if strings.HasPrefix(id, prefix) {
							more = strings.ReplaceAll(more, id, protocol.NewID(prefix, at.Add(time.Duration(i)*time.Millisecond)))
						}
					}
				}
				body += more
			}
		}
		return body
	})
}

// vouched is an import in the operator's name, who answers for the archive.
func vouched(progress archive.Progress) archive.Order {
	return archive.Order{By: protocol.Caller{Standing: protocol.Operator}, Limits: archive.OperatorLimits, Vouch: true, Progress: progress}
}

// TestArchive_GivesWay: others write and read while an archive is being imported,
// and see of it what is there already; nobody exports or imports it meanwhile.
func TestArchive_GivesWay(t *testing.T) {
	t.Parallel()
	one := nodetest.NewMover(t)
	settle(one)
	raw := export(one, map[string]any{"handle": "asha"})
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Start(t, change)
		middle := 0
		order := vouched(func(string, int) {
			middle++
			if middle > 1 {
				return
			}
			require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Settings().Put(ctx, "x", "y") }), "others write")
			part := arrived(t, h, "asha")
			require.Contains(t, part, "profile ")
			require.NotContains(t, part, "1203 posts")
			_, err := h.Archive.Export(t.Context(), protocol.Caller{Standing: protocol.Operator}, protocol.ExportRequest{Owned: nodetest.Owned("asha")})
			require.Equal(t, protocol.Overloaded, protocol.CodeOf(err), "%v", err)
			_, err = h.Archive.Read(t.Context(), archiveFile(t, raw), vouched(nil))
			require.Equal(t, protocol.Overloaded, protocol.CodeOf(err), "%v", err)
		})
		file := archiveFile(t, many(t, raw, 1200, 3))
		dry := order
		dry.DryRun = true
		dry.Progress = nil
		said := must.Get(h.Archive.Read(t.Context(), file, dry))(t)
		require.Empty(t, arrived(t, h, "asha"))
		report := must.Get(h.Archive.Read(t.Context(), file, order))(t)
		require.Positive(t, middle)
		require.Equal(t, count(1203, 0, 0), report.Posts)
		require.Equal(t, count(5, 0, 0), report.Threads)
		said.DryRun = false
		require.Equal(t, report, said, "a dry run says what happens")
		require.Equal(t, "profile 1203 posts 5 threads ", arrived(t, h, "asha"))
		require.NoError(t, h.DB.Check(t.Context()))
	})
}

// TestArchive_GoesOn: an import that broke off after it had begun is finished by
// the node, as it was decided in the beginning; one whose profile is deleted ends.
func TestArchive_GoesOn(t *testing.T) {
	t.Parallel()
	one := nodetest.NewMover(t)
	settle(one)
	raw := export(one, map[string]any{"handle": "asha", "passphrase": passphrase})
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		n := nodetest.Start(t, change)
		broken := errors.New("broken")
		room := *n.Archive
		n.Archive.Nodes = func(context.Context, string) (key.Set, error) { // what was decided is not asked again
			return key.Set{}, errors.New("asked again")
		}
		room.Watch = func(context.Context, *storage.Tx, *storage.StoredThread) error { return broken }
		order := vouched(nil)
		order.Passphrase, order.Vouch = passphrase, false
		_, err := room.Read(t.Context(), archiveFile(t, raw), order)
		require.ErrorIs(t, err, broken)
		require.Equal(t, protocol.Overloaded, protocol.CodeOf(err))
		require.Contains(t, arrived(t, n, "asha"), "profile ")
		require.Eventually(t, func() bool { return arrived(t, n, "asha") == "profile 3 posts 2 threads " }, time.Minute, 50*time.Millisecond)
		require.NoError(t, n.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			require.True(t, must.Get(tx.Posts().List(ctx, protocol.BoardQuery{Q: "yarn"}))(t).Items[0].Author.Verified, "by the key that came along")
			return nil
		}))

		require.NoError(t, n.Admin().DeleteProfile(t.Context(), "asha")) // with its threads
		order.As = "asha-two"
		require.ErrorIs(t, must.Err(room.Read(t.Context(), archiveFile(t, raw), order)), broken)
		require.NoError(t, n.Admin().DeleteProfile(t.Context(), "asha-two"))
		require.Eventually(t, func() bool {
			var waiting int
			require.NoError(t, n.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				jobs, err := tx.Jobs().List(ctx, storage.JobWaiting, "", 100, "")
				for _, j := range jobs.Items {
					if j.Kind == storage.ImportJob {
						waiting++
					}
				}
				return err
			}))
			return waiting == 0
		}, time.Minute, 50*time.Millisecond)
		require.Empty(t, arrived(t, n, "asha-two"))
		require.NoError(t, n.DB.Check(t.Context()))
	})
}

// TestArchive_OwnPosts: who has moved finds the posts that came along among their
// own, with where they come from. They are taken back where they were made; the
// next archive from there takes the copies back.
func TestArchive_OwnPosts(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		one, two := nodetest.NewMover(t), nodetest.NewMover(t, change)
		_, posts := settle(one)
		raw := export(one, map[string]any{"handle": "asha"})
		host := strings.TrimPrefix(one.Base, "http://")
		must.Get(two.Imports(raw, nil))(t)
		var here protocol.Post
		secret := two.TokenOf("asha", "t")
		require.NoError(t, two.CallWith(secret, protocol.PostToBoard.Operation, map[string]any{"kind": "offer", "title": "From here", "body": "b"}, nil, &here))

		var list []protocol.OwnPost
		for after, more := "", true; more; {
			var page protocol.Page[protocol.OwnPost]
			args := map[string]any{"handle": "asha", "limit": 1}
			if after != "" {
				args["after"] = after
			}
			require.NoError(t, two.Call(protocol.ListOwnPosts.Operation, args, nil, &page))
			list = append(list, page.Items...)
			if more = page.Next != nil; more {
				after = *page.Next
			}
		}
		require.Len(t, list, 4)
		require.Equal(t, here.ID, list[0].ID)
		require.Nil(t, list[0].Node)
		require.Equal(t, protocol.Deleted, list[1].State)
		for i, want := range []protocol.Post{posts[1], posts[0]} {
			require.Equal(t, want.URI, list[2+i].URI)
			require.Equal(t, want.Title, list[2+i].Title)
			require.Equal(t, host, *list[2+i].Node)
			require.Equal(t, protocol.Visible, list[2+i].State)
		}
		var others protocol.Page[protocol.OwnPost]
		require.NoError(t, two.Call(protocol.ListOwnPosts.Operation, map[string]any{"handle": "home"}, nil, &others))
		require.Empty(t, others.Items)

		err := two.Call(protocol.DeleteOwnPost.Operation, map[string]any{"handle": "asha", "id": list[3].ID}, nil, nil)
		require.Equal(t, protocol.Forbidden, protocol.CodeOf(err))
		require.ErrorContains(t, err, posts[0].URI)
		require.ErrorContains(t, err, "a new archive")

		// An older archive, or one that is not signed by that node, takes nothing back.
		taken := func(report protocol.ImportReport, err error) int {
			require.NoError(t, err)
			require.Equal(t, "kept", report.Profile)
			var page protocol.Page[protocol.OwnPost]
			require.NoError(t, two.Call(protocol.ListOwnPosts.Operation, map[string]any{"handle": "asha"}, nil, &page))
			n := 0
			for _, p := range page.Items {
				if p.State == protocol.Deleted {
					n++
				}
			}
			return n
		}
		require.Equal(t, 1, taken(two.Imports(raw, nil)))
		wiped := forged(t, raw, in(t, "posts.ndjson", `"state":"visible"`, `"state":"deleted"`))
		require.Equal(t, 1, taken(two.Imports(wiped, nil)))
		report := must.Get(two.Imports(wiped, map[string]any{"as": "asha-two"}))(t)
		require.Contains(t, strings.Join(report.Notes, "\n"), "is not valid")
		require.NoError(t, two.Call(protocol.ListOwnPosts.Operation, map[string]any{"handle": "asha-two"}, nil, &others))
		require.Empty(t, others.Items, "an archive that is not signed makes nobody's posts one's own")
		require.NoError(t, one.Call(protocol.DeleteOwnPost.Operation, map[string]any{"handle": "asha", "id": posts[0].ID}, nil, nil))
		report, err = two.Imports(export(one, map[string]any{"handle": "asha"}), nil)
		require.Equal(t, 2, taken(report, err))
		require.Contains(t, strings.Join(report.Notes, "\n"), "were deleted on")
		require.NoError(t, two.DB.Check(t.Context()))
	})
}
