package storagetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// FillDirectory writes n profiles, one in three a business with a merchant
// record. Handles are dir-0, dir-1, …; the same n is the same profile each time.
// Words are spread as in speech: a few stand in most profiles, most in few.
//
// One in five has a chain identity; of ten, six answer, three do not, and one was
// never asked. One business in fifty is open at night only.
func FillDirectory(db *storage.DB, n int) error {
	const chunk = 2000
	for from := 0; from < n; from += chunk {
		err := db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			for i := from; i < min(from+chunk, n); i++ {
				if err := fillListed(ctx, tx, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("fill the directory: %w", err)
		}
	}
	return nil
}

var (
	fillNames   = strings.Fields("Asha Ravi Meera Kabir Lakshmi Arjun Priya Dev Nisha Omar Anna Jonas Mina Yusuf Clara Tomas Leela Vikram Sara Ivan")
	fillSurname = strings.Fields("Menon Iyer Rao Sharma Patel Khan Das Nair Gupta Reddy Bose Kulkarni Fischer Novak Silva Okafor Haddad Larsen Moreau Tanaka")
	fillTrades  = strings.Fields("paper tiffin translation carpentry tailoring pottery printing repair teaching music design bakery grocery pharmacy travel law clinic gardening weaving photography")
	fillCities  = strings.Fields("Mumbai Bengaluru Chennai Kolkata Delhi Pune Jaipur Kochi Hyderabad Lucknow Surat Indore")
	fillRegions = strings.Fields("IN-KA IN-RJ IN-MH IN-TN DE US-CA GB-ENG IN")
	fillZones   = strings.Fields("Asia/Kolkata Asia/Kolkata Asia/Kolkata Europe/Berlin America/New_York Asia/Tokyo")
)

// fillWords are n words, of which word k is said about 1/k as often as the first.
func fillWords(r *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "w%d", int(10_000/(1+r.Float64()*10_000)))
		if r.IntN(6) == 0 {
			b.WriteString(" the")
		}
	}
	return b.String()
}

func fillListed(ctx context.Context, tx *storage.Tx, n int) error {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	of := func(list []string) string { return list[r.IntN(len(list))] }
	trade, city := of(fillTrades), of(fillCities)
	p := &storage.StoredProfile{Unlisted: true, IdentityNote: protocol.NoIdentity, Draft: protocol.ProfileDraft{
		Handle: fmt.Sprintf("dir-%d", n), Name: of(fillNames) + " " + of(fillSurname), Kind: protocol.Person,
		Headline: "Hand made " + trade + " in " + city, Description: fillWords(r, 30+r.IntN(60)),
		Tags: []string{trade, fmt.Sprintf("tag-%d", n%100)}, Languages: []string{"en", "hi"}, Regions: []string{of(fillRegions)}, Timezone: of(fillZones),
		Needs: []protocol.Need{{ID: "supply", Description: fillWords(r, 10), Tags: []string{"supply"}}},
	}}
	if n%10_000 == 0 {
		p.Draft.Tags = append(p.Draft.Tags, "rare")
	}
	if n%5 == 0 {
		p.ERC8004 = fmt.Sprintf("eip155:1337:0x5fbdb2315678afecb367f032d93f642f64180aa4:%d", n)
	}
	if n%3 == 0 {
		p.Draft.Kind, p.Draft.Name = protocol.Business, of(fillSurname)+" "+trade
		p.Draft.Capabilities = []protocol.Capability{{ID: "take-orders", Name: "Take orders", Description: "Takes orders for " + trade + ". " + fillWords(r, 12), Tags: []string{"orders"}}}
	}
	if _, err := tx.PutProfile(ctx, p); err != nil {
		return err
	}
	if p.Draft.Kind == protocol.Business {
		if _, err := tx.PutMerchant(ctx, p.Draft.Handle, fillMerchant(r, n, trade, city)); err != nil {
			return err
		}
	}
	alive, at := protocol.LivenessUnknown, time.Time{}
	switch {
	case n%10 < 6:
		alive, at = protocol.LivenessAlive, tx.Now
	case n%10 < 9:
		alive = protocol.LivenessDead
	}
	if err := tx.SetLiveness(ctx, p.Draft.Handle, alive, at); err != nil {
		return err
	}
	return tx.SetListed(ctx, p.Draft.Handle, true)
}

var fillDays = strings.Fields("monday tuesday wednesday thursday friday saturday sunday")

func fillMerchant(r *rand.Rand, n int, trade, city string) protocol.MerchantDraft {
	d := protocol.MerchantDraft{Category: trade, City: city}
	opens, closes := fmt.Sprintf("%02d:30", 7+r.IntN(4)), fmt.Sprintf("%02d:00", 17+r.IntN(5))
	if n%150 == 0 {
		opens, closes = "22:00", "04:00"
	}
	for _, day := range fillDays {
		d.Hours = append(d.Hours, protocol.DayHours{Day: day, Opens: opens, Closes: closes})
	}
	for i := range 5 {
		d.Items = append(d.Items, protocol.ItemDraft{SKU: fmt.Sprint("s", i), Name: trade + " " + fillWords(r, 2),
			Price: &protocol.MoneyDraft{Currency: "INR", Amount: protocol.Decimal(fmt.Sprint(10 + r.IntN(5000)))}})
	}
	return d
}
