// A form is sent once: while it is under way a second click does nothing. The field once names this visit of the page, the
// same one after going back, so that the node recognises what was sent already.
const random = () => [...crypto.getRandomValues(new Uint8Array(16))].map(b => b.toString(16).padStart(2, "0")).join("");
if (document.querySelector("[name=once]") && !history.state?.visit) history.replaceState({ ...history.state, visit: random() }, "");
const sending = new Set();
document.addEventListener("submit", e => {
	if (e.target.method != "post") return;
	if (sending.has(e.target)) {
		e.preventDefault();
		e.stopImmediatePropagation();
	} else if (e.target.elements.once) e.target.elements.once.value = history.state?.visit ?? random();
}, true);
document.addEventListener("submit", e => {
	if (e.defaultPrevented || e.target.method != "post") return;
	sending.add(e.target);
	setTimeout(() => sending.delete(e.target), 10000); // an answer that is a file leaves the page open
});
window.addEventListener("pageshow", e => { if (e.persisted) sending.clear(); });
