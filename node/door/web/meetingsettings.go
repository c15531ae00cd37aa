package web

import (
	"net/url"
	"strconv"
	"strings"

	"stoa/protocol"
)

// The settings of meetings as text: what the form shows, and how it is read.

var weekNames = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

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
	switch name = parts[0]; name {
	case "times":
		if rows := timeRows(f.values); n >= 0 && n < len(rows) {
			name = "times-" + rows[n]
		}
	case "usualHours":
		if field, text := f.hoursPlace(n); n >= 0 && field != "" {
			return field, text, true
		}
	default:
		return "", "", false
	}
	return name, "", true
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
