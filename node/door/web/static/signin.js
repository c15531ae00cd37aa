// Signing in with a passkey (WebAuthn) or an Ethereum account (EIP-1193, EIP-6963), and adding a
// passkey. A form with data-by is hidden until the browser is found to have what it needs; the paragraph
// with the same name in data-lack says what is missing. The script fills hidden fields of the form and
// sends it, so that the node answers with a page in every case.
(() => {
"use strict";

const texts = JSON.parse(document.currentScript.dataset.words || "{}"), tr = text => texts[text] ?? text;

const utf8 = new TextEncoder();
const decode = text => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));
const encode = buffer => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const hex = array => "0x" + Array.from(array, b => b.toString(16).padStart(2, "0")).join("");

const ask = async (path, fields) => {
	const options = { headers: { Accept: "application/json" }, cache: "no-store", ...(fields && { method: "POST", body: new URLSearchParams(fields) }) };
	const answer = await fetch(path, options);
	const said = await answer.json();
	if (!answer.ok) throw Object.assign(new Error(said.detail || said.title), { code: said.code });
	return said;
};

let wallet;

const ways = {
	passkey: {
		there: () => window.PublicKeyCredential && isSecureContext,
		wait: tr("Your device asks for your finger, your face or your PIN."),
		async run() {
			const { challenge, domain } = await ask("/sign-in/challenge", {});
			const found = await navigator.credentials.get({ publicKey: { challenge: utf8.encode(challenge), rpId: domain, userVerification: "required" } });
			const { clientDataJSON, authenticatorData, signature, userHandle } = found.response;
			return { passkey: encode(found.rawId), clientData: encode(clientDataJSON), authenticatorData: encode(authenticatorData),
				signature: encode(signature), user: encode(userHandle || new ArrayBuffer(0)) };
		},
	},
	"new-passkey": {
		there: () => window.PublicKeyCredential && isSecureContext,
		wait: tr("Your device asks for your finger, your face or your PIN."),
		async run(form) {
			const first = form.elements.ticket; // the first operator has no account yet
			const o = await (first ? ask("/operator/passkey", { ticket: first.value, name: form.elements.name.value }) : ask("/api/owner/passkeys/options"));
			const made = await navigator.credentials.create({ publicKey: {
				challenge: utf8.encode(o.challenge), rp: { id: o.domain, name: o.site }, user: { id: utf8.encode(o.user), name: o.name, displayName: o.name },
				pubKeyCredParams: o.algorithms.map(alg => ({ type: "public-key", alg })), attestation: "none",
				excludeCredentials: o.exclude.map(id => ({ type: "public-key", id: decode(id) })),
				authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" },
			} });
			return { credential: encode(made.rawId), clientData: encode(made.response.clientDataJSON), attestation: encode(made.response.attestationObject),
				transports: (made.response.getTransports?.() || []).join(","), ...(first && { account: o.user }) };
		},
	},
	ethereum: {
		there: () => wallet,
		wait: tr("Your wallet asks you to sign a text. It costs nothing."),
		async run() {
			const [account] = await wallet.request({ method: "eth_requestAccounts" });
			const chain = Number(await wallet.request({ method: "eth_chainId" }));
			const { message } = await ask("/sign-in/challenge", { account, chain });
			return { message, signature: await wallet.request({ method: "personal_sign", params: [hex(utf8.encode(message)), account] }) };
		},
	},
};

const words = err => {
	switch (err.name == "Error" ? err.code : err.name) {
	case "NotAllowedError": return tr("Nothing was done: it was cancelled, took too long, or this device has no passkey for this node.");
	case "InvalidStateError": return tr("This device has a passkey for this account already.");
	case 4001: return tr("Nothing was done: the wallet was told not to sign.");
	case "unauthorized": return tr("You are not signed in any more. Sign in in another tab, come back and try again.");
	}
	return err.message;
};

// Buttons of a form that has other ways too: shown where the browser has what theirs needs.
const showWays = () => {
	for (const row of document.querySelectorAll("[data-way]")) {
		const way = ways[row.dataset.way], form = row.closest("form"), button = row.querySelector("button");
		if (!row.hidden || !way.there()) continue;
		row.hidden = false;
		button.addEventListener("click", async event => {
			event.preventDefault();
			if (!form.reportValidity()) return;
			const state = form.querySelector("[role=status]:last-of-type");
			button.disabled = true;
			state.textContent = way.wait;
			try {
				for (const [name, value] of Object.entries({ way: row.dataset.way, ...await way.run() })) {
					const field = Object.assign(document.createElement("input"), { type: "hidden", name, value });
					form.append(field);
				}
				form.submit();
			} catch (err) {
				state.textContent = words(err);
			}
			button.disabled = false;
		});
	}
};

const show = () => {
	showWays();
	for (const form of document.querySelectorAll("form[data-by]")) {
		const way = ways[form.dataset.by];
		if (!form.hidden || !way.there()) continue;
		form.hidden = false;
		for (const lack of document.querySelectorAll(`[data-lack="${form.dataset.by}"]`)) lack.hidden = true;
		const state = form.querySelector("[role=status]"), button = form.querySelector("button");
		form.addEventListener("submit", async event => {
			event.preventDefault();
			button.disabled = true;
			state.textContent = way.wait;
			try {
				for (const [name, value] of Object.entries(await way.run(form))) form.elements[name].value = value;
				form.submit();
			} catch (err) {
				state.textContent = words(err);
			}
			button.disabled = false;
		});
	}
};

addEventListener("eip6963:announceProvider", event => { wallet ||= event.detail.provider; show(); });
wallet = window.ethereum;
dispatchEvent(new Event("eip6963:requestProvider"));
show();
})();
