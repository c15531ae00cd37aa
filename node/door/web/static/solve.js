// A worker that searches the solution of a proof of work: ALTCHA version 2 with PBKDF2/SHA-256.
// It is sent {parameters, first, step} and tries the counters first, first + step, … It posts
// {tries}, the number of counters tried since the last message, and at the end {counter, key}.
"use strict";

const together = 16; // derivations at once; the browser has threads for them

const bytes = hex => Uint8Array.from(hex.match(/../g), pair => parseInt(pair, 16));
const hex = buffer => Array.from(new Uint8Array(buffer), b => b.toString(16).padStart(2, "0")).join("");

onmessage = async ({ data: { parameters, first, step } }) => {
	const nonce = bytes(parameters.nonce), salt = bytes(parameters.salt);
	const derive = async counter => {
		const password = new Uint8Array(nonce.length + 4);
		password.set(nonce);
		new DataView(password.buffer).setUint32(nonce.length, counter);
		const base = await crypto.subtle.importKey("raw", password, "PBKDF2", false, ["deriveBits"]);
		const how = { name: "PBKDF2", hash: "SHA-256", salt, iterations: parameters.cost };
		return hex(await crypto.subtle.deriveBits(how, base, 8 * parameters.keyLength));
	};
	for (let next = first; next < 2 ** 32;) {
		const counters = [];
		for (; counters.length < together && next < 2 ** 32; next += step) counters.push(next);
		const keys = await Promise.all(counters.map(derive));
		const at = keys.findIndex(key => key.startsWith(parameters.keyPrefix));
		if (at >= 0) return postMessage({ counter: counters[at], key: keys[at] });
		postMessage({ tries: keys.length });
	}
};
