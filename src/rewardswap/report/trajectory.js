"use strict";
// Draws one trajectory. All text of models and worlds is put in as text, never as HTML.
const drawing = (() => {
  const make = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const signed = (value, digits = 2) => {
    const size = Math.abs(value).toFixed(digits);
    return (Number(size) === 0 ? "" : value < 0 ? "\u2212" : "+") + size;
  };
  const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);
  const outcome = (t) => (t.success ? "solved" : "failed");
  const kind = (t) => (t.when !== "training" ? "evaluated" : t.replayed ? "replayed" : "fresh");
  const turns = (n) => (n === 1 ? "1 turn" : `${n} turns`);

  // One number of each token: what colours it, and the largest in size of the whole trajectory.
  function colouring(t, by) {
    const minus = (a, b) => (a && b ? a.map((value, n) => value - b[n]) : null);
    const of = (u) => (by === "gap" ? minus(u.old, u.behavior) : by ? (u[by] ?? null) : null);
    const values = t.turns.map((u) => (u.pieces ? of(u) : null));
    const most = Math.max(0, ...values.flatMap((v) => v ?? []).map(Math.abs));
    return { by, values, most };
  }

  function scale({ by, values, most }, t) {
    if (!t.turns.some((u) => u.pieces)) return "Of this trajectory no tokens were kept.";
    if (!by) return "Dim: read by the model (mask 0). Underlined: said by it (mask 1).";
    const what = by === "gap" ? "log \u03c0 old \u2212 log \u03c0 of who sampled, nats" : "advantage";
    if (values.every((v) => v === null)) {
      return by === "gap" ? "No loss read these tokens: their gap was not computed." :
        "These were only collected: there is no advantage.";
    }
    if (!most) return `The ${what} of every token is 0.`;
    return `Blue above 0, orange below: ${what}; full colour at \u00b1${most.toPrecision(3)}.`;
  }

  function tokens(u, values, most) {
    const said = make("p", "said");
    u.pieces.forEach((piece, n) => {
      const span = make("span", "token", piece);
      const value = values?.[n];
      if (Math.abs(value) > most / 100) {
        span.classList.add(value > 0 ? "plus" : "minus");
        span.style.setProperty("--much", `${Math.round(45 * Math.abs(value) / most)}%`);
      }
      if (value !== undefined) span.title = signed(value, 4);
      said.append(span);
    });
    return said;
  }

  function numbers(u) {
    const box = make("details", "numbers");
    box.append(make("summary", "", `${u.pieces.length} tokens in numbers`));
    box.addEventListener("toggle", () => {
      if (box.querySelector("table")) return;
      const table = make("table"), head = table.createTHead().insertRow();
      for (const name of ["token", "log \u03c0 sampled", "log \u03c0 old", "gap", "advantage"]) {
        const cell = make("th", "", name);
        cell.scope = "col";
        head.append(cell);
      }
      const body = table.createTBody();
      u.pieces.forEach((piece, n) => {
        const line = body.insertRow(), name = make("th", "", JSON.stringify(piece));
        name.scope = "row";
        line.append(name);
        const gap = u.old && u.behavior ? u.old[n] - u.behavior[n] : undefined;
        for (const value of [u.behavior?.[n], u.old?.[n], gap, u.advantage?.[n]]) {
          line.append(make("td", "", value === undefined ? "\u2013" : signed(value, 4)));
        }
      });
      const scroll = make("div", "scroll");
      scroll.tabIndex = 0;
      scroll.append(table);
      box.append(scroll);
    });
    return box;
  }

  // Bars of the process reward of each turn around 0.
  function plot(values) {
    const most = Math.max(...values.map((v) => Math.abs(v ?? 0))) || 1;
    const NS = "http://www.w3.org/2000/svg", svg = document.createElementNS(NS, "svg");
    const add = (name, attributes) => {
      const node = document.createElementNS(NS, name);
      for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
      svg.append(node);
    };
    const all = values.map((v) => (v === null ? "none" : signed(v))).join(", ");
    const label = `Process reward of each turn: ${all}.`;
    for (const [key, value] of [["viewBox", `0 0 ${10 * values.length} 40`], ["role", "img"],
      ["aria-label", label], ["preserveAspectRatio", "none"]]) svg.setAttribute(key, value);
    values.forEach((value, n) => {
      const tall = Math.abs(value ?? 0) / most * 19;
      add("rect", { x: 10 * n + 1.5, width: 7, y: value > 0 ? 20 - tall : 20, height: tall,
        class: value > 0 ? "plus" : "minus" });
    });
    add("line", { x1: 0, x2: 10 * values.length, y1: 20, y2: 20 });
    return svg;
  }

  function about(t) {
    const head = make("header");
    const title = make("h3", "", `${t.family || t.task}: `);
    title.append(make("span", t.success ? "success" : "failure", outcome(t)));
    const facts = [`task ${t.task}, episode ${t.index}`, turns(t.turns.length), t.stop];
    if (t.outcome !== null) facts.push(`outcome ${t.outcome}`);
    if (t.score !== null && t.score !== t.outcome) facts.push(`score ${t.score}`);
    facts.push(t.when === "training" ?
      `${kind(t)} in phase ${t.phase}, update ${t.update ?? "?"}` : `played ${t.when} training`);
    if (t.version !== null && t.when === "training") facts.push(`policy version ${t.version}`);
    head.append(title, make("p", "", facts.filter(Boolean).join(" \u00b7 ")));
    if (t.process?.some((value) => value !== null)) {
      const figure = make("figure", "bars");
      const total = signed(sum(t.process));
      figure.append(make("figcaption", "", `process reward of each turn, ${total} in total`));
      figure.append(plot(t.process));
      head.append(figure);
    }
    return head;
  }

  function turn(t, k, { by, values, most }) {
    const u = t.turns[k], item = make("li");
    item.append(make("h4", "", `Turn ${k + 1}`));
    item.append(make("p", "observation", u.pieces ? u.context : u.observation));
    const action = make("div", u.valid && !u.truncated ? "action" : "action wrong");
    if (u.pieces) action.append(tokens(u, by ? values[k] : null, most));
    else action.append(make("code", "", u.action || "(nothing)"));
    if (!u.valid) action.append(make("span", "mark", "not admitted"));
    if (u.truncated) action.append(make("span", "mark", "cut off"));
    for (const [name, value] of [["reward", u.reward || null], ["process", t.process?.[k] ?? null]]) {
      const sign = value > 0 ? "plus" : value < 0 ? "minus" : "";
      if (value !== null) action.append(make("span", `reward ${sign}`, `${name} ${signed(value)}`));
    }
    item.append(action);
    if (u.pieces) item.append(numbers(u));
    return item;
  }

  function draw(article, t, colour) {
    const colours = colouring(t, colour), steps = make("ol", "turns");
    article.replaceChildren(about(t), make("p", "muted scale", scale(colours, t)), steps);
    t.turns.forEach((_, k) => steps.append(turn(t, k, colours)));
    if (t.final) article.append(make("p", "observation", t.final));
  }

  return { draw, kind, make, outcome, turns };
})();
