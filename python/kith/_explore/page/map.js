// All items as points in two dimensions: pan, zoom, hover. Close up they are the items themselves.

import { bytes, get } from "./api.js";
import { COLOURS, colour, count, el, say } from "./dom.js";
import { card } from "./items.js";
import { draw_points, Points } from "./points.js";
import { facts } from "./state.js";

const FRAME = 26; // milliseconds that a frame may take while something moves
const CLOSE = 8000; // so few points in sight are drawn as the items themselves, as far as there is room
const SIDE = 44;

export async function map({ values }, signal) {
  const told = await get("api/map", {}, signal);
  const points = new Points(await bytes("api/points", signal), told.points);
  const at = /^\d+$/.test(values.get("at") ?? "") ? Number(values.get("at")) : null;
  const ends = /^(\d+),(\d+),(steps|tree)$/.exec(values.get("path") ?? "");
  const way = ends ? await get(`api/path/${ends[1]}/${ends[2]}`, { by: ends[3] }, signal) : null;
  const drawn = new Map2D(points, told, signal);
  if (at !== null) drawn.mark(at);
  if (way?.rows?.length) drawn.follow(way.rows);
  drawn.look(values);
  const sampled = told.points < told.rows ? ` ${count(told.points, "row")} of ${told.rows.toLocaleString("en")} are drawn, chosen at random.` : "";
  return {
    title: "Map",
    content: [
      el("div", { class: "head" }, el("h1", {}, way ? "The path on the map" : "Map"),
        el("p", {}, `Axes: ${told.axes}.${sampled}${told.by ? ` Colours: ${told.by}.` : ""}`)),
      drawn.frame,
      drawn.legend,
    ],
    shown: () => drawn.begin(),
  };
}

