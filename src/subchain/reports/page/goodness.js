// How well the model fits: dwell times against the geometric distribution, and statistics against simulations.
"use strict";
const Goodness = (() => {
  const { contents, states, variable } = Page, { dwelling, check, positions } = contents;
  const svg = (id) => document.getElementById(id);

  // ---- dwell times: a panel for each state
  function drawDwelling() {
    const drawing = svg("dwelling"), room = drawing.parentElement.clientWidth || 320, across = Math.max(1, Math.min(dwelling.states.length, Math.floor(room / 230)));
    const cell = 206, width = Charts.blank(drawing, Math.ceil(dwelling.states.length / across) * cell);
    dwelling.states.forEach((state, place) => {
      const left = place % across * (width / across), top = Math.floor(place / across) * cell;
      drawState(drawing, state, { left: left + 46, top: top + 46, width: width / across - 62, height: 106 }, place % across === 0, left);
    });
  }
  function drawState(drawing, state, box, first, left) {
    const { slot, lengths } = state, units = (n) => n * positions.step;
    const heading = Charts.element("text", { x: left + 10, y: box.top - 28, "font-weight": 650, fill: variable("--ink") }, drawing, Page.shortened(Page.heading(slot), 22));
    if (state.far) Charts.element("tspan", { fill: variable("--warn") }, heading, "  differs");
    Charts.element("text", { x: left + 10, y: box.top - 13, fill: variable("--soft"), "font-size": 11 }, drawing, state.text);
    if (!state.visits) return;
    const floor = Math.max(1e-4, Math.min(0.3 / state.visits, 0.1)), last = lengths.findLastIndex((_, i) => (state.observed[i] ?? 0) > floor || (state.geometric[i] > floor && state.geometric[i] < 1));
    const end = Math.max(2, lengths[Math.min(lengths.length - 1, last + 1)] || 2), axis = Page.axis(0, units(end), Math.max(1, Math.floor(box.width / 80)));
    const scales = Charts.panel(drawing, box, { low: 0, high: units(end), ticks: axis.ticks, labels: axis.labels, name: `longer than${axis.unit ? ` (${axis.unit})` : " (positions)"}` }, { low: floor, high: 1, log: true });
    const at = (values) => [[scales.x(0), scales.y(1)], ...lengths.map((n, i) => n <= end && values[i] !== null && [scales.x(units(n)), scales.y(Math.max(floor, values[i]))])];
    Charts.band(drawing, at(state.low), at(state.high), { fill: variable("--soft"), "fill-opacity": 0.25 });
    Charts.line(drawing, at(state.geometric), { stroke: variable("--ink"), "stroke-width": 1.2, "stroke-dasharray": "5 4" });
    Charts.line(drawing, at(state.observed), { stroke: states[slot].colour, "stroke-width": 2.4 });
    Charts.hover(drawing, box, (px) => {
      const i = Charts.nearest(lengths.map((n) => scales.x(units(n))), px);
      const band = state.low[i] === null ? "" : `\nsimulated ${Page.percent(state.low[i])} to ${Page.percent(state.high[i])}`;
      return { x: scales.x(units(lengths[i])), text: `visits of ${Page.full(slot)} longer than ${Page.positions(lengths[i])}\ndata ${state.observed[i] === null ? "–" : Page.percent(state.observed[i])}\ngeometric ${Page.percent(state.geometric[i])}${band}\n${state.means}` };
    });
  }
  const dwellRows = () => [["state", "longer than", "data", "geometric", "simulated low", "simulated high"], ...dwelling.states.flatMap((state) => state.lengths.map((n, i) => [states[state.slot].name, n, state.observed[i], state.geometric[i], state.low[i], state.high[i]]))];

  // ---- predictive check: every statistic on one scale, that of its simulations
  const EDGE = 8;
  function drawStatistics() {
    const drawing = svg("statistics"), shown = check.statistics.slice(0, check.drawn), room = drawing.parentElement.clientWidth || 320, wide = room > 640, row = wide ? 25 : 40;
    const width = Charts.blank(drawing, shown.length * row + 56), left = wide ? 310 : 12, box = { left, top: 8, width: width - left - (wide ? 270 : 12), height: shown.length * row };
    const scales = Charts.panel(drawing, box, { low: -EDGE, high: EDGE, ticks: [-8, -4, -2, 0, 2, 4, 8], labels: ["≤ −8", "−4", "−2", "0", "2", "4", "≥ 8"], name: wide ? "standard deviations from the mean of the simulations" : "standard deviations from the simulations" }, { low: 0, high: 1, ticks: [] });
    shown.forEach((one, place) => {
      const top = box.top + place * row, y = top + row - 13, clipped = (z) => scales.x(Math.max(-EDGE, Math.min(EDGE, z))), colour = variable(one.far ? "--warn" : "--accent");
      const mean = one.simulated.reduce((sum, value) => sum + value, 0) / one.simulated.length, spread = Math.sqrt(one.simulated.reduce((sum, value) => sum + (value - mean) ** 2, 0) / one.simulated.length) || 1e-300;
      Charts.element("text", { x: wide ? left - 12 : left, y: wide ? y + 4 : top + 12, "text-anchor": wide ? "end" : "start", fill: variable(one.far ? "--warn" : "--ink"), "font-weight": one.far ? 650 : 400 }, drawing, Page.shortened(one.name, wide ? 42 : 48));
      Charts.element("rect", { x: clipped((one.low - mean) / spread), y: y - 6, width: Math.max(1, clipped((one.high - mean) / spread) - clipped((one.low - mean) / spread)), height: 12, fill: variable("--soft"), "fill-opacity": 0.28, rx: 3 }, drawing);
      for (const value of one.simulated) Charts.element("path", { d: `M${clipped((value - mean) / spread).toFixed(1)} ${y - 4}v8`, stroke: variable("--soft"), "stroke-opacity": 0.5, "stroke-width": 1 }, drawing);
      const z = one.deviation ?? (one.observed > mean ? EDGE : -EDGE);
      Charts.element("circle", { cx: clipped(z), cy: y, r: 5, fill: colour }, drawing);
      if (wide) Charts.element("text", { x: box.left + box.width + 14, y: y + 4, fill: variable("--soft"), "font-size": 11 }, drawing, one.text);
      Charts.element("rect", { x: 0, y: top, width, height: row, fill: "transparent", "data-tip": `${one.name}\n${one.text}\n${one.deviation === null ? "no simulation differs from another" : `${Page.number(one.deviation, 2)} standard deviations from their mean`}${one.far ? "\nfar outside" : ""}` }, drawing);
    });
  }
  const statisticRows = () => [["statistic", "data", "simulated low", "simulated high", "deviation", "far outside"], ...check.statistics.map((one) => [one.name, one.observed, one.low, one.high, one.deviation, one.far])];

  // ---- distribution of one column
  const chosen = () => check.distributions[Number(svg("distribution-of").value)];
  function drawDistribution() {
    const drawing = svg("distribution"), one = chosen(), n = one.observed.length, isText = one.labels.length > 0, height = 270, width = Charts.blank(drawing, height, isText ? 60 + 22 * n : 0);
    const high = 105 * Math.max(...one.observed, ...one.high), left = Charts.margin([0, high]), box = { left, top: 10, width: width - left - 14, height: height - 60 };
    const edges = isText ? Array.from({ length: n + 1 }, (_, i) => i) : one.edges;
    const xAxis = { low: edges[0], high: edges[n], name: one.column, ...(isText ? { ticks: one.labels.map((_, i) => i + 0.5), labels: one.labels.map((label) => Page.shortened(label, Math.max(2, Math.floor(box.width / n / 7)))) } : {}) };
    const scales = Charts.panel(drawing, box, xAxis, { low: 0, high, name: "% of observations" });
    for (let i = 0; i < n; i++) {
      const [x, end] = [scales.x(edges[i]), scales.x(edges[i + 1])], y = scales.y(100 * one.observed[i]), [low, top] = [scales.y(100 * one.low[i]), scales.y(100 * one.high[i])];
      const outside = one.observed[i] < one.low[i] || one.observed[i] > one.high[i];
      const inside = isText ? `“${one.labels[i]}”` : `${i === 0 ? "up to" : Page.number(edges[i])}${i === 0 ? "" : i === n - 1 ? " and more" : " to"} ${i === n - 1 && i > 0 ? "" : Page.number(edges[i + 1])}`;
      Charts.element("rect", { x: x + 0.5, y, width: Math.max(1, end - x - 1), height: Math.max(0, scales.y(0) - y), fill: variable("--accent"), "fill-opacity": 0.55 }, drawing);
      Charts.element("rect", { x: (x + end) / 2 - Math.min(4, (end - x) / 4), y: top, width: Math.min(8, (end - x) / 2), height: Math.max(1.5, low - top), fill: variable(outside ? "--warn" : "--ink"), "fill-opacity": 0.85 }, drawing);
      Charts.element("rect", { x, y: box.top, width: Math.max(1, end - x), height: box.height, fill: "transparent", "data-tip": `${inside}: data ${Page.percent(one.observed[i])}\nsimulated ${Page.percent(one.low[i])} to ${Page.percent(one.high[i])}` }, drawing);
    }
  }
  function distributionRows() {
    const one = chosen(), name = (i) => (one.labels.length ? [one.labels[i]] : [one.edges[i], one.edges[i + 1]]);
    return [[...(one.labels.length ? ["symbol"] : ["from", "to"]), "data", "simulated low", "simulated high"], ...one.observed.map((share, i) => [...name(i), share, one.low[i], one.high[i]])];
  }

  function start() {
    Figures.add("dwelling", { svg: () => svg("dwelling"), rows: dwellRows });
    Figures.add("statistics", { svg: () => svg("statistics"), rows: statisticRows });
    Page.onLook(drawDwelling);
    Page.onLook(drawStatistics);
    if (!check.distributions.length) return;
    check.distributions.forEach((one, index) => svg("distribution-of").append(new Option(one.column, index)));
    svg("distribution-of").closest("label").hidden = check.distributions.length < 2;
    svg("distribution-of").addEventListener("change", drawDistribution);
    Figures.add("distribution", { svg: () => svg("distribution"), rows: distributionRows });
    Page.onLook(drawDistribution);
  }
  return { start };
})();
