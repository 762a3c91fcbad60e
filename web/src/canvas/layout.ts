// Places the agents of a network: ties pull, agents push (the forces of ForceAtlas2), and a falling limit on the step settles it.
import type { Network } from "../api";

export interface Layout {
  nodes: number[];
  /** Ties of the whole network, with those that the sample leaves out. */
  total: number;
  edges: [number, number][];
  degree: Float32Array;
  order: number[];
  /** Counts moves, so that what was drawn can be kept between them. */
  moved: number;
  /** Places within 0 to 1. */
  x: Float32Array;
  y: Float32Array;
}

const STEPS = 220;
const CELLS = 20;

/** The same network gives the same picture: first places come from a fixed sequence, never from a clock. */
export function begin(network: Network): Layout {
  // In a sample an agent without ties has lost them to the sample; it would only drift about.
  const tied = new Set(network.edges.flat());
  const nodes = network.sampled ? network.nodes.filter((node) => tied.has(node)) : network.nodes;
  const place = new Map(nodes.map((node, i) => [node, i]));
  const edges = network.edges
    .map(([from, to]): [number, number] => [place.get(from) ?? -1, place.get(to) ?? -1])
    .filter(([from, to]) => from >= 0 && to >= 0 && from !== to);
  const degree = new Float32Array(nodes.length);
  for (const [from, to] of edges) {
    degree[from]!++;
    degree[to]!++;
  }
  const x = new Float32Array(nodes.length);
  const y = new Float32Array(nodes.length);
  let seed = 1;
  const next = () => (seed = (seed * 1664525 + 1013904223) >>> 0) / 2 ** 32;
  for (let i = 0; i < nodes.length; i++) {
    const angle = next() * 2 * Math.PI;
    const far = Math.sqrt(next()) * 0.5;
    x[i] = 0.5 + Math.cos(angle) * far;
    y[i] = 0.5 + Math.sin(angle) * far;
  }
  const order = nodes.map((_, i) => i).sort((a, b) => degree[a]! - degree[b]! || a - b);
  return { nodes, total: network.total_ties, edges, degree, order, moved: 0, x, y };
}

/** Settles a layout in slices, so that the page stays awake. `seen` is called after each slice. */
export async function settle(layout: Layout, seen: () => void, signal: AbortSignal): Promise<void> {
  const n = layout.nodes.length;
  // Work in larger units than the picture's: forces of single agents are then near 1.
  const size = Math.sqrt(n) * 3 + 10;
  for (let i = 0; i < n; i++) {
    layout.x[i]! *= size;
    layout.y[i]! *= size;
  }
  const working = { ...layout, x: Float64Array.from(layout.x), y: Float64Array.from(layout.y) };
  fit(layout, working);
  let step = 0;
  while (step < STEPS && !signal.aborted) {
    const until = performance.now() + 24;
    while (step < STEPS && performance.now() < until) {
      move(working, size * 0.06 * (1 - step / STEPS) ** 1.5 + 0.02);
      step++;
    }
    fit(layout, working);
    seen();
    await new Promise((done) => setTimeout(done, 0));
  }
}

interface Working {
  edges: [number, number][];
  degree: Float32Array;
  x: Float64Array;
  y: Float64Array;
}

function move({ edges, degree, x, y }: Working, limit: number): void {
  const n = x.length;
  const fx = new Float64Array(n);
  const fy = new Float64Array(n);
  push(x, y, degree, fx, fy);
  for (const [a, b] of edges) {
    const dx = x[a]! - x[b]!;
    const dy = y[a]! - y[b]!;
    // Split by degree, so that hubs do not draw everything into one ball.
    fx[a]! -= dx / (1 + degree[a]! * 0.1);
    fy[a]! -= dy / (1 + degree[a]! * 0.1);
    fx[b]! += dx / (1 + degree[b]! * 0.1);
    fy[b]! += dy / (1 + degree[b]! * 0.1);
  }
  const [mx, my] = [mean(x), mean(y)];
  for (let i = 0; i < n; i++) {
    // A little gravity keeps loose parts in sight.
    fx[i]! -= (x[i]! - mx) * 0.12;
    fy[i]! -= (y[i]! - my) * 0.12;
    const size = Math.hypot(fx[i]!, fy[i]!) || 1;
    const go = Math.min(size * 0.1, limit) / size;
    x[i]! += fx[i]! * go;
    y[i]! += fy[i]! * go;
  }
}

