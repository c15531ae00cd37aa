package fill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

var (
	firstNames = strings.Fields("asha ravi meera kabir leela arjun nila omar zoya ishan tara dev anil sana vikram maya rohan diya kiran uma")
	lastNames  = strings.Fields("verma rao iyer khan nair das patel sen bose kaur mehta joshi reddy shah gill roy")
	trades     = strings.Fields("paper cotton pottery spice books garden music repair print wood")
	languages  = [][]string{{"en"}, {"en", "hi"}, {"hi"}, {"en", "ta"}, {"en", "kn", "hi"}, {"de", "en"}}
	// Regions in the order of how often they occur.
	Regions   = []string{"IN-KA", "IN-MH", "IN-DL", "IN-TN", "IN-RJ", "IN", "IN-WB", "IN-KL", "DE", "US-CA", "GB", "JP", "NP", "SG", "FR", "IN-SK"}
	timezones = []string{"Asia/Kolkata", "Asia/Kolkata", "Asia/Kolkata", "Asia/Kolkata", "Europe/Berlin", "America/Los_Angeles"}
)

// business reports whether the profile of a number is one: three in ten are.
func business(n int) bool { return n%10 < 3 }

// Handle is the handle of the profile of a number, from 0, which writes the most
// posts.
func Handle(n int) string {
	last := lastNames[n/len(firstNames)%len(lastNames)]
	if business(n) {
		return fmt.Sprintf("%s-%s-%d", last, trades[n/3%len(trades)], n)
	}
	return fmt.Sprintf("%s-%s-%d", firstNames[n%len(firstNames)], last, n)
}

func name(n int) string {
	words := strings.Split(Handle(n), "-")
	for i, w := range words[:2] {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	if business(n) {
		return words[0] + " " + words[1] + " House"
	}
	return words[0] + " " + words[1]
}

// identity is the chain identity of a profile; one in five has one.
func identity(n int) string {
	if n%5 != 0 {
		return ""
	}
	return fmt.Sprintf("eip155:1337:0x00000000000000000000000000000000000f111e:%d", n)
}

// profile writes the profile of a number.
func (w *writer) profile(ctx context.Context, tx *storage.Tx, n int) error {
	r := w.of(2, n)
	d := protocol.ProfileDraft{
		Handle: Handle(n), Name: name(n), Kind: protocol.Person, Headline: w.drawSentence(r, headlines), Description: w.text(r, 8, 25),
		Tags: w.drawTags(r, 4), Languages: languages[r.IntN(len(languages))], Timezone: timezones[r.IntN(len(timezones))],
		Regions: regions(r), Capabilities: w.capabilities(r), Needs: []protocol.Need{},
		ContactPolicy: &protocol.PolicyDraft{OutsideAgentsWithIdentity: true, Anonymous: n%3 > 0, Kinds: []string{"question", "quote_request", "support"}},
	}
	if business(n) {
		d.Kind = protocol.Business
	}
	for i := range r.IntN(3) {
		d.Needs = append(d.Needs, protocol.Need{ID: fmt.Sprintf("need-%d", i+1), Description: w.text(r, 4, 8), Tags: w.drawTags(r, 2)})
	}
	p := &storage.StoredProfile{Draft: d, ERC8004: identity(n), IdentityNote: protocol.NoIdentity, Attention: w.hasBoard(n)}
	p.Unlisted = business(n) || n%4 == 1 || n%40 == 2 // until all of it is written, so that it is indexed once
	if _, err := tx.Profiles().Put(ctx, p); err != nil {
		return err
	}
	var err error
	switch { // most have never been asked
	case n%4 == 1:
		err = tx.Profiles().SetLiveness(ctx, d.Handle, protocol.LivenessAlive, tx.Now)
	case n%40 == 2:
		err = tx.Profiles().SetLiveness(ctx, d.Handle, protocol.LivenessDead, time.Time{})
	}
	if err == nil && w.hasBoard(n) {
		err = w.board(ctx, tx, n)
	}
	if err == nil && business(n) {
		_, _, err = tx.Merchants().Put(ctx, d.Handle, *w.merchant(n))
	}
	if err != nil {
		return err
	}
	if p.Unlisted {
		p.Unlisted = false
		_, err = tx.Profiles().Put(ctx, p)
	}
	return err
}

func regions(r *rand.Rand) []string {
	return []string{often(r, Regions)}
}

// capabilities are up to three.
func (w *writer) capabilities(r *rand.Rand) []protocol.Capability {
	list := []protocol.Capability{}
	for range r.IntN(4) {
		id := "do-" + strings.ReplaceAll(Tag(w.tags.rank(r.Float64())), ".", "-")
		if !strings.Contains(fmt.Sprint(list), "{"+id+" ") {
			list = append(list, protocol.Capability{ID: id, Name: w.drawSentence(r, names), Description: w.text(r, 4, 10), Tags: w.drawTags(r, 3),
				Pricing: &protocol.Pricing{Model: protocol.Quote}})
		}
	}
	return list
}
