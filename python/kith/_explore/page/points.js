// Many points in a picture: written into its pixels one by one, which needs no graphics card and takes some ten nanoseconds
// each. They come in a random order, so that the first thousand are a fair sample of all.

export class Points {
  constructor(buffer, count) {
    this.count = count;
    this.x = new Float32Array(buffer, 0, count);
    this.y = new Float32Array(buffer, 4 * count, count);
    this.rows = new Uint32Array(buffer, 8 * count, count);
    this.codes = new Uint8Array(buffer, 12 * count, count);
    this.#bound();
    this.#sort();
  }

  // All but the outermost of both axes: one far point shall not shrink the rest to a dot.
  #bound() {
    const sample = Math.min(this.count, 20000);
    const between = (values) => {
      const sorted = values.slice(0, sample).sort();
      const cut = sample > 200 ? Math.floor(sample / 400) : 0;
      return [sorted[cut], sorted[sample - 1 - cut]];
    };
    const [left, right] = between(this.x);
    const [low, high] = between(this.y);
    this.middle = [(left + right) / 2, (low + high) / 2];
    this.extent = [right - left, high - low];
    if (!(this.extent[0] > 0) && !(this.extent[1] > 0)) this.extent = [1, 1];
  }

  // Points by the square of a grid that they lie in, for finding those near the pointer.
  #sort() {
    const side = Math.max(1, Math.min(512, Math.ceil(Math.sqrt(this.count / 4))));
    const [wide, tall] = this.extent.map((extent) => (extent > 0 ? extent * 1.02 : 1));
    this.grid = { side, left: this.middle[0] - wide / 2, low: this.middle[1] - tall / 2, wide: wide / side, tall: tall / side };
    const places = new Uint32Array(this.count);
    const begins = new Uint32Array(side * side + 1);
    for (let i = 0; i < this.count; i++) {
      const place = this.#square(this.x[i], this.y[i]);
      places[i] = place;
      begins[place + 1]++;
    }
    for (let i = 0; i < side * side; i++) begins[i + 1] += begins[i];
    const next = begins.slice();
    const sorted = new Uint32Array(this.count);
    for (let i = 0; i < this.count; i++) sorted[next[places[i]]++] = i;
    this.grid.begins = begins;
    this.grid.sorted = sorted;
  }

  #column(x) {
    const { side, left, wide } = this.grid;
    return Math.max(0, Math.min(side - 1, Math.floor((x - left) / wide)));
  }

  #line(y) {
    const { side, low, tall } = this.grid;
    return Math.max(0, Math.min(side - 1, Math.floor((y - low) / tall)));
  }

  #square(x, y) {
    return this.#line(y) * this.grid.side + this.#column(x);
  }

  // The point nearest to a place, within a reach; -1 for none.
  nearest(x, y, reach) {
    let best = -1;
    let least = reach * reach;
    this.#each(x - reach, x + reach, y - reach, y + reach, 200000, (i) => {
      const far = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
      if (far < least) [best, least] = [i, far];
    });
    return best;
  }

  // Points within a rectangle; null where there are more than `most`.
  within(left, right, low, high, most) {
    const found = [];
    this.#each(left, right, low, high, Infinity, (i) => {
      if (this.x[i] >= left && this.x[i] <= right && this.y[i] >= low && this.y[i] <= high) found.push(i);
      return found.length <= most;
    });
    return found.length > most ? null : found;
  }

  #each(left, right, low, high, most, take) {
    const { side, begins, sorted } = this.grid;
    let looked = 0;
    for (let line = this.#line(low); line <= this.#line(high); line++) {
      const end = begins[line * side + this.#column(right) + 1];
      for (let at = begins[line * side + this.#column(left)]; at < end; at++) {
        if (take(sorted[at]) === false || ++looked > most) return;
      }
    }
  }

  // The number of the point that shows a row; -1 where it is not drawn.
  of_row(row) {
    return this.rows.indexOf(row);
  }
}

// Draws the first `limit` points into the pixels of an image of width x height. `view` is {x, y, scale}: what is in the middle,
// and pixels for each unit. `shades` has a colour for each code, as a number of the image's bytes; 0 leaves its points out.
export function draw_points(pixels, width, height, points, view, size, shades, limit, first = 0) {
  const { x, y, codes } = points;
  const { scale } = view;
  const left = width / 2 - view.x * scale;
  const top = height / 2 + view.y * scale;
  const half = (size - 1) >> 1;
  const most_x = width - size;
  const most_y = height - size;
  if (size === 1) {
    for (let i = first; i < limit; i++) {
      const shade = shades[codes[i]];
      const px = (left + x[i] * scale) | 0;
      const py = (top - y[i] * scale) | 0;
      if (shade !== 0 && px >= 0 && px < width && py >= 0 && py < height) pixels[py * width + px] = shade;
    }
    return;
  }
  const spans = disc(size);
  for (let i = first; i < limit; i++) {
    const shade = shades[codes[i]];
    if (shade === 0) continue;
    const px = ((left + x[i] * scale) | 0) - half;
    const py = ((top - y[i] * scale) | 0) - half;
    if (px < 0 || px > most_x || py < 0 || py > most_y) continue;
    let at = py * width + px;
    for (let line = 0; line < size; line++, at += width) {
      const end = at + spans[2 * line + 1];
      for (let pixel = at + spans[2 * line]; pixel < end; pixel++) pixels[pixel] = shade;
    }
  }
}

// For each line of a disc where it begins and ends.
function disc(size) {
  const spans = new Int32Array(2 * size);
  const middle = (size - 1) / 2;
  for (let line = 0; line < size; line++) {
    const reach = Math.sqrt(Math.max(0, (size / 2) ** 2 - (line - middle) ** 2));
    spans[2 * line] = size < 4 ? 0 : Math.max(0, Math.ceil(middle - reach));
    spans[2 * line + 1] = size < 4 ? size : Math.min(size, Math.floor(middle + reach) + 1);
  }
  return spans;
}
