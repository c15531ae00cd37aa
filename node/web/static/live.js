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
	if (from && window.EventSource) new EventSource(from.dataset.live).addEventListener("change", refresh);
}
