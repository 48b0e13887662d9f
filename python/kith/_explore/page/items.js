// Items as cards: a picture or a text, its label, its distance. Cards are links, so that keys and copying work everywhere.

import { get } from "./api.js";
import { add_keys, el, short, colour } from "./dom.js";
import { facts } from "./state.js";

export function neighbours_of(row, trail = []) {
  const path = trail.length ? `?trail=${trail.slice(-12).join(",")}` : "";
  return `#/neighbours/${row}${path}`;
}

// An item's id, where items have any, else its row.
export function name_of(item) {
  return item.id ?? item.row;
}

// What a screen reader says of an item.
export function spoken(item) {
  const label = item.label ? `, ${item.label}` : "";
  if (facts.kind === "texts") return `item ${name_of(item)}${label}: ${item.text.slice(0, 120)}`;
  return `item ${name_of(item)}${label}${item.text ? ", " + item.text : ""}`;
}

export function picture(item, side = 240) {
  const image = el("img", { alt: spoken(item), loading: "lazy", decoding: "async", src: `image/${item.row}?side=${side}` });
  image.addEventListener("load", () => image.classList.toggle("pixels", image.naturalWidth <= 64));
  image.addEventListener("error", async () => {
    let words = "this image cannot be shown";
    try {
      await get(`image/${item.row}`);
    } catch (error) {
      words = error.message;
    }
    image.replaceWith(el("span", { class: "broken" }, words));
  });
  return image;
}

export function swatch(label) {
  const place = facts.labels.indexOf(label);
  return facts.labels.length > 1 && facts.labels.length <= 12 && place >= 0 ? tinted("i", colour(place), "dot") : null;
}

export function tinted(name, shade, kind) {
  const made = el(name, { class: kind });
  made.style.background = shade;
  return made;
}

// `href` is where it leads, null for nowhere; `than` is the label that others are marked against; `most` scales its bar.
export function card(item, { href = neighbours_of(item.row), than = undefined, most = undefined, side = 240 } = {}) {
  const other = than !== undefined && item.label !== undefined && item.label !== than;
  const parts = [];
  if (facts.kind === "texts") {
    parts.push(el("div", { class: "words", dir: "auto" }, item.text || "(empty)"));
  } else {
    parts.push(el("div", { class: "picture" }, picture(item, side)));
  }
  if (item.distance !== undefined && most > 0) {
    const bar = el("i");
    bar.style.width = `${Math.max(2, Math.min(100, (100 * (item.distance ?? most)) / most))}%`;
    parts.push(el("div", { class: "measure" }, bar));
  }
  parts.push(
    el(
      "div",
      { class: "under" },
      item.label !== undefined ? el("span", { class: "tag", dir: "auto" }, item.label) : el("span", { class: "quiet tag" }, `${name_of(item)}`),
      item.distance !== undefined ? el("span", { class: "number" }, short(item.distance)) : null,
    ),
  );
  if (item.id !== undefined && item.label !== undefined) parts.push(el("div", { class: "under id quiet", dir: "auto" }, item.id));
  const given = { class: other ? "card other" : "card", title: spoken(item) };
  if (other) given["aria-label"] = `${spoken(item)}, of another label, distance ${short(item.distance)}`;
  return href === null ? el("div", given, parts) : el("a", { ...given, href }, parts);
}

export function grid(items, { dense = false, ...rest } = {}) {
  const kinds = ["grid", facts.kind === "texts" ? "texts" : "images", dense ? "dense" : ""].join(" ").trim();
  const href = rest.href;
  const cards = items.map((item) => el("li", {}, card(item, { ...rest, href: href ? href(item) : undefined })));
  const made = el("ul", { class: kinds }, cards);
  add_keys(made);
  return made;
}

// A list that grows by a press: `page(first)` gives the next items, or none at its end.
export function growing(items, page, options = {}) {
  const list = grid(items, options);
  let shown = items.length;
  const more = more_button(async () => {
    const next = await page(shown);
    shown += next.length;
    const grown = grid(next, options);
    const first = grown.firstChild;
    list.append(...grown.children);
    first?.querySelector("a")?.focus();
    return next.length > 0;
  });
  return el("div", {}, list, more);
}

// A button for more of a list; `add` adds it and says whether there may be more. What goes wrong is told beside the button.
export function more_button(add) {
  const more = el("button", { class: "button" }, "Show more");
  const told = el("span", { class: "quiet", role: "alert" });
  more.addEventListener("click", async () => {
    more.disabled = true;
    told.textContent = "";
    try {
      more.hidden = !(await add());
    } catch (error) {
      told.textContent = error.message;
    }
    more.disabled = false;
  });
  return el("p", { class: "buttons more" }, more, told);
}
