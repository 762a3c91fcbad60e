// Numbers, money and times in words.

const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Four digits that matter; whole numbers in full. */
export function num(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return GROUPED.format(value).replace("-", "−");
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) return value.toExponential(1).replace("e+", "e").replace("-", "−");
  if (size >= 1e5) return GROUPED.format(value).replace("-", "−");
  const text = Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 8 });
  return text.replace("-", "−");
}

/** Short form for axes and tight places: 12k, 3.4M. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e4) {
    return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value).replace("-", "−");
  }
  return num(value, 3);
}

/** A price. Null means that nobody knows it, which is not the same as nothing. */
export function money(usd: number | null | undefined, unpriced = false): string {
  if (usd === null || usd === undefined) return "price unknown";
  if (unpriced) return usd > 0 ? `at least ${dollars(usd)}, some prices unknown` : "price unknown";
  return dollars(usd);
}

function dollars(usd: number): string {
  if (usd === 0) return "$0";
  if (usd < 0.000001) return "under $0.000001";
  if (usd < 0.01) return `$${Number(usd.toPrecision(2)).toFixed(8).replace(/0+$/, "")}`;
  return `$${usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: usd < 1 ? 3 : 2 })}`;
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${num(value)} ${value === 1 ? one : many}`;
}

export function when(ms: number | null | undefined): string {
  if (!ms) return "–";
  return new Date(ms).toLocaleString("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${num(Math.round(ms))} ms`;
  if (ms < 60_000) return `${num(ms / 1000, 3)} s`;
  if (ms < 3_600_000) return pair(Math.round(ms / 1000), 60, "min", "s");
  return pair(Math.round(ms / 60_000), 60, "h", "min");
}

function pair(small: number, size: number, big: string, unit: string): string {
  const rest = small % size;
  return `${num(Math.floor(small / size))} ${big}${rest > 0 ? ` ${rest} ${unit}` : ""}`;
}

export function ago(ms: number | null | undefined): string {
  if (!ms) return "–";
  const past = Date.now() - ms;
  if (past < 10_000) return "just now";
  if (past < 60_000) return `${Math.floor(past / 1000)} s ago`;
  if (past < 3_600_000) return `${Math.floor(past / 60_000)} min ago`;
  if (past < 86_400_000) return `${Math.floor(past / 3_600_000)} h ago`;
  return when(ms);
}

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  return `${(share * 100).toLocaleString("en", { maximumFractionDigits: 1 })}%`;
}

/** A value within a range, to a thousandth of it: more digits would be noise. */
export function within(value: number, low: number, high: number): string {
  const step = 10 ** Math.floor(Math.log10((high - low || 1) / 1000));
  return num(Number((Math.round(value / step) * step).toPrecision(12)) + 0);
}

/** A round for people. Round -1 is the state before the first round. */
export function roundName(round: number): string {
  return round < 0 ? "start" : `round ${num(round)}`;
}
