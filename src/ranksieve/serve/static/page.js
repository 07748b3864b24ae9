// Grading, explanations, keys, and lines between columns. Whatever comes from the service is shown as text, never as HTML.
"use strict";

const KEY_UNDO = "ranksieve-undo", KEY_TOKEN = "ranksieve-token", MOST_UNDO = 200, MOST_BARS = 12;
const columns = document.getElementById("columns");
const canJudge = document.body.dataset.canJudge === "yes";
document.body.classList.add("scripted");

function make(name, attributes = {}, ...children) {
  const space = ["svg", "rect", "line", "path"].includes(name) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const made = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

let forget = 0;
function say(text) {
  document.getElementById("status").textContent = text;
  clearTimeout(forget);
  forget = setTimeout(() => { document.getElementById("status").textContent = ""; }, 5000);
}

async function ask(method, path, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const token = sessionStorage.getItem(KEY_TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const content = await answer.json();
  if (answer.status === 401) needToken();
  if (!answer.ok) throw new Error(content.detail || answer.statusText);
  return content;
}

function needToken() {
  sessionStorage.removeItem(KEY_TOKEN);
  const form = document.getElementById("token");
  if (form) { form.classList.add("needed"); form.querySelector("input").focus(); }
}

// judging

const undoable = () => JSON.parse(sessionStorage.getItem(KEY_UNDO) || "[]");
function keepUndoable(list) {
  sessionStorage.setItem(KEY_UNDO, JSON.stringify(list.slice(-MOST_UNDO)));
  const button = document.getElementById("undo");
  if (button) button.disabled = !list.length;
}

const hitsOf = (id) => [...columns.querySelectorAll(".hit")].filter((hit) => hit.dataset.document === id);

function show(id, grade) {
  for (const hit of hitsOf(id)) {
    hit.dataset.grade = grade === null ? "" : String(grade);
    for (const button of hit.querySelectorAll(".grades button")) {
      button.setAttribute("aria-pressed", String(grade !== null && Number(button.dataset.grade) === grade));
    }
  }
  const judged = new Set([...columns.querySelectorAll(".hit")].filter((hit) => hit.dataset.grade !== "").map((hit) => hit.dataset.document));
  document.getElementById("judged").textContent = String(judged.size);
  document.getElementById("judged-bar").value = judged.size;
}

let saving = Promise.resolve();
function grade(query, id, value, { undo = true } = {}) {
  saving = saving.then(async () => {
    const found = await ask("PUT", "/judgements", { query, document: id, grade: value });
    if (undo) keepUndoable([...undoable(), { query, id, previous: found.previous }]);
    if (columns && columns.dataset.query === query) show(id, value);
    say(value === null ? `${id}: grade removed` : `${id}: ${value}`);
  }).catch((error) => say(`not saved: ${error.message}`));
  return saving;
}

async function undoLast() {
  const list = undoable(), last = list.pop();
  if (!last) return;
  keepUndoable(list);
  await grade(last.query, last.id, last.previous, { undo: false });
}

function judgeNext() {
  const open = shownHits().filter((hit) => hit.dataset.grade === "");
  const most = Math.max(...open.map((hit) => Number(hit.dataset.disagreement)));
  const hit = open.find((one) => Number(one.dataset.disagreement) === most);
  if (hit) choose(hit); else say("all results shown are judged; go on with the next query");
}

// moving by keys

const isNarrow = () => matchMedia("(max-width: 760px)").matches;
const shownHits = () => [...columns.querySelectorAll(".column")].filter((one) => one.offsetParent !== null || !isNarrow()).flatMap((one) => [...one.querySelectorAll(".hit")]);
const current = () => document.activeElement && document.activeElement.closest(".hit");

function choose(hit) {
  hit.focus({ preventScroll: true });
  hit.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const hit = current();
  const list = [...(hit || columns.querySelector(isNarrow() ? ".column.chosen .hit" : ".hit")).closest("ol").querySelectorAll(".hit")];
  choose(hit ? list[Math.max(0, Math.min(list.length - 1, list.indexOf(hit) + by))] : list[0]);
}

function sideways(by) {
  const hit = current(), all = [...columns.querySelectorAll(".column")];
  const here = hit ? all.indexOf(hit.closest(".column")) : all.findIndex((one) => one.classList.contains("chosen"));
  const there = all[here + by];
  if (!there) return;
  chooseColumn(there.dataset.column);
  const list = [...there.querySelectorAll(".hit")];
  const same = hit && list.find((one) => one.dataset.document === hit.dataset.document);
  const target = same || list[hit ? Math.min(list.length - 1, [...hit.parentNode.children].indexOf(hit)) : 0];
  if (target) choose(target);
}

function chooseColumn(number) {
  for (const column of columns.querySelectorAll(".column")) column.classList.toggle("chosen", column.dataset.column === number);
  for (const tab of document.querySelectorAll(".tabs button")) tab.setAttribute("aria-selected", String(tab.dataset.column === number));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "Escape" && current()) { closeWhy(current()); return; }
  if (typing) return;
  if (event.key === "/") { const box = document.getElementById("q"); if (box) { event.preventDefault(); box.focus(); box.select(); } return; }
  if (!columns) return;
  const hit = current();
  const actions = {
    ArrowDown: () => step(1), ArrowUp: () => step(-1), ArrowRight: () => sideways(1), ArrowLeft: () => sideways(-1),
    w: () => hit && toggleWhy(hit), n: () => canJudge && judgeNext(), u: () => canJudge && undoLast(),
  };
  if (/^[0-4]$/.test(event.key) && hit && canJudge) {
    event.preventDefault();
    grade(columns.dataset.query, hit.dataset.document, Number(event.key));
  } else if (actions[event.key]) {
    event.preventDefault();
    actions[event.key]();
  }
});

