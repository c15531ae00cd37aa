// The button "Notify me on this device": asks the browser for permission when it is pressed, subscribes, fills the form and
// sends it. Nothing is asked for before. Without it, or where the browser has no Web Push, the button is not shown.
"use strict";
{
	const here = document.currentScript.dataset;
	const texts = JSON.parse(here.words || "{}"), tr = text => texts[text] ?? text;
	const form = document.querySelector("form[data-push]");
	const subscribe = async () => {
		if (await Notification.requestPermission() != "granted") throw tr("The browser does not allow it. Allow notifications of this site in its settings, then try again.");
		let address = form.dataset.worker;
		if (window.trustedTypes) {
			const path = address;
			address = trustedTypes.createPolicy("stoa-push", { createScriptURL: () => path }).createScriptURL("");
		}
		await navigator.serviceWorker.register(address);
		const { pushManager } = await navigator.serviceWorker.ready;
		return (await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: form.dataset.push })).toJSON();
	};
	if (form && navigator.serviceWorker && window.PushManager && window.Notification) {
		form.hidden = false;
		const says = form.querySelector("[role=status]"), button = form.querySelector("button");
		form.addEventListener("submit", async event => {
			event.preventDefault();
			button.disabled = true;
			says.textContent = "";
			try {
				const { endpoint, keys: { p256dh, auth } } = await subscribe();
				for (const [name, value] of Object.entries({ endpoint, p256dh, auth, program: navigator.userAgent.slice(0, 300) })) form.elements[name].value = value;
				form.submit();
			} catch (why) {
				button.disabled = false;
				says.textContent = typeof why == "string" ? why : tr("This browser could not be reached through its push service. Try again later.");
			}
		});
	}
}
