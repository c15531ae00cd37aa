package web

import (
	"net/url"
	"strings"

	"stoa/protocol"
)

var meetingTable = &formTable{
	op: protocol.PutMeetingSettings.Operation,
	controls: []control{
		tickBox("acceptingMeetingRequests", "Takes meeting requests"),
		group("Hours of the week, such as 10am–1pm, 14:00–18:00; empty for none", append(dayLines(120), faultOf("usualHours"))...).with("class", "fields"),
		line("durations", "Lengths in minutes").upTo(60),
		line("location", "Where: an address, a telephone number, or a video link; {slug} becomes a random name"),
		tickBox("showSlots", "Shows open times to everybody"),
		fold("What you meet people for, and questions to them",
			box("policy", "What you meet people for"),
			box("questions", "What you want to read in a request, one line each, at most three").upTo(620)),
		fold("Time zone, other dates and journeys",
			line("timezone", "Time zone of the hours"),
			spelled(box("dateOverrides", "Dates with other hours, one per line, such as 2026-12-25 closed, or 2026-12-26 10:00–12:00").upTo(12000),
				overridesText, typedOverrides),
			spelled(box("travel", "Dates in another time zone, one per line, such as 2026-12-01 to 2026-12-05 Europe/Berlin").upTo(2000), travelText, typedTravel)),
		fold("Notice, limits, pauses and other times",
			line("minNoticeMin", "Least minutes from a request to the meeting"), line("maxDaysAhead", "Most days from a request to the meeting"),
			line("maxPerDay", "Meetings a day"), line("maxPerWeek", "Meetings a week; empty for no limit"),
			line("bufferBefore", "Minutes kept free before a meeting"), line("bufferAfter", "Minutes kept free after a meeting"),
			line("slotStep", "Minutes from one open time to the next"), line("maxWaiting", "Requests that may wait at a time"),
			choose("outsideHours", "Requests for other times", [][2]string{{"mark", english("reach you, with a warning")}, {"refuse", english("are refused")}}),
			tickBox("pendingBlocksSlot", "A request that waits takes its time from the open times"),
			tickBox("reminders", "Both sides are reminded a day and an hour before a meeting"),
			tickBox("requireVerifiedDomain", "Only agents that sign for the domain of their mail address may ask")),
	},
	finish: func(form url.Values, args map[string]any) {
		hours := []any{}
		for _, x := range dayHours(form) {
			hours = append(hours, map[string]any{"day": x[0], "from": x[1], "to": x[2]})
		}
		args["usualHours"] = hours
	},
}

var proposal = &formTable{op: protocol.ProposeMeetingTimes.Operation, finish: func(form url.Values, args map[string]any) {
	times := []string{}
	for _, n := range timeRows(form) {
		times = append(times, localTime(form.Get("date-"+n), form.Get("time-"+n)))
	}
	args["times"] = times
}}

var move = &formTable{op: protocol.MoveMeeting.Operation, finish: func(form url.Values, args map[string]any) {
	args["startsAt"] = localTime(form.Get("date"), form.Get("time"))
}}

func typedOverrides(text string) any {
	var overrides []any
	for _, line := range textLines(protocol.FoldDigits(text)) {
		date, rest, _ := strings.Cut(line, " ")
		over := map[string]any{"date": date}
		if all := windows(rest); all != nil {
			over["windows"] = all
		}
		overrides = append(overrides, over)
	}
	return overrides
}

func typedTravel(text string) any {
	var travel []any
	for _, line := range textLines(text) {
		parts := append(strings.Fields(strings.ReplaceAll(line, " to ", " ")), "", "", "")
		travel = append(travel, map[string]any{"from": parts[0], "to": parts[1], "timezone": parts[2]})
	}
	return travel
}
