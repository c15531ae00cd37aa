package web

import (
	"net/url"
	"strconv"
	"strings"

	"stoa/protocol"
)

// The settings of meetings as text: what the form shows, and how it is read.

var weekNames = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// settingNumbers are the fields with a whole number.
var settingNumbers = []string{"slotStep", "bufferBefore", "bufferAfter", "minNoticeMin", "maxDaysAhead", "maxPerDay", "maxPerWeek", "maxWaiting"}

// settingsInput converts the form to the input of put_meeting_settings.
func settingsInput(form url.Values) map[string]any {
	args := map[string]any{"usualHours": []any{}}
	for _, name := range []string{"handle", "timezone", "location", "policy", "outsideHours"} {
		if text := form.Get(name); strings.TrimSpace(text) != "" {
			args[name] = text
		}
	}
	for _, name := range settingNumbers {
		if text := strings.TrimSpace(form.Get(name)); text != "" {
			args[name] = coerce("integer", text)
		}
	}
	for _, name := range []string{"acceptingMeetingRequests", "showSlots", "pendingBlocksSlot", "requireVerifiedDomain", "reminders"} {
		args[name] = form.Get(name) != ""
	}
	var lengths, hours, overrides, travel, questions []any
	for _, text := range commaList(form.Get("durations")) {
		lengths = append(lengths, coerce("integer", text))
	}
	for _, day := range weekNames {
		for _, text := range commaList(form.Get("hours-" + day)) {
			w := windowOf(text)
			w["day"] = day
			hours = append(hours, w)
		}
	}
	for _, line := range textLines(form.Get("dateOverrides")) {
		date, rest, _ := strings.Cut(line, " ")
		over := map[string]any{"date": date}
		var windows []any
		for _, text := range commaList(strings.ReplaceAll(rest, "closed", "")) {
			windows = append(windows, windowOf(text))
		}
		if windows != nil {
			over["windows"] = windows
		}
		overrides = append(overrides, over)
	}
	for _, line := range textLines(form.Get("travel")) {
		parts := append(strings.Fields(strings.ReplaceAll(line, " to ", " ")), "", "", "")
		travel = append(travel, map[string]any{"from": parts[0], "to": parts[1], "timezone": parts[2]})
	}
	for _, line := range textLines(form.Get("questions")) {
		questions = append(questions, line)
	}
	for name, list := range map[string][]any{
		"durations": lengths, "usualHours": hours, "dateOverrides": overrides, "travel": travel, "questions": questions,
	} {
		if list != nil {
			args[name] = list
		}
	}
	return args
}

// windowOf reads a part of a day, such as 10:00-18:00 or 10:00 to 18:00. What is no such part is refused by
// the node.
func windowOf(text string) map[string]any {
	text = strings.NewReplacer(" to ", "-", "–", "-", "—", "-").Replace(text)
	from, to, _ := strings.Cut(text, "-")
	return map[string]any{"from": clockText(from), "to": clockText(to)}
}

// clockText completes a time of day: 9 and 9:00 are 09:00.
func clockText(text string) string {
	text = strings.TrimSpace(text)
	if text != "" && !strings.Contains(text, ":") {
		text += ":00"
	}
	if len(text) == len("9:00") {
		text = "0" + text
	}
	return text
}

// textLines returns the lines of a text that are not blank.
func textLines(text string) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// settingPlace returns the field of a fault of the settings or of proposed times, and what of the field it
// is about.
func (f *sent) settingPlace(parts []string) (name, element string, ok bool) {
	if len(parts) < 2 {
		return "", "", false
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return "", "", false
	}
	var names, elements []string
	add := func(name string, list []string) {
		for _, text := range list {
			names, elements = append(names, name), append(elements, text)
		}
	}
	switch name = parts[0]; name {
	case "times":
		for _, row := range timeRows(f.values) {
			add("times-"+row, []string{""})
		}
	case "usualHours":
		for _, day := range weekNames {
			add("hours-"+day, commaList(f.values.Get("hours-"+day)))
		}
	case "durations":
		add(name, commaList(f.values.Get(name)))
	case "dateOverrides", "travel", "questions":
		add(name, textLines(f.values.Get(name)))
	default:
		return "", "", false
	}
	if n < 0 || n >= len(names) {
		return name, "", true
	}
	return names[n], elements[n], true
}

// settingsValues returns what the form shows of the settings.
func settingsValues(m protocol.MeetingSettings) url.Values {
	r := m.MeetingRules
	v := valued("acceptingMeetingRequests", yes(m.Accepting), "timezone", r.TimeZone, "durations", numbersText(r.Durations), "location", r.Location,
		"showSlots", yes(r.ShowSlots), "policy", r.Policy, "questions", strings.Join(r.Questions, "\n"), "dateOverrides", overridesText(r),
		"travel", travelText(r), "outsideHours", r.OutsideHours, "pendingBlocksSlot", yes(r.PendingBlocksSlot == nil || *r.PendingBlocksSlot),
		"reminders", yes(r.Reminders == nil || *r.Reminders), "requireVerifiedDomain", yes(r.VerifiedDomain))
	for i, n := range []int{r.SlotStep, r.BufferBefore, r.BufferAfter, r.MinNoticeMin, r.MaxDaysAhead, r.MaxPerDay, r.MaxPerWeek, r.MaxWaiting} {
		v.Set(settingNumbers[i], orBlank(n))
	}
	for _, day := range weekNames {
		v.Set("hours-"+day, hoursText(r, day))
	}
	return v
}

func windowText(windows []protocol.MeetingWindow) string {
	parts := make([]string, len(windows))
	for i, w := range windows {
		parts[i] = w.From + "–" + w.To
	}
	return strings.Join(parts, ", ")
}

func hoursText(rules protocol.MeetingRules, day string) string {
	var windows []protocol.MeetingWindow
	for _, h := range rules.UsualHours {
		if h.Day == day {
			windows = append(windows, h.MeetingWindow)
		}
	}
	return windowText(windows)
}

func overridesText(rules protocol.MeetingRules) string {
	var lines []string
	for _, o := range rules.DateOverrides {
		text := windowText(o.Windows)
		if text == "" {
			text = "closed"
		}
		lines = append(lines, o.Date+" "+text)
	}
	return strings.Join(lines, "\n")
}

func travelText(rules protocol.MeetingRules) string {
	var lines []string
	for _, t := range rules.Travel {
		lines = append(lines, t.From+" to "+t.To+" "+t.TimeZone)
	}
	return strings.Join(lines, "\n")
}

func numbersText(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ", ")
}

// orBlank returns a number as text, "" for zero.
func orBlank(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
