// Keeps the page fresh: the collector says when it has evaluated, and the page fetches itself and swaps its main part.
// Without scripts the page reloads by itself; without the collector it says how old it is.
"use strict";

const live = document.getElementById("live");
let heardAt = Date.now();
let isFetching = false;

async function refresh() {
  if (isFetching) return;
  isFetching = true;
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.getElementById("main").replaceWith(fresh.getElementById("main"));
    document.title = fresh.title;
    live.innerHTML = fresh.getElementById("live").innerHTML;
    live.classList.remove("stale");
    heardAt = Date.now();
  } catch {
    grow();
  } finally {
    isFetching = false;
  }
}

function grow() {
  const silent = Math.round((Date.now() - heardAt) / 1000);
  live.classList.add("stale");
  live.textContent = `the collector has not answered for ${silent} s: figures are that old`;
}

const events = new EventSource("/api/v1/ticks");
events.addEventListener("tick", refresh);
events.addEventListener("error", grow);