class Map2D {
  constructor(points, told, signal) {
    this.points = points;
    this.told = told;
    this.signal = signal;
    this.canvas = el("canvas", { tabindex: "0", role: "application",
      "aria-label": `Map of ${count(told.points, "point")}. Arrow keys pan, plus and minus zoom, 0 shows all, Enter opens the item in the middle.` });
    this.words = el("div", { class: "told number" });
    this.tip = el("div", { class: "tip", hidden: true });
    const button = (sign, words, act) => el("button", { class: "round", "aria-label": words, title: words, onclick: act }, sign);
    this.frame = el("div", { class: "map" }, this.canvas, this.words, this.tip,
      el("div", { class: "zoom" }, button("+", "Zoom in", () => this.#zoom(1.8)), button("−", "Zoom out", () => this.#zoom(1 / 1.8)), button("⤢", "All of it", () => this.#all())));
    this.hidden = new Set();
    this.legend = this.#legend();
    this.marked = -1;
    this.way = [];
    this.wanted = null;
    this.rate = 1e-5; // milliseconds a point, measured as it goes
    this.images = new Map();
    this.moving = false;
    this.fixed = false;
    this.pointers = new Map();
    this.frames = 0;
  }

  mark(row) {
    this.marked = this.points.of_row(row);
  }

  follow(rows) {
    const wanted = new Set(rows);
    const places = new Map();
    this.points.rows.forEach((row, place) => wanted.has(row) && places.set(row, place));
    this.way = rows.map((row) => places.get(row)).filter((place) => place !== undefined);
  }

  look(values) {
    const [x, y, zoom] = ["x", "y", "z"].map((name) => Number(values.get(name) ?? NaN));
    if ([x, y, zoom].every(Number.isFinite) && zoom > 0) this.wanted = { x, y, zoom };
  }

  begin() {
    this.#measure();
    this.#all(false);
    if (this.wanted) {
      Object.assign(this.view, { x: this.wanted.x, y: this.wanted.y, scale: this.whole * this.wanted.zoom });
    } else if (this.marked >= 0) {
      Object.assign(this.view, { x: this.points.x[this.marked], y: this.points.y[this.marked], scale: this.whole * 6 });
    }
    const on = (target, name, act, options = {}) => target.addEventListener(name, act, { signal: this.signal, ...options });
    on(this.canvas, "pointerdown", (event) => this.#down(event));
    on(this.canvas, "pointermove", (event) => this.#move(event));
    on(this.canvas, "pointerup", (event) => this.#up(event));
    on(this.canvas, "pointercancel", (event) => this.#up(event));
    on(this.canvas, "pointerleave", () => this.pointers.size === 0 && !this.fixed && this.#hide_tip());
    on(this.canvas, "wheel", (event) => this.#wheel(event), { passive: false });
    on(this.canvas, "dblclick", (event) => this.#zoom(2.5, ...this.#place(event)));
    on(this.canvas, "keydown", (event) => this.#key(event));
    on(window, "themechange", () => this.#draw());
    on(matchMedia("(prefers-color-scheme: dark)"), "change", () => this.#draw());
    const sizes = new ResizeObserver(() => {
      this.#measure();
      this.#draw();
    });
    sizes.observe(this.frame);
    this.signal.addEventListener("abort", () => {
      sizes.disconnect();
      clearTimeout(this.rest);
      cancelAnimationFrame(this.asked);
    });
    this.#draw();
  }

  #measure() {
    const box = this.frame.getBoundingClientRect();
    // A million points gain nothing from pixels that are too small to see.
    this.ratio = this.points.count > 200000 ? 1 : Math.min(2, window.devicePixelRatio || 1);
    this.width = Math.max(1, Math.round(box.width * this.ratio));
    this.height = Math.max(1, Math.round(box.height * this.ratio));
    if (this.canvas.width !== this.width || this.canvas.height !== this.height) {
      this.canvas.width = this.width;
      this.canvas.height = this.height;
    }
    this.pen = this.canvas.getContext("2d", { alpha: false });
    this.image = new ImageData(this.width, this.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    const [wide, tall] = this.points.extent;
    this.whole = 0.92 * Math.min(this.width / (wide || tall), this.height / (tall || wide));
  }

  #all(draw = true) {
    this.view = { x: this.points.middle[0], y: this.points.middle[1], scale: this.whole };
    if (draw) this.#moved();
  }

  #zoom(factor, px = this.width / 2, py = this.height / 2) {
    const scale = Math.max(this.whole / 4, Math.min(this.whole * 20000, this.view.scale * factor));
    const [x, y] = this.#at(px, py);
    this.view = { x: x - (px - this.width / 2) / scale, y: y + (py - this.height / 2) / scale, scale };
    this.#hide_tip();
    this.#moved();
  }

  #at(px, py) {
    return [this.view.x + (px - this.width / 2) / this.view.scale, this.view.y - (py - this.height / 2) / this.view.scale];
  }

  #on_screen(place) {
    const { x, y, scale } = this.view;
    return [this.width / 2 + (this.points.x[place] - x) * scale, this.height / 2 - (this.points.y[place] - y) * scale];
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * this.ratio, (event.clientY - box.top) * this.ratio];
  }

  // Something moves: frames with as many points as time allows, then one with all of them.
  #moved() {
    this.moving = true;
    this.#draw();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      this.moving = false;
      this.#draw();
      this.#keep_address();
    }, 160);
  }

  #keep_address() {
    if (this.signal.aborted) return;
    const [where, query] = location.hash.split("?");
    const values = new URLSearchParams(query ?? "");
    values.set("x", this.view.x.toPrecision(6));
    values.set("y", this.view.y.toPrecision(6));
    values.set("z", (this.view.scale / this.whole).toPrecision(4));
    history.replaceState(null, "", `${where}?${values.toString().replaceAll("%2C", ",")}`);
  }

  #draw() {
    if (this.asked || this.signal.aborted) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      if (!this.signal.aborted) this.#paint();
    });
  }

  #size() {
    const zoom = Math.max(1, this.view.scale / this.whole);
    const base = this.points.count > 300000 ? 1 : this.points.count > 60000 ? 2 : this.points.count > 8000 ? 3 : 6;
    return Math.max(1, Math.min(13, Math.round(base * Math.sqrt(zoom) * this.ratio)));
  }

