// Asks the job every two seconds, and shows what the address names: `#/`, `#/flow/a->b/TAB?search=…&offset=…`.
import { ago, duration, el, morph } from "./dom.js";
import { TABS, flowView } from "./flow.js";
import { overview } from "./overview.js";

const [EVERY, WITHIN, TYPING] = [2000, 5000, 250];
// An address with a password in it, as some people keep, cannot be asked as it is.
const api = `${location.origin}/api/v1`;
const main = document.getElementById("main");
const state = { overview: null, found: null, of: null, at: 0, error: null };
let asked = 0;

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, name, tab] = path.split("/");
  const parameters = new URLSearchParams(query);
  return { name: view === "flow" ? decodeURIComponent(name ?? "") : null, tab: tab in TABS ? tab : "kinds", parameters };
}

async function ask(path) {
  const answer = await fetch(api + path, { signal: AbortSignal.timeout(WITHIN), cache: "no-store" });
  const document = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(answer.status === 401 ? "the token is needed: load this page again" : document.error ?? `HTTP ${answer.status}`);
  return document;
}

/** What the tab of a route shows beyond the flow itself, or null. */
function wanted({ name, tab, parameters }) {
  const part = name === null ? null : TABS[tab][1];
  return part && `/flows/${encodeURIComponent(name)}/${part}?${parameters}`;
}

async function refresh() {
  const number = ++asked;
  const path = wanted(route());
  try {
    const [seen, found] = await Promise.all([ask("/flows"), path ? ask(path) : null]);
    if (number !== asked) return;
    Object.assign(state, { overview: seen, found, of: path, at: Date.now(), error: null });
  } catch (error) {
    if (number !== asked) return;
    state.error = error instanceof TypeError || error.name === "TimeoutError" ? "the job does not answer" : error.message;
  }
  show();
}

function show() {
  const here = route();
  const fresh = document.getElementById("freshness");
  const old = state.at ? `; what is shown is ${duration((Date.now() - state.at) / 1000)} old` : "";
  fresh.textContent = state.error ? `${state.error}${old}` : state.overview ? "live" : "";
  fresh.classList.toggle("bad", state.error !== null);
  document.body.classList.toggle("stale", state.error !== null && state.at > 0);
  const after = el("main", { id: "main", tabindex: "-1" }, content(here));
  morph(main, after);
  if (state.overview) about(state.overview);
}

function content(here) {
  if (!state.overview) {
    return el("p", { class: `empty${state.error ? " bad" : ""}` }, state.error ? `Nothing can be shown: ${state.error}. Is it running?` : "Loading …");
  }
  return el("div", {}, file(state.overview), view(here));
}

/** That the job does not use its file as it is now. */
function file({ file: found, now }) {
  if (!found?.mistakes.length && !found?.needs_restart.length) return null;
  return el("div", { id: "file", class: "bad" },
    found.mistakes.length ? el("p", {}, `The properties file is rejected (${ago(found.rejected_since, now)}). The job goes on with what it had read before:`) : null,
    el("ul", {}, ...found.mistakes.map((line) => el("li", {}, line)),
      ...found.needs_restart.map((line) => el("li", {}, `not in force before the job is restarted: ${line}`))));
}

function view(here) {
  if (here.name === null) return overview(state.overview);
  const flow = state.overview.flows.find(({ name }) => name === here.name);
  if (!flow) return el("p", { class: "empty" }, `This job has no flow ${here.name}. `, el("a", { href: "#/" }, "All flows"));
  return flowView(flow, here, state.of === wanted(here) ? state.found : null, state.overview);
}

function about({ version, spark_ui: spark, flows }) {
  const yes = flows.filter(({ readiness }) => ["yes", "done"].includes(readiness.answer)).length;
  document.title = `${yes === flows.length ? "✓" : "✗"} ${yes}/${flows.length} Lockstep`;
  const links = spark ? el("a", { href: spark, rel: "noreferrer" }, "Spark") : null;
  morph(document.getElementById("about"), el("span", { id: "about" }, links, `Lockstep ${version}`));
}

/** Goes to the same tab with other parameters, its first page unless one is named. */
function choose(changed) {
  const here = route();
  const parameters = new URLSearchParams(here.parameters);
  parameters.delete("offset");
  for (const [name, value] of Object.entries(changed)) value ? parameters.set(name, value) : parameters.delete(name);
  const query = parameters.size ? `?${parameters}` : "";
  history.replaceState(null, "", `#/flow/${encodeURIComponent(here.name)}/${here.tab}${query}`);
  show();
  refresh();
}

let typing = 0;
main.addEventListener("input", ({ target }) => {
  if (!target.dataset.parameter) return;
  clearTimeout(typing);
  typing = setTimeout(() => choose({ [target.dataset.parameter]: target.value }), TYPING);
});
main.addEventListener("click", ({ target }) => {
  const to = target.closest("[data-offset]")?.dataset.offset;
  if (to !== undefined) choose({ offset: to });
});
document.addEventListener("keydown", (event) => {
  const search = main.querySelector("input[type=search]");
  if (event.key === "/" && search && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
});
addEventListener("hashchange", () => { show(); refresh(); });
addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
setInterval(() => { document.hidden ? null : refresh(); }, EVERY);
refresh();
