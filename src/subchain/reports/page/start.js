// Put the page together, once its arrays are unpacked.
"use strict";
(async () => {
  await Page.unpack();
  const legend = document.getElementById("legend");
  Page.contents.order.forEach((slot, place) => {
    const button = document.createElement("button"), swatch = document.createElement("canvas"), name = document.createElement("span"), share = document.createElement("small");
    button.type = "button";
    button.dataset.slot = slot;
    button.setAttribute("aria-pressed", "false");
    button.tabIndex = place === 0 ? 0 : -1;
    swatch.className = "swatch";
    swatch.dataset.slot = slot;
    name.dataset.name = slot;
    name.textContent = Page.label(slot);
    share.textContent = Page.percent(Page.states[slot].occupancy);
    button.append(swatch, name, share);
    legend.append(button);
  });
  Page.onLook(() => {
    for (const button of legend.children) button.setAttribute("aria-label", `${Page.full(button.dataset.slot)}, ${Page.percent(Page.states[button.dataset.slot].occupancy)} of positions`);
  });
  legend.addEventListener("keydown", (event) => {
    const buttons = [...legend.children], here = buttons.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || here < 0) return;
    event.preventDefault();
    const next = buttons[(here + step + buttons.length) % buttons.length];
    buttons[here].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-slot]");
    if (button) Page.select(Number(button.dataset.slot));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && Page.selected !== null && !event.defaultPrevented) Page.select(Page.selected);
  });
  // What an element says of itself is shown at the pointer.
  let told = null;
  document.addEventListener("pointermove", (event) => {
    const marked = event.target.closest("[data-tip]");
    if (marked || told) Page.tip(marked ? event : null, marked ? marked.dataset.tip : "");
    told = marked;
  });
  addEventListener("scroll", () => Page.tip(null), { passive: true });
  document.getElementById("theme").addEventListener("click", Page.switchTheme);
  Page.system.addEventListener("change", () => Page.dress());
  addEventListener("beforeprint", () => Page.dress("light"));
  addEventListener("afterprint", () => Page.dress());
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; Page.relook(); } });
  for (const part of [Curves, Emitted, Goodness, Moves, Timeline, Names]) part.start();
  Page.dress();
  document.body.dataset.ready = "yes";
})();
