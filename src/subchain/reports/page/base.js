// What every part of the page shares: the contents, colours and patterns of states, the selection, the theme.
"use strict";
const Page = (() => {
  const contents = JSON.parse(document.getElementById("contents").textContent);
  const arrays = {};

  // Eight colours that people with any kind of colour vision tell apart, and six patterns: 48 looks.
  const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#c9bb3a", "#8a8f98"];
  const PATTERNS = [
    () => false,
    (x, y) => (x + y) % 8 < 3,
    (x, y) => x % 6 < 2 && y % 6 < 2,
    (x, y) => (x - y + 4096) % 8 < 3,
    (x, y) => y % 6 < 2,
    (x, y) => x % 7 < 2 || y % 7 < 2,
  ];

  async function unpack() {
    const packed = Uint8Array.from(atob(contents.block), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    const kinds = { Uint8Array, Uint16Array };
    for (const [name, { kind, shape, offset }] of Object.entries(contents.arrays)) {
      arrays[name] = new kinds[kind](buffer, offset, shape.reduce((a, b) => a * b, 1));
    }
    delete contents.block;
  }

  const states = contents.states;
  const ranks = states.map((_, slot) => slot).sort((a, b) => states[b].occupancy - states[a].occupancy);
  ranks.forEach((slot, rank) => {
    states[slot].colour = COLOURS[rank % COLOURS.length];
    states[slot].pattern = Math.floor(rank / COLOURS.length) % PATTERNS.length;
  });
  const label = (slot) => states[slot].name;
  const isNamed = (slot) => states[slot].name !== String(states[slot].number);
  const full = (slot) => (isNamed(slot) ? `state ${states[slot].number} (${states[slot].name})` : `state ${states[slot].number}`);
  const heading = (slot) => (isNamed(slot) ? `${states[slot].number} · ${states[slot].name}` : `State ${states[slot].number}`);

  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const mix = (a, b, share) => a.map((value, i) => Math.round(value + (b[i] - value) * share));
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = () => document.documentElement.dataset.theme === "dark";
  const text = (rgb) => (0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 140 ? "#101417" : "#ffffff");

  // The two colours of a state: that of its ground and that of its pattern.
  function look(slot) {
    const ground = channels(states[slot].colour);
    return [ground, mix(ground, isDark() ? [0, 0, 0] : [255, 255, 255], 0.52)];
  }

  function swatch(canvas, slot) {
    const [ground, other] = look(slot), pattern = PATTERNS[states[slot].pattern];
    canvas.width = canvas.height = 36;
    const context = canvas.getContext("2d"), image = context.createImageData(36, 36);
    for (let y = 0; y < 36; y++) for (let x = 0; x < 36; x++) {
      const rgb = pattern(x >> 1, y >> 1) ? other : ground;
      image.data.set([...rgb, 255], 4 * (36 * y + x));
    }
    context.putImageData(image, 0, 0);
  }

  // ---- selection
  let selected = null;
  const listeners = [], lookers = []; // the latter need not know what is selected
  const redraw = () => listeners.forEach((listener) => listener());
  const relook = () => { lookers.forEach((listener) => listener()); redraw(); };
  function select(slot) {
    selected = slot === selected ? null : slot;
    document.body.dataset.selected = selected === null ? "" : states[selected].number;
    for (const button of document.querySelectorAll("button[data-slot]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.slot) === selected));
    }
    for (const card of document.querySelectorAll(".card")) card.classList.toggle("selected", Number(card.dataset.slot) === selected);
    redraw();
  }

  // ---- theme: the system's, until the reader chooses
  const system = matchMedia("(prefers-color-scheme: dark)");
  let choice = "auto";
  try { choice = localStorage.getItem("subchain-theme") || "auto"; } catch { /* pages from files may have no storage */ }
  function dress(forced) {
    document.documentElement.dataset.theme = forced || (choice === "auto" ? (system.matches ? "dark" : "light") : choice);
    const button = document.getElementById("theme");
    button.querySelector("span").textContent = choice;
    button.setAttribute("aria-label", `Colours: ${choice === "auto" ? "as the system" : choice}`);
    for (const card of document.querySelectorAll(".card")) card.style.setProperty("--state", states[card.dataset.slot].colour);
    for (const canvas of document.querySelectorAll("canvas.swatch")) swatch(canvas, Number(canvas.dataset.slot));
    relook();
  }
  function switchTheme() {
    const other = system.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    choice = other[(other.indexOf(choice) + 1) % 3];
    try { localStorage.setItem("subchain-theme", choice); } catch { /* as above */ }
    dress();
  }

  // ---- numbers, as people write them
  const grouped = (text) => text.replace(/^(\d+)/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
  function fixed(value, digits, group = grouped) {
    const text = Math.abs(value).toFixed(digits);
    return `${value < 0 && Number(text) ? "−" : ""}${group(text)}`;
  }
  function number(value, digits = 4) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    if (value === 0) return "0";
    const size = Math.floor(Math.log10(Math.abs(value)));
    if (size <= -5 || size >= 9) {
      const [front, power] = value.toExponential(digits - 1).split("e");
      return `${String(Number(front)).replace("-", "−")} × 10${[...String(Number(power))].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("")}`;
    }
    const places = Math.max(0, digits - 1 - size), text = fixed(value, places);
    return places ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
  }
  const count = (n) => fixed(n, 0);
  function percent(p) {
    if (p < 1e-4) return p > 0 ? "< 0.01 %" : "0 %";
    return p > 0.9999 && p < 1 ? "> 99.99 %" : `${Number((100 * p).toPrecision(p >= 0.995 && p < 1 ? 4 : 3))} %`;
  }

  // ---- positions, in the reader's units if there are any: where one is, how long some are
  const told = contents.positions;
  const inThousands = /^(yr|years?|a)$/.test(told.unit) ? (text) => text : grouped; // the year 1900 has no comma
  const inUnits = (value, digits = told.digits) => `${fixed(value, digits, inThousands)}${told.unit ? "\u00a0" + told.unit : ""}`;
  // Ticks of an axis from low to high, in larger units where that is shorter: 20 Mb.
  function axis(low, high, n) {
    const [unit, size] = told.larger.find(([, holds]) => Math.max(Math.abs(low), Math.abs(high)) >= holds && (high - low) >= 0.005 * holds) || [told.unit, 1];
    const rough = (high - low) / size / Math.max(1, n), power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max([1, 2, 5, 10].map((f) => f * power).find((value) => value >= rough * 0.999), told.step / size), found = [];
    for (let i = Math.ceil(low / size / step - 1e-9); i * step <= high / size + 1e-9 * step; i++) found.push(i * step);
    const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
    return { unit, ticks: found.map((tick) => tick * size), labels: found.map((tick) => `${fixed(tick, digits, inThousands)}${unit ? "\u00a0" + unit : ""}`) };
  }
  const axisName = (unit) => (unit ? `position in the sequence, in ${unit}` : "position in the sequence");
  const place = (position) => inUnits(told.offset + position * told.step);
  function length(n) {
    const [unit, size] = told.larger.find(([, holds]) => n * told.step >= holds) || [told.unit, 1];
    return `${number(n * told.step / size)}${unit ? "\u00a0" + unit : ""}`;
  }
  const positions = (n) => (told.plain ? `${count(n)} positions` : `${count(n)} positions (${length(n)})`);
  // Positions [from, to): the first and the last of them, or with units where they begin and how long they are.
  function range(from, to) {
    if (to - from <= 1) return told.plain ? `position ${count(from)}` : `${place(from)} (position ${count(from)})`;
    return told.plain ? `positions ${count(from)} to ${count(to - 1)}` : `${place(from)}, ${length(to - from)} long`;
  }

  // ---- names that are too long lose their middle, since names often differ at their ends
  function shortened(name, longest) {
    const characters = [...name], end = Math.floor((longest - 1) / 2);
    return characters.length <= longest ? name : `${characters.slice(0, longest - 1 - end).join("")}…${end > 0 ? characters.slice(-end).join("") : ""}`;
  }
  function fitted(context, name, room) {
    let most = [...name].length, shown = name;
    while (most > 3 && context.measureText(shown).width > room) shown = shortened(name, --most);
    return shown;
  }

  // ---- names that readers give to states
  function rename(slot, name) {
    states[slot].name = name;
    for (const place of document.querySelectorAll(`[data-name="${slot}"]`)) place.textContent = name;
    for (const place of document.querySelectorAll(`[data-heading="${slot}"]`)) place.textContent = heading(slot);
    relook();
  }

  // ---- a note at the pointer
  const note = document.getElementById("tip");
  function tip(event, content) {
    note.hidden = !event || !content;
    if (note.hidden) return;
    note.textContent = content;
    const { width, height } = note.getBoundingClientRect(), right = event.clientX + 14 + width > innerWidth - 4, below = event.clientY + 16 + height <= innerHeight - 4;
    note.style.left = `${Math.max(4, right ? event.clientX - 10 - width : event.clientX + 14)}px`;
    note.style.top = `${below ? event.clientY + 16 : Math.max(4, event.clientY - 10 - height)}px`;
  }

  return {
    contents, arrays, states, PATTERNS, unpack, label, full, heading, look, mix, channels, variable, isDark, text, select, dress, switchTheme, rename, tip,
    system, number, fixed, count, percent, inUnits, axis, axisName, place, length, positions, range, shortened, fitted,
    onChange: (listener) => listeners.push(listener), onLook: (listener) => lookers.push(listener), relook, get selected() { return selected; },
  };
})();
