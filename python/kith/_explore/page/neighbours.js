// An item and its nearest others. Each leads to its own; the way that was taken is kept in the address.

import { get, get_early } from "./api.js";
import { count, el, short } from "./dom.js";
import { grid, name_of, neighbours_of, picture, spoken, swatch } from "./items.js";
import { facts } from "./state.js";

const looked_at = new Map(); // items by row, which a trail shows again

function remembered(item) {
  if (looked_at.size > 1000) looked_at.clear();
  looked_at.set(item.row, item);
  return item;
}

async function item_of(row, signal) {
  return looked_at.get(row) ?? remembered(await get(`api/item/${row}`, {}, signal));
}

function question(row, values) {
  return [`api/neighbours/${row}`, { k: Number(values.get("k") ?? 20) }];
}

// A link to an item's neighbours is being pressed.
export function ask_early({ parts, values }) {
  get_early(...question(parts[0], values));
}

export async function neighbours({ parts, values }, signal, { last_row }) {
  const row = Number(parts[0] ?? last_row);
  const [address, asked] = question(parts[0] ?? last_row, values);
  const k = asked.k;
  const trail = (values.get("trail") ?? "").split(",").filter((one) => /^\d+$/.test(one)).map(Number).slice(-12);
  const [told, before] = await Promise.all([
    get(address, asked, signal),
    Promise.all(trail.map((one) => item_of(one, signal))),
  ]);
  const item = remembered(told.item);
  const on = [...trail, row];
  const classes = item.label !== undefined && !facts.scale; // numbers on a scale all differ
  const most = Math.max(...told.found.map((one) => one.distance ?? 0), 0);
  return {
    title: `Neighbours of item ${name_of(item)}`,
    content: [
      before.length ? walked(before, trail) : "",
      el(
        "div",
        { class: "beside" },
        subject(item),
        el(
          "section",
          { "aria-label": "Neighbours" },
          el(
            "div",
            { class: "head" },
            el("h1", {}, told.found.length ? `${count(told.found.length, "nearest neighbour")}` : "No neighbours"),
            el("span", { class: "buttons" }, [10, 20, 50, 100].map((some) =>
              el("a", { class: "button", href: `#/neighbours/${row}?k=${some}`, "aria-current": some === k && "true", "aria-label": `${some} neighbours` }, some))),
            el("p", {}, `By ${facts.metric}, found by ${told.by}.`, classes ? " Neighbours with another label are marked." : ""),
          ),
          told.found.length
            ? grid(told.found, { than: classes ? item.label : undefined, most, href: (one) => neighbours_of(one.row, on) })
            : el("p", { class: "notice" }, "This is the only item."),
        ),
      ),
    ],
  };
}

function walked(items, trail) {
  return el(
    "nav",
    { class: "trail", "aria-label": "The way here" },
    items.map((item, place) =>
      el("a", { href: neighbours_of(item.row, trail.slice(0, place)), title: `Back to ${spoken(item)}` },
        facts.kind === "texts" ? el("span", { class: "words", dir: "auto" }, item.text.slice(0, 60)) : picture(item, 96))),
    el("span", { class: "quiet" }, "→ here"),
  );
}

function subject(item) {
  const whole = item.letters ? el("a", { href: `text/${item.row}` }, `all ${item.letters.toLocaleString("en")} letters`) : null;
  return el(
    "aside",
    { class: "panel subject", "aria-label": `Item ${item.row}` },
    facts.kind === "texts"
      ? el("div", { class: "words", dir: "auto", tabindex: "0" }, item.text || "(empty)")
      : el("div", { class: "picture" }, picture(item, 640)),
    whole ? el("p", { class: "quiet" }, `The first ${item.text.length.toLocaleString("en")} letters; `, whole) : null,
    el(
      "dl",
      {},
      item.id !== undefined ? [el("dt", {}, "Id"), el("dd", { class: "number", dir: "auto" }, item.id)] : null,
      el("dt", {}, "Row"), el("dd", { class: "number" }, item.row),
      item.label !== undefined ? [el("dt", {}, "Label"), el("dd", { dir: "auto" }, swatch(item.label), " ", item.label)] : null,
      facts.kind === "images" && item.text ? [el("dt", {}, "File"), el("dd", {}, item.text)] : null,
    ),
    el(
      "div",
      { class: "buttons" },
      el("a", { class: "button first", href: `#/path/${item.row}` }, "Path from here"),
      el("a", { class: "button", href: `#/map?at=${item.row}` }, "On the map"),
      el("a", { class: "button", href: `#/neighbours/${Math.floor(Math.random() * facts.rows)}` }, "Random"),
    ),
  );
}
