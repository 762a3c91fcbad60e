// Colours of data. Categories: Okabe and Ito's. Numbers: viridis, cut at the end that would vanish in the background.
// Scales around zero: blue to orange over grey. All of them hold for the common kinds of colour blindness.

const CATEGORIES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c6bb1"];
const DARK_CATEGORIES = ["#56b4e9", "#e69f00", "#00b487", "#dd92bd", "#3a8fd0", "#e8743b", "#f0e442", "#a58bd0"];
export const OTHER = "#8a929b";

const VIRIDIS = [
  [68, 1, 84], [72, 36, 117], [65, 68, 135], [53, 95, 141], [42, 120, 142], [33, 145, 140],
  [34, 168, 132], [68, 191, 112], [122, 209, 81], [189, 223, 38], [253, 231, 37],
];
const DIVERGING_LIGHT = [[0, 84, 148], [62, 138, 190], [150, 178, 198], [196, 196, 196], [222, 178, 140], [219, 125, 60], [190, 76, 0]];
const DIVERGING_DARK = [[86, 180, 233], [70, 138, 182], [76, 104, 128], [96, 96, 100], [150, 108, 76], [205, 118, 58], [255, 140, 66]];

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function category(index: number, dark: boolean): string {
  if (index < 0 || index >= CATEGORIES.length) return OTHER;
  return (dark ? DARK_CATEGORIES : CATEGORIES)[index] ?? OTHER;
}

export interface Scale {
  kind: "number" | "category";
  low: number;
  high: number;
  words: string[];
  /** Colours as 0xAABBGGRR, the byte order of ImageData on every machine that browsers run on. */
  table: Uint32Array;
  missing: number;
}

const STEPS = 256;

const packed = (r: number, g: number, b: number): number => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

function unhex(hex: string): number {
  const value = parseInt(hex.slice(1), 16);
  return packed(value >> 16, (value >> 8) & 255, value & 255);
}

export const css = (colour: number): string => `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;

function ramp(stops: number[][], from: number, to: number): Uint32Array {
  const table = new Uint32Array(STEPS);
  for (let i = 0; i < STEPS; i++) {
    const at = (from + ((to - from) * i) / (STEPS - 1)) * (stops.length - 1);
    const low = stops[Math.floor(at)]!;
    const high = stops[Math.min(stops.length - 1, Math.floor(at) + 1)]!;
    const part = at - Math.floor(at);
    const mix = (k: number) => Math.round(low[k]! + (high[k]! - low[k]!) * part);
    table[i] = packed(mix(0), mix(1), mix(2));
  }
  return table;
}

export function numberScale(low: number, high: number, dark: boolean): Scale {
  const around = low < 0 && high > 0 && Math.abs(low + high) <= 0.1 * (high - low);
  const table = around
    ? ramp(dark ? DIVERGING_DARK : DIVERGING_LIGHT, 0, 1)
    : dark ? ramp(VIRIDIS, 0.2, 1) : ramp(VIRIDIS, 0, 0.93);
  return { kind: "number", low, high, words: [], table, missing: unhex(dark ? "#3a4047" : "#c9ced3") };
}

/** How many, in one hue: it must not be taken for the scale of a value. */
export function densityScale(dark: boolean): Scale {
  const table = dark
    ? ramp([[30, 46, 58], [44, 96, 130], [86, 168, 220], [214, 238, 255]], 0, 1)
    : ramp([[206, 224, 236], [120, 172, 208], [22, 104, 158], [4, 40, 70]], 0, 1);
  return { kind: "number", low: 0, high: 1, words: [], table, missing: 0 };
}

export function categoryScale(words: string[], dark: boolean): Scale {
  const table = new Uint32Array(Math.max(1, words.length));
  for (let i = 0; i < table.length; i++) table[i] = unhex(category(i, dark));
  return { kind: "category", low: 0, high: words.length - 1, words, table, missing: unhex(dark ? "#3a4047" : "#c9ced3") };
}

export function colourOf(scale: Scale, value: number): number {
  if (value !== value) return scale.missing;
  if (scale.kind === "category") return scale.table[value] ?? scale.missing;
  const span = scale.high - scale.low || 1;
  const at = Math.round(((value - scale.low) / span) * (STEPS - 1));
  return scale.table[at < 0 ? 0 : at >= STEPS ? STEPS - 1 : at]!;
}

export const lineColours = (dark: boolean): string[] => (dark ? DARK_CATEGORIES : CATEGORIES);