/** Agents push each other apart; those in other cells of a coarse grid push as one. */
function push(x: Float64Array, y: Float64Array, degree: Float32Array, fx: Float64Array, fy: Float64Array): void {
  const n = x.length;
  const [left, right] = bounds(x);
  const [top, bottom] = bounds(y);
  const kx = CELLS / (right - left + 1e-6);
  const ky = CELLS / (bottom - top + 1e-6);
  const members: number[][] = Array.from({ length: CELLS * CELLS }, () => []);
  const mass = new Float64Array(CELLS * CELLS);
  const sumX = new Float64Array(CELLS * CELLS);
  const sumY = new Float64Array(CELLS * CELLS);
  const home = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    const at = Math.min(CELLS - 1, Math.floor((x[i]! - left) * kx)) + CELLS * Math.min(CELLS - 1, Math.floor((y[i]! - top) * ky));
    const weight = 1 + Math.sqrt(degree[i]!);
    home[i] = at;
    members[at]!.push(i);
    mass[at]! += weight;
    sumX[at]! += x[i]! * weight;
    sumY[at]! += y[i]! * weight;
  }
  const filled: number[] = [];
  for (let at = 0; at < mass.length; at++) if (mass[at]! > 0) filled.push(at);
  for (let i = 0; i < n; i++) {
    const weight = 1 + Math.sqrt(degree[i]!);
    for (const at of filled) {
      if (at === home[i]) continue;
      const dx = x[i]! - sumX[at]! / mass[at]!;
      const dy = y[i]! - sumY[at]! / mass[at]!;
      const force = (weight * mass[at]!) / (dx * dx + dy * dy + 0.5);
      fx[i]! += dx * force;
      fy[i]! += dy * force;
    }
    const near = members[home[i]!]!;
    // In crowded cells a sample stands for all; it walks on with i, so that each pair is met from some side.
    const stride = Math.max(1, Math.floor(near.length / 24));
    for (let k = i % stride; k < near.length; k += stride) {
      const j = near[k]!;
      if (j === i) continue;
      const dx = x[i]! - x[j]!;
      const dy = y[i]! - y[j]!;
      const force = (weight * (1 + Math.sqrt(degree[j]!)) * stride) / (dx * dx + dy * dy + 0.5);
      fx[i]! += dx * force;
      fy[i]! += dy * force;
    }
  }
}

function bounds(values: Float64Array): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

const mean = (values: Float64Array): number => values.reduce((sum, value) => sum + value, 0) / (values.length || 1);

/** Scales to the picture, but lets the farthest few lie at the rim, so that one stray does not shrink the rest. */
function fit(layout: Layout, { x, y }: { x: Float64Array; y: Float64Array }): void {
  const n = x.length;
  const [cx, cy] = [mean(x), mean(y)];
  const far = Array.from(x, (_, i) => Math.max(Math.abs(x[i]! - cx), Math.abs(y[i]! - cy))).sort((a, b) => a - b);
  const span = (far[Math.min(n - 1, Math.floor(n * 0.995))] || 1) * 2.05;
  layout.moved++;
  const clamp = (value: number) => Math.min(1, Math.max(0, value));
  for (let i = 0; i < n; i++) {
    layout.x[i] = clamp(0.5 + (x[i]! - cx) / span);
    layout.y[i] = clamp(0.5 + (y[i]! - cy) / span);
  }
}
