// Charts as SVG: panels with named axes, and what is drawn in them. Sizes are pixels.
"use strict";
const Charts = (() => {
  const { variable } = Page;

  function element(kind, attributes, parent, content) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, typeof value === "number" ? Number(value.toFixed(2)) : value);
    if (content !== undefined) made.textContent = content;
    parent.append(made);
    return made;
  }

  // An empty drawing of this height, as wide as its place or as wide as it must be.
  function blank(svg, height, least = 0) {
    const width = Math.max(least, svg.parentElement.clientWidth || 320);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("font-size", 12);
    svg.style.width = `${width}px`;
    svg.style.height = `${height}px`;
    return width;
  }

  function ticks(low, high, n) {
    if (!(high > low)) return [low];
    const rough = (high - low) / Math.max(1, n), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((f) => f * power).find((value) => value >= rough * 0.999), found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    return found;
  }
  function powers(low, high) {
    const found = [];
    for (let e = Math.ceil(Math.log10(low) - 1e-9); 10 ** e <= high * 1.0001; e++) found.push(10 ** e);
    return found;
  }
  // Labels of ticks: as many decimals as their distance needs.
  function labels(values) {
    const step = values.length > 1 ? Math.abs(values[1] - values[0]) : Math.abs(values[0]) || 1;
    const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9)));
    return values.map((value) => Page.fixed(value, digits));
  }

  const scale = ({ low, high, log }, from, to) => {
    const [a, b] = log ? [Math.log(low), Math.log(high)] : [low, high];
    return (value) => from + ((log ? Math.log(Math.max(value, 1e-300)) : value) - a) / (b - a || 1) * (to - from);
  };

  // A panel inside a box {left, top, width, height}, with axes {low, high, log, name, ticks, labels}; its two scales.
  function panel(svg, box, xAxis, yAxis) {
    const x = scale(xAxis, box.left, box.left + box.width), y = scale(yAxis, box.top + box.height, box.top);
    const soft = variable("--soft"), line = variable("--line");
    const xs = xAxis.ticks || ticks(xAxis.low, xAxis.high, Math.max(1, Math.floor(box.width / 75))), ys = yAxis.ticks || (yAxis.log ? powers(yAxis.low, yAxis.high) : ticks(yAxis.low, yAxis.high, Math.max(2, Math.floor(box.height / 40))));
    const across = xAxis.labels || labels(xs), up = yAxis.labels || (yAxis.log ? ys.map((value) => Page.number(value)) : labels(ys));
    xs.forEach((value, i) => {
      element("path", { d: `M${x(value).toFixed(1)} ${box.top}V${box.top + box.height + 4}`, stroke: line }, svg);
      const near = x(value) > box.left + box.width - 16 ? "end" : x(value) < 20 ? "start" : "middle";
      element("text", { x: near === "end" ? Math.min(x(value) + 8, box.left + box.width + 8) : near === "start" ? 1 : x(value), y: box.top + box.height + 17, "text-anchor": near, fill: soft, "font-size": 11 }, svg, across[i]);
    });
    ys.forEach((value, i) => {
      element("path", { d: `M${box.left - 4} ${y(value).toFixed(1)}H${box.left + box.width}`, stroke: line }, svg);
      element("text", { x: box.left - 7, y: y(value) + 4, "text-anchor": "end", fill: soft, "font-size": 11 }, svg, up[i]);
    });
    element("path", { d: `M${box.left} ${box.top}V${box.top + box.height}H${box.left + box.width}`, fill: "none", stroke: soft }, svg);
    if (xAxis.name) element("text", { x: box.left + box.width / 2, y: box.top + box.height + 34, "text-anchor": "middle", fill: soft }, svg, xAxis.name);
    if (yAxis.name) element("text", { x: 0, y: 0, "text-anchor": "middle", fill: soft, transform: `translate(12 ${box.top + box.height / 2}) rotate(-90)` }, svg, yAxis.name);
    return { x, y };
  }
  // Room for labels of the y axis and its name.
  const margin = (values, name = true) => (name ? 24 : 6) + 6.6 * Math.max(...labels(ticks(Math.min(...values), Math.max(...values), 4)).map((text) => text.length)) + 8;

  // A path through [x, y] in pixels; null breaks it.
  function path(points) {
    let text = "", open = false;
    for (const point of points) {
      if (!point || !Number.isFinite(point[1])) { open = false; continue; }
      text += `${open ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
      open = true;
    }
    return text;
  }
  const line = (svg, points, attributes) => element("path", { d: path(points), fill: "none", "stroke-width": 1.8, ...attributes }, svg);
  function band(svg, lower, upper, attributes) {
    const known = lower.map((point, i) => point && upper[i] && [point, upper[i]]).filter(Boolean);
    if (known.length) element("path", { d: `${path(known.map(([low]) => low))}L${path(known.map(([, high]) => high).reverse()).slice(1)}Z`, ...attributes }, svg);
  }

  // What is told of the place under the pointer, tell(x, y) in pixels of the drawing.
  function hover(svg, box, tell) {
    const over = element("rect", { x: box.left, y: box.top, width: box.width, height: box.height, fill: "transparent", class: "over" }, svg);
    const guide = element("path", { stroke: variable("--soft"), "stroke-dasharray": "4 3", "pointer-events": "none", class: "over" }, svg);
    over.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect(), told = tell(event.clientX - frame.left, event.clientY - frame.top);
      guide.setAttribute("d", told && told.x !== undefined ? `M${told.x.toFixed(1)} ${box.top}V${box.top + box.height}` : "");
      Page.tip(event, told ? told.text : "");
    });
    over.addEventListener("pointerleave", () => { guide.setAttribute("d", ""); Page.tip(null); });
  }
  // The index of the nearest of increasing values.
  function nearest(values, value) {
    let best = 0;
    for (let i = 1; i < values.length; i++) if (Math.abs(values[i] - value) < Math.abs(values[best] - value)) best = i;
    return best;
  }
  return { element, blank, ticks, labels, panel, margin, path, line, band, hover, nearest };
})();
