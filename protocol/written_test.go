package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadAmount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Decimal{
		"": "", "  ": "", "500": "500", "500.50": "500.50", "1,500": "1500", "1,50,000": "150000", "1,500,000": "1500000", "₹ 500": "500",
		"₹1,50,000.50": "150000.50",
		"Rs 500":       "500", "Rs. 1,500": "1500", "rs.500/-": "500", "500 Rs": "500", "500 rupees": "500", "INR 500": "500", "₹500/-": "500",
		"₹ 1,50,000/-": "150000",
		"१,५०,०००":     "150000", "रु ५००.५०": "500.50", "५०० रुपये": "500", "1 50 000": "150000", "1\u00a0500": "1500", "٥٠٠": "500", "５００": "500",
		"0.500": "0.500", "1500.500": "1500.500", "12.5000": "12.5000", "12.5": "12.5", "12,34,567": "1234567", "00": "00", "1,500.500": "1500.500",
		"5 lakh": "500000", "1.5 lakh": "150000", "2 crore": "20000000", "5 लाख": "500000", "₹ 1.25 Crores": "12500000", "Rs. 12 Lacs/-": "1200000",
		"५ लाख रुपये": "500000", "1.5 करोड़": "15000000", "2 करो\u095c": "20000000", "2cr": "20000000", "INR 1,000 crore": "10000000000", "0.5 lakh": "50000",
		"1.500 lakh": "150000", "0 lakh": "0", "0.000001 lakh": "0.1", "1.123456789 lakh": "112345.6789",
	} {
		got, fault := ReadAmount(Rupee, text)
		require.Nil(t, fault, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"1.500": "1500 or 1.50", "1,5": "15 or 1.5", "1,50": "150 or 1.50", "1500,50": "150050 or 1500.50", "₹ 12.345": "12345 or 12.34",
		"१.५००": "1500 or 1.50",
		"1 5":   "15 or 1.5",
	} {
		_, fault := ReadAmount(Rupee, text)
		require.NotNil(t, fault, text)
		require.Equal(t, AmbiguousCode, fault.Code, text)
		require.Contains(t, fault.Detail, "write "+want, text)
	}
	for _, text := range []string{"much", "-4", "+4", "1.500,50", "1,5,0", "1,50,00", "1.50.000", ".5", "5.", "1e3", "$5", "lakh", "5 lakhh", "1,5 lakh",
		"5 lakh crore", "2 lakh 5", "₹ lakh", "₹", "0x10",
		"1,,", ",500", "NaN",
		strings.Repeat("1,", 100), "500 USD"} {
		got, fault := ReadAmount(Rupee, text)
		require.NotNil(t, fault, "%s: %s", text, got)
		require.Equal(t, "wrong-shape", fault.Code, text)
	}
	for _, c := range [][3]string{{"KWD", "1.500", "1.500"}, {"USD", "$ 1,500", "1500"}, {"EUR", "12 €", "12"}, {"CHF", "CHF 12", "12"}, {"JPY",
		"1,500", "1500"}} {
		got, fault := ReadAmount(c[0], c[1])
		require.Nil(t, fault, c)
		require.Equal(t, Decimal(c[2]), got)
	}
	_, fault := ReadAmount("USD", "5 lakh")
	require.NotNil(t, fault, "a lakh is of rupees")
}

// FuzzReadAmount: what is read is digits that an operation takes or refuses, and reading it again changes nothing.
func FuzzReadAmount(f *testing.F) {
	for _, s := range []string{"₹ 1,50,000/-", "1.500", "१,५०० रुपये", "1\u202f500", "Rs.", "\xff1", "1.5 lakh", ".5 crore"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, fault := ReadAmount(Rupee, s)
		if fault != nil || got == "" {
			require.Empty(t, got)
			return
		}
		require.Regexp(t, `^[0-9]+(\.[0-9]+)?$`, string(got))
		if again, fault := ReadAmount(Rupee, string(got)); fault == nil {
			require.Equal(t, got, again)
		}
	})
}

