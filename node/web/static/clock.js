// Writes times as the reader's clock has them: how long ago within a week, otherwise the date. Without it they are
// in the zone that the page names. It runs before the page is first drawn, so that nothing moves.
"use strict";

{
	const { lang: page } = document.documentElement, lang = page == "en" ? "en-IN" : page, now = Date.now();
	const ago = new Intl.RelativeTimeFormat(lang, { numeric: "auto", style: "short" });
	const full = new Intl.DateTimeFormat(lang, { dateStyle: "medium", timeStyle: "short" });
	const day = new Intl.DateTimeFormat(lang, { dateStyle: "medium" });
	const units = [["day", 864e5], ["hour", 36e5], ["minute", 6e4]];
	const write = () => document.querySelectorAll("time[data-ago]").forEach(time => {
		const at = new Date(time.dateTime), distance = at - now;
		const [unit, size] = units.find(([, size]) => Math.abs(distance) >= size) ?? ["second", Infinity];
		time.title = full.format(at);
		time.textContent = Math.abs(distance) < 7 * 864e5 ? ago.format(Math.trunc(distance / size), unit) : day.format(at);
	});
	write();
	document.addEventListener("fresh", write); // the page has other times
}
