// What there is, and how far the server's work is: asked for every half second until it has ended.

import { get } from "./api.js";
import { el } from "./dom.js";

export const facts = { kind: "images", labels: [], stages: [], rows: 0 };
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
  if (!ended()) setTimeout(() => ask_state().catch(() => setTimeout(ask_state, 3000)), 500);
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
