package storage

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stoa/protocol"
)

// itemWords is the index of the words and facets of items, by pos.
var itemWords = wordIndex{table: "item_word", of: "item_word", steps: usualSteps}

// itemWordsVersion is the version of the rules for the words of items.
var itemWordsVersion = fmt.Sprint(postWordsVersion, ".4")

const itemWordsSetting = "words of items"

// itemText is the words of an item: the keys of those of every text, in the forms of the places; measures; and facets of its
// merchant, categories, tags, availability and prices. count counts its words.
func itemText(i *StoredItem, count map[string]int) string {
	t := &itemWriter{text: text{seen: make(map[string]bool, 128), b: make([]byte, 0, 2048)}, count: count}
	eachItemField(&i.Draft, t.add)
	t.put(facet(facetShop, number(i.row.seq)))
	for _, c := range i.Draft.AllCategories() {
		t.put(facet(facetCategory, categoryName(c)))
	}
	for _, tag := range i.Draft.Tags {
		t.put(facet(facetTag, tag))
	}
	for _, v := range i.Variants() {
		t.put(facet(facetAvailability, string(v.Availability)))
		if v.Currency != "" {
			for level := range priceLevels {
				t.put(priceFacet(v.Currency, bucketOf(v.Minor), level))
			}
		}
	}
	return string(t.b)
}

// An itemWriter writes the tokens of an item.
type itemWriter struct {
	text
	count   map[string]int
	counted map[string]int8 // by word, the best class in which it was written and one
}

// add adds the keys of the words of s in the form of the given class and plainly, and its measures; of all but the last class
// beginnings, and the keys of two adjacent words as one.
func (t *itemWriter) add(class int, s string) {
	before := ""
	rest := measures(s, t.put)
	for _, w := range foldWords(rest) {
		if !t.counts(w, class) {
			for _, k := range keysOf(w) {
				if t.put(k); class < 2 {
					t.put(forms[class] + k)
				}
			}
			if class < 2 {
				t.start(w)
			}
		}
		if class < 2 {
			if before != "" {
				t.put(keyOf(before + w))
			}
			before = w
		}
	}
	if len(rest) != len(s) { // what was taken for a measure may be none
		for _, w := range foldWords(s) {
			if w[0] <= '9' {
				t.put(w)
			}
		}
	}
}

// counts counts a word, and reports whether it was written in as good a place before.
func (t *itemWriter) counts(w string, class int) bool {
	was, known := t.counted[w]
	if !known && isTerm(w) {
		t.count[w]++
	}
	if known && int(was) <= class {
		return true
	}
	if t.counted == nil {
		t.counted = make(map[string]int8, 32)
	}
	t.counted[w] = int8(class)
	return false
}

// longestStart is the maximum length of an indexed beginning of a word, in characters.
const longestStart = 6

// start adds the beginnings of a word, so that a search for one reads a single
// list: an engine would gather those of all words that begin so.
func (t *text) start(w string) {
	n := 0
	for at, r := range w {
		if n++; n > longestStart {
			break
		}
		if end := at + utf8.RuneLen(r); end >= shortestStart {
			t.put(startOf + w[:end])
		}
	}
}

// eachItemField calls field for every searched text of an item with its class, its name and
// categories first.
func eachItemField(d *protocol.ItemDraft, field func(class int, s string)) {
	field(0, d.Name)
	for _, c := range d.AllCategories() {
		field(1, c)
		field(1, categoryName(c))
	}
	for _, tag := range d.Tags {
		field(1, tag)
	}
	field(2, d.SKU)
	field(2, d.Barcode)
	for _, o := range d.Options {
		field(2, o.Name)
	}
	for _, v := range d.Variants {
		field(2, v.SKU)
		field(2, v.Barcode)
		for _, label := range v.Options {
			field(2, label)
		}
	}
	field(2, d.Description)
}

// Prices are in the index as buckets of four sizes: the octave of the amount, an eighth
// of it, a 64th and a 512th. A range is the largest buckets inside it and the smallest at its
// ends; amounts in these are compared afterwards.

// priceLevels is how many sizes of buckets there are.
const priceLevels = 4

// priceBits is how many bits of an amount, after the first, its smallest bucket has.
const priceBits = 3 * (priceLevels - 1)

// bucketOf is the smallest bucket of an amount, as a number that grows with the amount:
// the octave, and the bits after the first.
func bucketOf(minor int64) int64 {
	if minor < 1<<priceBits {
		return priceBits<<priceBits | minor // small amounts are each their own
	}
	octave := bits.Len64(uint64(minor))
	return int64(octave)<<priceBits | minor>>(octave-priceBits-1)&(1<<priceBits-1)
}

// priceFacet is the bucket of a number at a level, 0 for octaves.
func priceFacet(currency string, bucket int64, level int) string {
	return facet(facetPrice, strings.ToLower(currency)+"."+strconv.Itoa(level)+"."+number(bucket>>(priceBits-3*level)))
}

