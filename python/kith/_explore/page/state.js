// What there is, and how far the server's work is: asked for every half second until it has ended.

import { get } from "./api.js";
import { el } from "./dom.js";

export const facts = { kind: "images", classes: 0, labels: [], stages: [], rows: 0 };
const listeners = new Set();

export function on_progress(listener) {
  listeners.add(listener);
}

export function stage(name) {
  return facts.stages.find((one) => one.name === name);
}

function ended() {
  return facts.stages.every((one) => one.state !== "waiting" && one.state !== "running");
}

export async function ask_state() {
  const before = facts.stages.map((one) => one.state).join();
  Object.assign(facts, await get("api/state"));
  draw();
  if (facts.stages.map((one) => one.state).join() !== before) for (const listener of listeners) listener();
  if (!ended()) setTimeout(ask_again, 500);
}

// A server that does not answer is asked again, ever less often, and the page says so.
async function ask_again(pause = 1000) {
  try {
    await ask_state();
  } catch (error) {
    const line = document.getElementById("work");
    line.classList.add("on");
    line.replaceChildren(error.message);
    setTimeout(ask_again, pause, Math.min(30000, 2 * pause));
  }
}

function draw() {
  const line = document.getElementById("work");
  const busy = facts.stages.find((one) => one.state === "running");
  line.classList.toggle("on", !ended());
  if (!busy) return;
  const left = facts.stages.filter((one) => one.state === "waiting").map((one) => one.title);
  const bar = el("progress", busy.total ? { max: busy.total, value: busy.done } : {});
  bar.setAttribute("aria-label", busy.title);
  line.replaceChildren(`Computing: ${busy.title}`, bar, left.length ? `then ${left.join(", ")}` : "the last");
}
