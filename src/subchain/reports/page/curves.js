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
      scales: { x: { time: false } },
      legend: { live: true },
      cursor: { drag: { x: true, y: false } },
      hooks: { draw: options.marks ? [(plot) => marks(plot, options.marks)] : [] },
      axes: [axis({ values: (_, splits) => splits.map((value) => (Number.isInteger(value) ? Page.count(value) : "")), incrs: [1, 2, 5].flatMap((f) => [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((e) => f * 10 ** e)).sort((a, b) => a - b), space: 70 }), axis({ values: labels, size: 78 })],
      series: [
        { label: options.xName, value: (_, value) => (value === null ? "–" : Page.count(value)) },
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

  function marks(plot, events) {
    const { ctx: context, bbox } = plot;
    context.save();
    context.strokeStyle = variable("--warn");
    context.globalAlpha = 0.75;
    context.lineWidth = devicePixelRatio;
    context.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const iteration of new Set(events.map((event) => event.iteration))) {
      const x = Math.round(plot.valToPos(iteration, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      context.beginPath();
      context.moveTo(x, bbox.top);
      context.lineTo(x, bbox.top + bbox.height);
      context.stroke();
    }
    context.restore();
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
        draw(boxes[index], title, x, shown, { xName: "iteration", marks: course.events });
      }
    }
    const along = document.getElementById("doubt-curve");
    along.replaceChildren();
    const x = contents.doubt.map((_, i) => Math.floor(i * contents.nPositions / contents.doubt.length));
    draw(box(along, ""), "", x, [{ name: "bits", values: contents.doubt }], { xName: "position", name: "Entropy along the data", height: 196, fill: true });
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
