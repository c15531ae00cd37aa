// Registering an identity with the wallet of the browser (EIP-1193, EIP-6963). The page has the call; this script asks the wallet what it
// costs, has the wallet send it, and asks the node how far the chain is. Nothing is sent before the costs were shown.
(() => {
"use strict";
const texts = JSON.parse(document.currentScript.dataset.words || "{}"), tr = text => texts[text] ?? text;
const root = document.querySelector("[data-wallet]");
if (!root) return;
const REGISTERED = "0xca52e62c367d81bb2e328eb795f7c7ba24afb478408a26c0e201d155c449bc4a"; // Registered(uint256,string,address)
const part = name => root.querySelector(`[data-step="${name}"]`);
const says = (name, text) => { root.querySelector(`[data-says="${name}"]`).textContent = text; };
const number = document.getElementById("wallet-number"), registry = () => root.querySelector("[name=registry]");
const pause = () => new Promise(done => setTimeout(done, 2000));
const fill = (text, ...values) => values.reduce((t, v) => t.replace("%s", () => v), text);

let wallet, account, planned;
const request = (method, ...params) => wallet.request({ method, params });
const chain = () => BigInt(registry().value.split(":")[1]), contract = () => registry().value.split(":")[2];

// connect has the wallet choose an account, and the chain of the registry.
const connect = async () => {
	[account] = await request("eth_requestAccounts");
	if (BigInt(await request("eth_chainId")) != chain()) await request("wallet_switchEthereumChain", { chainId: "0x" + chain().toString(16) });
	if (BigInt(await request("eth_chainId")) != chain()) throw new Error(tr("The wallet is on another chain."));
};

// plan has the chain try a call, and shows what it costs at most at the prices of now.
const plan = async (name, data, ...facts) => {
	const call = { from: account, to: contract(), data, value: "0x0" };
	const gas = BigInt(await request("eth_estimateGas", call)) * 6n / 5n;
	const { baseFeePerGas } = await request("eth_getBlockByNumber", "latest", false);
	const tip = await request("eth_maxPriorityFeePerGas").catch(() => request("eth_gasPrice"));
	const cost = gas * (2n * BigInt(baseFeePerGas || 0) + BigInt(tip)), gwei = (cost + 999999999n) / 1000000000n;
	const text = gwei.toString().padStart(10, "0"), whole = (text.slice(0, -9) + "." + text.slice(-9)).replace(/\.?0+$/, "");
	const list = part(name).querySelector("dl"), places = list.querySelectorAll("dd span");
	[...facts, gas, fill(tr("%s of the chain's currency; the wallet decides"), whole)].forEach((fact, i) => { places[i].textContent = fact; });
	list.hidden = part(name).querySelector("[data-do=send]").hidden = false;
	planned = { ...call, gas: "0x" + gas.toString(16) };
};

// sent has the wallet send what was planned, and waits for the block.
const sent = async name => {
	says(name, tr("Your wallet asks you to confirm the transaction."));
	const hash = await request("eth_sendTransaction", planned);
	part(name).querySelector("[data-do=send]").hidden = true;
	says(name, tr("Sent. Waiting for a block."));
	for (;;) {
		const receipt = await request("eth_getTransactionReceipt", hash);
		if (receipt && BigInt(receipt.status) != 1n) throw new Error(tr("The chain refused the transaction."));
		if (receipt) return receipt;
		await pause();
	}
};

const ask = async (step, fields = {}) => {
	const body = new URLSearchParams({ step, registry: registry().value, number: number.value, ...fields });
	const answer = await fetch(root.dataset.wallet, { method: "POST", headers: { Accept: "application/json" }, cache: "no-store", body });
	const said = await answer.json();
	if (!answer.ok) throw new Error(said.detail || said.title);
	return said;
};

// until asks the node until what it says is so. The node looks at the chain by itself.
const until = async (name, is, text) => {
	for (;;) {
		const state = await ask("state");
		if (is(state)) return state;
		says(name, text(state));
		await pause();
	}
};

const waits = ({ seconds }) => seconds > 0
	? fill(tr("The key is named. It is final in about %s minutes; you may close this page and come back."), Math.ceil(seconds / 60))
	: tr("The key is named. Waiting until it is final; you may close this page and come back.");

// finish waits until the chain cannot take it back, and fills the form that connects.
const finish = async () => {
	await until("final", s => s.final, waits);
	says("final", tr("It is final. Connect the identity now."));
	const form = root.querySelector("form");
	form.elements.number.value = number.value;
	form.elements.registry.value = registry().value;
	form.querySelector("button").focus();
};

const steps = {
	register: {
		async ask() {
			await connect();
			await plan("register", root.dataset.call, account, JSON.parse(root.dataset.chains)[chain()]);
			says("register", "");
		},
		async send() {
			const { logs } = await sent("register");
			const made = logs.find(l => l.address.toLowerCase() == contract() && l.topics[0] == REGISTERED);
			number.value = BigInt(made.topics[1]).toString();
			const at = new URL(location.href);
			at.searchParams.set("registry", registry().value);
			at.searchParams.set("number", number.value);
			history.replaceState(null, "", at); // after a reload it goes on here
			await until("register", s => s.owner, () => tr("It is in a block. Waiting until the node sees it."));
			says("register", fill(tr("Registered: token %s."), number.value));
		},
	},
	keys: {
		async ask() {
			await connect();
			const state = await ask("state");
			if (state.named) return finish();
			if (state.owner != account.toLowerCase()) throw new Error(fill(tr("The token belongs to %s; choose that account in the wallet."), state.owner || "-"));
			says("keys", tr("Your wallet asks you to sign the name of the key. It costs nothing."));
			const { issued, typed } = await ask("record", { account });
			const signature = await request("eth_signTypedData_v4", account, typed);
			const { data } = await ask("call", { account, issued, signature });
			await plan("keys", data);
			says("keys", "");
		},
		async send() {
			await sent("keys");
			await until("keys", s => s.named, () => tr("It is in a block. Waiting until the node sees it."));
			says("keys", tr("Published."));
			await finish();
		},
	},
};

const words = err => {
	switch (err.code) {
	case 4001: return tr("Nothing was sent: the wallet was told not to.");
	case 4902: return tr("The wallet does not know this chain. Add it there, and try again.");
	}
	return err.message;
};

const show = () => {
	if (!wallet || !part("register").hidden) return;
	root.querySelector("[data-lack]").hidden = true;
	for (const [name, step] of Object.entries(steps)) {
		part(name).hidden = false;
		for (const button of part(name).querySelectorAll("[data-do]")) {
			button.addEventListener("click", async () => {
				button.disabled = true;
				try {
					await step[button.dataset.do]();
				} catch (err) {
					says(name, words(err));
				}
				button.disabled = false;
			});
		}
	}
	registry().addEventListener("change", () => { // what was planned is for the other one
		for (const button of root.querySelectorAll("[data-do=send]")) button.hidden = true;
	});
	const before = new URL(location.href).searchParams;
	if (before.get("number")) {
		number.value = before.get("number");
		if (before.get("registry")) registry().value = before.get("registry");
	}
};

addEventListener("eip6963:announceProvider", event => { wallet ||= event.detail.provider; show(); });
wallet = window.ethereum;
dispatchEvent(new Event("eip6963:requestProvider"));
show();
})();
