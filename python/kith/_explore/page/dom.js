// Making elements and words. Whatever comes from the data becomes text, never markup.

export function el(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && key !== "list" && typeof value !== "string") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  add(made, children);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, given = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  add(made, children);
  return made;
}

function add(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function count(number, one, many = one + "s") {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

// A distance, short: four digits that count.
export function short(number) {
  if (number === null || number === undefined) return "∞";
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 1e6 || size < 1e-3) return number.toExponential(2);
  return size >= 1000 ? Math.round(number).toLocaleString("en") : String(Number(number.toPrecision(4)));
}

export function percent(share) {
  return share > 0 && share < 0.01 ? "<1%" : `${Math.round(100 * share)}%`;
}

export function say(words) {
  document.getElementById("live").textContent = words;
}

// Colours of classes that differ for most eyes, on light and on dark.
export const COLOURS = [
  "#2f7ed8", "#e8871e", "#2ca25f", "#d64545", "#8e63ce", "#8c6d46", "#e377c2", "#5f6b76", "#b5a90f", "#17a2b8", "#6a3d9a", "#9aa3ab",
];

export function colour(place) {
  return COLOURS[place % COLOURS.length];
}

// Arrow keys move among the links of a list, by rows and columns as they stand on the screen.
export function add_keys(list) {
  list.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const links = [...list.querySelectorAll("a.card")];
    const at = links.indexOf(document.activeElement);
    if (!steps || at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (steps[0]) return links[at + steps[0]]?.focus();
    const here = links[at].getBoundingClientRect();
    let best = null;
    let least = Infinity;
    for (const link of links) {
      const there = link.getBoundingClientRect();
      const down = (there.top - here.top) * steps[1];
      if (down < 4) continue;
      const far = down * 3 + Math.abs(there.left - here.left);
      if (far < least) [best, least] = [link, far];
    }
    best?.focus();
  });
}
