// The script that runs before the page is first drawn, so that nothing moves.
// Writes times as the reader's clock has them: how long ago within a week, otherwise the date. Without it they are
// in the zone that the page names.
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

// The header of a page that is the same for everyone says that this browser is signed in, by a cookie that opens nothing.
// Without it the link leads to /sign-in, which goes on to the account.
{
	const me = document.querySelector("a[data-me]");
	if (me && document.cookie.split("; ").includes("stoa_signed_in=1")) {
		me.href = "/account";
		me.textContent = me.dataset.me;
		document.querySelector(".join")?.remove();
		// How much waits for the owner: asked for once a minute at most. What was known before is drawn with the page, so that nothing moves.
		const link = document.createElement("a");
		link.className = "count";
		link.href = "/account#waits";
		const draw = count => {
			link.ariaLabel = me.dataset.waits + ": " + count;
			link.textContent = count;
			count ? me.after(link) : link.remove();
		};
		(async () => {
			const { at = 0, count } = JSON.parse(sessionStorage.getItem("stoa_waits") || "{}");
			if (count) draw(count);
			if (Date.now() - at < 6e4) return;
			const waits = (await (await fetch("/api/owner/waiting")).json()).count;
			sessionStorage.setItem("stoa_waits", JSON.stringify({ at: Date.now(), count: waits }));
			if (count === undefined) draw(waits); // another number is drawn with the next page
		})().catch(() => {}); // signed out meanwhile, no connection, or nothing may be stored
	}
}

// The first page leads to the conversations that this browser began or opened: their paths, without what opens them.
{
	const name = "stoa_threads", most = 3, life = 60 * 864e5; // as long as the cookie of a conversation
	let all = [];
	try {
		all = JSON.parse(localStorage.getItem(name)).filter(t => /^\/threads\/\w+$/.test(t.path) && t.at > Date.now() - life);
	} catch {} // nothing is stored, or nothing may be
	const thread = document.querySelector("[data-thread]");
	if (thread) {
		const path = location.pathname, title = document.querySelector("h1").textContent, { thread: kind, handle } = thread.dataset;
		try {
			localStorage.setItem(name, JSON.stringify([{ path, title, kind, handle, at: Date.now() }, ...all.filter(t => t.path != path)].slice(0, most)));
		} catch {}
	}
	const list = document.querySelector("[data-threads]");
	if (list && all.length) {
		for (const { path, title, kind, handle } of all) {
			const item = document.createElement("li"), link = document.createElement("a");
			link.href = path;
			link.textContent = list.dataset[kind]?.replace("*", () => handle) ?? String(title); // in the language of this page
			item.append(link);
			list.querySelector("ul").append(item);
		}
		list.hidden = false;
	}
}
