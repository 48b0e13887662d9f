// The closest pairs, and the items that are farthest from all others.

import { get } from "./api.js";
import { count, el, short } from "./dom.js";
import { card, growing, more_button } from "./items.js";

export async function pairs(_, signal) {
  const told = await get("api/pairs", {}, signal);
  const drawn = (some) => some.map((pair) => el("li", { class: "panel pair" },
    pair.items.map((item) => card(item)),
    el("p", {}, el("span", { class: "number" }, pair.distance === 0 ? "equal vectors" : `distance ${short(pair.distance)}`),
      el("a", { href: `#/neighbours/${pair.items[0].row}` }, "neighbours"))));
  const list = el("ul", { class: "pairs" }, drawn(told.pairs));
  let shown = told.pairs.length;
  const more = more_button(async () => {
    const next = (await get("api/pairs", { first: shown })).pairs;
    shown += next.length;
    list.append(...drawn(next));
    return shown < told.count && next.length > 0;
  });
  return {
    title: "Near duplicates",
    content: [
      el("div", { class: "head" }, el("h1", {}, "Near duplicates"),
        el("p", {}, "The closest pairs, each item with its nearest neighbour. ",
          told.same ? `${count(told.same, "item")} ${told.same === 1 ? "has" : "have"} an equal vector elsewhere.` : "No two vectors are equal.")),
      list,
      ...(shown < told.count ? [more] : []),
    ],
  };
}

export async function outliers(_, signal) {
  const told = await get("api/outliers", {}, signal);
  const most = Math.max(...told.found.map((one) => one.distance ?? 0), 0);
  return {
    title: "Outliers",
    content: [
      el("div", { class: "head" }, el("h1", {}, "Outliers"),
        el("p", {}, `Items by the distance of their ${told.place === 1 ? "nearest neighbour" : `neighbour number ${told.place}`}, the loneliest first.`)),
      growing(told.found, async (first) => (await get("api/outliers", { first })).found, { most }),
    ],
  };
}
