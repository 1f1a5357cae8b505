"use strict";
// The list of trajectories, its filters and its keys; trajectory.js draws the open one.
// Keys, where the focus is inside: arrows, j, k, Home, End, PageUp, PageDown go through the list;
// Enter goes to the open trajectory, Escape back to the list; / goes to the search.
window.rewardswapViewer = (() => {
  const { kind, make, outcome, turns } = drawing;
  const root = document.getElementById("viewer");
  if (!root) return null;
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const list = part("list"), article = part("open"), count = part("count");
  const fields = [...root.querySelectorAll("[data-filter]")];
  let all = [], shown = [], rows = new Map(), open = null;

  function words(t) {
    if (t.words === undefined) {
      const said = t.turns.flatMap((u) => [u.observation, u.action]);
      t.words = [t.family, t.task, t.final, ...said].join("\n").toLowerCase();
    }
    return t.words;
  }

  const TESTS = {
    family: (t, value) => t.family === value,
    outcome: (t, value) => outcome(t) === value,
    phase: (t, value) => t.phase === value,
    kind: (t, value) => kind(t) === value,
    words: (t, value) => words(t).includes(value.toLowerCase()),
  };

  function offer(name, values) {
    const field = fields.find((one) => one.dataset.filter === name), was = field.value;
    field.replaceChildren(field.options[0]);
    for (const value of values) {
      const option = make("option", "", value || "(none)");
      option.value = value;
      field.append(option);
    }
    field.value = was;
    if (field.selectedIndex < 0) field.selectedIndex = 0;
  }

  function row(t) {
    const item = make("li");
    item.id = `row ${t.id}`.replaceAll(" ", "-");
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    item.append(make("b", t.success ? "success" : "failure", outcome(t)), " ");
    item.append(make("span", "", t.family || t.task), " ");
    const at = t.when === "training" ? `, update ${t.update ?? "?"}` : "";
    const how = t.replayed ? ", replayed" : "";
    item.append(make("small", "", `${t.phase}${at}${how}, ${turns(t.turns.length)}`));
    item.addEventListener("click", () => choose(t, true));
    return item;
  }

  function filter() {
    const active = fields.filter((field) => field.value);
    shown = all.filter((t) => active.every((f) => TESTS[f.dataset.filter](t, f.value)));
    const seen = new Set(shown);
    for (const t of all) rows.get(t.id).hidden = !seen.has(t);
    count.textContent = `${shown.length} of ${all.length}`;
    if (!seen.has(open)) choose(shown[0] ?? null);
  }

  function choose(t, byHand = false) {
    if (open) rows.get(open.id)?.setAttribute("aria-selected", "false");
    open = t;
    if (!t) {
      list.removeAttribute("aria-activedescendant");
      article.replaceChildren(make("p", "muted", "No trajectory fits these filters."));
      return;
    }
    const item = rows.get(t.id);
    item.setAttribute("aria-selected", "true");
    list.setAttribute("aria-activedescendant", item.id);
    const above = item.offsetTop - list.scrollTop, height = list.clientHeight;
    if (above < 0) list.scrollTop = item.offsetTop;
    else if (above + item.offsetHeight > height) {
      list.scrollTop = item.offsetTop + item.offsetHeight - height;
    }
    draw();
    article.scrollTop = 0;
    if (byHand && article.offsetTop > list.offsetTop + 9) article.scrollIntoView();
  }

  function move(step) {
    if (!shown.length) return;
    const place = Math.max(0, shown.indexOf(open)) + step;
    choose(shown[Math.min(shown.length - 1, Math.max(0, place))]);
  }

  const hasTokens = (t) => t.turns.some((turn) => turn.pieces);
  const draw = () => drawing.draw(article, open, root.querySelector("[name=colour]:checked").value);

  function load(data) {
    const chosen = open?.id;
    all = data.trajectories;
    rows = new Map(all.map((t) => [t.id, row(t)]));
    list.replaceChildren(...rows.values());
    offer("family", [...new Set(all.map((t) => t.family))].filter(Boolean).sort());
    offer("phase", [...new Set(all.map((t) => t.phase))]);
    part("left-out").textContent = data.left_out ?
      `${data.left_out} more are in the run folder; they would make this page too large.` : "";
    const still = all.find((t) => t.id === chosen);
    if (still) {
      const inside = article.scrollTop;
      open = still;
      filter();
      if (open === still) choose(still);
      article.scrollTop = inside;
    } else {
      open = null;
      filter();
      choose(shown.find(hasTokens) ?? open);  // evaluations have no numbers of tokens
    }
  }

  const STEPS = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10,
    Home: -Infinity, End: Infinity };
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input[type=search], select");
    const inside = article.contains(event.target);
    if (event.key === "Escape") list.focus();
    else if (typing) return;
    else if (event.key === "/") part("search").focus();
    else if (event.key === "Enter" && event.target === list) {
      article.focus();
      if (article.offsetTop > list.offsetTop + 9) article.scrollIntoView();
    } else if (event.key in STEPS && (event.target === list || /^[jk]$/.test(event.key))) {
      if (inside && event.target !== article) list.focus();
      move(STEPS[event.key]);
    } else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {  // nothing has the focus yet
    if (event.target !== document.body || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") part("search").focus();
    else if (/^[jk]$/.test(event.key)) {
      list.focus();
      move(STEPS[event.key]);
    } else return;
    event.preventDefault();
  });
  for (const field of fields) field.addEventListener("input", filter);
  for (const choice of root.querySelectorAll("[name=colour]")) {
    choice.addEventListener("input", () => open && draw());
  }
  root.hidden = false;
  load(JSON.parse(document.getElementById("trajectories-data").textContent));
  return { load };
})();
