// k-means cells as contact sheets, and the clusters of single linkage cut at a height.

import { get } from "./api.js";
import { colour, count, el, percent, short, svg } from "./dom.js";
import { grid, growing, tinted } from "./items.js";
import { facts } from "./state.js";

export async function clusters({ parts, values }, signal) {
  if (parts[0] === "linkage") {
    return parts[2] === undefined ? linkage(parts[1], signal) : linked(parts[1], parts[2], signal);
  }
  const number = /^\d+$/.test(parts[0] ?? "") ? Number(parts[0]) : facts.clusters;
  if (parts[1] !== undefined) return cell(number, parts[1], signal);
  const told = await get(`api/clusters/${number}`, {}, signal);
  return {
    title: `${count(told.count, "cluster")} by k-means`,
    content: [
      el("div", { class: "head" }, el("h1", {}, count(told.count, "cluster")), number_field(number), ways("cells"),
        el("p", {}, told.spherical ? "Cells of spherical k-means: rows by the direction that they point in. " : "Cells of k-means: each row belongs to the nearest centre. ",
          "Each sheet goes from the middle of its cell outwards; its spread is how far rows are from the centre.")),
      el("div", { class: "sheets" }, told.sheets.map((sheet) => contact(sheet, told.rows, `#/clusters/${number}/${sheet.cell}`))),
    ],
  };
}

function ways(now) {
  return el("span", { class: "buttons" },
    el("a", { class: "button", href: "#/clusters", "aria-current": now === "cells" && "true" }, "k-means"),
    el("a", { class: "button", href: "#/clusters/linkage", "aria-current": now === "linkage" && "true" }, "Single linkage"));
}

function number_field(number) {
  const field = el("input", { type: "number", min: "1", max: "200", value: String(number), "aria-label": "Number of clusters" });
  const form = el("form", { class: "buttons", onsubmit: (event) => {
    event.preventDefault();
    location.hash = `#/clusters/${Math.max(1, Math.min(200, Math.round(Number(field.value) || 20)))}`;
  } }, el("label", { class: "field" }, "Clusters", field), el("button", { class: "button" }, "Show"));
  return form;
}

function shares(sheet) {
  if (!sheet.shares?.length) return null;
  const shade = (label, place) => colour(facts.labels.length ? facts.labels.indexOf(label) : place);
  const parts = sheet.shares.map((one, place) => {
    const part = tinted("i", shade(one.label, place));
    part.style.width = `${100 * one.share}%`;
    return part;
  });
  const names = sheet.shares.map((one, place) =>
    el("span", { dir: "auto" }, tinted("i", shade(one.label, place), "dot"), `${one.label} ${percent(one.share)}`));
  const others = 1 - sheet.shares.reduce((sum, one) => sum + one.share, 0);
  if (others > 1e-9) names.push(el("span", {}, `others ${percent(others)}`));
  return el("div", {}, el("div", { class: "shares", "aria-hidden": "true" }, parts), el("div", { class: "keys" }, names));
}

function contact(sheet, rows, href) {
  return el(
    "section",
    { class: "panel sheet", "aria-label": `Cluster ${sheet.cell}` },
    el(
      "header",
      {},
      el("h2", {}, `Cluster ${sheet.cell}`),
      el("span", { class: "quiet number" }, `${count(sheet.size, "item")}, ${percent(sheet.size / rows)}`,
        sheet.spread !== undefined ? ` · spread ${short(sheet.spread)}` : ""),
      el("a", { href }, "Show all"),
    ),
    shares(sheet),
    grid(facts.kind === "texts" ? sheet.items.slice(0, 7) : sheet.items, { dense: true }),
  );
}

async function cell(number, which, signal) {
  const told = await get(`api/cluster/${number}/${which}`, {}, signal);
  const more = async (first) => (await get(`api/cluster/${number}/${which}`, { first })).items;
  return one_cluster(told, more, `#/clusters/${number}`, "From the middle of the cell outwards.");
}

async function linked(height, which, signal) {
  const told = await get(`api/linked/${which}`, { height }, signal);
  const more = async (first) => (await get(`api/linked/${which}`, { height, first })).items;
  return one_cluster(told, more, `#/clusters/linkage/${height}`, `Joined by steps up to ${short(Number(height))}.`);
}

function one_cluster(told, more, back, words) {
  const sheet = told.sheet;
  return {
    title: `Cluster ${sheet.cell}`,
    content: [
      el("div", { class: "head" }, el("h1", {}, `Cluster ${sheet.cell}`), el("a", { class: "button", href: back }, "All clusters"),
        el("p", {}, `${count(sheet.size, "item")}. ${words}`)),
      shares(sheet) ?? "",
      el("p", {}, "\u00a0"),
      growing(told.items, more),
    ],
  };
}

async function linkage(height, signal) {
  const told = await get("api/linkage", { height }, signal);
  const joined = told.rows - told.single;
  return {
    title: `Single linkage at ${short(told.height)}`,
    content: [
      el("div", { class: "head" }, el("h1", {}, `Single linkage at ${short(told.height)}`), ways("linkage"),
        el("p", {}, "Rows belong together if steps up to the height join them, along the k-NN graph. ",
          `${count(told.clusters - told.single, "cluster")} of ${count(joined, "item")}; ${count(told.single, "item")} stand alone.`)),
      el("div", { class: "panel" }, curve(told)),
      el("p", {}, "\u00a0"),
      el("div", { class: "sheets" }, told.sheets.map((sheet) => contact(sheet, told.rows, `#/clusters/linkage/${told.height}/${sheet.cell}`))),
    ],
  };
}

// How many clusters there are at each height. A slider below goes through the same heights, for keys.
function curve({ height, curve: told }) {
  const [width, tall] = [1000, 130];
  const last = Math.max(1, told.heights.length - 1);
  const most = Math.max(...told.clusters, 1);
  const x = (place) => 8 + (place * (width - 16)) / last;
  const y = (number) => tall - 4 - (number * (tall - 14)) / most;
  const points = told.clusters.map((number, place) => `${x(place).toFixed(1)},${y(number).toFixed(1)}`).join(" ");
  let now = told.heights.findIndex((one) => one >= height);
  if (now < 0) now = told.heights.length - 1;
  const go = (place) => (location.hash = `#/clusters/linkage/${told.heights[place]}`);
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${tall}`, class: "curve", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("polygon", { class: "area", points: `${x(0)},${tall} ${points} ${x(told.clusters.length - 1)},${tall}` }),
    svg("polyline", { class: "line", points }),
    svg("line", { class: "at", x1: x(now), x2: x(now), y1: 0, y2: tall }));
  drawn.addEventListener("click", (event) => {
    const box = drawn.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    go(Math.max(0, Math.min(told.heights.length - 1, Math.round(((at - 8) * last) / (width - 16)))));
  });
  const slider = el("input", { type: "range", min: "0", max: String(told.heights.length - 1), "aria-label": "Height of the cut" });
  slider.value = String(now);
  slider.style.width = "100%";
  slider.setAttribute("aria-valuetext", `height ${short(height)}`);
  slider.addEventListener("change", () => go(Number(slider.value)));
  return [
    el("p", { class: "quiet" }, `How many clusters of ${told.smallest} items or more there are, by the height of the cut: `,
      el("b", {}, `${told.clusters[now]} here`), `, ${most} at the most. Click to cut elsewhere.`),
    drawn,
    slider,
    el("div", { class: "ends-of-curve number" }, el("span", {}, `height ${short(told.heights[0])}`), el("span", {}, short(told.heights[told.heights.length - 1]))),
  ];
}
