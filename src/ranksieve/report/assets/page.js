"use strict";

// Tables: a click on a heading sorts by the numbers behind the cells, else by their text.
const keyOf = (cell) => (cell.dataset.number === undefined ? cell.textContent : Number(cell.dataset.number));
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a.localeCompare(b);
}
function makeSortable(table) {
  table.querySelectorAll("thead th").forEach((heading, place) => {
    const button = heading.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const falling = heading.getAttribute("aria-sort") === "descending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", falling ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => compare(keyOf(a.cells[place]), keyOf(b.cells[place])) * (falling ? 1 : -1));
      table.tBodies[0].append(...rows);
    });
  });
}

// The explorer: two models, the queries by gain and loss, and one query's two rankings side by side.
const make = (tag, text, name) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  return node;
};
const signed = (value) => (value > 0 ? "+" : "") + value.toFixed(4);

function explore(root, all) {
  const [data, first, second, find] = ["data", "first", "second", "find"].map((name) => root.querySelector(`[name=${name}]`));
  const body = root.querySelector(".queries tbody");
  const heads = root.querySelectorAll(".queries th button");
  const sides = root.querySelector(".sides");
  all.forEach((set, number) => data.append(new Option(set.name, number)));

  function showModels() {
    const models = all[data.value].models;
    const baseline = Math.max(0, models.findIndex((model) => model.baseline));
    for (const [select, chosen] of [[first, baseline === 0 ? models.length - 1 : 0], [second, baseline]]) {
      select.replaceChildren(...models.map((model, number) => new Option(model.label, number)));
      select.value = chosen;
    }
    showQueries();
  }
  function showQueries() {
    const set = all[data.value];
    const [a, b] = [set.models[first.value], set.models[second.value]];
    [a, b].forEach((model, place) => { heads[2 + place].textContent = model.label; });
    const wanted = find.value.trim().toLowerCase();
    const rows = set.queries
      .map((query, number) => ({ query, number, a: a.values[number], b: b.values[number] }))
      .filter((row) => row.a !== null && row.b !== null && row.query.name.toLowerCase().includes(wanted))
      .sort((x, y) => y.a - y.b - (x.a - x.b));
    body.replaceChildren(...rows.map(queryRow));
    sides.replaceChildren();
    if (rows.length) body.rows[0].click();
    else sides.append(make("p", "No query of this name was tested with both models.", "quiet"));
  }
  function queryRow({ query, number, a, b }) {
    const row = make("tr");
    row.tabIndex = 0;
    const cells = [query.name, signed(a - b), a.toFixed(4), b.toFixed(4), query.n_docs, query.n_positives];
    cells.forEach((text, place) => {
      const cell = make("td", text, place === 1 ? (a > b ? "gain" : a < b ? "loss" : "") : "");
      if (place) cell.dataset.number = Number(text);
      row.append(cell);
    });
    const show = () => {
      body.querySelectorAll(".chosen").forEach((other) => other.classList.remove("chosen"));
      row.classList.add("chosen");
      const models = all[data.value].models;
      sides.replaceChildren(...[first, second].map((select) => ranking(models[select.value], number)));
    };
    row.addEventListener("click", show);
    row.addEventListener("keydown", (event) => event.key === "Enter" && show());
    return row;
  }
  function ranking(model, number) {
    const table = make("table");
    table.append(make("caption", model.label));
    const head = table.createTHead().insertRow();
    ["rank", "label", "first stage", "score", "document"].forEach((text) => head.append(make("th", text)));
    const rows = table.createTBody();
    (model.documents[number] || []).forEach(([rank, label, firstStage, score, name]) => {
      const row = rows.insertRow();
      if (label > 0) row.className = "positive";
      [rank, label, firstStage === null ? "–" : firstStage, score.toFixed(4), name].forEach((text) => row.append(make("td", text)));
    });
    const box = make("div", undefined, "wide");
    box.append(table);
    return box;
  }
  data.addEventListener("change", showModels);
  [first, second].forEach((select) => select.addEventListener("change", showQueries));
  find.addEventListener("input", showQueries);
  if (all.length) showModels();
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
const explorer = document.getElementById("explorer");
if (explorer) explore(explorer, JSON.parse(document.getElementById("explorer-data").textContent));
