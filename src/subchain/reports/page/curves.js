// Curves: the course of the run, its restarts, certainty of the states, and intervals of transitions.
"use strict";
const Curves = (() => {
  const { contents, variable } = Page, { course } = contents;
  const STROKES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f98", "#c9bb3a"];
  let part = 1;
  const svg = (id) => document.getElementById(id);

  // ---- the course of the run
  function drawCourse(chart, index) {
    const drawing = svg(`curve-${index}`), width = Charts.blank(drawing, 250);
    const from = Math.max(0, course.iterations.length - Math.max(2, Math.ceil(course.iterations.length / part))), x = course.iterations.slice(from);
    const lines = chart.lines.map(({ name, values }) => ({ name, values: values.slice(from) }));
    const known = lines.flatMap(({ values }) => values.filter((value) => value !== null));
    if (!known.length) return;
    let [low, high] = [Math.min(...known), Math.max(...known)];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const left = Charts.margin([low, high]), box = { left, top: 12, width: width - left - 14, height: 186 };
    const scales = Charts.panel(drawing, box, { low: x[0], high: Math.max(x.at(-1), x[0] + 1), name: "iteration" }, { low, high, name: chart.axis });
    for (const iteration of new Set(course.events.map((event) => event.iteration))) {
      if (iteration >= x[0] && iteration <= x.at(-1)) Charts.line(drawing, [[scales.x(iteration), box.top], [scales.x(iteration), box.top + box.height]], { stroke: variable("--warn"), "stroke-width": 1, "stroke-dasharray": "3 3" });
    }
    lines.forEach(({ values }, i) => {
      const stroke = lines.length === 1 ? variable("--accent") : STROKES[i % STROKES.length];
      Charts.line(drawing, values.map((value, j) => value !== null && [scales.x(x[j]), scales.y(value)]), { stroke, "stroke-dasharray": i >= STROKES.length ? "6 4" : undefined });
      if (x.length < 3) values.forEach((value, j) => value !== null && Charts.element("circle", { cx: scales.x(x[j]), cy: scales.y(value), r: 3, fill: stroke }, drawing));
    });
    if (lines.length > 1 && lines.length <= 8) lines.forEach(({ name }, i) => Charts.element("text", { x: box.left + box.width - 4, y: box.top + box.height - 8 - 15 * (lines.length - 1 - i), "text-anchor": "end", fill: STROKES[i], "font-weight": 650, stroke: variable("--panel"), "stroke-width": 3, "paint-order": "stroke" }, drawing, name));
    Charts.hover(drawing, box, (px) => {
      const i = Charts.nearest(x.map(scales.x), px), seconds = course.seconds[from + i], events = course.events.filter((event) => event.iteration === x[i]).map((event) => event.message);
      const told = lines.map(({ name, values }) => `${name} ${Page.number(values[i], 8)}`);
      return { x: scales.x(x[i]), text: [`iteration ${Page.count(x[i])}`, ...told, ...(seconds === undefined ? [] : [`after ${Page.number(seconds)} s`]), ...events].join("\n") };
    });
  }

  // ---- restarts: how far below the best each ended
  function drawRestarts() {
    const { runs } = course.restarts, drawing = svg("restarts"), row = Math.max(14, Math.min(24, 420 / runs.length)), height = 24 + runs.length * row + 44;
    const width = Charts.blank(drawing, height), box = { left: 64, top: 10, width: width - 64 - 70, height: runs.length * row + 6 }, most = Math.max(1, ...runs.map((run) => run.below));
    const scales = Charts.panel(drawing, box, { low: most, high: 0, name: "nats below the best", ticks: Charts.ticks(0, most, Math.max(1, Math.floor(box.width / 75))) }, { low: runs.length, high: 0, ticks: [] });
    runs.forEach((run, place) => {
      const y = box.top + 6 + (place + 0.5) * row, tip = `restart ${run.number}: objective ${run.objective}\n${run.iterations} iterations, ${run.end}${run.more ? `\n${run.more}` : ""}`;
      Charts.element("text", { x: box.left - 8, y: y + 4, "text-anchor": "end", fill: variable("--ink") }, drawing, `run ${run.number}`);
      Charts.line(drawing, [[box.left, y], [scales.x(run.below), y]], { stroke: variable("--line"), "stroke-width": 1 });
      Charts.element("circle", { cx: scales.x(run.below), cy: y, r: 5, fill: variable(run.below <= 1 ? "--accent" : "--soft") }, drawing);
      Charts.element("text", { x: scales.x(run.below) + 10, y: y + 4, fill: variable("--soft"), "font-size": 11 }, drawing, place === 0 ? "best" : run.below < 0.005 ? "the same" : `−${Page.number(run.below, 3)}`);
      Charts.element("rect", { x: 0, y: y - row / 2, width, height: row, fill: "transparent", "data-tip": tip }, drawing);
    });
  }

  // ---- entropy along the data: sequences side by side, with borders and names if they are few
  const { sequences, positions, nPositions } = contents, several = contents.timeline.nSequences > 1;
  const starts = sequences.map(([, start]) => start);
  const sequenceAt = (position) => { let found = 0; while (found + 1 < starts.length && starts[found + 1] <= position) found++; return found; };
  function whereabouts(position) {
    if (!several) return Page.place(position);
    if (!sequences.length) return `position ${Page.count(position)} of all sequences`;
    const index = sequenceAt(position);
    return `${sequences[index][0]}, ${Page.place(position - starts[index])}`;
  }
  function drawEntropy() {
    const drawing = svg("entropy"), width = Charts.blank(drawing, 240), { doubt } = contents, top = sequences.length > 1 ? 22 : 12;
    const high = 1.08 * Math.max(0.01, ...doubt), left = Charts.margin([0, high]), box = { left, top, width: width - left - 14, height: 188 - top };
    const offset = several ? 0 : positions.offset, ends = [offset, offset + nPositions * positions.step];
    const axis = Page.axis(ends[0], ends[1], Math.max(1, Math.floor(box.width / 90)));
    const name = several ? `all sequences one after the other${axis.unit ? `, in ${axis.unit}` : ", in positions"}` : Page.axisName(axis.unit);
    const scales = Charts.panel(drawing, box, { low: ends[0], high: ends[1], name, ticks: axis.ticks, labels: axis.labels }, { low: 0, high, name: "entropy in bits" });
    const at = (i) => scales.x(offset + (i + 0.5) * nPositions / doubt.length * positions.step), floor = scales.y(0);
    const points = doubt.map((value, i) => [at(i), scales.y(value)]);
    Charts.band(drawing, points.map(([x]) => [x, floor]), points, { fill: variable("--accent"), "fill-opacity": 0.2 });
    Charts.line(drawing, points, { stroke: variable("--accent"), "stroke-width": 1.4 });
    if (sequences.length > 1) drawBorders(drawing, box, (position) => scales.x(position * positions.step));
    Charts.hover(drawing, box, (px) => {
      const i = Math.max(0, Math.min(doubt.length - 1, Math.floor((px - box.left) / box.width * doubt.length)));
      return { x: at(i), text: `${whereabouts(Math.floor(i * nPositions / doubt.length))}\nentropy ${Page.number(doubt[i], 3)} bits` };
    });
  }
  function drawBorders(drawing, box, at) {
    sequences.forEach(([name, start], index) => {
      const from = at(start), to = at(index + 1 < starts.length ? starts[index + 1] : nPositions), most = Math.floor((to - from - 6) / 6.5);
      if (index) Charts.line(drawing, [[from, box.top], [from, box.top + box.height]], { stroke: variable("--soft"), "stroke-width": 1, "stroke-dasharray": "3 3" });
      if (most >= 3 || most >= name.length) Charts.element("text", { x: (from + to) / 2, y: box.top - 7, "text-anchor": "middle", fill: variable("--ink"), "font-size": 11 }, drawing, Page.shortened(name, most));
    });
  }

  function drawCertainty() {
    const { certainty } = contents, drawing = svg("certainty"), width = Charts.blank(drawing, 240), n = certainty.length;
    const first = Math.min(certainty.findIndex((share) => share > 0), n - 2), high = 100 * Math.max(...certainty), left = Charts.margin([0, high]);
    const box = { left, top: 12, width: width - left - 14, height: 176 };
    const scales = Charts.panel(drawing, box, { low: first / n, high: 1, name: "probability of the most probable state" }, { low: 0, high: high * 1.05, name: "% of positions" });
    for (let i = first; i < n; i++) {
      const x = scales.x(i / n) + 1, y = scales.y(100 * certainty[i]);
      Charts.element("rect", { x, y, width: Math.max(1, scales.x((i + 1) / n) - x - 1), height: scales.y(0) - y, fill: variable("--accent") }, drawing);
      Charts.element("rect", { x, y: box.top, width: Math.max(1, scales.x((i + 1) / n) - x), height: box.height, fill: "transparent", "data-tip": `${Page.fixed(i / n, 2)} to ${Page.fixed((i + 1) / n, 2)}: ${Page.percent(certainty[i])} of positions` }, drawing);
    }
  }

  // ---- the most frequent transitions, with intervals
  function drawFrequent() {
    const { frequent } = contents, drawing = svg("frequent"), row = 24, box = { top: 8, height: frequent.length * row };
    const width = Charts.blank(drawing, box.height + 52), names = frequent.map(({ from, to }) => `${Page.label(from)} → ${Page.label(to)}`);
    const most = Math.max(10, Math.min(40, Math.floor(width * 0.45 / 7.6)));
    box.left = 14 + 7.6 * Math.min(most, Math.max(...names.map((name) => name.length)));
    box.width = width - box.left - 16;
    const high = Math.max(...frequent.map((move) => move.high)), scales = Charts.panel(drawing, box, { low: 0, high: Math.min(1, high * 1.05), name: "transition probability" }, { low: 0, high: 1, ticks: [] });
    frequent.forEach((move, place) => {
      const y = box.top + (place + 0.5) * row, colour = Page.states[move.from].colour, tip = `${names[place]}: ${Page.number(move.probability)}\n95 % interval ${Page.number(move.low)} to ${Page.number(move.high)}`;
      Charts.element("text", { x: box.left - 10, y: y + 4, "text-anchor": "end", fill: variable("--ink") }, drawing, Page.shortened(names[place], most));
      Charts.line(drawing, [[scales.x(move.low), y], [scales.x(move.high), y]], { stroke: colour, "stroke-width": 5, "stroke-opacity": 0.55 });
      Charts.element("circle", { cx: scales.x(move.probability), cy: y, r: 4, fill: variable("--ink") }, drawing);
      Charts.element("rect", { x: 0, y: y - row / 2, width, height: row, fill: "transparent", "data-tip": tip }, drawing);
    });
  }

  function all() {
    course.charts.forEach(drawCourse);
    if (course.restarts) drawRestarts();
    drawEntropy();
    drawCertainty();
    if (contents.frequent.length) drawFrequent();
  }

  function exports() {
    course.charts.forEach((chart, index) => Figures.add(`curve-${index}`, {
      svg: () => svg(`curve-${index}`), rows: () => [["iteration", ...chart.lines.map(({ name }) => name)], ...course.iterations.map((iteration, i) => [iteration, ...chart.lines.map(({ values }) => values[i])])],
    }));
    if (course.restarts) Figures.add("restarts", { svg: () => svg("restarts"), rows: () => [["restart", "nats below the best", "iterations", "end", "more"], ...course.restarts.runs.map((run) => [run.number, run.below, run.iterations, run.end, run.more])] });
    Figures.add("entropy", { svg: () => svg("entropy"), rows: () => [["first position", "entropy in bits"], ...contents.doubt.map((value, i) => [Math.floor(i * nPositions / contents.doubt.length), value])] });
    Figures.add("certainty", { svg: () => svg("certainty"), rows: () => [["from", "to", "share of positions"], ...contents.certainty.map((share, i) => [i / contents.certainty.length, (i + 1) / contents.certainty.length, share])] });
    if (contents.frequent.length) Figures.add("frequent", { svg: () => svg("frequent"), rows: () => [["from", "to", "probability", "low", "high"], ...contents.frequent.map((move) => [Page.label(move.from), Page.label(move.to), move.probability, move.low, move.high])] });
  }

  function start() {
    for (const button of document.querySelectorAll("button[data-part]")) {
      button.addEventListener("click", () => {
        part = Number(button.dataset.part);
        document.querySelectorAll("button[data-part]").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        course.charts.forEach(drawCourse);
      });
    }
    exports();
    Page.onLook(all);
  }
  return { start };
})();
