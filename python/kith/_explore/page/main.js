// The page: which view an address means, keys, colours. A view draws itself into the page, and may be left at any time.

import { Answer } from "./api.js";
import { count, el, say } from "./dom.js";
import { ask_state, facts, on_progress, stage } from "./state.js";
import { home } from "./home.js";
import { ask_early, neighbours } from "./neighbours.js";
import { search } from "./search.js";
import { clusters } from "./clusters.js";
import { path } from "./path.js";
import { map } from "./map.js";
import { outliers, pairs } from "./near_and_far.js";

const VIEWS = { "": home, neighbours, search, clusters, path, map, near: pairs, outliers };
const TABS = [["neighbours", "Neighbours"], ["search", "Search"], ["clusters", "Clusters"], ["path", "Path"], ["map", "Map"]];
const main = document.getElementById("main");
let leaving = new AbortController();
let waits = false;
let last_row = 0;

// "#/path/3/9?by=tree" is the view path, ["3", "9"] and by = tree.
function address(hash = location.hash) {
  const [where, query] = hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = where.split("/").filter((part) => part !== "").map(decodeURIComponent);
  return { name: name ?? "", parts, values: new URLSearchParams(query ?? "") };
}

async function draw({ focus = true } = {}) {
  leaving.abort();
  leaving = new AbortController();
  const signal = leaving.signal;
  const hash = location.hash;
  let at;
  try {
    at = address();
  } catch {
    at = { name: "?", parts: [], values: new URLSearchParams() };
  }
  waits = false;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.name === at.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const view = Object.hasOwn(VIEWS, at.name) ? VIEWS[at.name] : null;
  main.className = facts.kind === "texts" ? "texts-page" : "images-page";
  if (/^\d+$/.test(at.parts[0] ?? "") && at.name === "neighbours") last_row = Number(at.parts[0]);
  try {
    if (!view) throw new Answer(`There is no view "${at.name}". Choose one above.`, false);
    const made = await view(at, signal, { last_row });
    if (signal.aborted) return;
    main.replaceChildren(...made.content);
    main.dataset.route = hash;
    document.title = `${made.title} – kith explore`;
    say(made.title);
    if (focus) {
      window.scrollTo(0, 0);
      main.focus({ preventScroll: true });
    }
    made.shown?.(signal);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    waits = error.coming === true;
    // What a view alone has asked for comes without a word from the server's work: ask again.
    if (waits) setTimeout(() => !signal.aborted && draw({ focus: false }), 1000);
    main.dataset.route = hash;
    main.replaceChildren(waits ? waiting(error) : el("p", { class: "notice bad", role: "alert" }, error.message));
    document.title = "kith explore";
    if (!(error instanceof Answer)) console.error(error);
  }
}

function waiting({ message, share }) {
  const busy = facts.stages.find((one) => one.state === "running");
  const bar = el("progress", share !== null ? { max: 1, value: share } : busy?.total ? { max: busy.total, value: busy.done } : {});
  bar.setAttribute("aria-label", message);
  return el(
    "div",
    { class: "notice" },
    el("p", {}, message, "."),
    bar,
    el("p", {}, "This view opens by itself. Neighbours and search are there already."),
  );
}

// Not by way of hashchange, which browsers tell of only when they have drawn what the press itself changed.
function go(hash) {
  if (hash === location.hash) return;
  history.pushState(null, "", hash);
  draw();
}

function on_click(event) {
  const link = event.target.closest('a[href^="#/"]');
  if (!link || event.defaultPrevented || event.button !== 0 || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(link.getAttribute("href"));
}

function on_button_down(event) {
  const link = event.button === 0 ? event.target.closest('a[href^="#/neighbours/"]') : null;
  if (link) ask_early(address(link.getAttribute("href")));
}

function random_row() {
  return Math.floor(Math.random() * facts.rows);
}

function on_key(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const digit = "12345".indexOf(event.key);
  if (event.key.length === 1 && digit >= 0) go(`#/${TABS[digit][0]}`);
  else if (event.key === "/") {
    event.preventDefault();
    go("#/search");
  } else if (event.key === "r") go(`#/neighbours/${random_row()}`);
  else if (event.key === "?") document.getElementById("keys").showModal();
}

function change_theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = sessionStorage.theme = dark ? "light" : "dark";
  window.dispatchEvent(new Event("themechange"));
}

async function begin() {
  if (sessionStorage.theme) document.documentElement.dataset.theme = sessionStorage.theme; // outlives a reload
  document.getElementById("views").append(...TABS.map(([name, words]) => el("a", { href: `#/${name}`, "data-name": name }, words)));
  document.getElementById("theme").addEventListener("click", change_theme);
  document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());
  document.getElementById("skip").addEventListener("click", () => main.focus());
  window.addEventListener("hashchange", () => draw());
  document.addEventListener("keydown", on_key);
  document.addEventListener("click", on_click);
  main.addEventListener("pointerdown", on_button_down);
  try {
    await ask_state();
  } catch (error) {
    main.replaceChildren(el("p", { class: "notice bad", role: "alert" }, error.message));
    return;
  }
  document.getElementById("facts").textContent =
    `${count(facts.rows, facts.noun)} · ${facts.columns} columns · ${facts.metric}`;
  on_progress(() => {
    if (waits || (stage("clusters")?.state === "done" && address().name === "map" && facts.classes === 0 && !facts.scale)) {
      draw({ focus: false });
    }
  });
  draw();
}

begin();
