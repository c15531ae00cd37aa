// A small server of the fediverse, made with Fedify, that follows nobody. It
// prints its address as its first line and ends with its standard input. What
// its people do is asked for by POST /test/{deed} with JSON; what they have been
// sent, POST /test/received gives.
import http from "node:http";
import { Temporal } from "@js-temporal/polyfill";
import { createFederation, generateCryptoKeyPair, InProcessMessageQueue, MemoryKvStore } from "@fedify/fedify";
import {
  Activity, Announce, Create, Delete, Flag, Follow, LanguageString, Like, Mention, Note, Person, PUBLIC_COLLECTION, QuoteRequest, Undo, Update,
} from "@fedify/vocab";

const received = [], retryAfters = [], keys = new Map(), notes = new Map();

// A server that is asked to come back in a minute is to do so in a second here.
const fetchAsAsked = globalThis.fetch;
globalThis.fetch = async (...args) => {
  const res = await fetchAsAsked(...args);
  if (res.status !== 503 || !res.headers.has("retry-after")) return res;
  retryAfters.push(res.headers.get("retry-after"));
  const headers = new Headers(res.headers);
  headers.set("retry-after", "1");
  return new Response(await res.arrayBuffer(), { status: res.status, headers });
};

const federation = createFederation({
  kv: new MemoryKvStore(),
  queue: new InProcessMessageQueue(),
  allowPrivateAddress: true,
  // Five refusals within ten minutes open it for half an hour; here ten minutes of
  // retries pass in ten seconds.
  circuitBreaker: false,
  outboxRetryPolicy: ({ attempts }) => attempts < 300 ? Temporal.Duration.from({ seconds: 1 }) : null,
});

const away = new Set(), gone = new Set(); // people whose documents do not answer, or answer 410
const people = ["alice", "bob", "carol", "dora"];

federation
  .setActorDispatcher("/users/{identifier}", async (ctx, identifier) => {
    if (!people.includes(identifier)) return null;
    const pairs = await ctx.getActorKeyPairs(identifier);
    return new Person({
      id: ctx.getActorUri(identifier),
      preferredUsername: identifier,
      name: identifier,
      inbox: ctx.getInboxUri(identifier),
      publicKey: pairs[0].cryptographicKey,
      assertionMethods: pairs.map((pair) => pair.multikey),
    });
  })
  .setKeyPairsDispatcher(async (_, identifier) => {
    if (!keys.has(identifier)) {
      keys.set(identifier, Promise.all([generateCryptoKeyPair("RSASSA-PKCS1-v1_5"), generateCryptoKeyPair("Ed25519")]));
    }
    return await keys.get(identifier);
  });

federation.setObjectDispatcher(Note, "/notes/{id}", (_, { id }) => notes.get(id) ?? null);

federation.setInboxListeners("/users/{identifier}/inbox", "/inbox")
  .on(Activity, async (ctx, activity) => {
    const object = await activity.getObject(ctx);
    const told = {
      type: activity.constructor.name,
      id: activity.id?.href,
      actor: activity.actorId?.href,
      object: activity.objectId?.href,
      to: ctx.recipient,
      result: activity.resultId?.href,
    };
    if (object instanceof Note) {
      told.inReplyTo = object.replyTargetId?.href;
      told.content = String(object.content);
      told.languages = object.contents.filter((c) => c instanceof LanguageString).map((c) => c.locale.toString());
      told.addressed = object.toIds.concat(object.ccIds).map((id) => id.href);
      told.mentions = [];
      for await (const tag of object.getTags(ctx)) if (tag instanceof Mention) told.mentions.push(tag.href?.href);
    }
    received.push(told);
  });

