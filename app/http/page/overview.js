// The first view: could I fail over now, the flows as a graph, each flow in a line.
import { ago, count, duration, el, tone } from "./dom.js";
import { graph } from "./graph.js";
import { table } from "./table.js";

export const link = (flow, tab = "") => `#/flow/${encodeURIComponent(flow.name)}${tab && `/${tab}`}`;

/** What a failover now would cost, and whether one was practised: by the last preflight and the last drill. */
function cost({ failover }, now) {
  const made = failover?.preflight;
  const lines = [];
  if (made) {
    const lost = made.records_at_risk === null ? "nobody can tell how many records a failover now would lose"
      : `a failover now would lose ${made.exact ? "" : "at most "}${count(made.records_at_risk, "record")}${made.records_at_risk ? `, the oldest ${duration(made.seconds_at_risk)} old` : ""}`;
    const twice = made.read_twice ? `; a group reads at most ${made.read_twice.toLocaleString("en")} twice` : "";
    lines.push(`${lost}${twice} (preflight ${ago(made.checked, now)})`);
  }
  const drill = failover?.last_drill;
  if (drill) lines.push(`last drill ${ago(drill.at, now)}: ${drill.error ?? (drill.agrees ? "as predicted" : "not as predicted")}`);
  return lines.length ? el("p", { class: "cost" }, lines.join("; ")) : null;
}

/** The answer for one flow: the word, a sentence, and what it would cost. */
export function answer(flow, now, inside = null) {
  const { answer: word, headline } = flow.readiness;
  return el("div", { class: `answer ${tone(word)}` },
    el("span", { class: `word ${tone(word)}` }, word.toUpperCase()),
    el("span", { class: "flow" }, inside ?? el("a", { href: link(flow) }, `${flow.source} → ${flow.target}`)),
    el("p", {}, headline),
    cost(flow, now));
}

export function overview({ flows, now }) {
  if (!flows.length) return el("p", { class: "empty" }, "This job has no flow. Enable one in its file: a->b.enabled = true.");
  return el("div", {},
    el("h1", {}, "Could I fail over now?"),
    el("ul", { class: "answers" }, ...flows.map((flow) => el("li", {}, answer(flow, now)))),
    el("h2", {}, "Flows"),
    graph(flows),
    table(COLUMNS, flows));
}

const COLUMNS = [
  ["flow", "", (flow) => el("a", { href: link(flow) }, `${flow.source} → ${flow.target}`)],
  ["state", "word", (flow) => flow.state, (flow) => tone(flow.state)],
  ["heartbeat", "number", (flow) => duration(flow.heartbeat_age_seconds)],
  ["latency", "number", (flow) => duration(flow.replication_latency_ms === null ? null : flow.replication_latency_ms / 1000)],
  ["topics", "number", (flow) => flow.topics.toLocaleString("en")],
  ["differences", "number", differences, (flow) => (differences(flow) === "0" ? "" : "bad")],
  ["kinds", "", kinds],
];

function differences(flow) {
  const compared = Object.values(flow.kinds).filter(({ task }) => !["DISABLED", "NOT_SUPPORTED"].includes(task));
  if (compared.some(({ drift }) => drift === null)) return "?";
  return compared.reduce((sum, { drift }) => sum + drift, 0).toLocaleString("en");
}

function kinds(flow) {
  const trouble = Object.entries(flow.kinds).filter(([, { task }]) => !["ACTIVE", "DISABLED", "NOT_SUPPORTED"].includes(task));
  if (!trouble.length) return count(Object.values(flow.kinds).filter(({ task }) => task === "ACTIVE").length, "kind") + " active";
  return el("span", { class: "bad" }, trouble.map(([name, { task }]) => `${name} ${task}`).join(", "));
}
