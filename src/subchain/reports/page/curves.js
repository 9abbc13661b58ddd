// Curves: the course of the run, and doubt along the data.
"use strict";
const Curves = (() => {
  const { contents, variable, states } = Page;
  const STROKES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f98", "#c9bb3a"];
  let part = 1;
  let plots = [];

  function axis(extra) {
    const line = { stroke: variable("--line"), width: 1 };
    return { stroke: variable("--soft"), grid: line, ticks: line, font: "12px system-ui, sans-serif", ...extra };
  }
  const labels = (plot, splits) => {
    const step = Math.abs(splits[1] - splits[0]) || 1, digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9)));
    return splits.map((value) => (Math.abs(value) >= 1e6 ? value.toPrecision(6).replace("e+", "e") : value.toFixed(digits)).replace("-", "−"));
  };

  function box(place, title) {
    const made = document.createElement("div");
    made.style.minWidth = 0;
    if (title) {
      const heading = document.createElement("p");
      heading.className = "chart-title";
      heading.textContent = title;
      made.append(heading);
    }
    place.append(made);
    return made;
  }

  function draw(box, title, x, lines, options) {
    const plot = new uPlot({
      width: Math.max(240, box.clientWidth), height: options.height || 240,
      scales: { x: { time: false }, y: options.fromZero ? { range: (_, low, high) => [0, 1.08 * Math.max(high, 0.01)] } : {} },
      legend: { live: true },
      cursor: { drag: { x: true, y: false } },
      hooks: { draw: options.marks ? [options.marks] : [] },
      axes: [options.xAxis || axis({ values: (_, splits) => splits.map((value) => (Number.isInteger(value) ? Page.count(value) : "")), incrs: increments(0), space: 70 }), axis({ values: labels, size: 78 })],
      series: [
        { label: options.xName, value: (_, value) => (value === null ? "–" : (options.xValue || Page.count)(value)) },
        ...lines.map(({ name, values }, index) => ({
          label: name, stroke: lines.length === 1 ? variable("--accent") : STROKES[index % STROKES.length], width: 1.8,
          dash: index >= STROKES.length ? [6, 4] : undefined, fill: options.fill ? variable("--accent") + "33" : undefined,
          points: { show: x.length < 3 }, value: (_, value) => Page.number(value), spanGaps: true,
        })),
      ],
    }, [x, ...lines.map(({ values }) => values)], box);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", title || options.name);
    plots.push(plot);
  }

  // Distances of ticks from 10 ** least on.
  const increments = (least) => Array.from({ length: 16 }, (_, e) => [1, 2, 5].map((f) => Number(`${f}e${e + least}`))).flat();

  // Upright lines at values of x, in a colour of the page.
  function upright(plot, values, colour) {
    const { ctx: context, bbox } = plot;
    context.save();
    context.strokeStyle = variable(colour);
    context.globalAlpha = 0.75;
    context.lineWidth = devicePixelRatio;
    context.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const value of values) {
      const x = Math.round(plot.valToPos(value, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      context.beginPath();
      context.moveTo(x, bbox.top);
      context.lineTo(x, bbox.top + bbox.height);
      context.stroke();
    }
    context.restore();
  }

  // ---- doubt along the data: sequences side by side, with borders and names if they are few
  const { sequences, positions, nPositions } = contents, several = contents.timeline.nSequences > 1;
  // Side by side, sequences have no common offset.
  const value = (position) => (several ? 0 : positions.offset) + position * positions.step;
  const starts = sequences.map(([, start]) => start);
  const sequenceAt = (position) => { let found = 0; while (found + 1 < starts.length && starts[found + 1] <= position) found++; return found; };
  const local = (x) => { const position = Math.round(x / positions.step); return position - starts[sequenceAt(position)]; };
  const whereabouts = (x) => (several && sequences.length ? `${sequences[sequenceAt(Math.round(x / positions.step))][0]}, ${told(x)}` : told(x));
  const told = (x, digits) => Page.inUnits(several && sequences.length ? positions.offset + local(x) * positions.step : x, digits);
  // Ticks that begin anew with every sequence, at a distance from each other and from the next sequence.
  function splits(plot, _, low, high, increment, space) {
    const found = [], apart = space / (plot.bbox.width / devicePixelRatio) * (high - low);
    starts.forEach((start, index) => {
      const next = index + 1 < starts.length ? value(starts[index + 1]) : Infinity, ahead = positions.offset - value(start);
      const add = (x) => { if (x >= low && x <= high && x - (found.at(-1) ?? -Infinity) >= 0.9 * apart) found.push(x); };
      add(value(start));
      const until = Math.min(value(nPositions), high, next - 0.9 * apart);
      for (let tick = Math.ceil((Math.max(value(start), low) + ahead) / increment); tick * increment - ahead < until; tick++) add(tick * increment - ahead);
    });
    return found;
  }
  function borders(plot) {
    if (sequences.length < 2) return;
    upright(plot, starts.slice(1).map(value), "--ink");
    const { ctx: context, bbox } = plot, edges = [...starts, nPositions].map((start) => plot.valToPos(value(start), "x", true));
    context.save();
    context.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    context.fillStyle = variable("--ink");
    context.textAlign = "center"; context.textBaseline = "bottom";
    sequences.forEach(([name], index) => {
      const from = Math.max(edges[index], bbox.left), to = Math.min(edges[index + 1], bbox.left + bbox.width), room = to - from - 6 * devicePixelRatio;
      const shown = Page.fitted(context, name, room);
      if (context.measureText(shown).width <= room) context.fillText(shown, (from + to) / 2, bbox.top - 2 * devicePixelRatio);
    });
    context.restore();
  }
  function drawDoubt() {
    const along = document.getElementById("doubt-curve"), least = Math.floor(Math.log10(positions.step) + 1e-9);
    along.replaceChildren();
    const x = contents.doubt.map((_, i) => value(Math.floor(i * nPositions / contents.doubt.length)));
    const far = Page.inUnits(value(nPositions), 0).length;
    const xAxis = axis({ splits: sequences.length > 1 ? splits : undefined, values: (_, splits, __, ___, increment) => splits.map((x) => told(x, Page.decimals(increment))), incrs: increments(Math.max(least, -positions.digits)), space: Math.max(70, 6.5 * far + 16) });
    draw(box(along, ""), "", x, [{ name: "bits", values: contents.doubt }], {
      xName: sequences.length > 1 ? "where" : "position", name: "State entropy along the data", height: 196, fill: true, fromZero: true, marks: borders, xAxis, xValue: whereabouts,
    });
  }

  function all() {
    plots.forEach((plot) => plot.destroy());
    plots = [];
    const place = document.getElementById("curves"), { course } = contents;
    if (place) {
      place.replaceChildren();
      const from = course.iterations.length - Math.max(2, Math.ceil(course.iterations.length / part));
      const x = course.iterations.slice(Math.max(0, from));
      const boxes = course.charts.map(({ title }) => box(place, title)); // all of them first: they share the width
      for (const [index, { title, lines }] of course.charts.entries()) {
        const shown = lines.map(({ name, values }) => ({ name, values: values.slice(Math.max(0, from)) }));
        const iterations = new Set(course.events.map((event) => event.iteration));
        draw(boxes[index], title, x, shown, { xName: "iteration", marks: (plot) => upright(plot, iterations, "--warn") });
      }
    }
    drawDoubt();
  }

  function start() {
    for (const button of document.querySelectorAll("button[data-part]")) {
      button.addEventListener("click", () => {
        part = Number(button.dataset.part);
        document.querySelectorAll("button[data-part]").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        all();
      });
    }
    let theme = null;
    Page.onChange(() => {
      if (theme === document.documentElement.dataset.theme) return;
      theme = document.documentElement.dataset.theme;
      all();
    });
    let width = innerWidth;
    addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; all(); } });
  }
  return { start };
})();
