// Small helps on the pages of a payment and of a bid: a countdown, buttons that copy, and a form
// that is sent with the fragment of the address. Without it the pages say the same.
"use strict";

const texts = JSON.parse(document.currentScript.dataset.words || "{}"), tr = (text, ...args) => args.reduce((t, arg) => t.replace("%s", arg), texts[text] ?? text);

for (const time of document.querySelectorAll("time[data-left]")) {
	const end = performance.now() + Number(time.dataset.left), at = time.textContent;
	const show = () => {
		const s = Math.max(0, Math.ceil((end - performance.now()) / 1000));
		const hours = Math.floor(s / 3600), minutes = Math.floor(s / 60) % 60, two = n => String(n).padStart(2, "0");
		time.textContent = hours ? tr("%s (%s h %s min left)", at, hours, minutes) : tr("%s (%s left)", at, minutes + ":" + two(s % 60));
		if (s) setTimeout(show, 1000);
		else if (performance.now() > 2000) location.reload(); // not at once: clocks may differ
	};
	show();
}

for (const code of document.querySelectorAll("[data-copy]")) {
	if (!navigator.clipboard) break;
	const button = document.createElement("button");
	button.type = "button";
	button.className = "quiet";
	button.textContent = tr("Copy");
	button.onclick = async () => {
		await navigator.clipboard.writeText(code.textContent);
		button.textContent = tr("Copied");
		setTimeout(() => { button.textContent = tr("Copy"); }, 2000);
	};
	(code.closest("pre") || code).after(button);
}

const opens = document.querySelector("form[data-fragment]");
if (opens && location.hash.length > 1) {
	opens.elements[opens.dataset.fragment].value = decodeURIComponent(location.hash.slice(1));
	history.replaceState(null, "", location.pathname);
	opens.requestSubmit();
}
