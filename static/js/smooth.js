// Smoothing as metrics.smoothing does it: total = decay * total + gain * value over norm, the same recurrence over ones.
// The server smooths whole series; here the curve goes on with new points, and moves under the finger until the server answers.
const VIEWPORT = 1000;
const MOST = 0.999;

export class Curve {
  constructor({ mode, weight, value, total, norm, span }, x) {
    this.mode = mode;
    this.weight = weight;
    this.value = value;
    this.total = total;
    this.norm = norm;
    this.span = span;
    this.x = x; // of the last point
    this.root = Math.min(Math.sqrt(weight), MOST);
  }

  next(x, value) {
    this.value.push(this.step(x, value, 1));
  }

  step(x, value, count) {
    if (!Number.isFinite(value)) return value;
    const byDistance = this.mode === "distance";
    const decay = byDistance ? this.root ** (((x - this.x) / (this.span || 1)) * VIEWPORT) : this.weight ** count;
    const gain = byDistance ? 1 : 1 - decay;
    this.total = decay * this.total + gain * value;
    this.norm = decay * this.norm + gain;
    this.x = x;
    return this.total / this.norm;
  }
}

export function preview(x, values, counts, { mode, weight }) {
  // a bucket weighs as its points do together
  const finite = values.filter(Number.isFinite);
  if (!weight || finite.every((value) => value === finite[0])) return null;
  const curve = new Curve({ mode, weight, value: [], total: 0, norm: 0, span: x.at(-1) - x[0] }, x[0]);
  curve.value = values.map((value, index) => curve.step(x[index], value, counts ? counts[index] : 1));
  return curve;
}
