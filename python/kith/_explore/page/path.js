// The smoothest path between two items as a strip of film: its largest step is as small as it can be.

import { get } from "./api.js";
import { add_keys, count, el, short } from "./dom.js";
import { card, grid } from "./items.js";
import { facts } from "./state.js";

const row_of = (part) => (/^\d+$/.test(part ?? "") ? part : undefined);

export async function path({ parts, values }, signal) {
  const [a, b] = [row_of(parts[0]), row_of(parts[1])];
  const by = values.get("by") === "tree" ? "tree" : "steps";
  if (a === undefined || b === undefined) return choose(a, signal);
  const told = await get(`api/path/${a}/${b}`, { by }, signal);
  return {
    title: `Path from ${a} to ${b}`,
    content: [
      el("div", { class: "head" }, el("h1", {}, "The smoothest path"),
        el("span", { class: "buttons" },
          el("a", { class: "button", href: `#/path/${a}/${b}`, "aria-current": by === "steps" && "true" }, "Fewest steps"),
          el("a", { class: "button", href: `#/path/${a}/${b}?by=tree`, "aria-current": by === "tree" && "true" }, "Smallest steps")),
        el("p", {}, by === "steps"
          ? "Of all ways through the k-NN graph, one whose largest step is as small as it can be, with the fewest steps."
          : "Along the minimum spanning tree: the largest step is as small as it can be, then the second largest, and so on.")),
      ends(told.from, told.to, by),
      ...(told.count === 0 ? [no_path(told)] : strip(told)),
    ],
  };
}

function ends(from, to, by) {
  const suffix = by === "tree" ? "?by=tree" : "";
  const end = (item, words, address) => {
    const field = el("input", { type: "number", min: "0", max: String(facts.rows - 1), value: String(item.row), "aria-label": `${words}: row` });
    return el("div", { class: "panel end" }, card(item), el("form", { onsubmit: (event) => {
      event.preventDefault();
      location.hash = address(field.value);
    } }, el("span", { class: "quiet" }, words), field,
      el("span", { class: "buttons" }, el("button", { class: "button" }, "Go"),
        el("a", { class: "button", href: address(Math.floor(Math.random() * facts.rows)) }, "Random"))));
  };
  return el("div", { class: "ends" },
    end(from, "From", (row) => `#/path/${row}/${to.row}${suffix}`),
    el("a", { class: "button swap", href: `#/path/${to.row}/${from.row}${suffix}`, "aria-label": "Turn the path round", title: "Turn round" }, "⇄"),
    end(to, "To", (row) => `#/path/${from.row}/${row}${suffix}`));
}

function no_path(told) {
  return el("div", { class: "notice", role: "status" },
    el("p", {}, el("b", {}, "There is no path. ")),
    el("p", {}, `The k-NN graph falls into ${count(told.parts, "part")}, and these items lie in two of them, `,
      `of ${count(told.sizes[0], "item")} and of ${count(told.sizes[1], "item")}. Choose other ends, or start with a graph of a larger k.`));
}

function strip(told) {
  const steps = told.steps.length;
  const summary = steps === 0
    ? "Both ends are the same item."
    : `${count(told.count - 1, "step")}, none longer than ${short(told.width)}; straight from end to end it is ${short(told.direct)}.`;
  const film = el("ol", { class: `strip ${facts.kind}` }, told.items.map((item, place) => {
    const step = told.steps[place];
    const largest = place === told.largest;
    return el("li", {}, card(item, { side: 160 }),
      step === undefined ? null : el("span", { class: largest ? "step largest" : "step" }, short(step), largest ? el("span", {}, el("br"), "largest") : null));
  }));
  add_keys(film);
  return [
    el("div", { class: "head" }, el("h2", {}, summary),
      el("a", { class: "button", href: `#/map?path=${told.from.row},${told.to.row},${told.by}` }, "On the map")),
    film,
    ...(told.cut ? [el("p", { class: "notice" }, `The first ${count(steps, "step")} of ${(told.count - 1).toLocaleString("en")} are drawn.`,
      told.beyond.length ? ` The largest is behind them, step number ${(told.largest + 1).toLocaleString("en")}:` : "")] : []),
    ...(told.beyond.length ? [grid(told.beyond)] : []),
  ];
}

async function choose(a, signal) {
  const told = await get("api/spread", { count: facts.kind === "texts" ? 24 : 60 }, signal);
  const start = a === undefined ? null : await get(`api/item/${a}`, {}, signal);
  const anywhere = () => Math.floor(Math.random() * facts.rows);
  const field = el("input", { type: "number", min: "0", max: String(facts.rows - 1), "aria-label": "Row", placeholder: "row" });
  const to = (row) => (a === undefined ? `#/path/${row}` : `#/path/${a}/${row}`);
  return {
    title: a === undefined ? "Path: choose where it begins" : "Path: choose where it ends",
    content: [
      el("div", { class: "head" },
        el("h1", {}, a === undefined ? "Where shall the path begin?" : "And where shall it end?"),
        el("form", { class: "buttons", onsubmit: (event) => {
          event.preventDefault();
          if (field.value !== "") location.hash = to(field.value);
        } }, field, el("button", { class: "button" }, "Go")),
        el("a", { class: "button first", href: a === undefined ? `#/path/${anywhere()}/${anywhere()}` : to(anywhere()) }, a === undefined ? "Two random items" : "A random item"),
        el("p", {}, "A path leads from one item to another over items between them, each a neighbour of the one before. Choose below, or from any item's page.")),
      start ? el("div", { class: "ends" }, el("div", { class: "panel end" }, card(start), el("span", { class: "quiet" }, "From here"))) : "",
      grid(told.items, { href: (item) => to(item.row) }),
    ],
  };
}
