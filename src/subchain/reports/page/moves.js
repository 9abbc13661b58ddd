// Moves between states: a matrix on a canvas, and a graph of the most probable ones.
"use strict";
const Moves = (() => {
  const { contents, arrays, states, variable, channels, mix } = Page;
  const n = states.length, order = contents.order;
  let named = null; // the state whose name is under the cursor
  let cell = null; // the cell under the cursor, [row, column] in the order of the matrix
  const squared = (root) => (root / 65535) ** 2; // probabilities come as their square roots
  const probability = (from, to) => squared(arrays.transition[from * n + to]);
  const heat = (p) => `rgb(${mix(channels(variable("--panel")), channels(variable("--heat")), Math.sqrt(p))})`;

  // ---- matrix
  const canvas = document.getElementById("matrix");
  let geometry = null;

  const font = (size) => `${Math.min(12, size)}px system-ui, sans-serif`;
  // Names have all the room that they need, up to a third of the matrix.
  function measure(context, space) {
    if (n > 60) return { margin: 6, size: Math.max(2, Math.floor((space - 8) / n)) };
    const sizeFor = (margin) => Math.max(2, Math.min(n <= 6 ? 96 : 64, Math.floor((space - margin - 2) / n)));
    context.font = font(sizeFor(space / 3));
    const widest = Math.max(...states.map((state) => context.measureText(state.name).width));
    const margin = Math.ceil(Math.min(widest + 14, space / 3));
    return { margin, size: sizeFor(margin) };
  }

  function drawMatrix() {
    const context = canvas.getContext("2d");
    const { margin, size } = geometry = measure(context, Math.min(620, canvas.parentElement.clientWidth - 32));
    const side = margin + size * n + 2;
    canvas.style.width = canvas.style.height = `${side}px`;
    canvas.width = canvas.height = side * devicePixelRatio;
    context.scale(devicePixelRatio, devicePixelRatio);
    paint(context, geometry);
    if (Page.selected !== null) outline(context, order.indexOf(Page.selected), margin, size);
    if (cell) {
      context.lineWidth = 2;
      context.strokeStyle = variable("--warn");
      context.strokeRect(margin + cell[1] * size - 1, margin + cell[0] * size - 1, size + 1, size + 1);
    }
  }
  // The matrix on a canvas, or into a file.
  function paint(context, { margin, size }) {
    const gap = size >= 8 ? 1 : 0;
    order.forEach((from, row) => order.forEach((to, column) => {
      context.fillStyle = heat(probability(from, to));
      context.fillRect(margin + column * size, margin + row * size, size - gap, size - gap);
    }));
    if (size >= 34) {
      context.font = `${size >= 60 ? 14 : 11}px system-ui, sans-serif`;
      context.textAlign = "center"; context.textBaseline = "middle";
      order.forEach((from, row) => order.forEach((to, column) => {
        const p = probability(from, to);
        if (p < 0.005) return;
        context.fillStyle = Page.text(mix(channels(variable("--panel")), channels(variable("--heat")), Math.sqrt(p)));
        context.fillText(p >= 0.995 ? "1" : p.toFixed(2).replace(/^0/, ""), margin + (column + 0.5) * size, margin + (row + 0.5) * size);
      }));
    }
    context.strokeStyle = variable("--line");
    context.strokeRect(margin - 0.5, margin - 0.5, size * n + 1, size * n + 1);
    if (n <= 60 && size >= 8) drawNames(context, margin, size);
  }
  function saved() {
    const side = geometry.margin + geometry.size * n + 2, recorder = new Recorder(side, side);
    paint(recorder, geometry);
    return recorder.text();
  }
  function rows() {
    const bounds = arrays.transitionBounds, found = [["from", "to", "probability", ...(bounds ? ["low", "high"] : [])]];
    for (const from of order) for (const to of order) {
      const more = bounds ? [bounds[from * n + to], bounds[n * n + from * n + to]] : [];
      found.push([states[from].name, states[to].name, ...[arrays.transition[from * n + to], ...more].map((root) => Number(squared(root).toPrecision(5)))]);
    }
    return found;
  }

  function drawNames(context, margin, size) {
    context.font = font(size);
    order.forEach((slot, place) => {
      const name = Page.fitted(context, states[slot].name, margin - 12);
      const centre = margin + (place + 0.5) * size;
      context.fillStyle = states[slot].colour;
      context.fillRect(margin - 6, centre - size / 2 + 1, 4, size - 2);
      context.fillRect(centre - size / 2 + 1, margin - 6, size - 2, 4);
      context.fillStyle = variable("--ink");
      context.textAlign = "right"; context.textBaseline = "middle";
      context.fillText(name, margin - 9, centre);
      context.save();
      context.translate(centre, margin - 9);
      const upright = size >= 22 && name.length <= 3;
      if (!upright) context.rotate(-Math.PI / 2);
      context.textAlign = upright ? "center" : "left";
      context.textBaseline = upright ? "alphabetic" : "middle";
      context.fillText(name, 0, 0);
      context.restore();
    });
  }

  function outline(context, place, margin, size) {
    context.lineWidth = 2;
    context.strokeStyle = variable("--accent");
    context.strokeRect(margin - 1, margin + place * size - 1, size * n + 1, size + 1);
    context.strokeRect(margin + place * size - 1, margin - 1, size + 1, size * n + 1);
  }

  function tell() {
    const readout = document.getElementById("matrix-readout");
    if (!cell) { readout.textContent = named === null ? "\u00a0" : about(named); return named === null ? "" : readout.textContent; }
    const from = order[cell[0]], to = order[cell[1]], bounds = arrays.transitionBounds;
    let line = `from ${Page.full(from)} to ${Page.full(to)}: ${Page.number(probability(from, to))}`;
    if (bounds) line += `, 95 % of ${Page.number(squared(bounds[from * n + to]))} to ${Page.number(squared(bounds[n * n + from * n + to]))}`;
    readout.textContent = line;
    return line;
  }

  const about = (slot) => `${Page.full(slot)}: ${Page.percent(states[slot].occupancy)} of positions, ${probability(slot, slot) >= 1 ? "never left" : `stays with ${Page.number(probability(slot, slot))}`}`;
  // The state whose name, beside or above the matrix, is under the pointer.
  function nameAt(event) {
    const box = canvas.getBoundingClientRect(), { margin, size } = geometry;
    const across = Math.floor((event.clientX - box.left - margin) / size), down = Math.floor((event.clientY - box.top - margin) / size);
    const place = across < 0 ? down : across;
    return (across < 0) !== (down < 0) && place < n ? order[place] : null;
  }
  function cellAt(event) {
    const box = canvas.getBoundingClientRect(), { margin, size } = geometry;
    const column = Math.floor((event.clientX - box.left - margin) / size), row = Math.floor((event.clientY - box.top - margin) / size);
    return row >= 0 && column >= 0 && row < n && column < n ? [row, column] : null;
  }

  function walk(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (step) cell = cell ? cell.map((value, i) => Math.max(0, Math.min(n - 1, value + step[i]))) : [0, 0];
    else if (event.key === "Enter" && cell) Page.select(order[cell[0]]);
    else if (event.key === "Escape") { if (Page.selected !== null) Page.select(Page.selected); cell = null; }
    else return;
    event.preventDefault();
    drawMatrix();
    tell();
  }

  // ---- graph
  const svg = document.getElementById("graph"), slider = document.getElementById("least");
  const least = () => 10 ** (-3 * (1 - slider.value / 100)); // from 0.001 to 1
  const { element } = Charts;

  function drawGraph() {
    svg.replaceChildren();
    document.getElementById("least-value").textContent = String(Number(least().toPrecision(2)));
    const around = 232, centre = 300, most = Math.max(...states.map((state) => state.occupancy));
    const room = Math.min(34, around * Math.sin(Math.PI / n) * 0.86);
    const nodes = [];
    order.forEach((slot, place) => {
      const angle = 2 * Math.PI * place / n - Math.PI / 2;
      const radius = Math.max(Math.min(5, room), room * Math.sqrt(states[slot].occupancy / most));
      nodes[slot] = { x: centre + around * Math.cos(angle), y: centre + around * Math.sin(angle), radius, angle };
    });
    const edges = element("g", { fill: "none" }, svg);
    for (let from = 0; from < n; from++) for (let to = 0; to < n; to++) {
      const p = probability(from, to);
      if (from !== to && p >= least()) edge(edges, nodes[from], nodes[to], from, to, p);
    }
    order.forEach((slot) => node(nodes[slot], slot));
    const { x, y, width, height } = svg.getBBox(); // names stick out as far as they are long
    svg.setAttribute("viewBox", [x - 6, y - 6, width + 12, height + 12].map((value) => value.toFixed(1)).join(" "));
  }

  function edge(parent, a, b, from, to, p) {
    const faded = Page.selected !== null && from !== Page.selected && to !== Page.selected;
    const [dx, dy] = [b.x - a.x, b.y - a.y], length = Math.hypot(dx, dy);
    // the way there and the way back bend to different sides, and both towards the middle
    const bend = 0.13 * length, pull = 0.28;
    const cx = (a.x + b.x) / 2 + (300 - (a.x + b.x) / 2) * pull - dy / length * bend, cy = (a.y + b.y) / 2 + (300 - (a.y + b.y) / 2) * pull + dx / length * bend;
    const away = (node, far) => { const d = Math.hypot(cx - node.x, cy - node.y); return [node.x + (cx - node.x) / d * far, node.y + (cy - node.y) / d * far]; };
    const width = 0.8 + 6 * Math.sqrt(p), head = 5 + width * 1.1;
    const [sx, sy] = away(a, a.radius + 4), [ex, ey] = away(b, b.radius + 5 + head), [tx, ty] = away(b, b.radius + 5);
    const group = element("g", { opacity: faded ? 0.14 : 0.72 }, parent);
    element("path", { d: `M${sx.toFixed(1)} ${sy.toFixed(1)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${ex.toFixed(1)} ${ey.toFixed(1)}`, stroke: states[from].colour, "stroke-width": width.toFixed(1) }, group);
    const [ux, uy] = [(tx - ex) / head, (ty - ey) / head], half = head * 0.55;
    element("path", { d: `M${tx} ${ty}L${ex - uy * half} ${ey + ux * half}L${ex + uy * half} ${ey - ux * half}Z`, fill: states[from].colour }, group);
    group.dataset.tip = `${Page.full(from)} → ${Page.full(to)}: ${Page.number(p)}`;
  }

  function node({ x, y, radius, angle }, slot) {
    const group = element("g", { class: "node" }, svg), stay = probability(slot, slot);
    const ring = radius + 3, turn = 2 * Math.PI * Math.min(stay, 0.9999), end = [x + ring * Math.sin(turn), y - ring * Math.cos(turn)];
    element("circle", { cx: x, cy: y, r: ring, fill: "none", stroke: variable("--line"), "stroke-width": 2.5 }, group);
    element("path", { d: `M${x} ${y - ring}A${ring} ${ring} 0 ${turn > Math.PI ? 1 : 0} 1 ${end[0]} ${end[1]}`, fill: "none", stroke: variable("--ink"), "stroke-width": 2.5 }, group);
    element("circle", { cx: x, cy: y, r: radius, fill: states[slot].colour, stroke: Page.selected === slot ? variable("--accent") : "none", "stroke-width": 5 }, group);
    const inside = radius > 11 && states[slot].name.length <= 3, size = n > 40 ? 9 : Math.min(26, Math.max(14, 7200 / (svg.clientWidth || 600))), out = ring + 2 + 0.6 * size;
    const place = inside ? { x, y: y + 0.35 * size, "text-anchor": "middle", fill: Page.text(channels(states[slot].colour)), "font-weight": 650 }
      : { x: x + out * Math.cos(angle), y: y + out * Math.sin(angle) + 0.35 * size, "text-anchor": Math.abs(Math.cos(angle)) < 0.3 ? "middle" : Math.cos(angle) > 0 ? "start" : "end", fill: variable("--ink") };
    const name = Page.selected === slot ? states[slot].name : Page.shortened(states[slot].name, n > 40 ? 12 : 20);
    element("text", { ...place, "font-size": size }, group, name);
    group.dataset.tip = about(slot);
    group.addEventListener("click", () => Page.select(slot));
  }

  function startLeast() {
    // as many transitions as can be distinguished
    const found = [];
    for (let from = 0; from < n; from++) for (let to = 0; to < n; to++) if (from !== to) found.push(probability(from, to));
    found.sort((a, b) => b - a);
    const p = found[Math.min(found.length, Math.round(2.2 * n) + 4) - 1] || 0.001;
    slider.value = Math.max(0, Math.min(100, Math.ceil(100 * (1 + Math.log10(Math.max(p, 0.001)) / 3))));
  }

  function start() {
    if (n < 2) return; // there is nothing to draw, and the page says so
    startLeast();
    const scale = document.getElementById("scale");
    canvas.addEventListener("pointermove", (event) => { cell = cellAt(event); named = cell ? null : nameAt(event); drawMatrix(); Page.tip(event, tell()); });
    canvas.addEventListener("pointerleave", () => { cell = named = null; drawMatrix(); tell(); Page.tip(null); });
    canvas.addEventListener("click", (event) => { const found = cellAt(event); if (found) Page.select(order[found[0]]); });
    canvas.addEventListener("keydown", walk);
    slider.addEventListener("input", drawGraph);
    Page.onChange(() => {
      drawMatrix();
      drawGraph();
      scale.replaceChildren();
      for (const p of [0, 0.01, 0.1, 0.5, 1]) {
        const box = document.createElement("i");
        box.style.background = heat(p);
        scale.append(box, String(p));
      }
    });
    Figures.add("matrix", { svg: saved, rows });
    Figures.add("graph", { svg: () => svg, rows: () => [rows()[0], ...rows().slice(1).filter(([from, to, p]) => from !== to && p >= least())] });
  }
  return { start };
})();
