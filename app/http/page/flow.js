// A flow: whether it could fail over and why not, and its tabs.
import { chart } from "./charts.js";
import { ago, count, el, side, tone } from "./dom.js";
import { answer, link } from "./overview.js";
import { list, table } from "./table.js";

/** Title of each tab, and what of the API it shows; null: the flow itself. */
export const TABS = {
  kinds: ["Kinds", null],
  changes: ["Last changes", "changes"],
  refused: ["Refused", "refused"],
  offsets: ["Groups", "offsets"],
  topics: ["Topics", "topics"],
  history: ["Last hour", "history"],
};

/** `found`: what the API said for this tab, null while it is asked. */
export function flowView(flow, route, found, overview) {
  const shown = { kinds, changes, refused, offsets, topics, history }[route.tab];
  return el("div", {},
    el("h1", {}, el("a", { href: "#/" }, "Flows"), ` / ${flow.source} → ${flow.target} `, el("span", { class: tone(flow.state) }, flow.state)),
    answer(flow, overview.now, flow.readiness.answer === "done" ? `${flow.source} → ${flow.target}` : `Could ${flow.target} take over from ${flow.source} now?`),
    findings(flow.readiness.findings),
    el("nav", { class: "tabs", "aria-label": "Parts of this flow" }, ...tabs(flow, route)),
    shown(flow, route, found, overview));
}

function tabs(flow, route) {
  const refusals = Object.values(flow.kinds).reduce((sum, kind) => sum + (kind.refused?.length ?? 0), 0);
  const titles = { refused: `Refused${refusals ? ` (${refusals.toLocaleString("en")})` : ""}` };
  return Object.entries(TABS).map(([tab, [title]]) =>
    el("a", { href: link(flow, tab), "aria-current": tab === route.tab ? "page" : null }, titles[tab] ?? title));
}

function findings(found) {
  if (!found.length) return null;
  return el("ul", { class: "findings" }, ...found.map(({ about, reason, remedy, blocks }) => el("li", {},
    el("strong", { class: blocks ? "bad" : "poor" }, about), `: ${reason}`, el("span", { class: "remedy" }, remedy))));
}

function kinds(flow, _route, _found, { now }) {
  const rows = Object.entries(flow.kinds);
  const differing = flow.effective?.configs ?? [];
  // What stopped the flow is said above, once.
  const reason = (kind) => (kind.reason && kind.reason === flow.reason ? "see above" : kind.reason ?? "");
  return el("div", {},
    table([
      ["kind", "", ([name]) => name],
      ["task", "word", ([, kind]) => kind.task + (kind.since ? ` for ${ago(kind.since, now).replace(" ago", "")}` : ""), ([, kind]) => tone(kind.task)],
      ["differences", "number", ([, kind]) => (kind.drift === null ? (kind.task === "DISABLED" ? "" : "?") : kind.drift.toLocaleString("en")), ([, kind]) => (kind.drift ? "bad" : "")],
      ["last in step", "", ([, kind]) => (["DISABLED", "NOT_SUPPORTED"].includes(kind.task) ? "" : ago(kind.last_success, now))],
      ["reason", "", ([, kind]) => reason(kind)],
    ], rows),
    records(flow.verify, now),
    differing.length ? el("h2", {}, `Set on neither side, and different in effect: ${count(flow.effective.drift, "config")}`) : null,
    differing.length ? table([
      ["config", "", (row) => row.name],
      ["topics", "number", (row) => (row.topics ? row.topics.toLocaleString("en") : "brokers")],
      [`on ${flow.source}`, "", (row) => side(row.source)],
      [`on ${flow.target}`, "", (row) => side(row.target)],
    ], differing) : null);
}

function records(found, now) {
  if (!found) return null;
  const partitions = Object.entries(found.partitions).map(([verdict, number]) => `${number.toLocaleString("en")} ${verdict}`);
  const through = found.verified_through ? `compared through ${ago(found.verified_through, now)}` : "not all compared yet";
  const older = found.history_compared === null || found.history_compared === 1 ? null : `${Math.floor(100 * found.history_compared)} % of what was there before`;
  return el("div", {},
    el("h2", {}, "Records ", el("span", { class: tone(found.state) }, found.state)),
    el("p", {}, [partitions.join(", "), through, older, found.reason].filter(Boolean).join("; ")),
    found.stalled.length ? el("p", { class: "bad" }, `STALLED, the source moves and the target does not: ${found.stalled.join(", ")}`) : null,
    found.differences_without_place ? el("p", {}, `Of ${count(found.differences_without_place, "difference")} the places are not kept: \`lockstep verify\` names them.`) : null,
    found.topics.length ? table([
      ["topic", "", (row) => row.topic],
      ["what differs", "word", (row) => row.kind, () => "bad"],
      ["records", "number", (row) => row.count.toLocaleString("en")],
    ], found.topics) : null);
}

const key = (row) => Object.values(row.key).filter((part) => part !== null).join(" ");
const KIND = ["kind", "kind"];

function changes(_flow, route, found, { now }) {
  return list(route, found, [
    ["when", "", (row) => el("time", { datetime: row.at, title: row.at }, ago(row.at, now))],
    ["kind", "", (row) => row.kind],
    ["op", "", (row) => row.op],
    ["what", "", key],
    ["before", "", (row) => (row.before === null ? "-" : el("del", {}, side(row.before)))],
    ["after", "", (row) => (row.after === null ? "-" : el("ins", {}, side(row.after)))],
    ["result", "word", (row) => row.result, (row) => tone(row.result)],
    ["error", "", (row) => row.error ?? ""],
  ], { filter: KIND, noun: "change", empty: "Nothing was changed since the job started. `lockstep audit` has what was before." });
}

function refused(_flow, route, found) {
  return list(route, found, [
    ["kind", "", (row) => row.kind],
    ["op", "", (row) => row.op],
    ["what", "", key],
    ["reason", "", (row) => row.reason],
    ["what to do", "", (row) => row.remedy],
  ], { filter: KIND, noun: "refused change", empty: "Nothing is refused." });
}

function offsets(flow, route, found) {
  const off = flow.kinds["group-offset"]?.task === "DISABLED";
  return list(route, found, [
    ["group", "", (row) => row.group],
    ["topic", "", (row) => row.topic],
    ["partition", "number", (row) => row.partition],
    [`on ${flow.source}`, "number", (row) => side(row.upstream_offset)],
    [`on ${flow.target}`, "number", (row) => side(row.downstream_offset)],
    ["read twice at most", "number", (row) => side(row.error_bound)],
    ["verdict", "word", (row) => row.verdict, (row) => tone(row.verdict)],
    ["reason", "", (row) => row.reason],
  ], {
    filter: ["verdict", "verdict"], noun: "partition",
    empty: off ? "Group offsets are not kept: sync.group.offsets.enabled is false." : "No group has an offset on a replicated topic.",
  });
}

function topics(flow, route, found) {
  return list(route, found, [
    [`on ${flow.source}`, "", (row) => row.upstream],
    [`on ${flow.target}`, "", (row) => row.remote],
  ], { noun: "topic", empty: "No topic is replicated: see topics and topics.exclude in the file." });
}

function history(_flow, _route, found) {
  if (found === null) return el("p", { class: "empty" }, "Loading …");
  const points = (name) => found.samples.map((one) => [Date.parse(one.at), one[name]]);
  return el("div", {},
    chart("Age of the newest heartbeat", points("heartbeat_age_seconds"), 30),
    chart("Replication latency of the newest heartbeat", points("latency_seconds")),
    chart("The longest pass", points("slowest_pass_seconds")));
}
