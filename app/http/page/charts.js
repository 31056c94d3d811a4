// A line over the last hour, as SVG: gaps where nothing is known.
import { duration, el, svg } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [720, 150, 8, 20];

/** `points`: [time in ms, seconds or null]. `limit`: a line not to be crossed, in seconds, or null. */
export function chart(title, points, limit = null) {
  const known = points.filter(([, value]) => value !== null);
  if (!known.length) return el("figure", { class: "chart" }, el("h2", {}, title), el("p", { class: "empty" }, "Nothing is known yet: a point comes every ten seconds."));
  const most = Math.max(...known.map(([, value]) => value));
  const top = Math.max(most, limit !== null && limit < most * 4 ? limit : 0, 0.001) * 1.1;
  const [first, last] = [points[0][0], points[points.length - 1][0]];
  const x = (at) => LEFT + ((WIDTH - 2 * LEFT) * (at - first)) / Math.max(1, last - first);
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - 12) * value) / top;
  const words = `${title}: now ${duration(points[points.length - 1][1])}, at most ${duration(most)} in this hour`;
  const marks = [
    svg("title", {}, words),
    svg("line", { x1: LEFT, x2: WIDTH - LEFT, y1: y(0), y2: y(0) }),
    svg("text", { x: LEFT, y: 12 }, duration(top / 1.1)),
    svg("text", { x: LEFT, y: HEIGHT - 5 }, clock(first)),
    svg("text", { class: "end", x: WIDTH - LEFT, y: HEIGHT - 5 }, clock(last)),
  ];
  if (limit !== null && limit <= top) {
    marks.push(svg("line", { class: "limit", x1: LEFT, x2: WIDTH - LEFT, y1: y(limit), y2: y(limit) }));
  }
  for (const run of runs(points)) {
    const at = run.map(([time, value]) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`);
    const [cx, cy] = at[0].split(",");
    marks.push(run.length === 1 ? svg("circle", { cx, cy, r: 1.6 }) : svg("polyline", { points: at.join(" ") }));
  }
  return el("figure", { class: "chart" }, el("h2", {}, title),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }, ...marks), el("figcaption", { class: "faint" }, words));
}

/** Points that stand next to each other and are known. */
function runs(points) {
  const found = [[]];
  for (const point of points) {
    if (point[1] !== null) found[found.length - 1].push(point);
    else if (found[found.length - 1].length) found.push([]);
  }
  return found.filter((run) => run.length);
}

const clock = (at) => new Date(at).toLocaleTimeString("en-GB");
