// Numbers: how they are written, and what two looks at a histogram or a counter say.

const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function scaled(value, steps) {
  const [size, unit] = steps.find(([size]) => Math.abs(value) >= size) ?? steps.at(-1);
  return `${digits.format(value / size)} ${unit}`;
}

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const BYTES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];

// A number in the unit of its panel or column; a dash for none.
export function written(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (unit === "ns") return value === 0 ? "0" : scaled(value, TIMES);
  if (unit === "us") return written(value * 1e3, "ns");
  if (unit === "bytes") return value === 0 ? "0" : scaled(value, BYTES);
  if (unit === "bytes/s") return value === 0 ? "0" : `${written(value, "bytes")}/s`;
  if (unit === "ratio") return `${digits.format(value * 100)} %`;
  return Math.abs(value) >= 1000 ? whole.format(value) : digits.format(value);
}

export const isNumber = (value) => typeof value === "number";

// The texts of a row, and the names of its numbers that have no meaning of their own, name its line.
export function lines(rows) {
  const found = new Map();
  for (const row of rows) {
    const entries = Object.entries(row);
    const texts = entries.filter(([, value]) => typeof value === "string").map(([, value]) => value);
    const numbers = entries.filter(([, value]) => typeof value !== "string");
    for (const [column, value] of numbers) {
      const name = texts.length === 0 ? column : numbers.length === 1 ? texts.join(".") : `${texts.join(".")} ${column}`;
      found.set(name, isNumber(value) ? value : null);
    }
  }
  return found;
}

// Buckets of each line: what they count and the bound below which it is.
export function buckets(rows) {
  const found = new Map();
  for (const { below, count, ...texts } of rows) {
    const name = Object.values(texts).join(".");
    if (!found.has(name)) found.set(name, new Map());
    found.get(name).set(below, count);
  }
  return found;
}

// What has been counted between two looks; nothing if there was none before, or if the node has started anew.
export function grown(now, before) {
  const found = new Map();
  if (!before) return found;
  for (const [key, count] of now) {
    const more = count - (before.get(key) ?? 0);
    if (more < 0) return new Map();
    if (more > 0) found.set(key, more);
  }
  return found;
}

export const sum = (counts) => [...counts.values()].reduce((all, count) => all + count, 0);

// The bound of the bucket in which a quantile is.
export function quantile(counts, at) {
  const wanted = sum(counts) * at;
  let seen = 0;
  for (const [below, count] of [...counts].sort(([a], [b]) => a - b)) {
    seen += count;
    if (seen >= wanted) return below;
  }
  return null;
}
