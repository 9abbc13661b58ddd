// The page on a grammar: trees of phrases or of dependencies, the rules with their search, the objective of the run.
"use strict";
(() => {
  const { sentences, rules, trace } = JSON.parse(document.getElementById("contents").textContent);
  const by = (id) => document.getElementById(id), NS = "http://www.w3.org/2000/svg", MOST_ROWS = 100;
  const choice = by("choose-sentence"), tip = by("tip"), LEVEL = 42, GAP = 14;

  function add(parent, name, attributes, text) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function tell(element, text) {
    element.addEventListener("pointermove", (event) => {
      tip.textContent = text;
      tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 220)}px`;
      tip.style.top = `${event.clientY + 14}px`;
      tip.hidden = false;
    });
    element.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  const widthOf = (text) => 8 * [...text].length + GAP;
  const percent = (chance) => `${(100 * chance).toFixed(chance > 0.995 || chance < 0.1 ? 1 : 0)} %`;
  const faint = (chance) => (chance < 0 ? 1 : 0.3 + 0.7 * chance).toFixed(2);

  function fit(svg, width, height) {
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
  }

  // A list of nodes and tokens from the top down becomes nodes with children, and levels counted from the tokens.
  function build(steps) {
    const waiting = [], all = [];
    for (let at = steps.length - 1; at >= 0; at--) {
      const step = steps[at];
      if (typeof step === "string") { waiting.push({ label: step, children: [], level: 0, chance: -1, right: null }); continue; }
      const [label, n, chance, right] = step, children = [];
      for (let k = 0; k < n; k++) children.push(waiting.pop());
      const node = { label, children, chance, right, level: 1 + Math.max(0, ...children.map((child) => child.level)) };
      waiting.push(node);
      all.push(node);
    }
    return { root: waiting[0], nodes: all.reverse() };
  }

  function drawPhrases(svg, steps) {
    svg.replaceChildren();
    if (!steps) { fit(svg, 300, 30); add(svg, "text", { x: 150, y: 20 }, "no tree"); return; }
    const { root, nodes } = build(steps), tokens = [];
    const waiting = [root];
    while (waiting.length) {
      const node = waiting.pop();
      if (!node.children.length) tokens.push(node);
      waiting.push(...node.children.slice().reverse());
    }
    // A token is as wide as itself, and as the widest of the nodes over it alone.
    const widths = new Map(tokens.map((token) => [token, widthOf(token.label)]));
    for (const node of nodes) {
      let below = node;
      while (below.children.length === 1) below = below.children[0];
      if (widths.has(below)) widths.set(below, Math.max(widths.get(below), widthOf(node.label)));
    }
    let x = 0;
    for (const token of tokens) { token.x = x + widths.get(token) / 2; x += widths.get(token); }
    for (const node of nodes.slice().reverse()) node.x = (node.children[0].x + node.children.at(-1).x) / 2;
    const height = root.level * LEVEL + 34, place = (node) => 18 + (root.level - node.level) * LEVEL;
    fit(svg, x + 8, height);
    // Lines go down from a bar below each node, so that none crosses another.
    for (const node of nodes) {
      for (const child of node.children) {
        const wrong = child.right === false ? " wrong" : "";
        add(svg, "path", { d: `M${node.x} ${place(node) + 5}v7H${child.x}V${place(child) - 13}`, class: `edge${wrong}`, opacity: faint(child.children.length ? child.chance : node.chance) });
      }
    }
    for (const node of nodes) {
      const drawn = add(svg, "text", { x: node.x, y: place(node), class: `node${node.right === false ? " wrong" : ""}`, opacity: faint(node.chance) }, node.label);
      if (node.chance >= 0) tell(drawn, `${node.label}\nposterior probability ${percent(node.chance)}`);
    }
    for (const token of tokens) add(svg, "text", { x: token.x, y: place(token), class: "word" }, token.label);
  }

  function drawDependencies(svg, { words, tags }, heads, chances, gold) {
    svg.replaceChildren();
    const middle = [], same = words.every((word, k) => word === tags[k]);
    let x = 6;
    for (let k = 0; k < words.length; k++) {
      const width = Math.max(widthOf(words[k]), widthOf(tags[k]), 34);
      middle.push(x + width / 2);
      x += width;
    }
    // An arc is one level above all arcs within it.
    const arcs = heads.map((head, k) => ({ head, k, first: Math.min(head, k), last: Math.max(head, k), level: 1 })).filter((arc) => arc.head >= 0);
    arcs.sort((one, other) => one.last - one.first - (other.last - other.first));
    arcs.forEach((arc, n) => {
      for (const inner of arcs.slice(0, n)) if (inner.first >= arc.first && inner.last <= arc.last) arc.level = Math.max(arc.level, inner.level + 1);
    });
    const most = Math.max(1, ...arcs.map((arc) => arc.level)), base = 30 + 24 * most;
    fit(svg, x + 6, base + (same ? 26 : 46));
    const arrow = (at, y, shown) => add(svg, "path", { d: `M${at} ${y}l-4.5 -9h9z`, class: `tip${shown}` });
    for (const arc of arcs) {
      const wrong = gold && gold[arc.k] !== arc.head ? " wrong" : "", chance = chances ? chances[arc.k] : 1;
      const side = arc.k > arc.head ? 1 : -1, from = middle[arc.head] + 5 * side, to = middle[arc.k] - 3 * side, top = base - 24 * arc.level;
      const bend = Math.min(14, Math.abs(to - from) / 2), d = `M${from} ${base}V${top + bend}Q${from} ${top} ${from + bend * side} ${top}H${to - bend * side}Q${to} ${top} ${to} ${top + bend}V${base - 6}`;
      add(svg, "path", { d, class: `arc${wrong}`, opacity: faint(chance) });
      arrow(to, base, wrong).setAttribute("opacity", faint(chance));
      if (chances) tell(add(svg, "path", { d, class: "over" }), `${words[arc.head]} → ${words[arc.k]}\nposterior probability ${percent(chance)}`);
    }
    heads.forEach((head, k) => {
      if (head >= 0) return;
      const wrong = gold && gold[k] !== head ? " wrong" : "", chance = chances ? chances[k] : 1, d = `M${middle[k]} 6V${base - 6}`;
      add(svg, "path", { d, class: `arc${wrong}`, opacity: faint(chance) });
      arrow(middle[k], base, wrong).setAttribute("opacity", faint(chance));
      if (chances) tell(add(svg, "path", { d, class: "over" }), `${words[k]} is the root\nposterior probability ${percent(chance)}`);
    });
    words.forEach((word, k) => {
      add(svg, "text", { x: middle[k], y: base + 17, class: "word" }, word);
      if (!same) add(svg, "text", { x: middle[k], y: base + 36, class: "tag" }, tags[k]);
    });
  }

  function draw(sentence) {
    by("gold-part").hidden = !(sentence && sentence.gold);
    by("about-sentence").textContent = !sentence ? "no sentence has this word" : sentence.log === null ? "The grammar cannot derive this sentence." : `log probability ${sentence.log.toFixed(2)}`;
    if (!sentence) { by("tree").replaceChildren(); return; }
    if (sentence.heads) {
      drawDependencies(by("tree"), sentence, sentence.heads, sentence.chances, sentence.gold);
      if (sentence.gold) drawDependencies(by("gold"), sentence, sentence.gold, null, null);
    } else {
      drawPhrases(by("tree"), sentence.tree);
      if (sentence.gold) drawPhrases(by("gold"), sentence.gold);
    }
  }

  function list() {
    const wanted = by("find-sentence").value.trim().toLowerCase(), before = choice.value;
    const found = sentences.map((_, at) => at).filter((at) => !wanted || sentences[at].words.some((word) => word.toLowerCase().includes(wanted)));
    choice.replaceChildren(...found.map((at) => {
      const option = document.createElement("option"), text = sentences[at].words.join(" ");
      option.value = at;
      option.dir = "auto";
      option.textContent = `${sentences[at].number}: ${text.length > 70 ? text.slice(0, 69) + "…" : text}`;
      return option;
    }));
    if (found.map(String).includes(before)) choice.value = before;
    draw(sentences[choice.value]);
  }

  function step(by_) {
    const at = choice.selectedIndex + by_;
    if (at < 0 || at >= choice.options.length) return;
    choice.selectedIndex = at;
    draw(sentences[choice.value]);
  }

  function search() {
    const wanted = by("find-rule").value.trim().toLowerCase(), column = Number(by("order").value);
    const found = rules.filter(([text]) => text.toLowerCase().includes(wanted));
    found.sort((one, other) => (column ? (other[column] ?? -1) - (one[column] ?? -1) : one[0] < other[0] ? -1 : one[0] > other[0] ? 1 : 0));
    by("n-found").textContent = `${found.length.toLocaleString("en")} ${found.length === 1 ? "rule" : "rules"}${found.length > MOST_ROWS ? `, the first ${MOST_ROWS} shown` : ""}`;
    by("rule-table").tBodies[0].replaceChildren(...found.slice(0, MOST_ROWS).map(([text, probability, uses]) => {
      const row = document.createElement("tr"), cell = document.createElement("th");
      cell.scope = "row";
      cell.dir = "auto";
      cell.textContent = text;
      row.append(cell);
      row.insertCell().textContent = probability.toFixed(4);
      row.insertCell().textContent = uses === null ? "–" : uses.toLocaleString("en", { maximumFractionDigits: 1 });
      return row;
    }));
  }

  function drawCurve() {
    const svg = by("curve");
    if (!svg) return;
    const width = 640, height = 240, left = 90, bottom = 34, values = trace.map(([, value]) => value);
    const low = Math.min(...values), high = Math.max(...values), span = high - low || 1, last = trace.at(-1)[0], first = trace[0][0];
    const x = (k) => left + ((width - left - 12) * (k - first)) / Math.max(last - first, 1), y = (value) => 12 + ((height - bottom - 12) * (high - value)) / span;
    fit(svg, width, height);
    add(svg, "path", { d: `M${left} 8V${height - bottom}H${width - 8}`, class: "axis", fill: "none" });
    for (const value of [low, (low + high) / 2, high]) add(svg, "text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, value.toLocaleString("en", { maximumFractionDigits: span < 10 ? 2 : 0 }));
    for (const k of [...new Set([first, Math.round((first + last) / 2), last])]) add(svg, "text", { x: x(k), y: height - bottom + 18, "text-anchor": "middle" }, k);
    add(svg, "path", { d: `M${trace.map(([k, value]) => `${x(k).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`, class: "line" });
  }

  choice.addEventListener("change", () => draw(sentences[choice.value]));
  by("find-sentence").addEventListener("input", list);
  by("previous").addEventListener("click", () => step(-1));
  by("next").addEventListener("click", () => step(1));
  by("find-rule").addEventListener("input", search);
  by("order").addEventListener("change", search);
  list();
  search();
  drawCurve();
  document.body.dataset.ready = "yes";
})();