const deeds = {
  // reply answers a post in public.
  async reply(ctx, { by, id, post, inbox }) {
    const note = new Note({
      id: new URL(`/notes/${id}`, ctx.origin),
      attribution: ctx.getActorUri(by),
      to: PUBLIC_COLLECTION,
      content: `<p>${id} by ${by}</p>`,
      replyTarget: new URL(post),
      published: Temporal.Now.instant(),
    });
    notes.set(id, note);
    await send(ctx, by, inbox, new Create({ id: new URL(`#create`, note.id), actor: ctx.getActorUri(by), to: PUBLIC_COLLECTION, object: note }));
    return { note: note.id.href };
  },
  // edit changes the text of a note and tells of it.
  async edit(ctx, { by, id, text, inbox }) {
    const note = notes.get(id).clone({ content: `<p>${text}</p>`, updated: Temporal.Now.instant() });
    notes.set(id, note);
    await send(ctx, by, inbox, new Update({ id: new URL(`#update-${Date.now()}`, note.id), actor: ctx.getActorUri(by), to: note.toId, object: note }));
    return {};
  },
  // quote asks whether a note may quote a post.
  async quote(ctx, { by, id, post, inbox }) {
    const actor = ctx.getActorUri(by);
    const note = new Note({
      id: new URL(`/notes/${id}`, ctx.origin), attribution: actor, to: PUBLIC_COLLECTION, content: `<p>${id} by ${by}</p>`,
      quote: new URL(post), published: Temporal.Now.instant(),
    });
    notes.set(id, note);
    await send(ctx, by, inbox, new QuoteRequest({ id: new URL("#request", note.id), actor, object: new URL(post), instrument: note }));
    return { note: note.id.href };
  },
  // write sends a note to an agent alone, as an answer or not.
  async write(ctx, { by, id, agent, answers }) {
    const to = new URL(agent);
    const note = new Note({
      id: new URL(`/notes/${id}`, ctx.origin),
      attribution: ctx.getActorUri(by),
      to,
      content: `<p>${id} by ${by}</p>`,
      tags: [new Mention({ href: to, name: "@agent" })],
      replyTarget: answers ? new URL(answers) : undefined,
      published: Temporal.Now.instant(),
    });
    notes.set(id, note);
    await send(ctx, by, `${agent}/inbox`, new Create({ id: new URL(`#create`, note.id), actor: ctx.getActorUri(by), to, object: note }));
    return { note: note.id.href };
  },
  // leave deletes an account: its document is gone before anybody is told.
  async leave(ctx, { by, inbox }) {
    const actor = ctx.getActorUri(by);
    gone.add(by);
    await send(ctx, by, inbox, new Delete({ id: new URL("#delete", actor), actor, to: PUBLIC_COLLECTION, object: actor }));
    return {};
  },
  // report flags a post.
  async report(ctx, { by, post, inbox, reason }) {
    const actor = ctx.getActorUri(by);
    await send(ctx, by, inbox, new Flag({ id: new URL(`#flag-${Date.now()}`, actor), actor, object: new URL(post), content: reason }));
    return {};
  },
  // act follows, likes or boosts something; undo takes that back.
  async act(ctx, { by, kind, object, inbox, undo }) {
    const actor = ctx.getActorUri(by), done = { Follow, Like, Announce }[kind];
    const activity = new done({ id: new URL(`#${kind}-${object}`, actor), actor, object: new URL(object), to: PUBLIC_COLLECTION });
    await send(ctx, by, inbox, undo ? new Undo({ id: new URL(`#undo-${kind}-${object}`, actor), actor, object: activity }) : activity);
    return {};
  },
  // away stops answering for somebody's document, or answers again.
  async away(_, { by, on }) {
    on ? away.add(by) : away.delete(by);
    return {};
  },
  // read fetches an object, signed by somebody.
  async read(ctx, { by, address }) {
    const documentLoader = await ctx.getDocumentLoader({ identifier: by });
    const object = await ctx.lookupObject(address, { documentLoader });
    return { type: object?.constructor.name, id: object?.id?.href };
  },
  // list reads a collection to its end.
  async list(ctx, { address }) {
    const items = [];
    const collection = await ctx.lookupObject(address);
    for await (const item of ctx.traverseCollection(collection)) {
      items.push({ type: item.constructor.name, id: item.id?.href, published: item.published?.toString(), object: item.objectId?.href });
    }
    return { type: collection?.constructor.name, total: collection?.totalItems, items };
  },
  async received() {
    return { received, retryAfters };
  },
};

const send = (ctx, by, inbox, activity) =>
  ctx.sendActivity({ identifier: by }, { id: new URL("/actor", inbox), inboxId: new URL(inbox) }, activity);

const server = http.createServer(async (req, res) => {
  try {
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    const url = new URL(req.url, `http://${req.headers.host}`);
    const request = new Request(url, {
      method: req.method,
      headers: Object.entries(req.headers).flatMap(([name, value]) => [value].flat().map((v) => [name, v])),
      body: chunks.length > 0 ? Buffer.concat(chunks) : undefined,
    });
    const [, who] = url.pathname.match(/^\/users\/(\w+)$/) ?? [];
    let answer;
    if (away.has(who)) {
      answer = new Response(null, { status: 503 });
    } else if (gone.has(who)) {
      answer = new Response(null, { status: 410 });
    } else if (url.pathname.startsWith("/test/")) {
      const input = chunks.length > 0 ? await request.json() : {};
      answer = Response.json(await deeds[url.pathname.slice("/test/".length)](federation.createContext(request, null), input));
    } else {
      answer = await federation.fetch(request, { contextData: null });
    }
    res.writeHead(answer.status, Object.fromEntries(answer.headers));
    res.end(Buffer.from(await answer.arrayBuffer()));
  } catch (error) {
    res.writeHead(500);
    res.end(String(error?.stack ?? error));
  }
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.on("end", () => process.exit(0)).resume();
