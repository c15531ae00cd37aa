package web

import (
	"net/url"
	"strconv"
	"strings"

	"stoa/protocol"
)

// The settings of meetings as text: what the form shows, and how it is read.

var weekNames = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

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
	v := meetingTable.shows(m)
	for _, day := range weekNames {
		v.Set("hours-"+day, hoursText(m.MeetingRules, day))
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

func overridesText(list []protocol.MeetingOverride) string {
	var lines []string
	for _, o := range list {
		text := windowText(o.Windows)
		if text == "" {
			text = "closed"
		}
		lines = append(lines, o.Date+" "+text)
	}
	return strings.Join(lines, "\n")
}

func travelText(list []protocol.MeetingTravel) string {
	var lines []string
	for _, t := range list {
		lines = append(lines, t.From+" to "+t.To+" "+t.TimeZone)
	}
	return strings.Join(lines, "\n")
}
