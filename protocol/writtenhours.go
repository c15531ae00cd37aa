package protocol

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A WrittenShift is a part of a day as somebody wrote it. Opens and Closes are HH:MM, and empty when Text cannot be read; Unclear says
// that it can be read in two ways.
type WrittenShift struct {
	Opens, Closes string
	Text          string
	Unclear       bool
}

// maxWrittenShifts bounds what is read of a text; an operation takes fewer shifts of one day.
const maxWrittenShifts = 50

// Words for a day without shifts, and for one that is all open.
var (
	closedWords = []string{"closed", "close", "off", "holiday", "none", "-", "बंद", "बन्द", "छुट्टी", "अवकाश"}
	wholeWords  = []string{"24hours", "24hour", "24hrs", "24hr", "24h", "24x7", "24/7", "allday", "wholeday", "open24hours", "always", "alwaysopen",
		"24घंटे", "24घण्टे", "चौबीसघंटे", "दिनरात", "दिन-रात", "दिनभर", "पूरेदिन"}
)

var (
	shiftEnd = regexp.MustCompile(`[,;&\r\n]|\band\b|और`)
	dashes   = strings.NewReplacer("–", "-", "—", "-", "−", "-", "‒", "-", "‑", "-", "~", "-", "a.m.", "am", "p.m.", "pm", "a.m", "am", "p.m", "pm", "\u00a0", " ",
		"\u202f", " ")
	clockText = `(सुबह|सवेरे|दोपहर|शाम|रात)? *(noon|midnight|[0-9]{1,2})(?:[:.]?([0-9]{2}))? *(?:hrs|h|बजे)? *(am|pm)?`
	shiftForm = regexp.MustCompile(`^(?:from|open)? *` + clockText + ` *(?:-+|to|till|until|से) *` + clockText + ` *(?:तक)?$`)
)

// ReadHours reads the hours of a day as people write them: 9am-9pm; 9–13, 15–19; 9:30 am to 8 pm; सुबह 9 से रात 9; 24 hours. What is
// closed, or blank, has no shift.
func ReadHours(text string) (shifts []WrittenShift) {
	for _, part := range shiftEnd.Split(text, maxWrittenShifts) {
		s := strings.Join(strings.Fields(dashes.Replace(strings.ToLower(FoldDigits(part)))), " ")
		part = strings.TrimSpace(part)
		switch joined := strings.ReplaceAll(s, " ", ""); {
		case s == "" || slices.Contains(closedWords, joined):
		case slices.Contains(wholeWords, joined):
			shifts = append(shifts, WrittenShift{"00:00", "24:00", part, false})
		default:
			w := WrittenShift{Text: part}
			if m := shiftForm.FindStringSubmatch(s); m != nil {
				w.read(clockOf(m[1:5]), clockOf(m[5:9]))
			}
			shifts = append(shifts, w)
		}
	}
	return shifts
}

// A clock is a time of day as it is written.
type clock struct {
	hour, minute int
	half         string // am or pm; "" for neither
	exact        bool   // certainly of 24 hours: 13, 09, noon
	full         bool   // HH:MM
}

// clockOf reads the groups of clockText.
func clockOf(m []string) (c clock) {
	switch c.half = m[3]; m[1] {
	case "noon":
		return clock{hour: 12, exact: true}
	case "midnight":
		return clock{hour: 12, half: "am"}
	}
	c.hour, _ = strconv.Atoi(m[1])
	c.minute, _ = strconv.Atoi(m[2])
	switch m[0] {
	case "सुबह", "सवेरे":
		c.half = "am"
	case "दोपहर", "शाम":
		c.half = "pm"
	case "रात":
		if c.half = "am"; c.hour > 5 && c.hour < 12 {
			c.half = "pm"
		}
	}
	c.exact = c.half == "" && (c.hour > 12 || m[1][0] == '0')
	c.full = c.half == "" && len(m[1]) == 2 && m[2] != ""
	return c
}

// valid reports whether there is such a time; the night after a day has hours up to 26.
func (c clock) valid() bool {
	return c.minute < 60 && (c.half == "" && c.hour <= 26 || c.half != "" && c.hour >= 1 && c.hour <= 12)
}

// minutes returns the minutes since midnight.
func (c clock) minutes() int {
	switch c.half {
	case "am":
		return c.hour%12*60 + c.minute
	case "pm":
		return (c.hour%12+12)*60 + c.minute
	}
	return c.hour*60 + c.minute
}

func (c clock) in(half string) clock { c.half = half; return c }

func (c clock) String() string { return fmt.Sprintf("%02d:%02d", c.minutes()/60, c.minutes()%60) }

// read sets the times of a shift, unless people mean them in two ways: where one has am or pm only, or neither has.
func (w *WrittenShift) read(from, to clock) {
	if !from.valid() || !to.valid() {
		return
	}
	switch {
	case from.half != "":
		w.Unclear = to.half == "" && !to.exact // 9am–9
	case to.half != "" && !from.exact:
		from, w.Unclear = from.before(to)
	case to.half == "" && from.hour <= 12 && to.hour <= 12 && !(from.exact || from.full) || !(to.exact || to.full || to.half != ""):
		w.Unclear = from.hour <= 12 && (to.minutes() <= from.minutes() || from.hour < 6 && !from.exact) // 9–6, 4–8
	}
	if w.Unclear {
		return
	}
	w.Opens, w.Closes = from.String(), to.String()
	if to.half == "am" && to.minutes() == 0 {
		w.Closes = "24:00"
	}
}

// before returns a time without am or pm in the half of the day that people mean when only the time after it has that: 10–6pm begins in
// the morning, 1–5pm does not. 9–11pm can be both.
func (c clock) before(to clock) (meant clock, unclear bool) {
	forward := c.in(to.half).minutes() < to.minutes()
	switch {
	case to.half == "am":
		return c.in("am"), !forward
	case forward:
		return c.in("pm"), c.hour > 5 && c.hour < 12
	}
	return c.in("am"), c.hour == 12
}
