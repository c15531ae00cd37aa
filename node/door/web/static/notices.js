// The service worker: shows the notices that the node sends by Web Push, and opens the page that one is about.
"use strict";

self.addEventListener("push", event => {
	let notice = {};
	try {
		notice = event.data.json();
	} catch {} // nothing, or nothing of ours: a browser wants something shown for every message
	const { title = location.host, body = "", tag, url = "/account" } = notice;
	event.waitUntil(self.registration.showNotification(title, { body, tag, renotify: Boolean(tag), data: url }));
});

self.addEventListener("notificationclick", event => {
	event.notification.close();
	const to = new URL(event.notification.data, location.origin);
	if (to.origin == location.origin) event.waitUntil(self.clients.openWindow(to.href));
});

// A browser may replace a subscription by itself: the node is told, wherever it used the former one.
self.addEventListener("pushsubscriptionchange", event => {
	const former = event.oldSubscription;
	if (!former) return;
	event.waitUntil((async () => {
		const fresh = event.newSubscription ?? await self.registration.pushManager.subscribe(former.options);
		const { endpoint, keys: { p256dh, auth } } = fresh.toJSON();
		await fetch("/api/owner/devices", { method: "POST", headers: { "Content-Type": "application/json" },
			body: JSON.stringify({ former: former.endpoint, endpoint, p256dh, auth }) });
	})());
});
