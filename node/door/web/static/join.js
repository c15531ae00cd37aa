// Fills in the address of who joins from the name, and says while it is typed whether it is free. The form works without it.
"use strict";
{
	const form = document.querySelector("form[data-join]");
	const name = form?.elements.namedItem("name"), handle = form?.elements.namedItem("handle");
	if (name && handle) {
		const says = document.createElement("p");
		says.className = "hint";
		says.id = "handle-says";
		says.hidden = true;
		says.setAttribute("role", "status");
		handle.after(says);
		let typed = handle.value !== "", asked = 0, timer;
		const ask = async () => {
			const mine = ++asked, query = new URLSearchParams(typed ? { handle: handle.value } : { name: name.value });
			if (!(typed ? handle : name).value.trim()) {
				says.textContent = "";
				return;
			}
			try {
				const answer = await (await fetch("/join/handle?" + query)).json();
				if (mine !== asked) {
					return;
				}
				if (!typed && answer.handle) {
					handle.value = answer.handle;
				}
				says.hidden = false;
				says.textContent = answer.free ? "✓ @" + answer.handle : answer.why;
				says.className = answer.free ? "hint" : "wrong";
			} catch {
				says.textContent = "";
			}
		};
		const later = () => {
			clearTimeout(timer);
			timer = setTimeout(ask, 300);
		};
		handle.addEventListener("input", () => {
			typed = handle.value !== "";
			later();
		});
		name.addEventListener("input", later);
		if (handle.value) {
			ask();
		}
	}
}
