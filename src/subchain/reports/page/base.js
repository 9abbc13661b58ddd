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
  const full = (slot) =>
    states[slot].name === String(states[slot].number) ? `state ${states[slot].number}` : `state ${states[slot].number} (${states[slot].name})`;

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
  const listeners = [];
  const redraw = () => listeners.forEach((listener) => listener());
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
    redraw();
  }
  function switchTheme() {
    const other = system.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    choice = other[(other.indexOf(choice) + 1) % 3];
    try { localStorage.setItem("subchain-theme", choice); } catch { /* as above */ }
    dress();
  }

  const number = (value) => (value === null || Number.isNaN(value) ? "–" : Math.abs(value) >= 1e4 ? value.toFixed(0) : String(Number(value.toPrecision(4))));
  const count = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const percent = (p) => (p > 0 && p < 1e-4 ? "< 0.01 %" : `${Number((100 * p).toPrecision(3))} %`);


  // ---- positions, in the reader's units if there are any: where one is, how long some are
  const told = contents.positions;
  const inUnits = (value, digits = told.digits) => {
    const [whole, rest] = Math.abs(value).toFixed(digits).split(".");
    const sign = value < 0 && Number(value.toFixed(digits)) ? "−" : "";
    return `${sign}${whole.replace(/\B(?=(\d{3})+$)/g, "\u202f")}${rest ? "." + rest : ""}${told.unit ? "\u00a0" + told.unit : ""}`;
  };
  // Decimals that ticks at this distance need.
  const decimals = (step) => { let digits = 0; while (digits < told.digits && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits++; return digits; };
  const place = (position) => inUnits(told.offset + position * told.step);
  const length = (n) => inUnits(n * told.step);
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

  return {
    contents, arrays, states, PATTERNS, unpack, label, full, look, mix, channels, variable, isDark, text, select, dress, switchTheme,
    system, number, count, percent, inUnits, decimals, place, length, positions, range, shortened, fitted, onChange: (listener) => listeners.push(listener), get selected() { return selected; },
  };
})();
