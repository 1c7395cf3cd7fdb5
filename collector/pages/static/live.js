// Keeps the page fresh: the collector says when it has evaluated, and the page fetches itself and takes in what changed.
// What did not change stays as it is, so that whoever reads, points or types there is not disturbed, and a screen reader
// hears only what is new. Without scripts the page reloads by itself; without the collector it says how old it is.
"use strict";

const live = document.getElementById("live");
let heardAt = Date.now();
let isFetching = false;
let isAskedAgain = false;

async function refresh() {
  if (isFetching) {
    isAskedAgain = true;
    return;
  }
  isFetching = true;
  isAskedAgain = false;
  try {
    const asked = location.href;
    const answer = await fetch(asked, { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (asked === location.href) {
      takeIn(document.getElementById("main"), fresh.getElementById("main"));
      document.title = fresh.title;
      takeIn(live, fresh.getElementById("live"));
      heardAt = Date.now();
    }
  } catch {
    grow();
  } finally {
    isFetching = false;
    if (isAskedAgain) refresh();
  }
}

// Makes `old` what `fresh` is, touching only what differs.
function takeIn(old, fresh) {
  if (old.isEqualNode(fresh) || (old.dataset && "keep" in old.dataset)) return;
  if (old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(document.importNode(fresh, true));
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    old.data = fresh.data;
    return;
  }
  takeInAttributes(old, fresh);
  const olds = [...old.childNodes];
  const freshes = [...fresh.childNodes];
  freshes.forEach((one, at) => (at < olds.length ? takeIn(olds[at], one) : old.append(document.importNode(one, true))));
  olds.slice(freshes.length).forEach((one) => one.remove());
}

function takeInAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    // That a table was opened is the reader's doing.
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
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
