package catalog_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/outbound"
	"stoa/node/room/catalog"
	"stoa/node/room/directory"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A world is a business whose catalog is read at a server of this test, and a clock.
type world struct {
	*catalog.Catalog
	t    *testing.T
	now  atomic.Int64
	told []protocol.Notice

	mu     sync.Mutex
	answer http.HandlerFunc
	asked  []*http.Request
}

const address = "https://shop.example/items.csv"

var owner = protocol.Caller{Standing: protocol.Session, Handle: "rao", Handles: []string{"rao"}}

func each(t *testing.T, fn func(w *world)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		w := &world{t: t}
		w.now.Store(time.Date(2026, 11, 2, 4, 30, 0, 0, time.UTC).UnixMilli())
		c.Now = func() time.Time { return time.UnixMilli(w.now.Load()).UTC() }
		db := storagetest.OpenConfig(t, c)
		w.Catalog = catalog.New(catalog.Catalog{DB: db, Error: directory.CatalogError, Client: w.client(),
			Spool: func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "") },
			Changed: func(context.Context, *storage.Tx, protocol.Caller, string, *storage.ItemChanges) error {
				return nil
			}})
		w.write(func(ctx context.Context, tx *storage.Tx) error {
			if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "rao", Name: "Rao", Kind: protocol.Business}}); err != nil {
				return err
			}
			return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "rao", Webhook: "https://rao.example/n"})
		})
		fn(w)
	})
}

// client reaches the server of the test as shop.example, and everything else as a node does.
func (w *world) client() *http.Client {
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked = append(w.asked, r)
		w.answer(rw, r)
	}))
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	here := outbound.New(outbound.Options{AllowPrivate: true, RootCAs: roots, MaxBody: 1 << 20})
	out := outbound.New(outbound.Options{})
	w.t.Cleanup(func() { here.CloseIdleConnections(); s.Close() })
	out.Transport = doors{func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Host = strings.TrimPrefix(s.URL, "https://")
		return here.Transport.RoundTrip(r)
	}, out.Transport}
	return out
}

type doors struct {
	here  func(*http.Request) (*http.Response, error)
	other http.RoundTripper
}

func (d doors) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "shop.example" {
		return d.here(r)
	}
	return d.other.RoundTrip(r)
}

func (w *world) write(fn func(ctx context.Context, tx *storage.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.DB.Write(context.Background(), fn))
}

// serves sets what the address answers.
func (w *world) serves(do http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer, w.asked = do, nil
}

func file(kind, text string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", kind)
		rw.Header().Set("ETag", fmt.Sprintf(`"%x"`, crc32.ChecksumIEEE([]byte(text))))
		rw.Header().Set("Last-Modified", "Mon, 02 Nov 2026 04:00:00 GMT")
		if r.Header.Get("If-None-Match") == rw.Header().Get("ETag") {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(rw, text)
	}
}

// csv is a file of items, each with its price.
func csv(items ...string) string {
	text := "sku,name,price\n"
	for _, i := range items {
		sku, price, _ := strings.Cut(i, " ")
		text += sku + ",Item " + sku + "," + price + "\n"
	}
	return text
}

func (w *world) put(own, mode string) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := w.PutAddress(ctx, tx, owner, protocol.CatalogAddress{URL: address, Own: own, Mode: mode})
		return err
	})
	w.run()
}

// ask has the catalog read now.
func (w *world) ask(falls bool) {
	w.t.Helper()
	w.now.Add(time.Hour.Milliseconds())
	w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := w.ReadAddress(ctx, tx, owner, protocol.CatalogAsk{Falls: falls})
		return err
	})
	w.run()
}

// day passes a day and a half.
func (w *world) day() {
	w.t.Helper()
	w.now.Add((36 * time.Hour).Milliseconds())
	w.run()
}

// run runs what is due.
func (w *world) run() {
	w.t.Helper()
	ctx := context.Background()
	for {
		jobs, _, err := w.DB.ClaimJobs(ctx, "test", 10, time.Minute)
		require.NoError(w.t, err)
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			var after func(context.Context, *storage.Tx) error
			switch j.Kind {
			case storage.CatalogJob:
				after = must.Get(w.Jobs()[j.Kind](ctx, j))(w.t)
			case storage.NoticeJob:
				var n protocol.Notice
				require.NoError(w.t, j.Decode(&n))
				w.told = append(w.told, n)
			}
			w.write(func(ctx context.Context, tx *storage.Tx) error {
				if err := tx.Jobs().Finish(ctx, j.ID); err != nil || after == nil {
					return err
				}
				return after(ctx, tx)
			})
		}
	}
}

func (w *world) reading() (r protocol.CatalogReading) {
	w.t.Helper()
	require.NoError(w.t, w.DB.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
		r, err = w.Address(ctx, tx, owner, protocol.OwnInput{})
		return err
	}))
	return r
}

