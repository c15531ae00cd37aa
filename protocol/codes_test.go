package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIsLanguage(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]bool{
		"en": true, "hi": true, "EN": true, "en-IN": true, "hi-Deva-IN": true, "zh-Hant": true, "es-419": true, "sl-rozaj-biske": true, "de-CH-1996": true,
		"kok": true, "zh-yue": true, "zh-min-nan": true, "i-klingon": true, "en-x-a1": true, "de-u-co-phonebk": true, "en-a-bbb-x-a": true, "qaa": true,
		"und": true, "en-Qaaa-QM": true,
		"": false, "e": false, "xx": false, "english": false, "en-ZZZ": false, "en-XX1": false, "hi-Dave": false, "en-UK": false, "en-gb-gb": false, "en_IN": false,
		"en-": false, "-en": false, "en-x": false, "x-a": false, "en-u": false, "en-u-co-u-co": false, "de-1996-1996": false, "en-yue": false,
		"en-aaaaa": false, "en-abcdefghi": false, "en-x-ü": false, "Local": false,
		"en-x-a-u-": false, "ab-cd-ef-gh": false,
	} {
		require.Equal(t, want, IsLanguage(tag), "%q", tag)
	}
}

func TestIsRegion(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"IN": true, "IN-KA": true, "IN-TS": true, "IN-TG": true, "DE": true, "DE-BE": true, "US-CA": true, "GB-ENG": true, "FR-IDF": true, "FR-75C": true, "AQ": true,
		"": false, "in": false, "UK": false, "XX": false, "IN-": false, "IN-ZZ": false, "IN-ka": false, "EU": false, "INKA": false, "IN-KA-1": false, "#": false,
	} {
		require.Equal(t, want, IsRegion(code), "%q", code)
	}
}

func TestZone(t *testing.T) {
	t.Parallel()
	for name := range zones() {
		loc, ok := Zone(name)
		require.True(t, ok, name)
		require.NotNil(t, loc)
	}
	for _, name := range []string{"", "Local", "local", "IST", "asia/kolkata", "Asia/Atlantis", "../UTC", "posix/Asia/Kolkata", "right/UTC", "Factory", "+05:30"} {
		_, ok := Zone(name)
		require.False(t, ok, name)
	}
	loc, _ := Zone("Asia/Kolkata")
	_, offset := time.Now().In(loc).Zone()
	require.Equal(t, 19800, offset)
}

func TestIsCurrency(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"INR": true, "JPY": true, "KWD": true, "XCG": true, "ZWG": true, "HRK": true, "XXX": true,
		"": false, "inr": false, "BTC": false, "XXY": false, "IN": false, "INRR": false, "#": false, "ISO": false, "with": false,
	} {
		require.Equal(t, want, IsCurrency(code), "%q", code)
	}
}

// Names that mean the same zone are one: browsers still say Asia/Calcutta.
func TestFoldZone(t *testing.T) {
	t.Parallel()
	for alias, name := range map[string]string{
		"Asia/Calcutta": "Asia/Kolkata", "Asia/Katmandu": "Asia/Kathmandu", "Europe/Kiev": "Europe/Kyiv", "US/Pacific": "America/Los_Angeles",
		"Asia/Kolkata": "Asia/Kolkata", "Europe/Amsterdam": "Europe/Amsterdam", "Etc/UTC": "UTC", "EST": "EST", "Nowhere/City": "Nowhere/City", "": "",
	} {
		require.Equal(t, name, FoldZone(alias), alias)
	}
	require.Equal(t, []string{"Asia/Calcutta"}, ZoneAliases("Asia/Kolkata"))
	require.Empty(t, ZoneAliases("Europe/Amsterdam"))
	for alias, name := range zoneNameOf() {
		zone, known := Zone(alias)
		require.True(t, known, alias)
		require.Equal(t, name, zone.String())
		require.Equal(t, name, FoldZone(name), "no alias of an alias")
	}
	settings := MeetingRules{TimeZone: "Asia/Calcutta", Travel: []MeetingTravel{{From: "2026-12-01", To: "2026-12-02", TimeZone: "Asia/Saigon"}}}
	complete := settings.Complete()
	require.Equal(t, []string{"Asia/Kolkata", "Asia/Ho_Chi_Minh"}, []string{complete.TimeZone, complete.Travel[0].TimeZone})
	require.Equal(t, "Asia/Saigon", settings.Travel[0].TimeZone, "the settings given are not changed")
	in := struct {
		Zone string `shape:"zone"`
	}{"Asia/Calcutta"}
	Fold(&in)
	require.Equal(t, "Asia/Kolkata", in.Zone)
}
