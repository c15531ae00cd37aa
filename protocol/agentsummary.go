package protocol

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// MaxSummaryWords is the maximum size of the words of a summary, in bytes.
const MaxSummaryWords = 2000

// An AgentSummary is what the nodes that follow the node of a listed agent find it by. Every action takes place at its node.
type AgentSummary struct {
	Profile  ProfileDraft  `json:"profile"`
	Meetings bool          `json:"meetings,omitempty"` // takes meeting requests
	Catalog  bool          `json:"catalog,omitempty"`  // has an item on sale
	Board    *BoardSummary `json:"attentionBoard,omitempty"`
	Shop     *ShopSummary  `json:"shop,omitempty"`
	Updated  time.Time     `json:"updated"`
}

// Elsewhere says of an entry of a list that it is of another node, where its page and every action are.
type Elsewhere struct {
	Node      *string    `json:"node,omitempty" doc:"Host of the node that it is at; left out for this one."`
	GoneSince *time.Time `json:"goneSince,omitempty" doc:"Its node has not answered since; said after 7 days, listed no longer after 30."`
}

// A BoardSummary is what an open attention board is found by.
type BoardSummary struct {
	Floor      Money           `json:"floor"`
	Slots      int             `json:"slots"`
	Accepting  bool            `json:"accepting"`
	Categories []CategoryPrice `json:"categories"`
	Test       bool            `json:"test,omitempty"`
}

// A ShopSummary is what the merchant record and the items of a business are found by. The items stay where they are.
type ShopSummary struct {
	Record MerchantDraft `json:"record"`          // without items
	Words  string        `json:"words,omitempty"` // of its items, folded, those of names first
	Prices []PriceSpan   `json:"prices,omitempty"`
	Items  int           `json:"items"`
}

// A PriceSpan is the lowest and the highest price of a shop in a currency, in minor units.
type PriceSpan struct {
	Currency string `json:"currency" minLength:"3" shape:"currency"`
	Low      int64  `json:"low"`
	High     int64  `json:"high"`
}

// Limits of the lists of a summary.
const (
	maxSummaryPrices     = 3
	maxSummaryCategories = 20
)

// Check returns the faults of a summary of another node: those of a profile and of a merchant record that are written here, and
// what is too much.
func (s *AgentSummary) Check() []Fault {
	faults := append(CheckLimits("", s), CheckText("", s)...)
	if len(faults) > 0 {
		return faults
	}
	faults = s.Profile.Check()
	if b := s.Board; b != nil && (s.Profile.Kind != Person || b.Slots < 1 || len(b.Categories) > maxSummaryCategories ||
		slices.ContainsFunc(b.Categories, func(c CategoryPrice) bool { return utf8.RuneCountInString(c.Name) > 40 })) {
		faults = append(faults, Fault{"/attentionBoard", "invalid", "is not the board of a person, or has too many categories"})
	}
	if shop := s.Shop; shop != nil {
		faults = append(faults, shop.Record.Check()...)
		if s.Profile.Kind != Business || len(shop.Words) > MaxSummaryWords || len(shop.Prices) > maxSummaryPrices || shop.Items < 0 ||
			len(shop.Record.Items) > 0 {
			faults = append(faults, Fault{"/shop", "invalid", "is not that of a business, or has too many words or prices"})
		}
	}
	return faults
}

// CheckLimits applies the tags minLength, maxLength, maxItems, enum, pattern, shape, line and visible to the members of v, a struct, and returns a
// fault for each that breaks one. Like CheckText it is for what other servers say of themselves; the hall checks every input.
func CheckLimits(at string, v any) (faults []Fault) {
	limits(at, "", reflect.ValueOf(v), &faults)
	return faults
}

// patternsOf are the compiled patterns of tags.
var patternsOf sync.Map

func limits(at string, tag reflect.StructTag, v reflect.Value, faults *[]Fault) {
	exceeds := func(name string, n int) bool {
		most, err := strconv.Atoi(tag.Get(name))
		return err == nil && n > most
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			limits(at, tag, v.Elem(), faults)
		}
	case reflect.Slice:
		if exceeds("maxItems", v.Len()) {
			*faults = append(*faults, Fault{at, "too-many", "at most " + tag.Get("maxItems") + " items"})
			return
		}
		for i := range v.Len() {
			limits(at+"/"+strconv.Itoa(i), tag, v.Index(i), faults)
		}
	case reflect.String:
		s := v.String()
		if s == "" && tag.Get("minLength") == "" { // left out
			return
		}
		n := utf8.RuneCountInString(s)
		if least, err := strconv.Atoi(tag.Get("minLength")); err == nil && n < least {
			*faults = append(*faults, Fault{at, "too-short", "at least " + tag.Get("minLength") + " characters"})
		}
		if exceeds("maxLength", n) {
			*faults = append(*faults, Fault{at, "too-long", "at most " + tag.Get("maxLength") + " characters"})
		}
		if values := tag.Get("enum"); values != "" && !slices.Contains(strings.Split(values, ","), s) {
			*faults = append(*faults, Fault{at, "not-allowed", "must be one of " + values})
		}
		*faults = append(*faults, RuleOf(tag).Faults(at, s)...)
		if pattern := PatternOf(tag); pattern != "" {
			compiled, ok := patternsOf.Load(pattern)
			if !ok {
				compiled, _ = patternsOf.LoadOrStore(pattern, regexp.MustCompile(pattern))
			}
			if !compiled.(*regexp.Regexp).MatchString(s) {
				*faults = append(*faults, Fault{at, "wrong-shape", "must match " + pattern})
			}
		}
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && !f.Anonymous && name != "-" && len(f.Index) == 1 {
				limits(at+"/"+name, f.Tag, v.FieldByIndex(f.Index), faults)
			}
		}
	}
}
