package web

import (
	"net/url"
	"strings"
	"time"

	"stoa/protocol"
)

// The forms of owners whose fields are not each a member of the input by its own name, or that show what is stored.

var formTables = []*formTable{
	profileTable, needTable, capabilityTable, notifyTable, receiptTable, identityTable, shopTable, hoursTable, meetingTable, proposal, move, loginTable,
	choiceTable,
	boardTable, payTable, orderStep, tillTable, stockTable, addressTable, reviewTable,
}

var profileTable = &formTable{op: protocol.PutOwnProfile.Operation, controls: append(labelledFields(protocol.PutOwnProfile.Operation),
	line("tags", "Tags, separated by commas").upTo(500),
	fold("Languages, regions and time zone", line("languages", "Languages, such as English, Hindi").upTo(800),
		line("regions", "Regions, such as Karnataka, India").upTo(1200), line("timezone", "Time zone, such as Asia/Kolkata")),
	group("Who may write to you",
		tickBox("agents", "Agents with a verified identity").of("contactPolicy.outsideAgentsWithIdentity"),
		tickBox("anonymous", "Anyone, with a proof of work").of("contactPolicy.anonymous")),
	fold("What they may write about, and when to expect an answer",
		several("kinds", "What they may write about; if none is ticked, anything", contactKinds).of("contactPolicy.kinds"),
		line("responseTime", "When to expect an answer").of("contactPolicy.responseTime")),
	tickBox("listed", "Shown in lists and searches"),
)}

var needTable = &formTable{op: protocol.PutNeed.Operation, controls: []control{
	line("id", "Short name, such as cotton-yarn").key(),
	box("description", "What you are looking for"), line("tags", "Tags, separated by commas").upTo(300),
}}

// contactKinds and pricingModels with their labels in the forms.
var contactKinds = [][2]string{{"question", english("Questions")}, {"quote_request", english("Requests for a quote")}, {"support", english("Support")}}

var pricingModels = [][2]string{
	{"", english("Not said")}, {"free", english("Free")}, {"fixed", english("Fixed price")}, {"per_use", english("Per use")}, {"quote", english("On request")},
}

var capabilityTable = &formTable{
	op: protocol.PutCapability.Operation,
	controls: []control{
		line("id", "Short name, such as weave-cloth").key(),
		line("name", "Name"), box("description", "What it does"),
		choose("pricing-model", "Price##of a capability", pricingModels).of("pricing.model"),
		line("pricing-amount", "Amount").of("pricing.amount"),
		fold("Currency and a note on the price",
			spelled(line("pricing-currency", "Currency, such as INR").of("pricing.currency").usually(protocol.Rupee), asItIs,
				func(text string) any { return strings.ToUpper(text) }),
			line("pricing-note", "About the price").of("pricing.note")),
		fold("Tags, what to send, what it returns, and its address",
			line("tags", "Tags, separated by commas").upTo(300),
			line("input", "What to send"), line("output", "What it returns"), line("endpoint", "Address of the service, https")),
	},
	finish: func(form url.Values, args map[string]any) {
		if form.Get("pricing-model") == "" {
			delete(args, "pricing")
		}
	},
}

func asItIs(text string) string { return text }

var notifyTable = &formTable{
	op: protocol.PutNotify.Operation,
	controls: []control{
		line("mail", "Mail address").with("type", "email"), line("webhook", "Webhook, a public https address").with("type", "url"),
		fold("Which events you are told about", several("events", "Tell me when …", eventChoices())),
	},
	finish: func(form url.Values, args map[string]any) {
		if len(form["events"]) == len(protocol.NoticeEvents) { // all, also those of later versions
			delete(args, "events")
		}
	},
}

func eventChoices() (all [][2]string) {
	for _, e := range protocol.NoticeEvents {
		all = append(all, [2]string{string(e), eventWords[e]})
	}
	return all
}

