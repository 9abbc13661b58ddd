// What the states emit: a heat map of all columns, and two columns with an ellipse for each state.
"use strict";
const Emitted = (() => {
  const { contents, arrays, states, variable, channels, mix } = Page, { heat, pairs } = contents, order = contents.order;
  const svg = (id) => document.getElementById(id);

  // ---- heat map
  const most = Math.max(1e-12, ...heat.colours.flat().map(Math.abs));
  const LOW = "#b35806", HIGH = "#542788"; // below and above the mean; distinct for any kind of colour vision
  function colour(value) {
    const panel = channels(variable("--panel"));
    if (heat.chances) return mix(panel, channels(variable("--heat")), heat.symbols ? Math.sqrt(value) : value);
    const end = channels(value < 0 ? LOW : HIGH);
    return mix(panel, Page.isDark() ? mix(end, [255, 255, 255], 0.3) : end, Math.abs(value) / most);
  }
  const written = (value) => (heat.chances ? (value < 0.005 ? "" : value >= 0.995 ? "1" : value.toFixed(2).replace(/^0/, "")) : null);

  function drawHeat() {
    const drawing = svg("heat"), n = heat.labels.length, row = Math.max(7, Math.min(24, 720 / states.length)), names = row >= 10;
    const longest = (texts) => Math.max(...texts.map((text) => Math.min(18, [...text].length)));
    const left = names ? 14 + 7 * longest(states.map((state) => state.name)) : 12, short = longest(heat.labels) <= 3, top = short ? 24 : 16 + 7.2 * longest(heat.labels);
    const width = Charts.blank(drawing, top + row * states.length + 26, left + 20 * n + 10), cell = Math.min(90, (width - left - 10) / n);
    heat.labels.forEach((label, column) => {
      const x = left + (column + 0.5) * cell, shown = Page.shortened(label, 18);
      Charts.element("text", { x: short ? x : 0, y: short ? top - 8 : 0, "text-anchor": short ? "middle" : "start", fill: variable("--ink"), "font-size": 11, "data-tip": label, transform: short ? undefined : `translate(${(x + 4).toFixed(1)} ${top - 6}) rotate(-90)` }, drawing, shown);
    });
    order.forEach((slot, place) => {
      const y = top + place * row;
      if (names) Charts.element("text", { x: left - 8, y: y + row / 2 + 4, "text-anchor": "end", fill: variable("--ink"), "font-size": Math.min(12, row) }, drawing, Page.shortened(states[slot].name, 18));
      Charts.element("rect", { x: left - 5, y: y + 1, width: 4, height: row - 2, fill: states[slot].colour }, drawing);
      heat.labels.forEach((label, column) => {
        const value = heat.values[slot][column], rgb = colour(heat.colours[slot][column]), text = written(value) ?? heat.texts[slot][column], x = left + column * cell;
        const away = heat.chances ? "" : `\n${Page.number(heat.colours[slot][column], 2)} standard deviations from the mean of all states`;
        Charts.element("rect", { x, y, width: cell - 1, height: row - 1, fill: `rgb(${rgb})`, stroke: variable("--line"), "stroke-width": 0.4, "data-tip": `${Page.full(slot)}, ${label}: ${heat.chances ? Page.percent(value) : heat.texts[slot][column]}${away}` }, drawing);
        if (row >= 14 && cell >= 6.5 * text.length + 4) Charts.element("text", { x: x + cell / 2, y: y + row / 2 + 4, "text-anchor": "middle", fill: Page.text(rgb), "font-size": 11, "pointer-events": "none" }, drawing, text);
      });
    });
    Charts.element("text", { x: 4, y: top + row * states.length + 18, fill: variable("--soft") }, drawing, heat.more || `${states.length === 1 ? "one state" : "states"} (rows) by ${heat.symbols ? "symbols" : "columns of the data"}`);
  }
  const heatRows = () => [["state", ...heat.labels], ...order.map((slot) => [states[slot].name, ...heat.values[slot]])];

  // ---- pairs of columns
  const RADIUS = Math.sqrt(-2 * Math.log(0.1)); // an ellipse of this radius, in standard deviations, holds 90 % of a Gaussian
  const axes = () => ["pair-x", "pair-y"].map((id) => Number(svg(id).value));
  const point = (index, column) => { const code = arrays.points[index * pairs.columns.length + column]; return code === 65535 ? null : pairs.low[column] + code / 65534 * (pairs.high[column] - pairs.low[column]); };
  // The ends of the axes of an ellipse: centre, half axes, angle of the first.
  function ellipse(slot, a, b) {
    const c = pairs.covariances[slot], [p, q, r] = [c[a][a], c[a][b], c[b][b]];
    const found = [];
    const root = Math.sqrt(Math.max(0, (p - r) ** 2 / 4 + q * q)), big = Math.max(0, (p + r) / 2 + root), small = Math.max(0, (p + r) / 2 - root), angle = Math.atan2(2 * q, p - r) / 2;
    for (let i = 0; i <= 60; i++) {
      const t = 2 * Math.PI * i / 60, [u, v] = [RADIUS * Math.sqrt(big) * Math.cos(t), RADIUS * Math.sqrt(small) * Math.sin(t)];
      found.push([pairs.means[slot][a] + u * Math.cos(angle) - v * Math.sin(angle), pairs.means[slot][b] + u * Math.sin(angle) + v * Math.cos(angle)]);
    }
    return found;
  }
  function ends(column, outlines, place) {
    const all = [pairs.low[column], pairs.high[column], ...outlines.flat().map((each) => each[place])];
    const low = Math.min(...all), high = Math.max(...all), room = 0.02 * (high - low);
    return { low: low - room, high: high + room };
  }
  function drawPairs() {
    const drawing = svg("pairs"), [a, b] = axes(), outlines = states.map((_, slot) => ellipse(slot, a, b));
    const xAxis = ends(a, outlines, 0), yAxis = ends(b, outlines, 1), left = Charts.margin([yAxis.low, yAxis.high]);
    const height = Math.max(300, Math.min(520, drawing.parentElement.clientWidth * 0.75)), width = Charts.blank(drawing, height), box = { left, top: 10, width: width - left - 14, height: height - 56 };
    const scales = Charts.panel(drawing, box, { ...xAxis, name: pairs.columns[a] }, { ...yAxis, name: pairs.columns[b] });
    const dim = (slot) => Page.selected !== null && Page.selected !== slot;
    for (let i = 0; i < pairs.nPoints; i++) {
      const slot = arrays.pointStates[i], [u, v] = [point(i, a), point(i, b)];
      if (u === null || v === null || slot >= states.length) continue;
      Charts.element("circle", { cx: scales.x(u), cy: scales.y(v), r: 1.8, fill: states[slot].colour, "fill-opacity": dim(slot) ? 0.08 : 0.5, "pointer-events": "none" }, drawing);
    }
    outlines.forEach((outline, slot) => {
      const d = `${Charts.path(outline.map(([u, v]) => [scales.x(u), scales.y(v)]))}Z`, told = [a, b].map((column) => `${pairs.columns[column]} ${Page.number(pairs.means[slot][column])} ± ${Page.number(Math.sqrt(pairs.covariances[slot][column][column]), 2)}`);
      Charts.element("path", { d, fill: states[slot].colour, "fill-opacity": 0.04, stroke: states[slot].colour, "stroke-width": Page.selected === slot ? 3.5 : 2, "stroke-opacity": dim(slot) ? 0.2 : 1, "data-tip": `${Page.full(slot)}\n${told.join("\n")}` }, drawing);
    });
    if (states.length <= 24) states.forEach((state, slot) => {
      if (!dim(slot)) Charts.element("text", { x: scales.x(pairs.means[slot][a]), y: scales.y(pairs.means[slot][b]) + 4, "text-anchor": "middle", fill: variable("--ink"), "font-weight": 650, stroke: variable("--panel"), "stroke-width": 3, "paint-order": "stroke", "pointer-events": "none" }, drawing, Page.shortened(state.name, 14));
    });
  }
  function pairRows() {
    const found = [["position", "state", ...pairs.columns]];
    for (let i = 0; i < pairs.nPoints; i++) found.push([Math.floor(i * contents.nPositions / pairs.nPoints), states[arrays.pointStates[i]]?.name, ...pairs.columns.map((_, column) => { const value = point(i, column); return value === null ? null : Number(value.toPrecision(5)); })]);
    return found;
  }

  function start() {
    Figures.add("heat", { svg: () => svg("heat"), rows: heatRows });
    Page.onLook(drawHeat);
    if (!pairs) return;
    ["pair-x", "pair-y"].forEach((id, place) => {
      pairs.columns.forEach((name, column) => svg(id).append(new Option(name, column)));
      svg(id).value = pairs.first[place];
      svg(id).addEventListener("change", drawPairs);
    });
    Figures.add("pairs", { svg: () => svg("pairs"), rows: pairRows });
    Page.onChange(drawPairs);
  }
  return { start };
})();