// sells are the items on sale with their prices.
func (w *world) sells() (all []string) {
	w.t.Helper()
	require.NoError(w.t, w.DB.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.Items().Each(ctx, "rao", func(i *storage.StoredItem) error {
			all = append(all, i.Draft.SKU+" "+strings.TrimSuffix(string(i.Draft.Price.Amount), ".00"))
			return nil
		})
	}))
	return all
}

// writes writes items by hand.
func (w *world) writes(items ...string) {
	w.t.Helper()
	w.now.Add(time.Minute.Milliseconds())
	w.write(func(ctx context.Context, tx *storage.Tx) error {
		for _, i := range items {
			sku, price, _ := strings.Cut(i, " ")
			if _, err := tx.Items().Put(ctx, "rao", protocol.ItemDraft{SKU: sku, Name: "Item " + sku,
				Price: &protocol.MoneyDraft{Currency: "INR", Amount: protocol.Decimal(price)}}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) removes(sku string) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Items().Remove(ctx, "rao", sku)
		return err
	})
}

// TestAddress_Daily: a catalog is read at its address, again the next day with the validators of the last answer, and what the file
// lost is taken off sale.
func TestAddress_Daily(t *testing.T) {
	each(t, func(w *world) {
		w.writes("a 5", "own 9") // a shop that has some already
		w.serves(file("text/csv", csv("a 1", "b 2", "c 3")))
		w.put("", "")
		require.Equal(t, []string{"a 1", "b 2", "c 3", "own 9"}, sorted(w.sells()))
		r := w.reading()
		require.Equal(t, []int{2, 1, 0}, []int{r.Added, r.Changed, r.Removed})
		require.Nil(t, r.Fault)
		require.NotNil(t, r.ReadAt)

		w.day()
		require.NotEmpty(t, w.asked)
		require.Regexp(t, `^"[0-9a-f]+"$`, w.asked[len(w.asked)-1].Header.Get("If-None-Match"))
		require.Equal(t, "Mon, 02 Nov 2026 04:00:00 GMT", w.asked[len(w.asked)-1].Header.Get("If-Modified-Since"))
		again := w.reading()
		require.Equal(t, r.ChangedAt, again.ChangedAt)
		require.True(t, again.ReadAt.After(*r.ReadAt))

		w.serves(file("application/octet-stream", csv("a 1", "b 20", "dd 4")))
		w.day()
		require.Equal(t, []string{"a 1", "b 20", "dd 4", "own 9"}, sorted(w.sells()))
		r = w.reading()
		require.Equal(t, []int{1, 1, 1}, []int{r.Added, r.Changed, r.Removed})

		w.put("", protocol.ImportMerge)
		w.serves(file("text/csv", csv("a 100", "b 200")))
		w.ask(false)
		require.Equal(t, []string{"a 100", "b 200", "dd 4", "own 9"}, sorted(w.sells()))

		w.write(func(ctx context.Context, tx *storage.Tx) error {
			_, err := w.RemoveAddress(ctx, tx, owner, protocol.OwnInput{})
			return err
		})
		w.serves(file("text/csv", csv("a 7")))
		w.day()
		require.Empty(t, w.asked)
		require.Nil(t, w.reading().URL)
	})
}

func sorted(list []string) []string { slices.Sort(list); return list }

// TestAddress_Own: what the owner changed, added and removed after the first reading is kept, or replaced, as the owner said.
func TestAddress_Own(t *testing.T) {
	each(t, func(w *world) {
		for _, own := range []string{protocol.OwnKeep, protocol.OwnOverwrite} {
			w.serves(file("text/csv", csv("a 1", "b 2", "c 3", "d 4")))
			w.put(own, "")
			w.ask(true)
			require.Equal(t, []string{"a 1", "b 2", "c 3", "d 4"}, sorted(w.sells()))
			w.writes("b 99", "mine 5")
			w.removes("c")
			w.ask(false) // of a file that is as it was
			want := map[string][]string{protocol.OwnKeep: {"a 1", "b 99", "d 4", "mine 5"}, protocol.OwnOverwrite: {"a 1", "b 2", "c 3", "d 4"}}[own]
			require.Equal(t, want, sorted(w.sells()), own)
			w.serves(file("text/csv", csv("a 10", "b 20", "c 30", "d 40")))
			w.ask(false)
			want = map[string][]string{protocol.OwnKeep: {"a 10", "b 99", "d 40", "mine 5"}, protocol.OwnOverwrite: {"a 10", "b 20", "c 30", "d 40"}}[own]
			require.Equal(t, want, sorted(w.sells()), own)
			require.Equal(t, map[string]int{protocol.OwnKeep: 2, protocol.OwnOverwrite: 0}[own], w.reading().Kept)
			if own == protocol.OwnKeep { // as the file has it again: the file has it from now on
				w.writes("b 20")
				w.ask(false)
				w.serves(file("text/csv", csv("a 10", "b 200", "c 30", "d 40")))
				w.ask(false)
				require.Equal(t, []string{"a 10", "b 200", "d 40", "mine 5"}, sorted(w.sells()))
				w.write(func(ctx context.Context, tx *storage.Tx) error {
					_, err := w.RemoveAddress(ctx, tx, owner, protocol.OwnInput{})
					return err
				})
			}
		}
	})
}

// TestAddress_Faults: each changes nothing, says what is wrong, and the owner is told of it once, until another one or a good reading.
func TestAddress_Faults(t *testing.T) {
	each(t, func(w *world) {
		good := csv("a 1", "b 2", "c 3", "d 4")
		w.serves(file("text/csv", good))
		w.put("", "")
		require.Empty(t, w.told)
		to := func(address string) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, address, http.StatusFound) }
		}
		for n, x := range []struct {
			name, want string
			do         http.HandlerFunc
		}{
			{"half empty", "fewer than half", file("text/csv", csv("a 1"))},
			{"empty", "no item", file("text/csv", csv())},
			{"no bytes", "empty", file("text/csv", "")},
			{"a page", "web page", file("text/html; charset=utf-8", "<html>sign in</html>")},
			{"not found", "status 404", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(404) }},
			{"a faulty line", "1 faults", file("text/csv", csv("a 1", "b much", "c 3", "d 4"))},
			{"redirect to loopback", "not public", to("https://127.0.0.1/x")},
			{"redirect to a cloud's metadata", "not public", to("https://169.254.169.254/latest")},
			{"redirect to http", "not https", to("http://shop.example/x")},
			{"too long", "more than 64 MB", file("text/csv", strings.Repeat("x", 2<<20))},
		} {
			w.told = nil
			w.serves(x.do)
			w.day()
			w.day()
			r := w.reading()
			require.NotNil(t, r.Fault, x.name)
			require.Contains(t, *r.Fault, x.want, x.name)
			require.Equal(t, n == 0, r.Falls, x.name)
			require.Equal(t, []string{"a 1", "b 2", "c 3", "d 4"}, sorted(w.sells()), x.name)
			require.LessOrEqual(t, len(w.told), 1, x.name)
			if x.name != "no bytes" && !strings.HasSuffix(x.name, "metadata") && !strings.HasSuffix(x.name, "http") { // of the kind before
				require.Len(t, w.told, 1, x.name)
				require.Equal(t, protocol.CatalogTrouble, w.told[0].Event)
				require.Contains(t, w.told[0].Title, "shop.example: ")
			}
		}
		require.Empty(t, w.reading().Faults)
		w.told = nil
		w.serves(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(503) })
		w.ask(false)
		require.Empty(t, w.told, "it may pass")
		for range 10 {
			w.day()
		}
		require.Len(t, w.told, 1)
		w.serves(file("text/csv", good+"e,Item e,5\n"))
		w.ask(false)
		require.Nil(t, w.reading().Fault)
		require.Len(t, w.sells(), 5)
		w.serves(file("text/csv", csv("a 1")))
		w.ask(false)
		require.Len(t, w.told, 2)
		w.ask(true)
		require.Equal(t, []string{"a 1"}, w.sells(), "the owner has it taken as it is")
		require.Nil(t, w.reading().Fault)
	})
}

