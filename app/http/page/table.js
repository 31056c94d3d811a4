// Tables, with search, filter and pages where there may be many rows. All that is chosen stands in the address.
import { count, el } from "./dom.js";

/** `columns`: [title, class or "", row → text, node or null]. On a phone each row becomes a block with titles. */
export function table(columns, rows) {
  const head = columns.map(([title, kind]) => el("th", { scope: "col", class: kind || null }, title));
  const body = rows.map((row) => el("tr", {}, ...columns.map(([title, kind, cell, shade]) =>
    el("td", { class: [kind, shade?.(row)].filter(Boolean).join(" ") || null, "data-label": title }, cell(row)))));
  return el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body));
}

/** A list in pages. `answer`: what the API said, null while it is asked. `filter`: [parameter, title] or null. */
export function list(route, answer, columns, { filter = null, noun, empty }) {
  const chosen = (name) => route.parameters.get(name) ?? "";
  const search = el("input", { type: "search", "data-parameter": "search", placeholder: "Search", "aria-label": "Search", value: chosen("search") });
  const tools = [search];
  if (filter) tools.push(choice(filter, chosen(filter[0]), answer?.values ?? {}));
  if (answer === null) return el("div", {}, el("div", { class: "filters" }, ...tools), el("p", { class: "empty" }, "Loading …"));
  tools.push(el("span", { class: "faint", role: "status" }, answer.found === answer.total ? count(answer.total, noun) : `${answer.found.toLocaleString("en")} of ${count(answer.total, noun)}`));
  const none = answer.total ? "Nothing fits what is asked for." : empty;
  return el("div", {}, el("div", { class: "filters" }, ...tools),
    answer.rows.length ? table(columns, answer.rows) : el("p", { class: "empty" }, none), pages(answer));
}

function choice([parameter, title], chosen, values) {
  const known = chosen && !(chosen in values) ? { ...values, [chosen]: 0 } : values;
  const options = Object.entries(known).map(([value, number]) =>
    el("option", { value, selected: value === chosen }, `${value} (${number.toLocaleString("en")})`));
  return el("select", { "data-parameter": parameter, "aria-label": title },
    el("option", { value: "", selected: !chosen }, `every ${title}`), ...options);
}

function pages({ offset, limit, found }) {
  if (found <= limit) return null;
  const last = Math.ceil(found / limit);
  const page = Math.floor(offset / limit) + 1;
  const turn = (words, to) => el("button", { type: "button", "data-offset": to, disabled: to < 0 || to >= found }, words);
  return el("div", { class: "filters" }, turn("← Earlier", offset - limit), el("span", {}, `page ${page} of ${last}`),
    turn("Further →", offset + limit));
}
