package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/node"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
)

const (
	walkLimit   = 7    // of a page, so that no list is a whole number of pages
	walkRows    = 24   // there are more than this many of everything that is listed
	walkWriters = 8    // write while the lists are walked
	walkWrites  = 1200 // of all writers together
)

// TestWalks walks every listing, found by its types, while eight writers write,
// at both processes of a deployment by turns: what was there when the walk began
// comes once, in its order; nothing comes twice (contract §1).
func TestWalks(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		w := newWalkWorld(t, change)
		before := map[string][]string{}
		for _, op := range pagedOperations() {
			before[op.Name] = w.walk(op, w.houses[:1])
			require.Greater(t, len(before[op.Name]), 3*walkLimit, "%s has several pages", op.Name)
			require.Equal(t, slices.Compact(slices.Sorted(slices.Values(before[op.Name]))), slices.Sorted(slices.Values(before[op.Name])), "%s: nothing twice", op.Name)
		}
		stop := w.write()
		defer stop()
		require.Eventually(t, func() bool { return w.written.Load() > 0 }, time.Minute, time.Millisecond, "they write")
		for _, op := range pagedOperations() {
			got := w.walk(op, w.houses)
			seen := map[string]bool{}
			for _, key := range got {
				require.False(t, seen[key], "%s repeats %s", op.Name, key)
				seen[key] = true
			}
			old := slices.DeleteFunc(got, func(key string) bool { return !slices.Contains(before[op.Name], key) })
			require.Equal(t, before[op.Name], old, "%s skips or turns over what was there", op.Name)
		}
	})
}

// pagedOperations are the operations whose result is a page, or holds one.
func pagedOperations() (list []*protocol.Operation) {
	for _, op := range protocol.Operations() {
		if op.Doors&protocol.HTTP != 0 && pageOf(op.Out) {
			list = append(list, op)
		}
	}
	return list
}

func pageOf(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	if strings.HasPrefix(t.Name(), "Page[") {
		return true
	}
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return f.Type.Kind() == reflect.Struct && strings.HasPrefix(f.Type.Name(), "Page[")
	})
}

// walk follows a listing to its end, a page at each house in turn, and returns
// the names of the items.
func (w *walkWorld) walk(op *protocol.Operation, houses []*nodetest.House) (keys []string) {
	w.t.Helper()
	args := map[string]any{"limit": walkLimit}
	for name, v := range w.about(op) {
		args[name] = v
	}
	for i := 0; ; i++ {
		items, next := page(w.t, w.list(houses[i%len(houses)], op, args))
		require.LessOrEqual(w.t, len(items), walkLimit)
		for _, item := range items {
			keys = append(keys, nameOf(w.t, item))
		}
		if next == nil {
			return keys
		}
		require.Less(w.t, i, 1000, "%s does not end", op.Name)
		args["after"] = *next
	}
}

// list asks for one page, by the door that the operation has.
func (w *walkWorld) list(h *nodetest.House, op *protocol.Operation, args map[string]any) []byte {
	w.t.Helper()
	if op.For == protocol.Operators {
		res, err := h.Table.Invoke(w.t.Context(), hall.Request{Op: op.Name, Args: nodetest.Encoded(args), Door: "test", Evidence: identity.Evidence{Operator: true}})
		require.NoError(w.t, err, op.Name)
		return res.JSON
	}
	path, query := op.HTTP.Path, url.Values{}
	for name, v := range args {
		if marker := "{" + name + "}"; strings.Contains(path, marker) {
			path = strings.Replace(path, marker, url.PathEscape(word(v)), 1)
		} else {
			query.Set(name, word(v))
		}
	}
	a := h.On(w.t).Ask("GET", path+"?"+query.Encode(), "", "Authorization",
		"Bearer "+w.tokens[w.owner(op)])
	require.Equal(w.t, 200, a.Code, "%s: %s", op.Name, a.Body)
	return a.Body.Bytes()
}

// page finds the page in a result.
func page(t testing.TB, raw []byte) (items []json.RawMessage, next *string) {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &members))
	if members["items"] == nil {
		for _, member := range members {
			if strings.HasPrefix(string(member), `{"items":`) {
				return page(t, member)
			}
		}
	}
	require.NotNil(t, members["items"], "%s", raw)
	require.NoError(t, json.Unmarshal(members["items"], &items))
	require.NoError(t, json.Unmarshal(members["next"], &next))
	return items, next
}

