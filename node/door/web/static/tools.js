// The second part of the script of every page: the node's tools for agents in the browser (spec §4.2).
// They are in window.serviceAgent, and in whatever model context the browser has. tools is the list
// made from the declarations of the operations (tools.json); here is what the page says of itself.

class Refusal extends Error {
	constructor(problem) {
		super(problem.detail || problem.title);
		this.name = "Refusal";
		this.problem = problem;
	}
}

const refuse = (code, title, detail, errors) => new Refusal({ code, title, detail, ...(errors && { errors }) });

// send sends the request of a tool. Members of the path and the secret are taken out of the input;
// the rest is the query or the body.
const send = async (tool, input, proof, signal) => {
	const rest = { ...input }, headers = { Accept: tool.media || "application/json" };
	const take = name => { const value = rest[name]; delete rest[name]; return value; };
	let path = tool.path.replace(/\{(\w+)\}/g, (_, name) => {
		const value = take(name);
		if (typeof value != "string" || !value) {
			throw refuse("validation", "Invalid input", name + " is missing", [{ pointer: "/" + name, code: "required", detail: "is missing" }]);
		}
		return encodeURIComponent(value.replace(/^@/, ""));
	});
	if (tool.secret && rest[tool.secret]) headers.Authorization = "Bearer " + take(tool.secret);
	const options = { method: tool.method, headers, signal, cache: "no-store" };
	if (tool.method == "GET") {
		const query = new URLSearchParams(Object.entries(rest).filter(([, value]) => value != null));
		if (query.size) path += "?" + query;
	} else {
		const as = take("actAs");
		if (as) headers["Act-As"] = as;
		if (proof) headers["Proof-Of-Work"] = proof;
		headers["Content-Type"] = "application/json";
		options.body = JSON.stringify(rest);
	}
	let answer, text;
	try {
		answer = await fetch(path, options);
		text = await answer.text();
	} catch (err) {
		if (signal?.aborted) throw refuse("cancelled", "Cancelled", "The call was cancelled. Nothing more was sent.");
		throw refuse("unreachable", "The node cannot be reached", "Check the connection, then call the tool again.");
	}
	const json = /\bjson\b/.test(answer.headers.get("Content-Type"));
	if (!answer.ok) throw new Refusal(json ? JSON.parse(text) : { code: "unknown", title: "The node answered " + answer.status, detail: text.slice(0, 500) });
	return json ? JSON.parse(text) : { text };
};

// perform calls the operation of a tool. The refusal of a write without proof has the puzzle.
const perform = async (tool, input, signal) => {
	let proof;
	for (let tries = 0; ; tries++) {
		try {
			return await send(tool, input, proof, signal);
		} catch (err) {
			const { challenge } = err.problem || {};
			if (!challenge || tries == 2) throw err;
			if (!crypto.subtle) throw refuse("insecure-page", "The page is not secure", "The browser solves the proof of work only on a page that it reached by https.");
			proof = btoa(JSON.stringify(await solve(challenge, () => {}, signal || new AbortController().signal)));
		}
	}
};

// offer shows where a bid is paid. No tool pays, and none opens the page.
const offer = ({ paymentUrl }) => {
	const link = document.createElement("a"), box = document.createElement("p");
	link.href = paymentUrl;
	link.textContent = "Pay for the bid";
	box.className = "done";
	box.setAttribute("role", "status");
	box.append("A program in your browser made a bid. It counts when it is paid: ", link, ".");
	document.querySelector("main").prepend(box);
};

const ways = {
	async get_current_page(tool, input, signal) {
		return perform(tool, { path: location.pathname + location.search, ...input }, signal);
	},
	async bid_for_attention(tool, input, signal) {
		const bid = await perform(tool, input, signal);
		offer(bid);
		return bid;
	},
	async go_to(tool, { path }) {
		const there = typeof path == "string" && /^\/(?![/\\])/.test(path) && new URL(path, location.origin);
		const open = tool.pages.map(p => new RegExp("^" + p.replace(/\{\w+\}/g, "[^/]+") + "$"));
		if (!there || there.origin != location.origin || !open.some(p => p.test(there.pathname))) {
			throw refuse("not-found", "Not found", "path must be that of a public page: " + tool.pages.join(", "), [{ pointer: "/path", code: "not-found", detail: "no public page" }]);
		}
		setTimeout(() => location.assign(there), 50); // the answer goes first
		return { ok: true, url: there.href };
	},
};

// A tool that is on some pages only does one thing to the agent of the page.
const byName = Object.fromEntries(tools.map(t => [t.name, t]));
const run = (tool, input, signal) => {
	const full = tool.of ? byName[tool.of] : tool;
	if (tool.of) input = { ...input, handle: here.handle };
	return (ways[full.name] || perform)(full, input || {}, signal);
};
const problemOf = err => err.problem || { code: "failed", title: "The tool failed", detail: err.message };

const offered = tools.filter(t => !t.on || t.on.includes(here.page)).map(tool => Object.freeze({
	name: tool.name, title: tool.title, description: tool.description, inputSchema: tool.inputSchema, readOnly: tool.annotations.readOnlyHint,
	annotations: tool.annotations,
	// A browser shows a thrown error as a mere failure, so the problem is returned.
	execute: async (input, { signal } = {}) => {
		try {
			return await run(tool, input, signal);
		} catch (err) {
			return { error: problemOf(err) };
		}
	},
}));

const call = async (name, input) => {
	const tool = tools.find(t => t.name == name && (!t.on || t.on.includes(here.page)));
	if (!tool) throw refuse("unknown-tool", "Unknown tool", "This page has no tool " + name + "; serviceAgent.tools lists them.");
	try {
		return await run(tool, input);
	} catch (err) {
		throw err.problem ? err : new Refusal(problemOf(err));
	}
};

Object.defineProperty(window, "serviceAgent", { value: Object.freeze({ version: 1, tools: Object.freeze(offered), call }), enumerable: true });

// publish gives the tools to the browser, in the ways that browsers have had and have.
let published;
const publish = async () => {
	const { modelContext: old } = navigator, { modelContext: now } = document;
	published?.abort();
	const { signal } = published = new AbortController();
	if (now) for (const form of document.querySelectorAll("form[toolname]")) form.removeAttribute("toolname"); // or the names clash
	const register = (context, tool) => Promise.resolve(context.registerTool(tool, { signal })).catch(() => {}); // serviceAgent has it
	try {
		if (old?.provideContext) await old.provideContext({ tools: [...offered] });
		else if (old?.registerTool && old != now) for (const tool of offered) {
			try { old.unregisterTool?.(tool.name); } catch (err) { /* it was not there */ }
			register(old, tool);
		}
	} catch (err) { /* serviceAgent has them */ }
	if (now?.registerTool) for (const tool of offered) register(now, tool);
};
publish();
window.addEventListener("pageshow", e => { if (e.persisted) publish(); });
