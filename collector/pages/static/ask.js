// Filters apply when they are chosen, and a what-if has sliders: what they do is what the form does without scripts.
"use strict";

const NINES = 3; // the percentile's slider goes from 50 over three nines to 99.95
const DECADES = 1; // the threshold's from a tenth to ten times what is promised
const PAUSE_MS = 250;

for (const form of document.querySelectorAll("form[data-auto]")) {
  form.dataset.keep = "";
  form.addEventListener("change", () => form.requestSubmit());
  form.querySelector("button").hidden = true;
}

const ask = document.getElementById("ask");
if (ask !== null) {
  const fields = {
    percentile: { of: percentile, at: (text) => -Math.log10((100 - Number.parseFloat(text)) / 50) / NINES },
    threshold: { of: threshold, at: (text) => (Math.log10(seconds(text) / ask.dataset.thresholdS) / DECADES + 1) / 2 },
  };
  for (const [name, field] of Object.entries(fields)) {
    const input = ask.elements[name];
    if (input) slide(input, field);
  }
  ask.addEventListener("submit", (event) => {
    event.preventDefault();
    replay();
  });
}

function percentile(share) {
  const left = 50 * 10 ** (-NINES * share);
  return String(Number((100 - Number(left.toPrecision(left < 1 ? 1 : 2))).toFixed(4)));
}

function threshold(share) {
  const value = ask.dataset.thresholdS * 10 ** (DECADES * (2 * share - 1));
  return `${Number((value * 1000).toPrecision(2))}ms`;
}

function seconds(text) {
  return Number.parseFloat(text) * (text.trim().endsWith("ms") ? 0.001 : 1);
}

function slide(input, field) {
  const range = document.createElement("input");
  Object.assign(range, { type: "range", min: 0, max: 1, step: 0.005, value: field.at(input.value) });
  range.setAttribute("aria-label", `${input.labels[0].textContent}, slider`);
  range.setAttribute("aria-valuetext", input.value);
  let waiting = 0;
  range.addEventListener("input", () => {
    input.value = field.of(Number(range.value));
    range.setAttribute("aria-valuetext", input.value);
    clearTimeout(waiting);
    waiting = setTimeout(replay, PAUSE_MS);
  });
  input.addEventListener("change", () => {
    range.value = field.at(input.value);
    replay();
  });
  input.after(range);
}

function replay() {
  const asked = new URLSearchParams(new FormData(ask));
  history.replaceState(null, "", `${location.pathname}?${asked}`);
  document.getElementById("answer").classList.add("waiting");
  refresh();
}
