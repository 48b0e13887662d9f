// Questions to the server that this page came from. All addresses are relative: the word in the page's own goes with them.

export class Answer extends Error {
  constructor(words, coming, share = null) {
    super(words);
    this.coming = coming;
    this.share = share; // of it that is done, where that is known
  }
}

async function answered(reply) {
  let told;
  try {
    told = await reply.json();
  } catch {
    throw new Answer(`The server's answer could not be read (${reply.status}).`, false);
  }
  if (!reply.ok || told.coming) throw new Answer(told.error ?? `The server refused (${reply.status}).`, told.coming === true, told.share ?? null);
  return told;
}

async function fetched(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Answer("kith explore does not answer. Has it been ended? Start it again and open the new address.", false);
  }
}

let early = null; // an address that was asked for before the view that wants it, its answer, and when

function with_query(address, values) {
  const asked = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return address + (asked.length ? "?" + asked.map(([key, value]) => `${key}=${value}`).join("&") : "");
}

export async function get(address, values = {}, signal = undefined) {
  const whole = with_query(address, values);
  const { reply } = early?.whole === whole && performance.now() - early.since < 2000 ? early : {};
  if (reply) early = null;
  return reply ?? answered(await fetched(whole, { signal }));
}

// For when a button goes down: until the hand has let go, which makes it a press, the answer is there.
export function get_early(address, values = {}) {
  const whole = with_query(address, values);
  early = { whole, reply: fetched(whole).then(answered), since: performance.now() };
  early.reply.catch(() => {}); // the view that wants it tells
}

export async function bytes(address, signal) {
  const reply = await fetched(address, { signal });
  return reply.status === 200 ? reply.arrayBuffer() : answered(reply);
}

export async function post(address, body, signal) {
  return answered(await fetched(address, { method: "POST", body, signal }));
}
