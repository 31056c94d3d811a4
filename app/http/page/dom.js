// Elements, times and numbers. What the job says is only ever text: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function built(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** An element of HTML. Attributes that are null or false are left out, children that are null too. */
export const el = (name, attributes = {}, ...children) => built(document.createElement(name), attributes, children);

/** An element of SVG. */
export const svg = (name, attributes = {}, ...children) =>
  built(document.createElementNS(SVG, name), attributes, children);

/** Makes one tree like another in place, so that focus, selection and scroll stay where they are. */
export function morph(before, after) {
  if (before.nodeType !== after.nodeType || before.nodeName !== after.nodeName) {
    before.replaceWith(after);
    return;
  }
  if (before.nodeType === Node.TEXT_NODE) {
    if (before.data !== after.data) before.data = after.data;
    return;
  }
  for (const { name } of [...before.attributes]) if (!after.hasAttribute(name)) before.removeAttribute(name);
  for (const { name, value } of after.attributes) {
    if (before.getAttribute(name) !== value) before.setAttribute(name, value);
  }
  // What somebody is typing or choosing is theirs.
  if (before instanceof HTMLInputElement && before !== document.activeElement) before.value = after.value;
  if (before instanceof HTMLSelectElement && before === document.activeElement) return;
  const [mine, theirs] = [[...before.childNodes], [...after.childNodes]];
  theirs.forEach((child, index) => (index < mine.length ? morph(mine[index], child) : before.append(child)));
  for (const gone of mine.slice(theirs.length)) gone.remove();
  if (before instanceof HTMLSelectElement) before.value = after.value;
}

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"]];

/** Seconds as people say them: `1.2 s`, `3 min`, `5 h`. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "-";
  const [size, unit] = UNITS.find(([one]) => seconds >= one) ?? [1, "s"];
  const count = seconds / size;
  return `${count < 10 && unit === "s" ? count.toFixed(1) : Math.round(count)} ${unit}`;
}

/** How long ago a time of the job was, by the job's own clock. */
export const ago = (at, now) => (at === null ? "never" : `${duration(Math.max(0, (Date.parse(now) - Date.parse(at)) / 1000))} ago`);

export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** A side of a change. */
export function side(value) {
  if (value === null || value === undefined) return "-";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const GOOD = new Set(["LIVE", "ENDED", "ACTIVE", "RUNNING", "SYNCED", "applied", "yes", "done"]);
const BAD = new Set(["ERROR", "FAULTED", "failed", "TOPIC_MISSING", "no"]);
const FAINT = new Set(["DISABLED", "NOT_SUPPORTED", "SOURCE_EMPTY"]);

/** The class of a word: what is not known to be well is not shown as if it were. */
export const tone = (word) => (GOOD.has(word) ? "good" : BAD.has(word) ? "bad" : FAINT.has(word) ? "faint" : "poor");
