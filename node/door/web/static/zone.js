// Proposes the browser's time zone in a field with data-zone, whose data-same has the other names of the field's zone, and
// the names of all zones. A field with
// data-zone="guess" was not filled in by the reader. A form that only selects what is shown is sent at once,
// so that times are those of the reader's clock. Without it the reader writes the zone.
"use strict";

for (const field of document.querySelectorAll("input[data-zone]")) {
	const names = document.createElement("datalist");
	names.id = field.id + "-names";
	for (const name of Intl.supportedValuesOf?.("timeZone") ?? []) names.append(new Option(name));
	field.after(names);
	field.setAttribute("list", names.id);
	const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
	if (field.dataset.zone != "guess" || !here || here == field.value || !here.includes("/")) continue;
	if (field.dataset.same.split(" ").includes(here)) continue; // the browser has another name for the zone
	field.value = here;
	if (field.form.method == "get") location.replace("?" + new URLSearchParams(new FormData(field.form)));
}
