"use strict";
// Asks the server of `rewardswap view` for what is new and puts it in its place: what is open,
// chosen, filtered and in view stays so.
(() => {
  const PAUSE = 2000;
  const live = document.getElementById("live");
  const parts = () => [document.querySelector("body > header > .renewed"),
    ...document.querySelectorAll("main > section:not(#trajectories)")].filter(Boolean);
  const name = (part) => part.id || "head";
  const last = new Map(parts().map((part) => [name(part), part.innerHTML]));
  let version = live.dataset.version, trajectories = dataOf(document);

  function dataOf(page) {
    return page.getElementById("trajectories-data")?.textContent;
  }

  async function ask(what) {
    const answer = await fetch(what + location.search, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    return answer;
  }

  const key = (box) => box.querySelector("summary")?.textContent;
  const places = (part) => [...part.querySelectorAll("summary, [tabindex]")];

  function renewPart(old, fresh) {
    const boxes = new Map([...old.querySelectorAll("details")].map((box) => [key(box), box.open]));
    const held = places(old).indexOf(document.activeElement);
    old.innerHTML = fresh.innerHTML;
    for (const box of old.querySelectorAll("details")) box.open = boxes.get(key(box)) ?? box.open;
    if (held >= 0) places(old)[held]?.focus({ preventScroll: true });
  }

  function renew(page) {
    const sections = [...document.querySelectorAll("main > section, body > header")];
    const seen = sections.find((part) => part.getBoundingClientRect().bottom > 0);
    const before = seen?.getBoundingClientRect().top;
    let above = null;
    for (const fresh of [page.querySelector("body > header > .renewed"),
      ...page.querySelectorAll("main > section")].filter(Boolean)) {
      const old = fresh.id ? document.getElementById(fresh.id) :
        document.querySelector("body > header > .renewed");
      const same = last.get(name(fresh)) === fresh.innerHTML;
      if (!old && above) above.after(document.adoptNode(fresh));
      else if (old && fresh.id !== "trajectories" && !same) renewPart(old, fresh);
      last.set(name(fresh), fresh.innerHTML);
      above = document.getElementById(fresh.id) ?? above;
    }
    document.title = page.title;
    if (seen) scrollBy(0, seen.getBoundingClientRect().top - before);
  }

  async function look() {
    const now = await (await ask("version")).json();
    if (now.version !== version) {
      const text = await (await ask("page")).text();
      const page = new DOMParser().parseFromString(text, "text/html");
      const found = dataOf(page);
      if (!document.querySelector("main") || Boolean(found) !== Boolean(trajectories)) {
        location.reload();
        return;
      }
      renew(page);
      if (found && found !== trajectories) window.rewardswapViewer.load(JSON.parse(found));
      trajectories = found;
      version = page.getElementById("live").dataset.version;
    }
    live.textContent = now.words;
  }

  (async () => {
    for (;;) {
      await new Promise((done) => setTimeout(done, PAUSE));
      try {
        await look();
      } catch {
        live.textContent = "The server does not answer: the page stays as it was.";
      }
    }
  })();
})();
