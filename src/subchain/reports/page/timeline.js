// The timeline: shares of states in bins, in levels that halve, and finer ones where the page has them: runs of states,
// single positions.
"use strict";
const Timeline = (() => {
  const { contents, arrays, states, variable, channels, mix } = Page;
  const described = contents.timeline, order = contents.order, n = states.length;
  const lines = described.columns.map((column, index) => ({ ...column, index })).filter((column) => !column.strip);
  const strips = described.columns.map((column, index) => ({ ...column, index })).filter((column) => column.strip);
  const nColumns = described.columns.length;
  const canvas = document.getElementById("timeline"), readout = document.getElementById("timeline-readout");
  const TOGETHER = 8; // sequences under one another
  const MOST_PRESENT = 4; // columns of zeros and ones that are named under the cursor
  const LEAST = 8, LEAST_BINS = 12; // positions, or bins where there are no single positions, that a window shows at least
  // Heights of the parts of a track, by how many tracks are drawn.
  const SIZES = [
    { most: 1, line: 54, strip: 9, states: 96, doubt: 26, gap: 4 },
    { most: 3, line: 40, strip: 9, states: 56, doubt: 18, gap: 8 },
    { most: TOGETHER, line: 22, strip: 5, states: 28, doubt: 9, gap: 6 },
  ];
  const LEFT = 8, AXIS = 42, MAP = 16;
  let tracks = [], visible = [], view = [0, 1], whole = 1, cursor = null, pending = false, groups = [], chosen = 0, settled = false;

  // ---- levels: level 0 is what the page carries, each next one has half as many bins
  function build() {
    const total = described.tracks.reduce((sum, track) => sum + track.bins, 0);
    let firstBin = 0, firstSingle = 0, firstRun = 0, firstByte = 0;
    tracks = described.tracks.map((track) => {
      const shares = Array.from({ length: n }, (_, slot) => arrays.shares.subarray(slot * total + firstBin, slot * total + firstBin + track.bins));
      const numbers = nColumns ? arrays.binNumbers.subarray(firstBin * nColumns * 3, (firstBin + track.bins) * nColumns * 3) : null;
      const levels = [{ bins: track.bins, width: track.length / track.bins, shares, doubts: arrays.doubts.subarray(firstBin, firstBin + track.bins), numbers }];
      while (levels.at(-1).bins > 64) levels.push(halve(levels.at(-1)));
      firstBin += track.bins;
      const stretches = track.stretches.map(([first, length]) => {
        const stretch = { first, length, offset: firstSingle };
        firstSingle += length;
        return stretch;
      });
      let runs = null;
      if (track.runs) {
        runs = { states: arrays.runStates.subarray(firstRun, firstRun + track.runs), starts: new Float64Array(track.runs + 1) };
        firstByte = startsOf(runs.starts, firstByte);
        firstRun += track.runs;
      }
      return { ...track, levels, stretches, runs };
    });
  }

  // Where runs start, from their lengths, which are written in bytes of seven bits; the place behind the last byte.
  function startsOf(starts, at) {
    for (let run = 0; run + 1 < starts.length; run++) {
      let length = 0, unit = 1, byte;
      do { byte = arrays.runLengths[at++]; length += (byte & 127) * unit; unit *= 128; } while (byte > 127);
      starts[run + 1] = starts[run] + length;
    }
    return at;
  }

  function halve(level) {
    const bins = Math.ceil(level.bins / 2), pair = (i) => [2 * i, Math.min(2 * i + 1, level.bins - 1)];
    const average = (from) => {
      const to = new Uint8Array(bins);
      for (let i = 0; i < bins; i++) { const [a, b] = pair(i); to[i] = (from[a] + from[b] + 1) >> 1; }
      return to;
    };
    let numbers = null;
    if (level.numbers) {
      numbers = new Uint8Array(bins * nColumns * 3);
      for (let i = 0; i < bins; i++) for (let c = 0; c < nColumns; c++) {
        const [a, b] = pair(i).map((bin) => (bin * nColumns + c) * 3), to = (i * nColumns + c) * 3, from = level.numbers;
        const gone = [from[a + 1] === 255, from[b + 1] === 255];
        if (gone[0] || gone[1]) { const kept = gone[0] ? b : a; numbers.set(from.subarray(kept, kept + 3), to); continue; }
        numbers[to] = Math.min(from[a], from[b]);
        numbers[to + 1] = (from[a + 1] + from[b + 1] + 1) >> 1;
        numbers[to + 2] = Math.max(from[a + 2], from[b + 2]);
      }
    }
    return { bins, width: level.width * 2, shares: level.shares.map(average), doubts: average(level.doubts), numbers };
  }

  // ---- what a column of the picture shows: positions [from, to) of a track
  const stretchAt = (track, position) => track.stretches.find((s) => position >= s.first && position < s.first + s.length);
  function runAt(runs, position) {
    let low = 0, high = runs.states.length - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (runs.starts[middle] <= position) low = middle; else high = middle - 1; }
    return low;
  }
  // Shares of states by their runs; the only run there is, if there is only one.
  function alongRuns(runs, from, to, sums) {
    const first = runAt(runs, from);
    let run = first;
    for (; run < runs.states.length && runs.starts[run] < to; run++) {
      const inside = Math.min(to, runs.starts[run + 1]) - Math.max(from, runs.starts[run]);
      if (runs.states[run] < n) sums[runs.states[run]] += inside / (to - from);
    }
    return run - first === 1 ? { from: runs.starts[first], to: runs.starts[first + 1], slot: runs.states[first] } : null;
  }
  function column(track, from, to, sums) {
    const step = to - from, middle = (from + to) / 2, finest = track.levels[0];
    const fine = finest.width > 1.001 && step < finest.width ? stretchAt(track, Math.floor(middle)) : null;
    sums.fill(0);
    if (fine) {
      const first = Math.max(Math.floor(from), fine.first), last = Math.min(Math.max(Math.ceil(to) - (step < 1 ? 1 : 0), first + 1), fine.first + fine.length);
      const one = step < 1 ? Math.floor(middle) : first, until = step < 1 ? one + 1 : last;
      let doubt = 0;
      for (let position = one; position < until; position++) {
        const at = fine.offset + position - fine.first, slot = arrays.best[at], chance = arrays.chance[at] / 255;
        if (slot < n) sums[slot] += chance / (until - one);
        doubt += 1 - chance;
      }
      return { single: until - one === 1 ? fine.offset + one - fine.first : -1, doubt: null, unsure: doubt / (until - one), base: fine.offset - fine.first, from: one, to: until };
    }
    let index = 0;
    while (index + 1 < track.levels.length && track.levels[index + 1].width <= step) index++;
    const level = track.levels[index], first = Math.max(0, Math.min(level.bins - 1, Math.floor(from / level.width + 1e-9)));
    const last = step < level.width ? first + 1 : Math.max(first + 1, Math.min(level.bins, Math.ceil(to / level.width - 1e-9)));
    let doubt = 0;
    if (track.runs && step < finest.width) {
      const one = Math.min(track.length - 1, Math.floor(middle)), [start, stop] = step < 1 ? [one, one + 1] : [from, to];
      const run = alongRuns(track.runs, start, stop, sums);
      return { single: -1, doubt: level.doubts[first] / 255, level, first, last, run, from: Math.floor(start), to: Math.ceil(stop) };
    }
    for (let bin = first; bin < last; bin++) {
      for (let slot = 0; slot < n; slot++) sums[slot] += level.shares[slot][bin] / 255 / (last - first);
      doubt += level.doubts[bin] / 255 / (last - first);
    }
    return { single: -1, doubt, level, first, last, from: Math.floor(first * level.width), to: Math.min(track.length, Math.ceil(last * level.width)) };
  }

  // Smallest, mean and largest of a column of numbers, from 0 to 1; null where nothing is known.
  function numbersOf(found, index) {
    if (found.unsure !== undefined) {
      let [low, high, sum, known] = [255, 0, 0, 0];
      for (let position = found.from; position < found.to; position++) {
        const value = arrays.numbers[(found.base + position) * nColumns + index];
        if (value === 255) continue;
        low = Math.min(low, value); high = Math.max(high, value); sum += value; known++;
      }
      return known ? [low / 254, sum / known / 254, high / 254] : null;
    }
    let [low, high, sum, known] = [255, 0, 0, 0];
    for (let bin = found.first; bin < found.last; bin++) {
      const at = (bin * nColumns + index) * 3, from = found.level.numbers;
      if (from[at + 1] === 255) continue;
      low = Math.min(low, from[at]); high = Math.max(high, from[at + 2]); sum += from[at + 1]; known++;
    }
    return known ? [low / 254, sum / known / 254, high / 254] : null;
  }

  // ---- drawing
  function layout() {
    const sizes = { ...SIZES.find(({ most }) => visible.length <= most), name: visible.length > 1 ? 17 : 0, symbols: described.symbols ? 17 : 0 };
    sizes.track = sizes.name + lines.length * (sizes.line + 3) + strips.length * (sizes.strip + 1) + sizes.states + sizes.symbols + 2 + sizes.doubt + sizes.gap;
    sizes.map = MAP + 6;
    sizes.height = sizes.map + visible.length * sizes.track + AXIS;
    return sizes;
  }

  function draw() {
    pending = false;
    const ratio = Math.min(devicePixelRatio || 1, 2), sizes = layout(), width = canvas.clientWidth;
    if (!width) return;
    canvas.style.height = `${sizes.height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(sizes.height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(context, width, sizes, ratio);
    drawCursor(context, width, sizes);
    canvas.dataset.from = view[0];
    canvas.dataset.to = view[1];
  }

  // Everything but the cursor, on a canvas or into a file.
  function paint(context, width, sizes, ratio) {
    const W = Math.round((width - 2 * LEFT) * ratio), step = (view[1] - view[0]) / W;
    visible.forEach((track, place) => drawTrack(context, track, sizes, sizes.map + place * sizes.track, W, step, ratio));
    drawMap(context, width);
    drawAxis(context, width, sizes);
  }

  function palette() {
    const panel = channels(variable("--panel")), pack = (rgb) => (255 << 24 | rgb[2] << 16 | rgb[1] << 8 | rgb[0]) >>> 0;
    const found = new Uint32Array(2 * n + 1);
    for (let slot = 0; slot < n; slot++) {
      const dim = Page.selected !== null && Page.selected !== slot;
      Page.look(slot).forEach((rgb, i) => { found[2 * slot + i] = pack(dim ? mix(rgb, panel, 0.82) : rgb); });
    }
    found[2 * n] = pack(channels(variable("--faint")));
    return found;
  }

  function drawTrack(context, track, sizes, top, W, step, ratio) {
    const bandTop = top + sizes.name + lines.length * (sizes.line + 3) + strips.length * (sizes.strip + 1);
    const H = Math.round(sizes.states * ratio), image = new ImageData(W, H), pixels = new Uint32Array(image.data.buffer), colours = palette();
    const sums = new Float64Array(n), doubts = new Float32Array(W).fill(-1), best = new Int16Array(W).fill(-1), found = new Array(W);
    for (let x = 0; x < W; x++) {
      const from = view[0] + x * step, to = from + step;
      if (from >= track.length) break;
      const here = found[x] = column(track, from, Math.min(to, track.length), sums);
      doubts[x] = here.doubt === null ? here.unsure : here.doubt;
      let y = 0, held = 0, most = 0;
      for (const slot of order) {
        held += sums[slot];
        if (sums[slot] > most) { most = sums[slot]; best[x] = slot; }
        const until = Math.min(H, Math.round(held * H)), pattern = Page.PATTERNS[states[slot].pattern];
        for (; y < until; y++) pixels[y * W + x] = colours[2 * slot + (pattern(Math.floor(x / ratio), Math.floor(y / ratio)) ? 1 : 0)];
      }
      if (most < 0.5) best[x] = -1;
      for (; y < H; y++) pixels[y * W + x] = colours[2 * n];
    }
    context.putImageData(image, Math.round(LEFT * ratio), Math.round(bandTop * ratio));
    if (sizes.name) {
      context.fillStyle = variable("--soft");
      context.font = "12px system-ui, sans-serif";
      context.textAlign = "left"; context.textBaseline = "alphabetic";
      context.fillText(`${track.name}  ·  ${Page.positions(track.length)}`, LEFT, top + 13);
    }
    drawNumbers(context, sizes, top + sizes.name, found, W, ratio, track === visible[0]);
    drawNames(context, best, sizes, bandTop, ratio);
    drawSymbols(context, track, sizes, bandTop + sizes.states, W, ratio);
    drawDoubt(context, doubts, bandTop + sizes.states + sizes.symbols + 2, sizes.doubt, ratio);
  }

  function drawNumbers(context, sizes, top, found, W, ratio, first) {
    for (const line of lines) {
      context.fillStyle = variable("--faint");
      context.fillRect(LEFT, top, W / ratio, sizes.line);
      context.fillStyle = context.strokeStyle = variable("--ink");
      const y = (value) => top + sizes.line - 2 - value * (sizes.line - 4);
      context.globalAlpha = 0.32;
      for (let x = 0; x < W; x++) {
        const numbers = found[x] && numbersOf(found[x], line.index);
        if (numbers && numbers[2] > numbers[0]) context.fillRect(LEFT + x / ratio, y(numbers[2]), 1 / ratio, Math.max(0.6, y(numbers[0]) - y(numbers[2])));
      }
      context.globalAlpha = 0.9;
      context.lineWidth = 1.1;
      context.beginPath();
      let drawing = false;
      for (let x = 0; x < W; x++) {
        const numbers = found[x] && numbersOf(found[x], line.index);
        if (!numbers) { drawing = false; continue; }
        if (drawing) context.lineTo(LEFT + (x + 0.5) / ratio, y(numbers[1])); else context.moveTo(LEFT + (x + 0.5) / ratio, y(numbers[1]));
        drawing = true;
      }
      context.stroke();
      context.globalAlpha = 1;
      if (sizes.line > 30) note(context, rangeOf(line), top);
      else if (first) note(context, line.name, top, 10);
      top += sizes.line + 3;
    }
    for (const strip of strips) {
      context.fillStyle = variable("--faint");
      context.fillRect(LEFT, top, W / ratio, sizes.strip);
      context.fillStyle = variable("--ink");
      for (let x = 0; x < W; x++) {
        const numbers = found[x] && numbersOf(found[x], strip.index);
        if (!numbers) continue;
        context.globalAlpha = numbers[1];
        context.fillRect(LEFT + x / ratio, top, 1 / ratio, sizes.strip);
      }
      context.globalAlpha = 1;
      if (sizes.strip > 7) note(context, strip.name, top, 9);
      top += sizes.strip + 1;
    }
  }

  // The range of the data, and that of the drawing where it leaves out outliers.
  function rangeOf({ name, low, high, range: [least, most] }) {
    if (least === null) return `${name}: all missing`;
    const clipped = low > least || high < most ? `, drawn from ${Page.number(low)} to ${Page.number(high)}` : "";
    return `${name}: ${Page.number(least)} to ${Page.number(most)}${clipped}`;
  }

  function note(context, content, top, size = 11) {
    context.font = `${size}px system-ui, sans-serif`;
    context.textAlign = "left"; context.textBaseline = "top";
    const width = context.measureText(content).width;
    context.fillStyle = variable("--panel");
    context.globalAlpha = 0.78;
    context.fillRect(LEFT, top, width + 8, size + 3);
    context.globalAlpha = 1;
    context.fillStyle = variable("--soft");
    context.fillText(content, LEFT + 4, top + 1);
  }

  // Symbols under their positions, once these are wide enough.
  function drawSymbols(context, track, sizes, top, W, ratio) {
    const wide = W / ratio / (view[1] - view[0]);
    if (!sizes.symbols) return;
    if (wide < 5.5 || !track.stretches.some((s) => s.first < view[1] && s.first + s.length > view[0])) {
      if (visible.length === 1) note(context, "zoom in to read the symbols", top + 2);
      return;
    }
    context.font = `${Math.round(Math.min(15, Math.max(9.5, 1.5 * wide)))}px ui-monospace, Menlo, Consolas, monospace`;
    context.textAlign = "center"; context.textBaseline = "middle";
    for (let position = Math.max(0, Math.floor(view[0])); position < Math.min(track.length, Math.ceil(view[1])); position++) {
      const stretch = stretchAt(track, position), x = LEFT + (position + 0.5 - view[0]) * wide;
      if (!stretch || x < LEFT || x > LEFT + W / ratio) continue;
      const at = stretch.offset + position - stretch.first, symbol = described.symbols[arrays.symbols[at]] ?? "·", slot = arrays.best[at];
      const fits = fitted(context, symbol, wide);
      context.fillStyle = variable(Page.selected !== null && Page.selected !== slot ? "--line" : "--ink");
      context.fillText(fits, x, top + sizes.symbols / 2 + 1);
    }
  }

  function fitted(context, symbol, room) {
    const most = Math.floor((room + 1) / context.measureText("m").width);
    if ([...symbol].length <= Math.max(1, most)) return symbol;
    return most >= 3 ? Page.shortened(symbol, most) : "";
  }

  function badge(context, content, x, y, room) {
    const width = context.measureText(content).width;
    if (width + 4 > room) return;
    context.fillStyle = variable("--panel");
    context.globalAlpha = 0.86;
    context.fillRect(x - width / 2 - 3, y - 7, width + 6, 14);
    context.globalAlpha = 1;
    context.fillStyle = variable("--ink");
    context.fillText(content, x, y + 0.5);
  }

  // Names of states over stretches of columns that one state holds most of.
  function drawNames(context, best, sizes, top, ratio) {
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center"; context.textBaseline = "middle";
    for (let x = 0; x < best.length;) {
      let until = x + 1;
      while (until < best.length && best[until] === best[x]) until++;
      const room = (until - x) / ratio;
      const told = Page.selected === null || best[x] === Page.selected;
      if (told && best[x] >= 0 && room > 20) badge(context, states[best[x]].name, LEFT + (x + until) / 2 / ratio, top + sizes.states / 2, room);
      x = until;
    }
  }

  function drawDoubt(context, doubts, top, height, ratio) {
    context.fillStyle = variable("--faint");
    context.fillRect(LEFT, top, doubts.length / ratio, height);
    context.fillStyle = variable("--soft");
    for (let x = 0; x < doubts.length; x++) {
      if (doubts[x] <= 0) continue;
      const high = Math.min(1, doubts[x]) * height;
      context.fillRect(LEFT + x / ratio, top + height - high, 1 / ratio, high);
    }
    if (height > 16) note(context, "entropy", top);
  }

  // The whole of the data as a line, with the window and where there are single positions.
  function drawMap(context, width) {
    const room = width - 2 * LEFT, at = (position) => LEFT + position / whole * room;
    context.fillStyle = variable("--faint");
    context.fillRect(LEFT, 2, room, MAP - 4);
    const track = visible[0];
    if (visible.length === 1) {
      const level = track.levels.find((l) => l.bins <= room) || track.levels.at(-1);
      for (let bin = 0; bin < level.bins; bin++) {
        let slot = 0;
        for (let other = 1; other < n; other++) if (level.shares[other][bin] > level.shares[slot][bin]) slot = other;
        const dim = Page.selected !== null && slot !== Page.selected;
        context.fillStyle = dim ? variable("--faint") : states[slot].colour;
        context.fillRect(at(bin * level.width), 2, Math.max(1, at((bin + 1) * level.width) - at(bin * level.width) + 0.5), MAP - 4);
      }
      if (!track.whole) {
        context.fillStyle = variable("--ink");
        for (const stretch of track.stretches) context.fillRect(at(stretch.first) - 1, MAP - 1, Math.max(3, stretch.length / whole * room), 4);
      }
    }
    context.fillStyle = variable("--panel");
    context.globalAlpha = 0.7;
    context.fillRect(LEFT, 0, at(view[0]) - LEFT, MAP);
    context.fillRect(at(view[1]), 0, LEFT + room - at(view[1]), MAP);
    context.globalAlpha = 1;
    context.strokeStyle = variable("--ink");
    context.lineWidth = 1.5;
    context.strokeRect(at(view[0]), 1, Math.max(3, at(view[1]) - at(view[0])), MAP - 2);
  }

  function drawAxis(context, width, sizes) {
    const { step: far, offset } = contents.positions, room = width - 2 * LEFT, span = view[1] - view[0];
    const y = sizes.height - AXIS + 4, ends = view.map((position) => offset + position * far);
    context.fillStyle = variable("--soft");
    context.strokeStyle = variable("--line");
    context.lineWidth = 1;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "top";
    const wanted = room / Math.max(95, context.measureText(Page.axis(...ends, 4).labels.at(-1) || "").width + 26), { ticks, labels, unit } = Page.axis(...ends, wanted);
    ticks.forEach((tick, i) => {
      const x = LEFT + ((tick - offset) / far - view[0]) / span * room;
      context.beginPath();
      context.moveTo(x, y - 4); context.lineTo(x, y + 2);
      context.stroke();
      context.textAlign = x < LEFT + 24 ? "left" : x > LEFT + room - 24 ? "right" : "center";
      context.fillText(labels[i], x, y + 4);
    });
    context.textAlign = "center";
    context.fillText(Page.axisName(unit), LEFT + room / 2, y + 21);
  }

  function drawCursor(context, width, sizes) {
    if (!cursor) return;
    const x = LEFT + (cursor.position - view[0]) / (view[1] - view[0]) * (width - 2 * LEFT);
    if (x < LEFT || x > width - LEFT) return;
    context.strokeStyle = variable("--ink");
    context.lineWidth = 1;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(x, sizes.map); context.lineTo(x, sizes.height - AXIS);
    context.stroke();
    context.setLineDash([]);
  }

  const later = () => { if (!pending) { pending = true; requestAnimationFrame(draw); } };

  // ---- the window
  function look(from, to) {
    const span = Math.max(least((from + to) / 2), Math.min(whole, to - from)), start = Math.max(0, Math.min(whole - span, from));
    view = [start, start + span];
    later();
    keepView();
  }

  // ---- a link that keeps the zoom: #timeline=<choice of sequences>:<first>-<last>
  let keeping = 0;
  const viewText = () => `#timeline=${chosen}:${Math.round(view[0])}-${Math.round(view[1])}`;
  function keepView() {
    if (!settled) return;
    clearTimeout(keeping);
    keeping = setTimeout(() => {
      document.getElementById("view-link").href = viewText();
      try { history.replaceState(null, "", viewText()); } catch { /* the link beside the buttons has it */ }
    }, 200);
  }
  function openView() {
    const [, choice, from, to] = location.hash.match(/^#timeline=(\d+):(\d+)-(\d+)$/) || [];
    if (choice === undefined || !groups[choice]) return false;
    const select = document.getElementById("chooser");
    if (select) select.value = choice;
    show(Number(choice));
    look(Number(from), Number(to));
    return true;
  }
  function zoom(factor, about = cursor && inView(cursor.position) ? cursor.position : (view[0] + view[1]) / 2) {
    const span = Math.max(least(about), Math.min(whole, (view[1] - view[0]) * factor)), place = (about - view[0]) / (view[1] - view[0]);
    look(about - place * span, about - place * span + span);
  }
  function least(about) {
    const fine = visible.some((track) => track.levels[0].width <= 1.001 || track.runs || stretchAt(track, Math.floor(about)));
    return Math.min(whole, fine ? LEAST : LEAST_BINS * Math.min(...visible.map((track) => track.levels[0].width)));
  }
  const inView = (position) => position >= view[0] && position <= view[1];
  function shift(share) {
    const by = (view[1] - view[0]) * share, before = view[0];
    look(view[0] + by, view[1] + by);
    if (cursor) cursor.position = Math.min(whole - 1e-9, Math.max(0, cursor.position + view[0] - before));
    tell();
  }

  function under() {
    if (!cursor || !visible.length) return null;
    const track = visible[Math.min(cursor.track, visible.length - 1)];
    if (cursor.position < 0 || cursor.position >= track.length) return null;
    const sums = new Float64Array(n), step = (view[1] - view[0]) / Math.max(1, canvas.clientWidth - 2 * LEFT);
    const fine = step < 1 ? [Math.floor(cursor.position), Math.floor(cursor.position) + 1] : [cursor.position - step / 2, cursor.position + step / 2];
    const found = column(track, Math.max(0, fine[0]), Math.min(track.length, fine[1]), sums);
    const ranked = [...sums.keys()].sort((a, b) => sums[b] - sums[a]).filter((slot) => sums[slot] > 0.005);
    return { track, found, sums, ranked };
  }

  // Columns under the cursor: means of numbers, and what is present most.
  function numbersIn(found) {
    const told = [];
    for (const { name, index, low, high } of lines) {
      const numbers = numbersOf(found, index);
      if (numbers) told.push(`${name} ${Page.number(low + numbers[1] * (high - low))}`);
    }
    const present = strips.map(({ name, index }) => ({ name, share: numbersOf(found, index)?.[1] ?? 0 })).filter(({ share }) => share > 0.005);
    present.sort((a, b) => b.share - a.share);
    const most = present.slice(0, MOST_PRESENT).map(({ name, share }) => (share > 0.995 ? name : `${name} ${Page.percent(Math.round(100 * share) / 100)}`));
    if (most.length) told.push(`present: ${most.join(", ")}`);
    return told;
  }
  const ofRun = ({ from, to }) => (contents.positions.plain ? `from ${Page.count(from)} to ${Page.count(to - 1)}` : `from ${Page.place(from)} on, ${Page.length(to - from)} long`);

  function tell() {
    const here = under();
    if (!here) { readout.textContent = "\u00a0"; return ""; }
    const { track, found, sums, ranked } = here, parts = []; // one line each at the pointer
    if (visible.length > 1) parts.push(`sequence ${track.name}`);
    parts.push(Page.range(found.from, found.to));
    if (found.single >= 0 && described.symbols) parts.push(`“${described.symbols[arrays.symbols[found.single]] ?? "missing"}”`);
    if (found.run && found.run.slot < n) parts.push(`${Page.full(found.run.slot)} ${ofRun(found.run)}`);
    else parts.push(ranked.slice(0, 3).map((slot) => `${Page.full(slot)} ${Page.percent(sums[slot])}`).join(", "));
    parts.push(...numbersIn(found));
    if (found.doubt !== null) parts.push(`entropy ${Page.number(found.doubt * described.mostDoubt)} bits`);
    const coarse = found.level ? found.level.width > 1.001 && view[1] - view[0] < found.level.width * 40 : false;
    const what = track.runs ? "numbers and entropy are means here, finer ones are" : "finer detail is";
    if (coarse && !track.whole) parts.push(`${what} in the marked stretches only`);
    readout.textContent = parts.join(" · ");
    return parts.join("\n");
  }

  // ---- events
  const positionAt = (event) => {
    const box = canvas.getBoundingClientRect();
    return view[0] + (event.clientX - box.left - LEFT) / (box.width - 2 * LEFT) * (view[1] - view[0]);
  };
  const trackAt = (event) => {
    const sizes = layout(), y = event.clientY - canvas.getBoundingClientRect().top - sizes.map;
    return Math.max(0, Math.min(visible.length - 1, Math.floor(y / sizes.track)));
  };
  const onMap = (event) => event.clientY - canvas.getBoundingClientRect().top < MAP + 4;

  function pointers() {
    let held = null, moved = false;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      moved = false;
      held = { x: event.clientX, view: [...view], map: onMap(event) };
      if (held.map) jump(event);
      canvas.setPointerCapture(event.pointerId);
    });
    const jump = (event) => {
      const box = canvas.getBoundingClientRect(), span = view[1] - view[0];
      const centre = (event.clientX - box.left - LEFT) / (box.width - 2 * LEFT) * whole;
      look(centre - span / 2, centre + span / 2);
    };
    canvas.addEventListener("pointermove", (event) => {
      if (held) {
        moved ||= Math.abs(event.clientX - held.x) > 3;
        if (held.map) jump(event);
        else if (moved) {
          const by = (held.x - event.clientX) / (canvas.clientWidth - 2 * LEFT) * (held.view[1] - held.view[0]);
          look(held.view[0] + by, held.view[1] + by);
        }
      }
      cursor = { position: positionAt(event), track: trackAt(event) };
      later();
      Page.tip(event, tell());
    });
    canvas.addEventListener("pointerup", (event) => {
      if (held && !moved && !held.map) {
        cursor = { position: positionAt(event), track: trackAt(event) };
        const here = under();
        if (here && here.ranked.length) Page.select(here.ranked[0]);
      }
      held = null;
    });
    canvas.addEventListener("pointercancel", () => { held = null; });
    canvas.addEventListener("pointerleave", () => { Page.tip(null); if (document.activeElement !== canvas) { cursor = null; later(); tell(); } });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) { Page.tip(null); return; } // the page scrolls
      event.preventDefault();
      zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), positionAt(event));
      Page.tip(event, tell());
    }, { passive: false });
  }

  function keys(event) {
    const big = event.shiftKey ? 0.9 : 0.15;
    const centre = () => { cursor ||= { position: (view[0] + view[1]) / 2, track: 0 }; if (!inView(cursor.position)) cursor.position = (view[0] + view[1]) / 2; };
    const actions = {
      ArrowLeft: () => shift(-big), ArrowRight: () => shift(big), PageUp: () => shift(-0.9), PageDown: () => shift(0.9),
      ArrowUp: () => zoom(1 / 1.6), ArrowDown: () => zoom(1.6), "+": () => zoom(1 / 1.6), "=": () => zoom(1 / 1.6), "-": () => zoom(1.6),
      Home: () => { look(0, view[1] - view[0]); }, End: () => { look(whole, whole + view[1] - view[0]); }, 0: () => look(0, whole),
      "[": () => { cursor.track = Math.max(0, cursor.track - 1); }, "]": () => { cursor.track = Math.min(visible.length - 1, cursor.track + 1); },
      Enter: () => { const here = under(); if (here && here.ranked.length) Page.select(here.ranked[0]); },
      Escape: () => { if (Page.selected !== null) Page.select(Page.selected); },
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    centre();
    actions[event.key]();
    centre();
    later();
    tell();
  }

  // ---- choices
  function show(choice) {
    chosen = choice;
    visible = groups[choice];
    whole = Math.max(...visible.map((track) => track.length));
    look(0, whole);
    const label = document.getElementById("stretch-label"), select = document.getElementById("stretches");
    const partial = visible.length === 1 && !visible[0].whole && visible[0].stretches.length;
    label.hidden = !partial;
    if (!partial) return;
    select.replaceChildren(new Option("whole", ""));
    visible[0].stretches.forEach((stretch, index) => {
      const counts = new Uint32Array(256);
      for (let i = 0; i < stretch.length; i++) counts[arrays.best[stretch.offset + i]]++;
      let most = 0;
      for (let slot = 0; slot < n; slot++) if (counts[slot] > counts[most]) most = slot;
      select.append(new Option(`from ${Page.place(stretch.first)}: mostly ${Page.full(most)}`, index));
    });
  }

  function chooser() {
    const select = document.getElementById("chooser");
    if (!select || tracks.length < 2) { if (select) select.closest("label").hidden = true; groups = [tracks.slice(0, 1)]; show(0); return; }
    const together = document.createElement("optgroup"), alone = document.createElement("optgroup");
    together.label = described.nSequences > tracks.length ? `several (${tracks.length} of ${described.nSequences} are in this page)` : "several";
    alone.label = "one";
    for (let first = 0; first < tracks.length; first += TOGETHER) {
      const chosen = tracks.slice(first, first + TOGETHER);
      together.append(new Option(chosen.length > 1 ? `${chosen[0].name} to ${chosen.at(-1).name}` : chosen[0].name, groups.push(chosen) - 1));
    }
    for (const track of tracks) alone.append(new Option(`${track.name}: ${Page.positions(track.length)}`, groups.push([track]) - 1));
    select.append(together, alone);
    select.addEventListener("change", () => { cursor = null; show(Number(select.value)); tell(); });
    show(0);
  }

  function start() {
    build();
    chooser();
    pointers();
    canvas.addEventListener("keydown", keys);
    canvas.addEventListener("focus", () => { cursor ||= { position: (view[0] + view[1]) / 2, track: 0 }; later(); tell(); });
    document.getElementById("stretches").addEventListener("change", (event) => {
      const stretch = visible[0].stretches[event.target.value];
      if (stretch) look(stretch.first, stretch.first + Math.min(stretch.length, 400)); else look(0, whole);
    });
    const buttons = { in: () => zoom(1 / 1.6), out: () => zoom(1.6), left: () => shift(-0.25), right: () => shift(0.25), all: () => look(0, whole) };
    for (const button of document.querySelectorAll("button[data-zoom]")) button.addEventListener("click", () => buttons[button.dataset.zoom]());
    Page.onChange(later);
    addEventListener("resize", later);
    Figures.add("timeline", { svg: saved, rows });
    if (openView()) document.getElementById("along").scrollIntoView();
    addEventListener("hashchange", openView);
    document.getElementById("view-link").href = viewText();
    settled = true;
  }

  // ---- what is saved: the drawing, and the states in about a thousand parts of the window
  function saved() {
    const sizes = layout(), width = canvas.clientWidth, recorder = new Recorder(width, sizes.height);
    paint(recorder, width, sizes, recorder.ratio);
    return recorder.text();
  }
  function rows() {
    const found = [["sequence", "first position", "last position", ...order.map((slot) => `share of ${states[slot].name}`), ...described.columns.map(({ name }) => `mean of ${name}`)]];
    const sums = new Float64Array(n), parts = Math.min(1000, Math.ceil(view[1]) - Math.floor(view[0]));
    for (const track of visible) for (let part = 0; part < parts; part++) {
      const [from, to] = [0, 1].map((more) => Math.floor(view[0]) + Math.floor((part + more) * (Math.ceil(view[1]) - Math.floor(view[0])) / parts));
      if (from >= track.length) break;
      const here = column(track, from, Math.min(to, track.length), sums);
      const numbers = described.columns.map(({ index, low, high }, i) => { const told = numbersOf(here, index ?? i); return told && Number((low + told[1] * (high - low)).toPrecision(4)); });
      found.push([track.name, from, Math.min(to, track.length) - 1, ...order.map((slot) => Number(sums[slot].toFixed(4))), ...numbers]);
    }
    return found;
  }
  return { start };
})();
