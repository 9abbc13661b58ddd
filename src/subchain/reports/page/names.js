// Names of states: given on the cards, kept by the browser, and saved in a file that `subchain rename` reads.
"use strict";
const Names = (() => {
  const { contents, states } = Page, key = `subchain-names-${contents.fingerprint}-${states.map((state) => state.number).join("-")}`;
  const original = states.map((state) => state.name);
  const isChanged = () => states.some((state, slot) => state.name !== original[slot]);

  const file = () => ({ states: Object.fromEntries(states.filter((state) => state.name !== String(state.number)).map((state) => [state.number, state.name])) });
  function keep() {
    const kept = Object.fromEntries(states.map((state, slot) => [state.number, state.name]).filter(([, name], slot) => name !== original[slot]));
    try { localStorage.setItem(key, JSON.stringify(kept)); } catch { /* pages from files may have no storage */ }
    document.getElementById("naming").hidden = !isChanged();
  }

  // A name must not be empty or taken; an empty one gives the state its old name back.
  function give(slot, given) {
    const name = given.trim() || original[slot], taken = states.findIndex((state, other) => other !== slot && state.name === name);
    if (taken >= 0) return `“${name}” is the name of state ${states[taken].number} already.`;
    Page.rename(slot, name);
    keep();
    return "";
  }

  function edit(card) {
    const slot = Number(card.dataset.slot), form = card.querySelector("form"), input = form.querySelector("input"), said = form.querySelector("output");
    form.hidden = !form.hidden;
    if (form.hidden) return;
    input.value = states[slot].name;
    said.textContent = "";
    input.focus();
    input.select();
  }

  function start() {
    for (const card of document.querySelectorAll(".card")) {
      const slot = Number(card.dataset.slot), form = card.querySelector("form");
      card.querySelector("button.rename").addEventListener("click", () => edit(card));
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const complaint = give(slot, form.querySelector("input").value);
        form.querySelector("output").textContent = complaint;
        form.hidden = !complaint;
      });
      form.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.preventDefault(); form.hidden = true; } });
    }
    document.getElementById("save-names").addEventListener("click", () => Figures.save(new Blob([JSON.stringify(file(), null, 2) + "\n"], { type: "application/json" }), "state-names.json"));
    document.getElementById("old-names").addEventListener("click", () => { original.forEach((name, slot) => Page.rename(slot, name)); keep(); });
    let kept = {};
    try { kept = JSON.parse(localStorage.getItem(key) || "{}"); } catch { /* as above */ }
    states.forEach((state, slot) => { if (typeof kept[state.number] === "string" && kept[state.number] !== state.name) give(slot, kept[state.number]); });
    keep();
  }
  return { start, give, file };
})();