// priceFacets are the buckets of a range of amounts, of the largest sizes.
func priceFacets(currency string, least, most int64, levels int) (all []string) {
	within := int64(1)<<(priceBits-3*(levels-1)) - 1 // smallest buckets in one of the least size
	for at, end := bucketOf(least)&^within, bucketOf(most)|within; at <= end; {
		level := 0
		for level < levels-1 && (at&(1<<(priceBits-3*level)-1) != 0 || at+(1<<(priceBits-3*level)-1) > end) {
			level++
		}
		all = append(all, priceFacet(currency, at, level))
		at += 1 << (priceBits - 3*level)
	}
	return all
}

// addWords adds rows to the index that are not in it, and their prices.
func (is Items) addWords(ctx context.Context, rows []newRow) error {
	if err := is.addPrices(ctx, rows); err != nil {
		return err
	}
	texts, count := make([]string, len(rows)), map[string]int{}
	for n, r := range rows {
		texts[n] = itemText(r.item, count)
	}
	if err := is.tx.countTerms(ctx, itemTerms, count, 1); err != nil {
		return err
	}
	add := itemWords.insert(is.tx.db.engine)
	if is.tx.db.engine == engineSQLite {
		for n, r := range rows {
			if _, err := is.tx.write(ctx, add.Into+add.Row, r.item.row.pos, texts[n]); err != nil {
				return fmt.Errorf("index item: %w", err)
			}
		}
		return nil
	}
	is.tx.addsWords()
	var args []any
	for n, r := range rows {
		args = append(args, r.item.row.pos, texts[n])
	}
	if _, err := is.tx.write(ctx, add.Into+add.Row+strings.Repeat(", "+add.Row, len(rows)-1), args...); err != nil {
		return fmt.Errorf("index items: %w", err)
	}
	return nil
}

// dropWords removes rows from the index, and their prices, before the rows change.
func (is Items) dropWords(ctx context.Context, at []int64) error {
	if err := is.dropTerms(ctx, at); err != nil {
		return err
	}
	key := "seq"
	if is.tx.db.engine == engineSQLite {
		key = "rowid"
	}
	for some := range slices.Chunk(at, rowsAtOnce) {
		if _, err := is.tx.write(ctx, `DELETE FROM item_word WHERE `+key+` IN (`+marks(len(some))+`)`, anyOf(some)...); err != nil {
			return err
		}
		if _, err := is.tx.write(ctx, `DELETE FROM item_price WHERE pos IN (`+marks(len(some))+`)`, anyOf(some)...); err != nil {
			return err
		}
	}
	return nil
}