var receiptTable = &formTable{
	op: protocol.IssueOrderReceipt.Operation,
	controls: []control{
		line("order", "Your number of the order, without spaces").with("required", ""),
		line("amount", "Amount paid, in rupees, such as 1,180").of("total"),
		line("paidAt", "Paid on").upTo(10).with("required", "", "type", "date"),
		line("client", "Account of the buyer on the blockchain, 0x… (only it can review the order)").upTo(80),
		line("buyer", "Your own reference to the buyer, no name (only you see it)"),
	},
	finish: func(form url.Values, args map[string]any) { orderInput(form, args, time.Now()) },
}

var identityTable = &formTable{
	op: protocol.ConnectIdentity.Operation,
	controls: []control{
		line("number", "Number of your token").of("erc8004").upTo(78).with("required", "", "inputmode", "numeric", "autocomplete", "off"),
	},
	finish: func(form url.Values, args map[string]any) {
		args["erc8004"] = form.Get("registry") + ":" + strings.TrimSpace(form.Get("number"))
	},
}

// codedRegion is a region that is written as its name.
func codedRegion(name, label string) control {
	return spelled(line(name, label).of("address."+name).upTo(60), asItIs, func(text string) any { return regionCode(text) })
}

var shopTable = &formTable{op: protocol.PutMerchant.Operation, part: "shop", controls: []control{
	line("category", "What kind of shop, such as restaurant"),
	spelled(line("phone", "Telephone, such as 98765 43210 or +91 80 2650 0000").upTo(31).with("type", "tel", "autocomplete", "tel"), protocol.ShowPhone,
		func(text string) any { return text }),
	line("website", "Website, https"),
	line("street", "Street and number").of("address.street").with("autocomplete", "street-address"),
	sideBySide(line("city", "City"), line("postalCode", "PIN code").of("address.postalCode").with("autocomplete", "postal-code")),
	sideBySide(codedRegion("region", "State, such as Karnataka").with("autocomplete", "address-level1"),
		codedRegion("country", "Country, such as India").with("autocomplete", "country-name")),
	spelled(line("geo", "Place on the map, such as 12.9716, 77.5946").upTo(60), geoText, typedGeo),
}, finish: func(_ url.Values, args map[string]any) {
	if number, ok := args["phone"].(string); ok {
		args["phone"] = typedPhone(number, args)
	}
}}

var hoursTable = &formTable{
	op: protocol.PutMerchant.Operation, part: "hours",
	controls: []control{part("days", dayLines(100)...), trimmed(line("timezone", "Time zone; empty for that of the profile"))},
	finish: func(form url.Values, args map[string]any) {
		var hours []protocol.DayHours
		for _, x := range dayHours(form) {
			hours = append(hours, protocol.DayHours{Day: x[0], Opens: x[1], Closes: x[2]})
		}
		args["hours"] = hours
		if hours == nil {
			delete(args, "hours")
		}
	},
}

var loginTable = &formTable{op: protocol.ConnectCalendar.Operation, controls: []control{
	line("address", "Address of the calendar server (CalDAV)").with("required", "", "placeholder", "https://", "translate", "no"),
	trimmed(line("user", "User name there")).with("autocomplete", "off", "autocapitalize", "none"),
	calendarPassword[0], calendarPassword[1],
}}

// calendarPassword is empty also on a form that is shown again.
var calendarPassword = []control{
	line("password", "App password").hiddenText().with("autocomplete", "off"),
	remark("Many servers make one on their page of your account. It is stored encrypted, and never shown."),
}

var choiceTable = &formTable{
	op: protocol.ChooseCalendars.Operation,
	controls: []control{
		several("reads", "Calendars in which you are busy", nil).chosen(),
		choose("writes", "Approved meetings are put on", nil).chosen(),
		trimmed(line("create", "or on a new calendar of this server, with the name")),
	},
	finish: func(_ url.Values, args map[string]any) {
		if args["create"] != nil {
			delete(args, "writes")
		}
	},
}
