// Drawing of agents on a canvas. A million of them is one pass over typed arrays and one ImageData.
import type { Space } from "../api";
import { colourOf, css, type Scale } from "../palette";
import type { Picture } from "./columns";
import type { Layout } from "./layout";

export interface Painted {
  /** The agent at a place of the canvas, in its own pixels; -1 if there is none. */
  at: (x: number, y: number) => number;
}

type Context = CanvasRenderingContext2D;

const NOBODY: Painted = { at: () => -1 };
/** From so many agents on, a dot is a pixel. */
const MANY = 20_000;

export function paintGrid(context: Context, space: Space, picture: Picture, scale: Scale): Painted {
  const { x, y, colour, left, top } = picture;
  if (!x || !y) return NOBODY;
  const { width, height } = context.canvas;
  const columns = Math.max(1, Math.round(space.width));
  const rows = Math.max(1, Math.round(space.height));
  const who = new Int32Array(columns * rows).fill(-1);
  for (let agent = 0; agent < x.values.length; agent++) {
    const place = cell(x.values[agent]! - left, columns) + cell(y.values[agent]! - top, rows) * columns;
    if (place >= 0 && place < who.length) who[place] = agent;
  }
  context.clearRect(0, 0, width, height);
  if (width / columns >= 5) paintSquares(context, who, columns, rows, colour.values, scale);
  else paintPixels(context, who, columns, rows, colour.values, scale);
  return {
    at: (px, py) => who[Math.floor((px / width) * columns) + Math.floor((py / height) * rows) * columns] ?? -1,
  };
}

const cell = (value: number, size: number): number => (value >= 0 && value < size ? Math.floor(value) : -1e9);

/** Few cells: squares with a gap, so that each can be told from its neighbour. */
function paintSquares(context: Context, who: Int32Array, columns: number, rows: number, values: Float32Array, scale: Scale): void {
  const w = context.canvas.width / columns;
  const h = context.canvas.height / rows;
  const gap = w >= 8 ? Math.max(1, Math.round(w / 10)) : 0.5;
  let last = -1;
  for (let place = 0; place < who.length; place++) {
    const agent = who[place]!;
    if (agent < 0) continue;
    const colour = colourOf(scale, values[agent]!);
    if (colour !== last) {
      context.fillStyle = css(colour);
      last = colour;
    }
    context.fillRect((place % columns) * w, Math.floor(place / columns) * h, w - gap, h - gap);
  }
}

/** Many cells: one pixel each, and the browser scales the image. */
function paintPixels(context: Context, who: Int32Array, columns: number, rows: number, values: Float32Array, scale: Scale): void {
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let place = 0; place < who.length; place++) {
    const agent = who[place]!;
    if (agent >= 0) pixels[place] = colourOf(scale, values[agent]!);
  }
  const canvas = new OffscreenCanvas(columns, rows);
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = columns > context.canvas.width;
  context.imageSmoothingQuality = "high";
  context.drawImage(canvas, 0, 0, context.canvas.width, context.canvas.height);
}

export function paintPlane(context: Context, space: Space, picture: Picture, scale: Scale): Painted {
  const { x, y, heading, colour, left, top } = picture;
  if (!x || !y) return NOBODY;
  const { width, height } = context.canvas;
  const n = x.values.length;
  const angles = directions(heading.map(({ values }) => values));
  const kx = width / (space.width || 1);
  const ky = height / (space.height || 1);
  context.clearRect(0, 0, width, height);
  if (n > MANY) {
    const image = new ImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let agent = 0; agent < n; agent++) {
      const px = ((x.values[agent]! - left) * kx) | 0;
      const py = (height - 1 - (y.values[agent]! - top) * ky) | 0;
      if (px >= 0 && px < width && py >= 0 && py < height) pixels[px + py * width] = colourOf(scale, colour.values[agent]!);
    }
    context.putImageData(image, 0, 0);
  } else {
    const size = Math.max(2, Math.min(7, Math.sqrt((width * height) / (n || 1)) / 5)) * 1.4;
    for (let agent = 0; agent < n; agent++) {
      context.fillStyle = css(colourOf(scale, colour.values[agent]!));
      const px = (x.values[agent]! - left) * kx;
      const py = height - (y.values[agent]! - top) * ky;
      if (angles) arrow(context, px, py, -angles(agent), size);
      else dot(context, px, py, size / 1.4);
    }
  }
  return nearest((agent) => (x.values[agent]! - left) * kx, (agent) => height - (y.values[agent]! - top) * ky, n);
}