  #shades() {
    const style = getComputedStyle(document.documentElement);
    const panel = number_of(style.getPropertyValue("--panel"));
    const faint = mixed(panel, number_of(style.getPropertyValue("--quiet")), 0.25);
    const shades = new Uint32Array(256);
    if (this.told.names.length === 0) for (let code = 0; code < 256; code++) shades[code] = number_of(viridis(code / 255));
    else this.told.names.forEach((_, code) => (shades[code] = this.hidden.has(code) ? faint : number_of(colour(code))));
    return { panel, shades };
  }

  #paint() {
    const began = performance.now();
    const { points } = this;
    const { panel, shades } = this.#shades();
    const all = points.count;
    const limit = this.moving ? Math.min(all, Math.max(20000, Math.floor((FRAME - 6) / this.rate))) : all;
    this.pixels.fill(panel);
    const size = this.#size();
    const drawing = performance.now();
    if (this.hidden.size) {
      const back = shades.map((shade, code) => (this.hidden.has(code) ? shade : 0));
      const front = shades.map((shade, code) => (this.hidden.has(code) ? 0 : shade));
      draw_points(this.pixels, this.width, this.height, points, this.view, size, back, limit);
      draw_points(this.pixels, this.width, this.height, points, this.view, size, front, limit);
    } else {
      draw_points(this.pixels, this.width, this.height, points, this.view, size, shades, limit);
    }
    const took = performance.now() - drawing;
    if (limit > 5000) this.rate = 0.7 * this.rate + 0.3 * (took / limit);
    this.pen.putImageData(this.image, 0, 0);
    const near = this.#close_up();
    if (near) this.#paint_items(near.shown);
    this.#paint_way();
    this.#paint_mark();
    this.frames++;
    this.frame_time = performance.now() - began;
    this.words.textContent = limit < all
      ? `${limit.toLocaleString("en")} of ${count(all, "point")} while it moves`
      : near ? `${count(near.inside, "item")} here` : count(all, "point");
  }

  // The points on the screen, where they are few enough to be drawn as what they are. Of those that would cover each other the
  // first stays, in the order of points, which is the same wherever the map is moved to.
  #close_up() {
    if (this.view.scale < this.whole * 3 && this.points.count > 300) return null;
    const [left, low] = this.#at(-SIDE, this.height + SIDE);
    const [right, high] = this.#at(this.width + SIDE, -SIDE);
    const inside = this.points.within(left, right, low, high, CLOSE);
    if (!inside) return null;
    const apart = (SIDE * 1.25 * this.ratio) / this.view.scale;
    const taken = new Map();
    const { x, y } = this.points;
    for (const place of inside.sort((one, other) => one - other)) {
      const [column, line] = [Math.floor(x[place] / apart), Math.floor(y[place] / apart)];
      let free = true;
      for (let above = line - 1; above <= line + 1 && free; above++) {
        for (let beside = column - 1; beside <= column + 1 && free; beside++) {
          const other = taken.get(`${beside},${above}`);
          free = other === undefined || Math.abs(x[other] - x[place]) > apart || Math.abs(y[other] - y[place]) > apart;
        }
      }
      if (free) taken.set(`${column},${line}`, place);
    }
    return { shown: [...taken.values()], inside: inside.length };
  }

  #paint_items(near) {
    const pen = this.pen;
    const side = SIDE * this.ratio;
    const style = getComputedStyle(document.documentElement);
    pen.font = `${13 * this.ratio}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    const written = [];
    for (const place of near) {
      const [px, py] = this.#on_screen(place);
      const row = this.points.rows[place];
      if (facts.kind === "texts") {
        const whole = this.#text(row);
        const text = whole.length > 42 ? whole.slice(0, 41) + "…" : whole;
        const wide = text ? pen.measureText(text).width : 0;
        // Texts that would run over one another are left out; their points stay.
        if (!text || written.some(([x, y, w]) => Math.abs(y - py) < 17 * this.ratio && x < px + wide && px < x + w)) continue;
        written.push([px, py, wide]);
        pen.globalAlpha = 0.85; // points that lie behind stay seen
        pen.fillStyle = style.getPropertyValue("--panel");
        pen.fillRect(px + 6 * this.ratio, py - 9 * this.ratio, wide + 6 * this.ratio, 18 * this.ratio);
        pen.globalAlpha = 1;
        pen.fillStyle = style.getPropertyValue("--ink");
        pen.fillText(text, px + 9 * this.ratio, py);
        continue;
      }
      const image = this.#image(row);
      if (!image) continue;
      const scale = side / Math.max(image.naturalWidth, image.naturalHeight);
      const [wide, tall] = [image.naturalWidth * scale, image.naturalHeight * scale];
      pen.imageSmoothingEnabled = scale < 1;
      pen.fillStyle = this.told.names.length ? colour(this.points.codes[place]) : viridis(this.points.codes[place] / 255);
      pen.fillRect(px - wide / 2 - 2, py - tall / 2 - 2, wide + 4, tall + 4);
      pen.drawImage(image, px - wide / 2, py - tall / 2, wide, tall);
    }
  }

  #image(row) {
    let image = this.images.get(row);
    if (!image) {
      if (this.images.size > 2000) this.images.clear();
      image = new Image();
      image.addEventListener("load", () => this.#draw());
      image.src = `image/${row}?side=96`;
      this.images.set(row, image);
    }
    return image.complete && image.naturalWidth > 0 ? image : null;
  }

  #text(row) {
    if (!this.images.has(row)) {
      if (this.images.size > 2000) this.images.clear();
      this.images.set(row, "");
      get(`api/item/${row}`, {}, this.signal).then((item) => {
        this.images.set(row, item.text.replace(/\s+/g, " "));
        this.#draw();
      }, () => {});
    }
    return this.images.get(row);
  }

  #paint_way() {
    if (this.way.length < 2) return;
    const pen = this.pen;
    const style = getComputedStyle(document.documentElement);
    pen.lineJoin = "round";
    // The line, with an edge that keeps it apart from points of its colour.
    for (const [wide, shade] of [[6, "--panel"], [2.5, "--warm"]]) {
      pen.lineWidth = wide * this.ratio;
      pen.strokeStyle = style.getPropertyValue(shade);
      pen.beginPath();
      for (const place of this.way) pen.lineTo(...this.#on_screen(place));
      pen.stroke();
    }
    const last = this.way.length - 1;
    const side = 34 * this.ratio;
    const taken = [];
    // The ends first: pictures that would cover another are dots.
    for (const order of [0, last, ...Array.from({ length: Math.max(0, last - 1) }, (_, one) => one + 1)]) {
      const [px, py] = this.#on_screen(this.way[order]);
      const free = facts.kind === "images" && !taken.some(([x, y]) => Math.max(Math.abs(x - px), Math.abs(y - py)) < side + 6);
      const image = free ? this.#image(this.points.rows[this.way[order]]) : null;
      if (free) taken.push([px, py]);
      pen.fillStyle = style.getPropertyValue("--warm");
      if (image) {
        pen.imageSmoothingEnabled = image.naturalWidth > side;
        pen.fillRect(px - side / 2 - 2, py - side / 2 - 2, side + 4, side + 4);
        pen.drawImage(image, px - side / 2, py - side / 2, side, side);
      } else if (!taken.some(([x, y]) => Math.max(Math.abs(x - px), Math.abs(y - py)) < side / 2)) {
        pen.beginPath();
        pen.arc(px, py, (order === 0 || order === last ? 7 : 4) * this.ratio, 0, 7);
        pen.fill();
        pen.lineWidth = 1.5 * this.ratio;
        pen.strokeStyle = style.getPropertyValue("--panel");
        pen.stroke();
      }
    }
  }

  #paint_mark() {
    if (this.marked < 0) return;
    const [px, py] = this.#on_screen(this.marked);
    this.pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--warm");
    this.pen.lineWidth = 3 * this.ratio;
    this.pen.beginPath();
    this.pen.arc(px, py, 12 * this.ratio, 0, 7);
    this.pen.stroke();
  }

  #down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.#place(event));
    this.pressed = { at: this.#place(event), far: 0 };
    this.canvas.classList.add("moving");
  }

  #move(event) {
    const now = this.#place(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) return this.#hover(...now);
    if (this.pointers.size === 2) {
      const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const stretched = Math.hypot(now[0] - other[0], now[1] - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1]));
      this.#zoom(stretched, (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else {
      this.view.x -= (now[0] - before[0]) / this.view.scale;
      this.view.y += (now[1] - before[1]) / this.view.scale;
      this.pressed.far += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (this.pressed.far > 4) this.#hide_tip();
      this.#moved();
    }
    this.pointers.set(event.pointerId, now);
  }

  #up(event) {
    const pressed = this.pressed;
    this.pointers.delete(event.pointerId);
    this.canvas.classList.toggle("moving", this.pointers.size > 0);
    if (event.type === "pointerup" && pressed && pressed.far < 5) this.#open(...pressed.at);
  }

  #wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.#zoom(Math.exp(-event.deltaY * lines * 0.0016), ...this.#place(event));
  }

  #key(event) {
    const step = 0.12 * Math.min(this.width, this.height) / this.view.scale;
    const pan = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (pan) {
      this.view.x += pan[0] * step;
      this.view.y += pan[1] * step;
      this.#moved();
    } else if (event.key === "+" || event.key === "=") this.#zoom(1.5);
    else if (event.key === "-") this.#zoom(1 / 1.5);
    else if (event.key === "0") this.#all();
    else if (event.key === "Enter") this.#open(this.width / 2, this.height / 2, 200);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #found(px, py, reach) {
    return this.points.nearest(...this.#at(px, py), (reach * this.ratio) / this.view.scale);
  }

  #hover(px, py) {
    if (this.fixed) return; // the card that was pressed for stays, so that the pointer can go there
    const near = this.view.scale > this.whole * 1.5 ? 22 : 10;
    const place = this.#found(px, py, near);
    if (place === this.hovered) return;
    this.hovered = place;
    clearTimeout(this.waiting);
    if (place < 0) return this.#hide_tip();
    this.waiting = setTimeout(() => this.#show_tip(place, false), 40);
  }

  async #show_tip(place, fixed) {
    let item;
    try {
      item = await get(`api/item/${this.points.rows[place]}`, {}, this.signal);
    } catch {
      return;
    }
    if (!fixed && (this.fixed || place !== this.hovered)) return;
    this.fixed = fixed;
    item.text = item.text.slice(0, 240);
    const [px, py] = this.#on_screen(place).map((value) => value / this.ratio);
    this.tip.replaceChildren(card(item));
    this.tip.classList.toggle("fixed", fixed);
    this.tip.hidden = false;
    const wide = facts.kind === "texts" ? 260 : 150;
    this.tip.style.width = `${wide}px`;
    this.tip.style.left = `${Math.max(6, Math.min(this.width / this.ratio - wide - 60, px + 14))}px`;
    this.tip.style.top = `${Math.max(6, Math.min(this.height / this.ratio - this.tip.offsetHeight - 6, py + 14))}px`;
  }

  #hide_tip() {
    clearTimeout(this.waiting);
    this.hovered = -1;
    this.fixed = false;
    this.tip.hidden = true;
  }

  // A press fixes the card, whose link leads to the neighbours.
  #open(px, py, reach = 22) {
    const place = this.#found(px, py, reach);
    if (place < 0) {
      this.marked = -1;
      this.#hide_tip();
    } else {
      this.marked = place;
      this.#show_tip(place, true);
      say(`item ${this.points.rows[place]}`);
    }
    this.#draw();
  }

  #legend() {
    if (this.told.names.length === 0) {
      const bar = el("canvas", { class: "scale", width: 220, height: 12, role: "img", "aria-label": `Colours from ${this.told.by}` });
      const pen = bar.getContext("2d");
      for (let x = 0; x < 220; x++) {
        pen.fillStyle = viridis(x / 219);
        pen.fillRect(x, 0, 1, 12);
      }
      return el("div", { class: "legend" }, bar, el("span", { class: "quiet" }, this.told.by));
    }
    if (this.told.names.length === 1) return el("div", { class: "legend" });
    return el("div", { class: "legend", role: "group", "aria-label": "Classes: press to fade one" }, this.told.names.map((name, code) => {
      const dot = el("i", { class: "dot" });
      dot.style.background = COLOURS[code % COLOURS.length];
      const button = el("button", { class: "button", "aria-pressed": "true", dir: "auto" }, dot, name, el("span", { class: "quiet number" }, this.told.counts[code].toLocaleString("en")));
      button.addEventListener("click", () => {
        if (!this.hidden.delete(code)) this.hidden.add(code);
        button.setAttribute("aria-pressed", String(!this.hidden.has(code)));
        this.#draw();
      });
      return button;
    }));
  }
}

// "#rrggbb" or "rgb(r g b)" as the bytes of a pixel, opaque.
function number_of(words) {
  const text = words.trim();
  const parts = text.startsWith("#")
    ? [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16))
    : text.match(/[\d.]+/g).slice(0, 3).map(Number);
  return ((255 << 24) | (parts[2] << 16) | (parts[1] << 8) | parts[0]) >>> 0;
}

function mixed(one, other, share) {
  const part = (shift) => Math.round(((one >>> shift) & 255) * (1 - share) + ((other >>> shift) & 255) * share);
  return ((255 << 24) | (part(16) << 16) | (part(8) << 8) | part(0)) >>> 0;
}

const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function viridis(share) {
  const at = Math.max(0, Math.min(0.9999, share)) * (SCALE.length - 1);
  const [low, high] = [SCALE[Math.floor(at)], SCALE[Math.floor(at) + 1]];
  const part = (place) => Math.round(low[place] + (high[place] - low[place]) * (at % 1)).toString(16).padStart(2, "0");
  return `#${part(0)}${part(1)}${part(2)}`;
}
