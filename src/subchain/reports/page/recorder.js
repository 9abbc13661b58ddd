// A drawing context that writes SVG: what is painted on a canvas can be saved as a vector graphic by the same code.
"use strict";
class Recorder {
  constructor(width, height, ratio = 2) {
    Object.assign(this, { width, height, ratio, parts: [], stack: [], steps: [], dash: [], turned: "" });
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "12px sans-serif", textAlign: "left", textBaseline: "alphabetic" });
    this.ruler = document.createElement("canvas").getContext("2d");
  }
  static KEPT = ["fillStyle", "strokeStyle", "lineWidth", "globalAlpha", "font", "textAlign", "textBaseline", "dash", "turned"];
  static escaped(text) { return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`); }
  save() { this.stack.push(Recorder.KEPT.map((name) => this[name])); }
  restore() { const kept = this.stack.pop(); Recorder.KEPT.forEach((name, i) => { this[name] = kept[i]; }); }
  translate(x, y) { this.turned += `translate(${x} ${y})`; }
  rotate(angle) { this.turned += `rotate(${angle * 180 / Math.PI})`; }
  scale() {}
  setTransform() {}
  setLineDash(dash) { this.dash = dash; }
  measureText(text) { this.ruler.font = this.font; return this.ruler.measureText(text); }
  put(kind, attributes, content) {
    const all = { ...attributes, ...(this.globalAlpha < 1 ? { opacity: this.globalAlpha.toFixed(2) } : {}), ...(this.turned ? { transform: this.turned } : {}) };
    const text = Object.entries(all).map(([name, value]) => ` ${name}="${Recorder.escaped(typeof value === "number" ? Number(value.toFixed(2)) : value)}"`).join("");
    this.parts.push(content === undefined ? `<${kind}${text}/>` : `<${kind}${text}>${Recorder.escaped(content)}</${kind}>`);
  }
  line() { return { stroke: this.strokeStyle, "stroke-width": this.lineWidth, ...(this.dash.length ? { "stroke-dasharray": this.dash.join(" ") } : {}) }; }
  fillRect(x, y, width, height) { if (width > 0 && height > 0) this.put("rect", { x, y, width, height, fill: this.fillStyle }); }
  strokeRect(x, y, width, height) { this.put("rect", { x, y, width, height, fill: "none", ...this.line() }); }
  beginPath() { this.steps = []; }
  moveTo(x, y) { this.steps.push(`M${x.toFixed(1)} ${y.toFixed(1)}`); }
  lineTo(x, y) { this.steps.push(`L${x.toFixed(1)} ${y.toFixed(1)}`); }
  stroke() { this.put("path", { d: this.steps.join(""), fill: "none", ...this.line() }); }
  fillText(text, x, y) {
    const size = parseFloat(this.font.match(/([\d.]+)px/)[1]), weight = this.font.match(/^\d{3}/);
    const anchor = { left: "start", right: "end", center: "middle" }[this.textAlign], down = { top: 0.85, middle: 0.35, bottom: -0.2, alphabetic: 0 }[this.textBaseline];
    const family = this.font.includes("mono") ? "monospace" : "sans-serif";
    this.put("text", { x, y: y + down * size, fill: this.fillStyle, "font-size": size, "font-family": family, "text-anchor": anchor, ...(weight ? { "font-weight": weight[0] } : {}) }, text);
  }
  // Pixels become an image inside the SVG.
  putImageData(image, x, y) {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d").putImageData(image, 0, 0);
    this.put("image", { x: x / this.ratio, y: y / this.ratio, width: image.width / this.ratio, height: image.height / this.ratio, href: canvas.toDataURL("image/png") });
  }
  text() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}"><rect width="100%" height="100%" fill="${Page.variable("--panel")}"/>${this.parts.join("")}</svg>`;
  }
}
