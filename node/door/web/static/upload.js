// A form with a file shows how far the file is, and can be cancelled while it is on its way. The answer takes the place of
// the page's content, with the file still chosen. Without it the browser sends the form.
"use strict";

const texts = JSON.parse(document.currentScript.dataset.words || "{}"), tr = (text, ...args) => args.reduce((t, arg) => t.replace("%s", arg), texts[text] ?? text);
const megabytes = n => (n / 1048576).toFixed(1);

// Before the listener of every page that lets a form be sent once: this form may be sent again as soon as it was cancelled.
document.addEventListener("submit", e => {
	const form = e.target, field = form.querySelector("input[type=file]"), shown = form.querySelector("[data-upload]");
	if (e.defaultPrevented || !shown || !field.files.length) return;
	e.preventDefault();
	const [note, bar, cancel] = shown.children, buttons = form.querySelectorAll("button[type=submit]"), xhr = new XMLHttpRequest();
	const idle = (on, text) => {
		shown.hidden = false;
		note.textContent = text;
		bar.hidden = cancel.hidden = on;
		for (const b of buttons) b.disabled = !on;
	};
	if (field.files[0].size > Number(field.dataset.most)) return idle(true, tr("The file is larger than %s MB.", Number(field.dataset.most) >> 20));
	xhr.open("POST", e.submitter?.formAction || form.action);
	xhr.setRequestHeader("Accept", "text/html");
	xhr.responseType = "document";
	let whole = false;
	xhr.upload.onprogress = p => {
		bar.value = p.loaded / p.total;
		note.textContent = tr("%s of %s MB sent", megabytes(p.loaded), megabytes(p.total));
	};
	xhr.upload.onload = () => {
		whole = true;
		bar.removeAttribute("value");
		cancel.hidden = true;
		note.textContent = tr("The file is sent. The node reads it.");
	};
	xhr.onabort = () => idle(true, tr("Cancelled. Nothing was changed."));
	xhr.onerror = () => idle(true, whole ? tr("The connection broke while the node read the file. Look whether it was imported before you send it again.") :
		tr("The connection broke before the file was sent. Nothing was changed."));
	xhr.onload = () => {
		const page = xhr.response, main = page?.querySelector("main"), next = main?.querySelector("form:has([data-upload]) input[type=file]");
		if (!main) return xhr.onerror();
		if (next) next.files = field.files;
		document.title = page.title;
		document.querySelector("main").replaceWith(main);
		const heading = main.querySelector("#report, .alert");
		heading?.setAttribute("tabindex", "-1");
		heading?.focus();
		scrollTo(0, 0);
	};
	cancel.onclick = () => xhr.abort();
	bar.value = 0;
	idle(false, tr("%s of %s MB sent", megabytes(0), megabytes(field.files[0].size)));
	xhr.send(new FormData(form, e.submitter));
}, true);
