package protocol

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPaise(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]int64{
		`1500`: 150000, `1500.5`: 150050, `1500.50`: 150050, `0.01`: 1, `1500.500000`: 150050, `0`: 0, `"1500"`: 150000, `"0001500.00"`: 150000,
		`100000`: 1_00_000_00, `10000000000`: MaxMinor, `0.29`: 29, `4.35`: 435, `1.15`: 115, // multiplied floats give 28, 434, 114
	} {
		var in struct {
			Amount Decimal `json:"amount"`
		}
		require.NoError(t, json.Unmarshal([]byte(`{"amount":`+raw+`}`), &in), raw)
		got, fault := in.Amount.Paise()
		require.Nil(t, fault, raw)
		require.Equal(t, want, got, raw)
	}
	for raw, code := range map[string]string{
		`1e3`: "wrong-shape", `1E3`: "wrong-shape", `1.5e2`: "wrong-shape", `-1`: "wrong-shape", `"+1"`: "wrong-shape", `"-0"`: "wrong-shape",
		`1.005`: "wrong-shape", `"1."`: "wrong-shape", `".5"`: "wrong-shape", `""`: "wrong-shape", `"1,000"`: "wrong-shape", `"१५००"`: "wrong-shape",
		`" 1"`: "wrong-shape", `"1.0.0"`: "wrong-shape", `"0x10"`: "wrong-shape", `"1_000"`: "wrong-shape", `"NaN"`: "wrong-shape",
		// 2^50 paise and one
		`10000000000.01`: "out-of-range", `999999999999999`: "out-of-range", `9999999999999999`: "wrong-shape", `11258999068426.25`: "out-of-range",
	} {
		var d Decimal
		require.NoError(t, json.Unmarshal([]byte(raw), &d), raw)
		_, fault := d.Paise()
		require.NotNil(t, fault, raw)
		require.Equal(t, Fault{"/amount", code, fault.Detail}, *fault, raw)
	}
}

func TestFormatRupees(t *testing.T) {
	t.Parallel()
	for paise, want := range map[int64]string{
		0: "₹0", 1: "₹0.01", 10: "₹0.10", 100: "₹1", 99_999: "₹999.99", 100_000: "₹1,000", 1_00_000_00: "₹1,00,000", 12_34_567_89: "₹12,34,567.89",
		1_00_00_000_00: "₹1,00,00,000", MaxMinor: "₹10,00,00,00,000", -150050: "-₹1,500.50", math.MinInt64: "-₹92,23,37,20,36,85,47,758.08",
	} {
		require.Equal(t, want, FormatRupees(paise))
	}
}

// FuzzPaise: an amount that is accepted is the one that was written, and its formatted forms have
// the same digits.
func FuzzPaise(f *testing.F) {
	for _, s := range []string{"1500", "0.29", "1e3", "-1", "1.005", "10000000000.00", "١", "1.50\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		paise, fault := Decimal(s).Paise()
		if fault != nil {
			return
		}
		require.True(t, paise >= 0 && paise <= MaxMinor)
		money := MoneyOf(Rupee, paise)
		again, fault := Decimal(money.Amount).Paise()
		require.Nil(t, fault)
		require.Equal(t, paise, again)
		whole, fraction, _ := strings.Cut(s, ".")
		require.Equal(t, strings.TrimLeft(whole, "0")+"."+(strings.TrimRight(fraction, "0") + "00")[:2], strings.TrimPrefix(money.Amount, "0"), "%q", s)
		shown := strings.NewReplacer("₹", "", ",", "").Replace(FormatRupees(paise))
		require.Equal(t, strings.TrimSuffix(money.Amount, ".00"), shown)
	})
}
