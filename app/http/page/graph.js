// Clusters as boxes on an ellipse, flows as arrows between them; colour and word say how a flow stands.
import { svg, tone } from "./dom.js";

const [WIDTH, BOX, TALL, MARGIN] = [720, 130, 40, 14];

/** Every flow; each arrow leads to its page. */
export function graph(flows) {
  const names = [...new Set(flows.flatMap(({ source, target }) => [source, target]))];
  const height = names.length < 3 ? 130 : Math.min(640, 150 + 45 * names.length);
  const at = places(inOrder(names, flows), height);
  const both = new Set(flows.map(({ source, target }) => `${source}\n${target}`));
  const arrows = flows.map((flow) => arrow(flow, at, both.has(`${flow.target}\n${flow.source}`)));
  const boxes = [...at].map(([name, { x, y }]) => svg("g", {},
    svg("rect", { x: x - BOX / 2, y: y - TALL / 2, width: BOX, height: TALL, rx: 8 }),
    svg("text", { x, y: y + 5 }, name.length > 16 ? `${name.slice(0, 15)}…` : name, svg("title", {}, name))));
  return svg("svg", { class: "graph", viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": "Clusters and flows" },
    ...arrows, ...boxes);
}

/** Sources first, so that they stand on the left. */
function inOrder(names, flows) {
  const targets = new Set(flows.map(({ target }) => target));
  const rank = (name) => (targets.has(name) ? 1 : 0);
  return names.sort((one, other) => rank(one) - rank(other) || one.localeCompare(other));
}

function places(names, height) {
  const [rx, ry] = [(WIDTH - BOX) / 2 - MARGIN, (height - TALL) / 2 - MARGIN];
  const spot = (index) => {
    const angle = Math.PI - (2 * Math.PI * index) / Math.max(2, names.length);
    return { x: WIDTH / 2 + rx * Math.cos(angle), y: height / 2 - (names.length < 3 ? 0 : ry * Math.sin(angle)) };
  };
  return new Map(names.map((name, index) => [name, spot(index)]));
}

/** Where the line from a box's middle to a point leaves the box. */
function edge(box, to) {
  const [dx, dy] = [to.x - box.x, to.y - box.y];
  const share = Math.min(BOX / 2 / Math.abs(dx || 1e-9), TALL / 2 / Math.abs(dy || 1e-9));
  return { x: box.x + dx * share, y: box.y + dy * share };
}

function arrow(flow, at, isPair) {
  const [from, to] = [at.get(flow.source), at.get(flow.target)];
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  // Two arrows between the same boxes bend away from each other.
  const bend = isPair ? 46 : 0;
  const bent = { x: (from.x + to.x) / 2 + ((to.y - from.y) / length) * bend, y: (from.y + to.y) / 2 - ((to.x - from.x) / length) * bend };
  const [begin, end] = [edge(from, bent), edge(to, bent)];
  const angle = (Math.atan2(end.y - bent.y, end.x - bent.x) * 180) / Math.PI;
  // Nearer to the source, so that words of arrows that cross in the middle do not lie on each other.
  const along = (one) => 0.36 * begin[one] + 0.48 * bent[one] + 0.16 * end[one];
  const { answer, headline, failover } = flow.readiness;
  const isDone = answer === "done";
  const words = isDone ? `${flow.name}: ${headline}` : `${flow.name}: ${flow.state}. Cutover: ${headline}. Failover: ${failover.headline}`;
  const shade = flow.state === "LIVE" || isDone ? tone(answer) : tone(flow.state);
  const said = isDone ? "taken over" : flow.state === "LIVE" && shade !== "good" ? "LIVE, not ready" : flow.state;
  return svg("a", { href: `#/flow/${encodeURIComponent(flow.name)}`, class: shade, "aria-label": words },
    svg("title", {}, words),
    svg("path", { d: `M${begin.x} ${begin.y} Q${bent.x} ${bent.y} ${end.x} ${end.y}` }),
    svg("path", { class: "head", d: "M0 0 L-11 -5 L-11 5 Z", transform: `translate(${end.x} ${end.y}) rotate(${angle})` }),
    svg("text", { x: along("x"), y: along("y") - 6 }, said));
}