// why here?

function settings(hit) {
  const weights = JSON.parse(columns.dataset.weights);
  return {
    query: columns.dataset.query, model: hit.closest(".column").dataset.model,
    depth: columns.dataset.depth ? Number(columns.dataset.depth) : null, stage: columns.dataset.stage || null,
    weights: Object.entries(weights).map(([name, value]) => `${name}:${value}`),
  };
}

const format = (value) => value === null ? "missing" : typeof value === "string" ? value : String(Number(value.toPrecision(4)));

function bars(list, value, detail) {
  const shown = list.slice(0, MOST_BARS), most = Math.max(...shown.map((one) => Math.abs(value(one))), 1e-12);
  const items = shown.map((one) => {
    const size = 100 * Math.abs(value(one)) / most / 2, down = value(one) < 0;
    const bar = make("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
      make("line", { x1: 50, x2: 50, y1: 0, y2: 8 }),
      make("rect", { x: down ? 50 - size : 50, y: 1, width: size, height: 6, class: down ? "down" : "up" }));
    const sign = `${down ? "−" : "+"}${Math.abs(value(one)).toFixed(3)}`;
    return make("li", {}, make("div", { class: "name" }, make("code", {}, one.feature), make("span", { class: down ? "down" : "up" }, sign)),
      bar, make("div", { class: "meaning" }, `${one.meaning ? `${one.meaning}: ` : ""}${detail(one)}`));
  });
  if (list.length > shown.length) {
    const rest = list.slice(MOST_BARS).reduce((sum, one) => sum + value(one), 0);
    items.push(make("li", { class: "meaning" }, `${list.length - shown.length} more features: ${rest < 0 ? "−" : "+"}${Math.abs(rest).toFixed(3)}`));
  }
  return make("ul", {}, ...items);
}

async function explain(hit, below) {
  const panel = hit.querySelector(".why-panel"), holder = panel.querySelector(".bars");
  holder.replaceChildren("…");
  try {
    const found = await ask("POST", "/explain", { ...settings(hit), document: hit.dataset.document, ...(below ? { below } : {}) });
    const text = below
      ? `Score ${found.score.toFixed(3)} against ${found.below_score.toFixed(3)}: what each feature adds to the difference of ${(found.score - found.below_score).toFixed(3)}`
      : `Score ${found.score.toFixed(3)}: the mean score ${found.expected.toFixed(3)} plus what each feature adds (SHAP values)`;
    holder.replaceChildren(make("p", {}, text), below
      ? bars(found.differences, (one) => one.difference, (one) => `${format(one.value_above)} against ${format(one.value_below)}`)
      : bars(found.contributions, (one) => one.contribution, (one) => format(one.value)));
  } catch (error) {
    holder.replaceChildren(make("p", { role: "alert" }, error.message));
  }
  drawLines();
}

function closeWhy(hit) {
  const panel = hit.querySelector(".why-panel"), button = hit.querySelector(".why");
  if (!panel || panel.hidden) return;
  panel.hidden = true;
  button.setAttribute("aria-expanded", "false");
  drawLines();
}

async function toggleWhy(hit) {
  const panel = hit.querySelector(".why-panel"), button = hit.querySelector(".why");
  if (!panel) { say("the first stage has no features to explain; choose a model's result"); return; }
  if (!panel.hidden) { closeWhy(hit); return; }
  const select = make("select", {}, make("option", { value: "" }, "no other document"));
  for (const other of hit.parentNode.children) {
    if (other !== hit) select.append(make("option", { value: other.dataset.document }, `${other.querySelector(".rank").textContent}. ${other.querySelector("h3").textContent.slice(0, 60)}`));
  }
  select.addEventListener("change", () => explain(hit, select.value));
  panel.replaceChildren(make("label", {}, "Compare with: ", select), make("div", { class: "bars", "aria-live": "polite" }));
  panel.hidden = false;
  button.setAttribute("aria-expanded", "true");
  await explain(hit, "");
}