// TestAddress_Ends: nothing is read for a profile that is hidden, has another owner, or is gone.
func TestAddress_Ends(t *testing.T) {
	each(t, func(w *world) {
		w.serves(file("text/csv", csv("a 1")))
		w.put("", "")
		set := func(state protocol.ProfileState) {
			w.write(func(ctx context.Context, tx *storage.Tx) error {
				_, err := tx.Profiles().SetState(ctx, "rao", state, "spam")
				return err
			})
		}
		set(protocol.ProfileSuspended)
		w.serves(file("text/csv", csv("a 2")))
		w.day()
		require.Empty(t, w.asked)
		set("")
		w.day()
		require.Equal(t, []string{"a 2"}, w.sells())

		w.write(func(ctx context.Context, tx *storage.Tx) error {
			a := storage.Account{ID: protocol.NewID(protocol.AccountID, tx.Now), Name: "Buyer", Role: protocol.RoleOwner}
			return errors.Join(tx.Accounts().Insert(ctx, a), tx.Accounts().LinkProfile(ctx, a.ID, "rao"))
		})
		w.serves(file("text/csv", csv("a 3")))
		w.day()
		w.day()
		require.Empty(t, w.asked)
		require.Contains(t, *w.reading().Fault, "another owner")
		require.Nil(t, w.reading().NextAt)
		w.put("", "")
		require.Equal(t, []string{"a 3"}, w.sells())

		w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "rao") })
		w.serves(file("text/csv", csv("a 4")))
		w.day()
		require.Empty(t, w.asked)
	})
}