function directions([first, second]: Float32Array[]): ((agent: number) => number) | null {
  if (!first) return null;
  return second ? (agent) => Math.atan2(second[agent]!, first[agent]!) : (agent) => first[agent]!;
}

function dot(context: Context, x: number, y: number, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

function arrow(context: Context, x: number, y: number, angle: number, size: number): void {
  const cos = Math.cos(angle);
  const sin = Math.sin(angle);
  context.beginPath();
  context.moveTo(x + cos * size * 1.6, y + sin * size * 1.6);
  context.lineTo(x - cos * size - sin * size * 0.8, y - sin * size + cos * size * 0.8);
  context.lineTo(x - cos * size + sin * size * 0.8, y - sin * size - cos * size * 0.8);
  context.fill();
}

/** Looks at every agent: a millisecond for a million, once a frame at most. */
function nearest(x: (i: number) => number, y: (i: number) => number, n: number, name: (i: number) => number = (i) => i): Painted {
  return {
    at: (px, py) => {
      let best = 14 * 14;
      let found = -1;
      for (let i = 0; i < n; i++) {
        const dx = x(i) - px;
        const dy = y(i) - py;
        const far = dx * dx + dy * dy;
        if (far < best) {
          best = far;
          found = i;
        }
      }
      return found < 0 ? -1 : name(found);
    },
  };
}

interface Ties {
  moved: number;
  dark: boolean;
  canvas: OffscreenCanvas;
}

const drawnTies = new WeakMap<Layout, Ties>();

/** Ties do not change with the round, and thousands of lines cost more than all else, so they are drawn once. */
function ties(layout: Layout, width: number, height: number, dark: boolean, px: (i: number) => number, py: (i: number) => number): OffscreenCanvas {
  const kept = drawnTies.get(layout);
  if (kept && kept.moved === layout.moved && kept.dark === dark && kept.canvas.width === width && kept.canvas.height === height) return kept.canvas;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d")!;
  context.strokeStyle = dark ? "#9aa4ae" : "#5a626b";
  context.globalAlpha = Math.max(0.06, Math.min(0.5, 900 / (layout.edges.length || 1)));
  context.lineWidth = layout.edges.length > 2000 ? 0.7 : 1.2;
  context.beginPath();
  for (const [from, to] of layout.edges) {
    context.moveTo(px(from), py(from));
    context.lineTo(px(to), py(to));
  }
  context.stroke();
  drawnTies.set(layout, { moved: layout.moved, dark, canvas });
  return canvas;
}

export function paintNetwork(context: Context, layout: Layout, picture: Picture, scale: Scale, dark: boolean): Painted {
  const { width, height } = context.canvas;
  const { x, y, nodes, degree } = layout;
  const size = Math.min(width, height) * 0.94;
  const left = (width - size) / 2;
  const top = (height - size) / 2;
  const px = (i: number) => left + x[i]! * size;
  const py = (i: number) => top + y[i]! * size;
  context.clearRect(0, 0, width, height);
  context.drawImage(ties(layout, width, height, dark, px, py), 0, 0);
  const unit = Math.max(1.5, Math.min(9, size / 14 / Math.sqrt(nodes.length || 1)));
  // The well connected last, so that they are not hidden.
  for (const i of layout.order) {
    context.fillStyle = css(colourOf(scale, picture.colour.values[nodes[i]!] ?? NaN));
    dot(context, px(i), py(i), unit * (1 + Math.min(3, Math.sqrt(degree[i]!) / 6)));
  }
  return nearest(px, py, nodes.length, (i) => nodes[i]!);
}
