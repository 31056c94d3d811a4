// The first view: could I fail over now, the flows as a graph, each flow in a line.
import { ago, count, duration, el, tone } from "./dom.js";
import { graph } from "./graph.js";
import { table } from "./table.js";

export const link = (flow, tab = "") => `#/flow/${encodeURIComponent(flow.name)}${tab && `/${tab}`}`;

/** What else a switch costs, by the last preflight, and whether one was practised. */
function cost({ failover }, now) {
  const made = failover?.preflight;
  const lines = [];
  if (made?.records_at_risk) lines.push(`the oldest record that waited was ${duration(sinceThen(made.seconds_at_risk, made.checked, now))} old by now`);
  if (made?.read_twice) lines.push(`a group reads at most ${made.read_twice.toLocaleString("en")} twice`);
  if (made) lines.push(`preflight ${ago(made.checked, now)}`);
  const drill = failover?.last_drill;
  if (drill) lines.push(`last drill ${ago(drill.at, now)}: ${drill.error ?? (drill.agrees ? "as predicted" : "not as predicted")}`);
  return lines.length ? el("p", { class: "cost" }, lines.join("; ")) : null;
}

/** An age that was so many seconds at a time of the job, as it is now. */
const sinceThen = (seconds, at, now) => seconds + Math.max(0, (Date.parse(now) - Date.parse(at)) / 1000);

/** Red is what no command mends now; a flow that can fail over, and not be cut over, is no more than poor. */
export function shade({ answer: cutover, failover }) {
  const tones = [tone(cutover), tone(failover.answer)];
  return tones.every((one) => one === "good") ? "good" : tones.every((one) => one === "bad") ? "bad" : "poor";
}

function question(asked, { answer: word, headline }) {
  return [el("span", { class: `word ${tone(word)}` }, word.toUpperCase()), el("p", {}, el("strong", {}, asked), ` ${headline}`)];
}

/** Two answers for one flow, each a word and a sentence, and what else it would cost. Once it is done there is one. */
export function answer(flow, now, inside = null) {
  const { answer: word, headline, failover } = flow.readiness;
  const asked = word === "done" ? question("Taken over.", { answer: word, headline })
    : [...question("Cut over, and lose nothing?", { answer: word, headline }), ...question("Fail over without the source?", failover)];
  return el("div", { class: `answer ${shade(flow.readiness)}` },
    el("span", { class: "flow" }, inside ?? el("a", { href: link(flow) }, `${flow.source} → ${flow.target}`)),
    ...asked,
    word === "done" ? null : cost(flow, now));
}

export function overview({ flows, now }) {
  if (!flows.length) return el("p", { class: "empty" }, "This job has no flow. Enable one in its file: a->b.enabled = true.");
  return el("div", {},
    el("h1", {}, "Could the target take over now?"),
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
