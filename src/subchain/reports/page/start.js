// Put the page together, once its arrays are unpacked.
"use strict";
(async () => {
  await Page.unpack();
  const legend = document.getElementById("legend");
  Page.contents.order.forEach((slot, place) => {
    const button = document.createElement("button"), swatch = document.createElement("canvas"), share = document.createElement("small");
    button.type = "button";
    button.dataset.slot = slot;
    button.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-label", `${Page.full(slot)}, ${Page.percent(Page.states[slot].occupancy)} of positions`);
    button.tabIndex = place === 0 ? 0 : -1;
    swatch.className = "swatch";
    swatch.dataset.slot = slot;
    share.textContent = Page.percent(Page.states[slot].occupancy);
    button.append(swatch, Page.label(slot), share);
    legend.append(button);
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
  document.getElementById("theme").addEventListener("click", Page.switchTheme);
  Page.system.addEventListener("change", () => Page.dress());
  addEventListener("beforeprint", () => Page.dress("light"));
  addEventListener("afterprint", () => Page.dress());
  Curves.start();
  Moves.start();
  Timeline.start();
  Page.dress();
  document.body.dataset.ready = "yes";
})();
