// Brings the parts of the page that change up to date: it loads the page again and takes over the
// elements with data-live. Without this script the page works as well.
"use strict";
(() => {
  const PAUSE = 5000; // ms between two updates, or ten times as long as one takes
  const state = document.getElementById("live-state");
  const button = document.getElementById("live-switch");
  let stopped = false;

  // Nothing changes under the hands of who is choosing, reading aloud or copying something.
  function isInUse(part) {
    const selection = document.getSelection();
    return part.contains(document.activeElement) && document.activeElement.matches("input, button, select, summary, pre")
      || part.querySelector("input:checked") !== null
      || part.querySelector("details.confirm[open]") !== null
      || selection !== null && !selection.isCollapsed && part.contains(selection.anchorNode);
  }

  function takeOver(part, fresh) {
    for (const opened of part.querySelectorAll("details[open][id]")) {
      fresh.querySelector(`#${CSS.escape(opened.id)}`)?.setAttribute("open", "");
    }
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.replaceWith(fresh);
    if (focused) {
      fresh.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
  }

  async function update() {
    const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const parts = [...document.querySelectorAll("[data-live]")];
    if (parts.some((part) => page.getElementById(part.id) === null)) {
      if (answer.ok) {
        location.reload(); // it is another page by now, such as that of a Redis that is back
      }
      throw new Error(page.querySelector("h1")?.textContent ?? answer.statusText);
    }
    if (!answer.ok && document.querySelector("h1").textContent !== page.querySelector("h1")?.textContent) {
      throw new Error(page.querySelector("h1")?.textContent ?? answer.statusText);
    }
    if (answer.ok && document.title !== page.title) {
      location.reload();
    }
    for (const part of parts) {
      if (!isInUse(part)) {
        takeOver(part, document.importNode(page.getElementById(part.id), true));
      }
    }
  }

  async function round() {
    const started = performance.now();
    if (!stopped && !document.hidden) {
      try {
        await update();
        document.body.classList.remove("stale");
        state.textContent = `Updated at ${new Date().toISOString().slice(11, 19)}.`;
      } catch (error) {
        document.body.classList.add("stale");
        state.textContent = `Not up to date (${error.message}); it tries again.`;
      }
    }
    setTimeout(round, Math.max(PAUSE, 10 * (performance.now() - started)));
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    stopped = !stopped;
    button.setAttribute("aria-pressed", String(stopped));
    state.textContent = stopped ? "Updates are stopped." : "Updates itself.";
  });

  const all = document.getElementById("choose-all");
  if (all) {
    all.hidden = false;
    all.addEventListener("change", (event) => {
      for (const box of document.querySelectorAll("input[name=id]")) {
        box.checked = event.target.checked;
      }
    });
  }

  if (document.querySelector("[data-live]")) {
    state.textContent = "Updates itself.";
    setTimeout(round, PAUSE);
  } else {
    button.hidden = true;
    state.textContent = "";
  }
})();
