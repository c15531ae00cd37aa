// Solves the proof of work of a form before the browser sends it. A form asks for that by
// data-proof, which is the purpose of the proof; it has a hidden field altcha for the solution and
// an element .proof with a status, a progress bar and a button to cancel. A button with
// data-free sends the form without a proof. The form is sent by the browser as any other, so that
// its fields, its faults and its answer are those of the server's page.

// Texts are in the language of the page, which has them in data-words; without, they are as here.
const texts = JSON.parse(here.words || "{}"), tr = text => texts[text] ?? text;

const worker = here.worker;
const script = window.trustedTypes
	? trustedTypes.createPolicy("stoa", { createScriptURL: () => worker }).createScriptURL("")
	: worker;

const challengeOf = async (form, signal) => {
	const { challenge } = form.dataset; // of the refusal before, which may be harder
	delete form.dataset.challenge;
	if (challenge) return JSON.parse(challenge);
	const answer = await fetch("/api/public/pow?purpose=" + form.dataset.proof, { signal, cache: "no-store" });
	if (answer.status == 429) throw new Error(tr("Too many requests come from your network. Wait a minute, then send the form again."));
	if (!answer.ok) throw new Error(tr("The node gave no puzzle to solve. Send the form again."));
	return answer.json();
};

const solve = ({ parameters, signature }, told, signal) => new Promise((done, failed) => {
	const step = Math.max(1, Math.min(4, (navigator.hardwareConcurrency || 2) - 1)), workers = [];
	const mean = 16 ** parameters.keyPrefix.length;
	let tries = 0;
	const end = (how, what) => { workers.forEach(w => w.terminate()); how(what); };
	signal.addEventListener("abort", () => end(failed, signal.reason));
	for (let first = 0; first < step; first++) {
		const w = new Worker(script);
		workers.push(w);
		w.onerror = () => end(failed, new Error(tr("Your browser could not solve the puzzle. Send the form again.")));
		w.onmessage = ({ data }) => {
			if (data.key) end(done, { challenge: { parameters, signature }, solution: { counter: data.counter, derivedKey: data.key } });
			else told(1 - Math.exp(-(tries += data.tries) / mean));
		};
		w.postMessage({ parameters, first, step });
	}
});

const prepare = form => {
	const panel = form.querySelector(".proof"), bar = panel.querySelector("progress"), field = form.elements.altcha;
	const status = panel.querySelector("[role=status]"), cancel = panel.querySelector("button");
	const buttons = [...form.querySelectorAll("button[type=submit]")];
	const words = status.textContent;
	let busy;
	const rest = text => {
		busy = null;
		buttons.forEach(b => { b.disabled = false; });
		bar.hidden = cancel.hidden = true;
		status.textContent = text;
		panel.hidden = !text;
	};
	rest("");
	cancel.onclick = () => busy?.abort(new Error(tr("Cancelled. Nothing was sent.")));
	window.addEventListener("pageshow", e => { if (e.persisted) { field.value = ""; rest(""); } });
	form.addEventListener("submit", async e => {
		const button = e.submitter;
		if (field.value || button?.hasAttribute("data-free")) return;
		e.preventDefault();
		if (busy) return;
		const mine = busy = new AbortController();
		buttons.forEach(b => { b.disabled = true; });
		panel.hidden = bar.hidden = cancel.hidden = false;
		status.textContent = words;
		bar.value = 0;
		try {
			if (!crypto.subtle) throw new Error(tr("Your browser solves the puzzle only on a page that it reached by https."));
			const challenge = await challengeOf(form, mine.signal);
			const solution = await solve(challenge, share => { bar.value = share; }, mine.signal);
			field.value = btoa(JSON.stringify(solution));
			rest("");
			form.requestSubmit(button);
			field.value = ""; // a proof is good for one try
		} catch (err) {
			rest(err instanceof TypeError ? tr("The node cannot be reached. What you typed is still here; send it again.") : err.message);
		}
	});
};
document.querySelectorAll("form[data-proof]").forEach(prepare);