// nameOf is what tells an item from the others of its list.
func nameOf(t testing.TB, item json.RawMessage) string {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(item, &members))
	for _, name := range []string{"id", "threadId", "handle"} {
		if v := string(members[name]); v != "" && v != "null" {
			return name + v
		}
	}
	if post := members["post"]; post != nil {
		return nameOf(t, post)
	}
	return string(item)
}

// A walkWorld is a deployment with more than three pages of everything.
type walkWorld struct {
	t       *testing.T
	houses  []*nodetest.House
	tokens  map[string]string // of the owners of asha, vikram and wares
	agents  []*nodetest.Agent
	root    protocol.Post
	thread  string // with many messages
	written atomic.Int64
}

// about are the arguments of a listing without its paging.
func (w *walkWorld) about(op *protocol.Operation) map[string]any {
	switch op {
	case protocol.GetBoardPost.Operation:
		return map[string]any{"id": w.root.ID}
	case protocol.ListReviews.Operation:
		return map[string]any{"handle": "reviewed"}
	case protocol.CheckConversation.Operation, protocol.GetThread.Operation:
		return map[string]any{"threadId": w.thread}
	}
	return nil
}

// owner returns whose owner asks for a listing: vikram blocks writers, wares has items.
func (w *walkWorld) owner(op *protocol.Operation) string {
	switch op {
	case protocol.ListBlockedWriters.Operation:
		return "vikram"
	case protocol.ListOwnItems.Operation:
		return "wares"
	}
	return "asha"
}

// write starts the writers; the returned function ends them.
func (w *walkWorld) write() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for i := range walkWriters {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			h := w.houses[i%len(w.houses)]
			for n := 0; ctx.Err() == nil && w.written.Load() < walkWrites; n++ {
				if code := w.writeOne(h, i, n, r.IntN(10)); code >= 500 {
					w.t.Errorf("writer %d: %d", i, code)
					return
				}
				w.written.Add(1)
			}
		})
	}
	return func() { cancel(); group.Wait() }
}

// writeOne adds something to some of the lists.
func (w *walkWorld) writeOne(h *nodetest.House, writer, n, what int) int {
	asha := []string{"Authorization", "Bearer " + w.tokens["asha"]}
	unique := fmt.Sprintf("%d-%d %x", writer, n, rand.Uint64())
	agent := w.agents[(writer+n)%len(w.agents)]
	switch what {
	case 0:
		return h.Ask("POST", "/api/public/board", fmt.Sprintf(`{"kind":"question","title":"While you walk %s","body":"b %s"}`, unique, unique), asha...).Code
	case 1:
		return h.Ask("POST", "/api/public/board", fmt.Sprintf(`{"kind":"question","title":"Reply %s","body":"b %s","inReplyTo":%q}`, unique, unique,
			w.root.ID), asha...).Code
	case 2:
		return sendAs(agent, h, "POST", "/api/public/agents/asha/contact", fmt.Sprintf(`{"message":"Later %s","callbackUrl":"https://127.0.0.1:1/hook"}`, unique))
	case 3:
		return h.Ask("POST", "/api/public/threads/"+w.thread+"/messages", fmt.Sprintf(`{"message":"More %s"}`, unique), asha...).Code
	case 4:
		return h.Ask("POST", "/api/owner/tokens", fmt.Sprintf(`{"name":"late %d","scopes":["post"]}`, n), asha...).Code
	case 5, 6:
		return w.profile(h, fmt.Sprintf("late-%d-%d", writer, n), n%2 == 0)
	case 7:
		return w.bidOn(h, agent)
	case 8:
		w.operate(h, protocol.OpenAccount.Operation, protocol.NewAccount{Name: "Late " + unique})
		return w.operate(h, protocol.AddNote.Operation, protocol.NewNote{Subject: "late", Text: unique})
	}
	return w.operate(h, protocol.AddBlock.Operation, protocol.NewNodeBlock{Kind: protocol.BlockHost, Value: fmt.Sprintf("w%d-%d.example", writer, n)})
}
