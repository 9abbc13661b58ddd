// The page on a word aligner: alignment matrices, and the lexicon with its search.
"use strict";
(() => {
  const { pairs, lexicon, steps } = JSON.parse(document.getElementById("contents").textContent);
  const by = (id) => document.getElementById(id), NS = "http://www.w3.org/2000/svg", SIZE = 24, MOST_ROWS = 100;
  const svg = by("matrix"), choice = by("choose-pair"), tip = by("tip");
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

  function add(parent, name, attributes, text) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  // Width of a word in pixels, about; the script may not measure text before it is drawn.
  const widthOf = (word) => 8 * Math.min([...word].length, 24) + 10;
  const short = (word) => ([...word].length > 24 ? [...word].slice(0, 23).join("") + "…" : word);

  function draw(pair) {
    svg.replaceChildren();
    if (!pair) return;
    const { source, target, links } = pair, forward = bytes(pair.forward), backward = bytes(pair.backward);
    const left = Math.max(40, ...source.map(widthOf)), top = Math.max(40, ...target.map(widthOf));
    const width = left + SIZE * target.length + 6, height = top + SIZE * source.length + 6;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    const ofSource = new Set(links.map(([i]) => i)), ofTarget = new Set(links.map(([, j]) => j));
    source.forEach((word, i) => add(svg, "text", { x: left - 6, y: top + SIZE * (i + 0.5) + 4, "text-anchor": "end", class: ofSource.has(i) ? "" : "free" }, short(word)));
    target.forEach((word, j) => {
      const x = left + SIZE * (j + 0.5) + 4, y = top - 6;
      add(svg, "text", { x, y, transform: `rotate(-90 ${x} ${y})`, class: ofTarget.has(j) ? "" : "free" }, short(word));
    });
    const place = (i, j) => [left + SIZE * j, top + SIZE * i];
    for (let i = 0; i < source.length; i++) {
      for (let j = 0; j < target.length; j++) {
        const [x, y] = place(i, j), at = j * source.length + i, one = (forward[at] || 0) / steps, other = (backward[at] || 0) / steps;
        add(svg, "rect", { x, y, width: SIZE, height: SIZE, class: "cell" });
        if (one >= 0.02) add(svg, "path", { d: `M${x} ${y}h${SIZE}l${-SIZE} ${SIZE}z`, class: "forward", opacity: one.toFixed(2) });
        if (other >= 0.02) add(svg, "path", { d: `M${x + SIZE} ${y + SIZE}h${-SIZE}l${SIZE} ${-SIZE}z`, class: "backward", opacity: other.toFixed(2) });
      }
    }
    const sure = new Set((pair.sure || []).map(String));
    for (const [i, j] of pair.possible || []) {
      const [x, y] = place(i, j);
      add(svg, "rect", { x: x + 2, y: y + 2, width: SIZE - 4, height: SIZE - 4, class: sure.has(`${i},${j}`) ? "gold" : "gold possible" });
    }
    for (const [i, j] of links) add(svg, "circle", { cx: place(i, j)[0] + SIZE / 2, cy: place(i, j)[1] + SIZE / 2, r: 5, class: "link" });
    const over = add(svg, "rect", { x: left, y: top, width: SIZE * target.length, height: SIZE * source.length, class: "over" });
    over.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), scale = width / box.width;
      const j = Math.floor(((event.clientX - box.left) * scale - left) / SIZE), i = Math.floor(((event.clientY - box.top) * scale - top) / SIZE);
      if (i < 0 || j < 0 || i >= source.length || j >= target.length) return;
      const at = j * source.length + i, percent = (value) => `${Math.round((100 * (value || 0)) / steps)} %`;
      tip.textContent = `${source[i]} – ${target[j]}\ntarget given source ${percent(forward[at])}\nsource given target ${percent(backward[at])}`;
      tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 220)}px`;
      tip.style.top = `${event.clientY + 14}px`;
      tip.hidden = false;
    });
    over.addEventListener("pointerleave", () => { tip.hidden = true; });
    const said = by("sentences"), lines = [source, target].map((words) => {
      const line = document.createElement("span");
      line.dir = "auto";
      line.textContent = words.join(" ") || "(empty)";
      return line;
    });
    said.replaceChildren(...lines);
  }

  function list() {
    const wanted = by("find-pair").value.trim().toLowerCase(), before = choice.value;
    const has = (words) => words.some((word) => word.toLowerCase().includes(wanted));
    const found = pairs.map((_, at) => at).filter((at) => !wanted || has(pairs[at].source) || has(pairs[at].target));
    choice.replaceChildren(...found.map((at) => {
      const option = document.createElement("option"), text = pairs[at].source.join(" ");
      option.value = at;
      option.dir = "auto";
      option.textContent = `${pairs[at].number}: ${text.length > 70 ? text.slice(0, 69) + "…" : text}`;
      return option;
    }));
    if (found.map(String).includes(before)) choice.value = before;
    draw(pairs[choice.value]);
  }

  function step(by_) {
    const at = choice.selectedIndex + by_;
    if (at < 0 || at >= choice.options.length) return;
    choice.selectedIndex = at;
    draw(pairs[choice.value]);
  }

  function search() {
    const wanted = by("find-word").value.trim().toLowerCase(), whole = by("whole").checked;
    const fits = (word) => (whole ? word.toLowerCase() === wanted : word.toLowerCase().includes(wanted));
    const found = wanted ? lexicon.filter(([source, target]) => fits(source) || fits(target)) : lexicon;
    by("n-found").textContent = `${found.length.toLocaleString("en")} ${found.length === 1 ? "entry" : "entries"}${found.length > MOST_ROWS ? `, the first ${MOST_ROWS} shown` : ""}`;
    by("entries").tBodies[0].replaceChildren(...found.slice(0, MOST_ROWS).map(([source, target, links, forward, backward]) => {
      const row = document.createElement("tr");
      [source, target].forEach((word) => { const cell = document.createElement("th"); cell.textContent = word; cell.dir = "auto"; row.append(cell); });
      [links.toLocaleString("en", { maximumFractionDigits: 1 }), forward.toFixed(3), backward.toFixed(3)].forEach((text) => { row.insertCell().textContent = text; });
      return row;
    }));
  }

  choice.addEventListener("change", () => draw(pairs[choice.value]));
  by("find-pair").addEventListener("input", list);
  by("previous").addEventListener("click", () => step(-1));
  by("next").addEventListener("click", () => step(1));
  by("find-word").addEventListener("input", search);
  by("whole").addEventListener("change", search);
  list();
  search();
  document.body.dataset.ready = "yes";
})();
