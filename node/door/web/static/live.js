// Keeps the page of a conversation up to date: when the node says that it has changed, the page is read again and its
// parts with data-part are replaced. What is typed into a form stays. Without it the reader loads the page again.
"use strict";

{
	const from = document.querySelector("[data-live]");
	const refresh = () => {
		const request = new XMLHttpRequest(); // parses without a script's policy of trusted types
		request.open("GET", location.pathname + location.search);
		request.responseType = "document";
		request.setRequestHeader("Accept", "text/html");
		request.onload = () => {
			if (request.status != 200 || !request.response) return;
			for (const old of document.querySelectorAll("[data-part]")) {
				const fresh = request.response.querySelector(`[data-part="${old.dataset.part}"]`);
				if (!fresh) continue;
				const known = new Set([...old.children].map(e => e.id));
				const more = [...fresh.children].filter(e => e.id && !known.has(e.id));
				if (old.dataset.part == "messages") old.append(...more.map(e => document.adoptNode(e)));
				else old.replaceChildren(...[...fresh.childNodes].map(e => document.adoptNode(e)));
			}
			document.dispatchEvent(new Event("fresh"));
		};
		request.send();
	};
	// A browser connects again by itself after a broken connection, but not after a refusal: a node that is busy or starts anew
	// answers 503. Each wait is twice as long as the one before, up to two minutes, and differs among the pages that wait.
	const first = 2000;
	let wait = first;
	const listen = () => {
		const source = new EventSource(from.dataset.live);
		source.addEventListener("change", refresh);
		source.addEventListener("open", () => { wait = first; });
		source.addEventListener("error", () => {
			if (source.readyState != EventSource.CLOSED) return;
			setTimeout(listen, wait * (0.5 + Math.random()));
			wait = Math.min(2 * wait, 120000);
		});
	};
	if (from && window.EventSource) listen();
}
