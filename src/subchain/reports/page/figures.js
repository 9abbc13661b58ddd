// Every figure can be saved: as a vector graphic, as a picture, and its numbers as a table.
"use strict";
const Figures = (() => {
  const known = {};

  // The text of an SVG element as a file of its own; its colours are attributes, not styles of the page.
  function textOf(svg) {
    const copy = svg.cloneNode(true), [x, y, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    for (const [name, value] of Object.entries({ width, height, "font-family": "system-ui, sans-serif" })) copy.setAttribute(name, value);
    const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ x, y, width, height, fill: Page.variable("--panel") })) ground.setAttribute(name, value);
    copy.prepend(ground);
    for (const marked of copy.querySelectorAll("[data-tip]")) marked.removeAttribute("data-tip");
    return new XMLSerializer().serializeToString(copy);
  }
  const svgOf = (name) => { const made = known[name].svg(); return typeof made === "string" ? made : textOf(made); };

  const cell = (value) => {
    const text = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const csvOf = (name) => known[name].rows().map((row) => row.map(cell).join(",")).join("\n") + "\n";

  async function pngOf(name) {
    const image = new Image(), text = svgOf(name);
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = document.createElement("canvas"), scale = Math.min(2, 12000 / Math.max(image.width, image.height));
    [canvas.width, canvas.height] = [image.width * scale, image.height * scale];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => { canvas.toBlob(done, "image/png"); });
  }

  const kinds = {
    PNG: pngOf,
    SVG: (name) => new Blob([svgOf(name)], { type: "image/svg+xml" }),
    CSV: (name) => new Blob([csvOf(name)], { type: "text/csv" }),
  };
  function save(blob, file) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // A figure: svg() gives its element or text, rows() its numbers with a head.
  function add(name, figure) {
    known[name] = figure;
    const place = document.querySelector(`[data-figure="${name}"]`);
    if (!place) return;
    const tools = document.createElement("span");
    tools.className = "tools";
    for (const kind of Object.keys(kinds)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.setAttribute("aria-label", `Save ${name} as ${kind}`);
      button.addEventListener("click", async () => save(await kinds[kind](name), `${name}.${kind.toLowerCase()}`));
      tools.append(button);
    }
    (place.querySelector("figcaption") || place).append(tools);
  }
  return { add, save, svgOf, csvOf, pngOf, get names() { return Object.keys(known); } };
})();