func TestReadHours(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "closed": "", "Closed": "", "बंद": "", "छुट्टी": "", " - ": "", "24 hours": "00:00–24:00", "24x7": "00:00–24:00", "24 घंटे": "00:00–24:00",
		"9am-9pm": "09:00–21:00", "9–13, 15–19": "09:00–13:00, 15:00–19:00", "9:30 am to 8 pm": "09:30–20:00", "9.30am – 8.00pm": "09:30–20:00",
		"9-21": "09:00–21:00", "9:00-13:00; 16:00 to 21:00": "09:00–13:00, 16:00–21:00", "21:00–02:00": "21:00–02:00", "10:00–02:00": "10:00–02:00",
		"12:00–10:00": "12:00–10:00", "09:00–06:00": "09:00–06:00", "9-12": "09:00–12:00", "9 a.m. - 9 p.m.": "09:00–21:00", "10-6pm": "10:00–18:00",
		"1-5pm": "13:00–17:00", "12-3pm": "12:00–15:00", "9-9pm": "09:00–21:00", "10am-12am": "10:00–24:00", "6pm to midnight": "18:00–24:00",
		"noon-5pm": "12:00–17:00", "9am to noon": "09:00–12:00", "22–6": "22:00–06:00", "22:00-26:00": "22:00–26:00", "0930-1800": "09:30–18:00",
		"९-२१":            "09:00–21:00",
		"सुबह 9 से रात 9": "09:00–21:00", "सुबह 9:30 बजे से शाम 6 बजे तक": "09:30–18:00", "दोपहर 12 से रात 12": "12:00–24:00",
		"9am-1pm and 4pm-9pm": "09:00–13:00, 16:00–21:00",
		"9am-1pm & 16-21":     "09:00–13:00, 16:00–21:00", "9 से 13 और 16 से 21": "09:00–13:00, 16:00–21:00", "From 9 AM till 9 PM": "09:00–21:00",
		"9-11am":      "09:00–11:00",
		"10:00–24:00": "10:00–24:00", "00:00–23:59": "00:00–23:59", "10:00-10:00": "10:00–10:00", "8pm-2am": "20:00–02:00",
		"10:00 hrs - 18:00 hrs": "10:00–18:00",
	} {
		var got []string
		for _, w := range ReadHours(text) {
			require.NotEmpty(t, w.Opens, "%s: %q %v", text, w.Text, w.Unclear)
			got = append(got, w.Opens+"–"+w.Closes)
		}
		require.Equal(t, want, strings.Join(got, ", "), text)
	}
	for _, text := range []string{"9-6", "9-9", "4-8", "9-11pm", "6-10pm", "9am-9", "10-2am", "12-12pm", "9-12am", "noon-5", "10:00-11:00 pm"} {
		require.Equal(t, []WrittenShift{{"", "", text, true}}, ReadHours(text), text)
	}
	for _, text := range []string{"all", "10:00", "27-28", "9:60-10", "13pm-14pm", "0am-9am", "9-", "-9", "9am-9pm daily", "9-13-15", "१०"} {
		require.Equal(t, []WrittenShift{{"", "", text, false}}, ReadHours(text), text)
	}
	require.Len(t, ReadHours(strings.Repeat("9-13,", 1000)), maxWrittenShifts)
}

// FuzzReadHours: what is read is two times, and reads as the same again.
func FuzzReadHours(f *testing.F) {
	for _, s := range []string{"9am-9pm", "9–13, 15–19", "सुबह 9 से रात 9", "24 hours", "22:00-26:00", "\xff", "9-6"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, w := range ReadHours(s) {
			require.Equal(t, w.Opens == "", w.Closes == "")
			require.False(t, w.Unclear && w.Opens != "")
			if w.Opens != "" {
				require.Regexp(t, `^[0-2][0-9]:[0-5][0-9]–[0-2][0-9]:[0-5][0-9]$`, w.Opens+"–"+w.Closes)
				again := ReadHours(w.Opens + "–" + w.Closes)
				require.Len(t, again, 1)
				require.Equal(t, w.Opens+w.Closes, again[0].Opens+again[0].Closes)
			}
		}
	})
}