// lines between the columns

function drawLines() {
  const svg = document.getElementById("lines");
  if (!svg) return;
  svg.replaceChildren();
  if (getComputedStyle(svg).display === "none") return;
  const box = columns.getBoundingClientRect(), all = [...columns.querySelectorAll(".column")];
  svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  for (let place = 1; place < all.length; place += 1) {
    const left = new Map([...all[place - 1].querySelectorAll(".hit")].map((hit) => [hit.dataset.document, hit]));
    for (const hit of all[place].querySelectorAll(".hit")) {
      const other = left.get(hit.dataset.document);
      if (!other) continue;
      const a = other.getBoundingClientRect(), b = hit.getBoundingClientRect();
      const x1 = a.right - box.left, x2 = b.left - box.left, y1 = a.top - box.top + 20, y2 = b.top - box.top + 20, middle = (x1 + x2) / 2;
      const change = Number(other.querySelector(".rank").textContent) - Number(hit.querySelector(".rank").textContent);
      svg.append(make("path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, class: change > 0 ? "up" : change < 0 ? "down" : "", "data-number": hit.dataset.number }));
    }
  }
}

function emphasise(hit) {
  for (const one of columns.querySelectorAll(".hit")) one.classList.toggle("same", Boolean(hit) && one !== hit && one.dataset.document === hit.dataset.document);
  for (const path of columns.querySelectorAll("#lines path")) {
    path.classList.toggle("strong", Boolean(hit) && path.dataset.number === hit.dataset.number);
    path.classList.toggle("faint", Boolean(hit) && path.dataset.number !== hit.dataset.number);
  }
}

if (columns) {
  columns.addEventListener("click", (event) => {
    const hit = event.target.closest(".hit"), button = event.target.closest("button");
    if (!hit || !button) return;
    if (button.classList.contains("why")) toggleWhy(hit);
    else if (button.dataset.grade !== undefined) {
      const value = Number(button.dataset.grade), again = button.getAttribute("aria-pressed") === "true";
      grade(columns.dataset.query, hit.dataset.document, again ? null : value);
    }
  });
  columns.addEventListener("pointerover", (event) => emphasise(event.target.closest(".hit")));
  columns.addEventListener("pointerleave", () => emphasise(null));
  columns.addEventListener("focusin", (event) => emphasise(event.target.closest(".hit")));
  for (const tab of document.querySelectorAll(".tabs button")) tab.addEventListener("click", () => chooseColumn(tab.dataset.column));
  new ResizeObserver(drawLines).observe(columns);
  drawLines();
  if (canJudge) {
    document.getElementById("next").addEventListener("click", judgeNext);
    document.getElementById("undo").addEventListener("click", undoLast);
    keepUndoable(undoable());
  }
  const asked = new URLSearchParams(location.search).get("next");
  if (asked === "1") judgeNext();
  else if (asked === "0") say("nothing is left to judge for the other queries");
}

// addresses stay short: what is as usual is not sent

for (const form of document.querySelectorAll("form.search")) {
  form.addEventListener("submit", () => {
    for (const input of form.querySelectorAll("input[data-usual]")) if (input.value === input.dataset.usual || input.value === "") input.disabled = true;
    const selects = [...form.querySelectorAll("select[name=model]")];
    for (const select of form.querySelectorAll("select[name=stage]")) if (select.value === select.dataset.usual) select.disabled = true;
    if (selects.every((select) => select.value === select.dataset.usual)) for (const select of selects) select.disabled = true;
  });
  addEventListener("pageshow", () => { for (const input of form.querySelectorAll("input:disabled, select:disabled")) input.disabled = false; });
}

const tokenForm = document.getElementById("token");
if (tokenForm) {
  if (!sessionStorage.getItem(KEY_TOKEN)) tokenForm.classList.add("needed");
  tokenForm.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY_TOKEN, tokenForm.querySelector("input").value);
    tokenForm.classList.remove("needed");
  });
}

// training

const training = document.getElementById("training");
async function follow() {
  try {
    const state = await ask("GET", "/training");
    training.querySelector("progress").value = state.done;
    training.querySelector(".doing").textContent = state.line;
    if (state.state === "running") { setTimeout(follow, 700); return; }
    if (training.dataset.state === "running") location.reload();
  } catch (error) {
    say(error.message);
    setTimeout(follow, 3000);
  }
}
if (training) {
  if (training.dataset.state === "running") follow();
  for (const button of document.querySelectorAll("#train, #stop")) {
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await ask(button.id === "train" ? "POST" : "DELETE", "/training");
        location.reload();
      } catch (error) { say(error.message); button.disabled = false; }
    });
  }
}

const incomplete = document.getElementById("incomplete");
if (incomplete) location.replace(incomplete.querySelector("a").href);
