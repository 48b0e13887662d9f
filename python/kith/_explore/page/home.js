// The first page: a look at everything, and the doors to the views.

import { get } from "./api.js";
import { count, el } from "./dom.js";
import { growing, grid } from "./items.js";
import { facts } from "./state.js";

export async function home({ values }, signal) {
  const all = values.get("order") === "rows";
  const doors = [
    ["#/near", "Near duplicates", "The closest pairs: copies, and what is almost one"],
    ["#/outliers", "Outliers", "Items that are far from all others"],
    ["#/clusters", "Clusters", "What there is, as contact sheets"],
    ["#/map", "Map", "All of it in two dimensions"],
  ];
  const told = all ? await get("api/browse", {}, signal) : await get("api/spread", { count: facts.kind === "texts" ? 30 : 96 }, signal);
  return {
    title: "A first look",
    content: [
      el("div", { class: "head" }, el("h1", {}, `A first look at ${count(facts.rows, facts.noun)}`)),
      el("div", { class: "doors" }, doors.map(([href, name, words]) => el("a", { class: "panel door", href }, el("b", {}, name), el("span", {}, words)))),
      el(
        "div",
        { class: "head" },
        el("h2", {}, all ? "In their order" : "Spread evenly over all rows"),
        el("span", { class: "buttons" },
          el("a", { class: "button", href: "#/", "aria-current": !all && "true" }, "Spread"),
          el("a", { class: "button", href: "#/?order=rows", "aria-current": all && "true" }, "In order")),
      ),
      all ? growing(told.items, async (first) => (first < facts.rows ? (await get("api/browse", { first })).items : [])) : grid(told.items),
    ],
  };
}