func TestReadPhone(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"IN", "+91 80 5550 1234", "+918055501234"}, {"IN", "98765 43210", "+919876543210"}, {"IN", "098765-43210", "+919876543210"}, {"IN",
			"(080) 2650 0000", "+918026500000"},
		{"IN", "91 98765 43210", "+919876543210"}, {"IN", "+91-(0)80-26500000", "+918026500000"}, {"IN", "+91 080 2650 0000", "+918026500000"}, {"IN",
			"0091 98765 43210", "+919876543210"},
		{"IN", "९८७६५ ४३२१०", "+919876543210"}, {"IN", "080.2650.0000", "+918026500000"}, {"IN", "112", "112"}, {"IN", "1800 11 1109", "1800 11 1109"},
		{"IN", "+44 20 7946 0000", "+442079460000"},
		{"GB", "020 7946 0000", "+442079460000"}, {"US", "(212) 555-0100", "+12125550100"}, {"US", "1 212 555 0100", "+12125550100"}, {"SG", "6123 4567",
			"+6561234567"},
		{"", "080 2650 0000", "080 2650 0000"}, {"", "+91 80 2650 0000", "+918026500000"}, {"ZZ", "020 1234", "020 1234"}, {"IN", "call me", "call me"},
		{"IN", "", ""},
		{"IN", "2650 0000", "2650 0000"}, {"IN", "+", "+"}, {"IN", "98765 43210 ext 5", "98765 43210 ext 5"}, {"IN", "+1234567890123456", "+1234567890123456"},
	} {
		require.Equal(t, c[2], ReadPhone(c[0], c[1]), "%q", c)
	}
	require.Equal(t, "+91 98765 43210", ShowPhone("+919876543210"))
	require.Equal(t, "+91 80 2650 0000", ShowPhone("+91 80 2650 0000"))
	require.Equal(t, "+442079460000", ShowPhone("+442079460000"))
}

// FuzzReadPhone: a number that was read is one of E.164, and reads as itself.
func FuzzReadPhone(f *testing.F) {
	for _, s := range []string{"+91 (0)80-2650 0000", "098765 43210", "0", "00", "+"} {
		f.Add("IN", s)
	}
	f.Fuzz(func(t *testing.T, country, s string) {
		got := ReadPhone(country, s)
		require.Equal(t, got, ReadPhone(country, got))
		if got != strings.TrimSpace(FoldDigits(s)) {
			require.Regexp(t, `^\+[0-9]{7,15}$`, got)
		}
	})
}

func TestFindUTR(t *testing.T) {
	t.Parallel()
	const utr = "431298765012"
	for _, text := range []string{
		utr, "4312 9876 5012", "4312-9876-5012", "43 12 98 76 50 12", "४३१२९८७६५०१२", "UTR:" + utr, "UPI Ref No." + utr + ".", "upi/cr/" + utr + "/ASHA",
		"Dear Customer, Rs.1500.00 debited from A/c XX1234 on 26-11-26 to VPA asha@okbank" +
			" (UPI Ref No " + utr + "). Not you? Call 18002586161/SMS BLOCK UPI to 7308080808",
		"INR 1,500.00 debited A/c no. XX5678 26-11-26, 10:12:31 UPI/P2A/" + utr + "/RAVI Not you? SMS BLOCKUPI Cust ID to 919951860002 Axis Bank",
		"Paid, RRN " + utr + " (UTR " + utr + ")", "UTR 4312 9876 5012, call +91 9876543210 or +919876543210",
		"A/c XX123456789012 ref " + utr, "Rs 123456789012.50 ref " + utr,
	} {
		got, n := FindUTR(text)
		require.Equal(t, 1, n, text)
		require.Equal(t, utr, got, text)
	}
	only, n := FindUTR("919951860002")
	require.Equal(t, "919951860002", only)
	require.Equal(t, 1, n)
	for text, want := range map[string]int{
		"": 0, "12345": 0, "letters": 0, "4312987650123": 0, "1234 5678 9012 3456": 0, "43129876501": 0, utr + " 531298765013": 2,
		"refs " + utr + ", 531298765013, 631298765014": 3,
	} {
		got, n := FindUTR(text)
		require.Equal(t, want, n, text)
		require.Empty(t, got, text)
	}
}

// FuzzFindUTR: one reference is 12 digits, and none is returned otherwise.
func FuzzFindUTR(f *testing.F) {
	f.Add("UPI Ref No 431298765012 to 919951860002")
	f.Add("4312 9876 5012")
	f.Fuzz(func(t *testing.T, s string) {
		utr, n := FindUTR(s)
		require.Equal(t, n == 1, utr != "")
		if utr != "" {
			require.Regexp(t, utrPattern, utr)
		}
	})
}
