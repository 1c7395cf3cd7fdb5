// Reads a chart's values to whoever points at it, or walks it with the arrow keys: they are in its lines, to a
// thousandth of its height.
"use strict";

const WIDTH = 480;
const HEIGHT = 960;
const NEAR = 8; // units of WIDTH within which a point is the one pointed at
const STEP = 4;

const told = document.createElement("div");
told.className = "told";
told.setAttribute("role", "status");
told.hidden = true;
document.body.append(told);
let walkedTo = WIDTH;

function chartOf(event) {
  return event.target instanceof Element ? event.target.closest("svg.chart") : null;
}

function nearest(path, x) {
  const places = path.getAttribute("d").split(/[ML]/).filter(Boolean).map((place) => place.split(" ").map(Number));
  let best = null;
  for (const place of places) {
    if (best === null || Math.abs(place[0] - x) < Math.abs(best[0] - x)) best = place;
  }
  return best !== null && Math.abs(best[0] - x) <= NEAR ? best : null;
}

function tell(chart, x, at) {
  const { start, end, top, unit } = chart.dataset;
  const lines = [...chart.querySelectorAll(".line")];
  const found = lines.map((line) => [line.dataset.name, nearest(line, x)]).filter(([, place]) => place !== null);
  if (found.length === 0) {
    told.hidden = true;
    return;
  }
  const second = Number(start) + (found[0][1][0] / WIDTH) * (Number(end) - Number(start));
  const values = found.map(([name, place]) => {
    const value = worded((1 - place[1] / HEIGHT) * Number(top), unit);
    return lines.length > 1 ? `${name} ${value}` : value;
  });
  told.textContent = [`${new Date(second * 1000).toISOString().slice(11, 19)} UTC`, ...values].join("\n");
  told.hidden = false;
  told.style.left = `${Math.min(at.x + 12, document.documentElement.clientWidth - told.offsetWidth - 8)}px`;
  told.style.top = `${at.y + window.scrollY - told.offsetHeight - 10}px`;
}

function worded(value, unit) {
  if (unit === "s") return value >= 1 ? `${value.toPrecision(3)} s` : `${Number((value * 1000).toPrecision(3))} ms`;
  if (unit === "1") return `${Number((value * 100).toPrecision(2))} %`;
  return `${Number(value.toPrecision(2))}${unit}`;
}

document.addEventListener("pointermove", (event) => {
  const chart = chartOf(event);
  if (chart === null) {
    told.hidden = true;
    return;
  }
  const box = chart.getBoundingClientRect();
  tell(chart, ((event.clientX - box.left) / box.width) * WIDTH, { x: event.clientX, y: event.clientY });
});

document.addEventListener("keydown", (event) => {
  const chart = chartOf(event);
  const by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
  if (event.key === "Escape") told.hidden = true;
  if (chart === null || by === undefined) return;
  event.preventDefault();
  walkedTo = Math.min(Math.max(walkedTo + by, 0), WIDTH);
  const box = chart.getBoundingClientRect();
  tell(chart, walkedTo, { x: box.left + (walkedTo / WIDTH) * box.width, y: box.top });
});

document.addEventListener("focusout", () => {
  told.hidden = true;
});