// indexItems builds the index of items if it was made by another version of the rules,
// or not at all.
func (db *DB) indexItems(ctx context.Context) error {
	for last := int64(0); last >= 0; {
		if err := db.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
			last, err = tx.Items().indexSome(ctx, last)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// indexSome indexes the items after one, and returns the last of them; -1 when all are
// indexed. Another process that starts at the same time waits for each transaction.
func (is Items) indexSome(ctx context.Context, last int64) (int64, error) {
	if err := is.tx.lockName(ctx, itemWordsSetting); err != nil {
		return 0, err
	}
	made, err := is.tx.Settings().Get(ctx, itemWordsSetting)
	if err != nil || made == itemWordsVersion {
		return -1, err
	}
	if last == 0 {
		empty := `TRUNCATE item_word`
		if is.tx.db.engine == engineSQLite {
			empty = `INSERT INTO item_word (item_word) VALUES ('delete-all')`
		}
		for _, text := range []string{empty, `DELETE FROM item_price`, `DELETE FROM item_term`, `UPDATE item SET indexed = FALSE WHERE indexed`} {
			if _, err := is.tx.write(ctx, text); err != nil {
				return 0, err
			}
		}
	}
	rows, err := is.tx.query(ctx, `SELECT `+itemColumns+` FROM item i WHERE i.pos > ? ORDER BY i.pos LIMIT 500`, last)
	found, err := collect(rows, err, scanItem)
	if err != nil {
		return 0, err
	}
	var fresh []newRow
	var at []int64
	for n := range found {
		if i := &found[n]; i.row.awayAt == 0 && !i.row.indexed {
			fresh, at = append(fresh, newRow{item: i}), append(at, i.row.pos)
		}
		last = found[n].row.pos
	}
	for some := range slices.Chunk(fresh, rowsAtOnce) {
		if err := is.addWords(ctx, some); err != nil {
			return 0, err
		}
	}
	for some := range slices.Chunk(at, rowsAtOnce) {
		if _, err := is.tx.write(ctx, `UPDATE item SET indexed = TRUE WHERE pos IN (`+marks(len(some))+`)`, anyOf(some)...); err != nil {
			return 0, err
		}
	}
	if len(found) < 500 {
		return -1, is.tx.Settings().Put(ctx, itemWordsSetting, itemWordsVersion)
	}
	return last, nil
}

// What a merchant sells, for the index of the directory: the words of its items, up to
// a size, the names first, and its prices. It is stored, so that a change of the profile reads no items.

// maxShopText is the size limit of that text, in bytes.
const maxShopText = 128 << 10

// shopWordsAfter is how long a large catalog may change before the directory follows.
const shopWordsAfter = 2 * time.Second

func shopText(items []StoredItem) string {
	t := &text{seen: map[string]bool{}, most: maxShopText}
	for n := range items {
		t.addItemName(&items[n].Draft)
	}
	for n := range items {
		t.addItemRest(&items[n].Draft)
	}
	var prices []price
	for n := range items {
		for _, v := range items[n].Variants() {
			if v.Currency != "" {
				prices = append(prices, price{v.Currency, v.Minor})
			}
		}
	}
	t.prices(prices)
	return string(t.b)
}

func (t *text) addItemName(d *protocol.ItemDraft) {
	t.add(2, d.Name)
	for _, c := range d.AllCategories() {
		t.add(2, c)
		t.add(2, categoryName(c))
	}
}

func (t *text) addItemRest(d *protocol.ItemDraft) {
	t.add(2, d.Description)
	for _, tag := range d.Tags {
		t.add(2, tag)
	}
}

// rerank gives a merchant a new version in the directory when it sells other words.
func (is Items) rerank(ctx context.Context, r *profileRow, words string) error {
	if other, err := is.storeWords(ctx, r.Seq, words); err != nil || !other {
		return err
	}
	p, err := r.profile()
	if err != nil {
		return err
	}
	m, err := is.tx.Merchants().of(ctx, r.Seq)
	if err != nil {
		return err
	}
	return is.tx.Profiles().rerank(ctx, r, p, m)
}

// storeWords stores the text of what a merchant sells, and reports whether it was
// another one before.
func (is Items) storeWords(ctx context.Context, seq int64, words string) (bool, error) {
	if had, err := is.storedWords(ctx, seq); err != nil || had == words {
		return false, err
	}
	_, err := is.tx.write(ctx, `INSERT INTO merchant_word (seq, words) VALUES (?, ?) ON CONFLICT (seq) DO UPDATE SET words = EXCLUDED.words`, seq, words)
	return true, err
}

// indexShop stores the text of the first items of a business, and enqueues the job for a large catalog.
func (is Items) indexShop(ctx context.Context, r *profileRow) error {
	if !r.Catalog {
		return nil
	}
	h, err := is.shopOf(ctx, r)
	if err != nil {
		return err
	}
	first, err := is.first(ctx, h.seq, h.catalog)
	if err == nil {
		_, err = is.storeWords(ctx, h.seq, shopText(first))
	}
	if err == nil && h.items > len(first) {
		err = is.enqueueWords(ctx, r.Handle)
	}
	return err
}

func (is Items) enqueueWords(ctx context.Context, handle string) error {
	return is.tx.Enqueue(ctx, Job{Kind: ShopWordsJob, Lane: "shop " + handle, Dedupe: string(ShopWordsJob) + " " + handle, Args: []byte(handle),
		RunAt: is.tx.Now.Add(shopWordsAfter)})
}

func (is Items) storedWords(ctx context.Context, seq int64) (string, error) {
	return orZero(find[string](ctx, is.tx, `SELECT words FROM merchant_word WHERE seq = ?`, seq))
}

// ShopWords computes the text of what a merchant sells; "" when there is no such
// business. It reads all items and is for a job, on a snapshot.
func (is Items) ShopWords(ctx context.Context, handle string) (string, error) {
	seq, catalog, err := is.catalogOf(ctx, handle)
	if err == ErrNotFound {
		return "", nil
	}
	t := &text{seen: map[string]bool{}, most: maxShopText}
	for _, add := range []func(*protocol.ItemDraft){t.addItemName, t.addItemRest} {
		after := placed{}
		for err == nil && len(t.b) <= t.most {
			var some []StoredItem
			if some, err = is.inOrder(ctx, seq, catalog, after, 500); err != nil || len(some) == 0 {
				break
			}
			for n := range some {
				add(&some[n].Draft)
				after = placed{some[n].row.place, some[n].row.pos}
			}
		}
	}
	if err != nil {
		return "", err
	}
	prices, err := is.pricesOf(ctx, seq, catalog)
	t.prices(prices)
	return string(t.b), err
}

// PutShopWords stores the result of ShopWords.
func (is Items) PutShopWords(ctx context.Context, handle, words string) error {
	r, err := is.tx.Profiles().lock(ctx, handle)
	if err == ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if err := is.rerank(ctx, r, words); err != nil {
		return err
	}
	return is.tx.Profiles().EnqueueTold(ctx, handle)
}

func (is Items) catalogOf(ctx context.Context, handle string) (seq, catalog int64, err error) {
	err = is.tx.row(ctx, `SELECT m.seq, m.catalog FROM profile p JOIN merchant m ON m.seq = p.seq WHERE p.handle = ?`, handle).Scan(&seq, &catalog)
	return seq, catalog, err
}
