// By an image or a text that the caller's encode= makes a vector of; else by a row's number or a part of a text.

import { post } from "./api.js";
import { count, el } from "./dom.js";
import { grid } from "./items.js";
import { facts } from "./state.js";

export async function search({ parts }, signal) {
  const text = parts.join("/");
  const results = el("div", { id: "results" });
  const field = el("input", {
    type: "search",
    name: "text",
    value: text,
    placeholder: facts.search_text ? "Describe what you look for" : `${facts.ids ? "An id" : "A row number"}, or a part of a text or a label`,
    "aria-label": "What to search for",
    autocomplete: "off",
    maxlength: "2000",
  });
  field.value = text;
  const form = el("form", { role: "search", onsubmit: (event) => {
    event.preventDefault();
    const wanted = field.value.trim();
    if (wanted) location.hash = `#/search/${encodeURIComponent(wanted)}`;
  } }, field, el("button", { class: "button first", type: "submit" }, "Search"));
  if (text) show(results, await post("api/search/text?k=60", text, signal), text);
  return {
    title: text ? `Search: ${text}` : "Search",
    content: [
      el("div", { class: "head" }, el("h1", {}, "Search"), el("p", {}, words())),
      el("div", { class: "searches" }, el("div", {}, form), facts.search_image ? drop_place(field, results, signal) : null),
      results,
    ],
    shown: () => field.focus({ preventScroll: true }),
  };
}

function words() {
  if (facts.search_text) return "The nearest to what you type or upload, by the function that was given with encode=.";
  if (facts.search_image) return `The nearest to an image that you upload; or ${facts.ids ? "an id" : "a row number"}, or a part of a label.`;
  const name = facts.ids ? "an id" : "a row number";
  return `By ${name}, or by a part of a text, a label or a file's name. Where kith.explore is given encode=, also by meaning.`;
}

function show(place, told, what) {
  const most = Math.max(...told.found.map((one) => one.distance ?? 0), 0);
  const heading =
    told.how === "encoded"
      ? `The ${count(told.found.length, "nearest", "nearest")} to ${what}`
      : `${told.more ? "The first " : ""}${count(told.found.length, "item")} with “${what}”`;
  place.replaceChildren(
    el("div", { class: "head" }, el("h2", {}, heading)),
    ...(told.words ? [el("p", { class: "notice" }, `${told.words}. Shown are items that contain the text.`)] : []),
    ...(told.looked < facts.rows && !told.more ? [el("p", { class: "quiet" }, `Looked through the first ${count(told.looked, "row")} in three seconds.`)] : []),
    told.found.length ? grid(told.found, { most }) : el("p", { class: "notice" }, "Nothing was found."),
  );
}

function drop_place(field, results, signal) {
  const seen = el("canvas", { width: 64, height: 64, "aria-label": "The uploaded image", role: "img", hidden: true });
  const input = el("input", { type: "file", accept: "image/*", class: "unseen", id: "upload" });
  const told = el("span", {}, "or drop one here, or paste it");
  const place = el("div", { class: "drop" }, seen, el("span", {}, el("label", { class: "button", for: "upload" }, "Upload an image"), " ", told), input);
  const take = async (file) => {
    if (!file) return;
    if (file.size > 16 * 2 ** 20) {
      told.textContent = "It has more than 16 MiB.";
      return;
    }
    told.textContent = "Searching …";
    draw(seen, file);
    try {
      show(results, await post("api/search/image?k=60", file, signal), file.name || "the pasted image");
      told.textContent = "or drop one here, or paste it";
      field.value = "";
    } catch (error) {
      if (signal.aborted) return;
      told.textContent = error.message;
      results.replaceChildren();
    }
  };
  input.addEventListener("change", () => take(input.files[0]));
  place.addEventListener("dragover", (event) => {
    event.preventDefault();
    place.classList.add("over");
  });
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => take(event.clipboardData?.files[0]), { signal });
  return place;
}

// Drawn on a canvas, since the page's policy lets images come from the server alone.
async function draw(canvas, file) {
  try {
    const image = await createImageBitmap(file);
    const scale = Math.min(64 / image.width, 64 / image.height);
    const [width, height] = [image.width * scale, image.height * scale];
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, 64, 64);
    pen.drawImage(image, (64 - width) / 2, (64 - height) / 2, width, height);
    canvas.hidden = false;
  } catch {
    canvas.hidden = true;
  }
}
