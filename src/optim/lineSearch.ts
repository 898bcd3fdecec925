// The search along a line of LBFGS: a step that satisfies the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6).
import { dot, max, abs } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** The function at a step along the line. */
interface Point {
  readonly t: number
  readonly f: number
  readonly g: Tensor
  /** The slope along the line. */
  readonly slope: number
}

/** The function and its gradient after a step along the line. */
export type Along = (t: number) => { readonly f: number; readonly g: Tensor }

/** The step that was found, and how often the function was computed. */
export interface Found extends Omit<Point, 'slope'> {
  readonly evaluations: number
}

const C1 = 1e-4
const C2 = 0.9
const MOST = 25
/** A bracket in which no parameter changes by more is not made smaller, whatever the `toleranceChange` of the optimizer. */
const TOLERANCE = 1e-9

/** The minimum of the cubic through two points with their slopes, within the bounds. */
function cubicMinimum(a: Point, b: Point, [low, high]: readonly [number, number] = a.t <= b.t ? [a.t, b.t] : [b.t, a.t]): number {
  const d1 = a.slope + b.slope - (3 * (a.f - b.f)) / (a.t - b.t)
  const square = d1 * d1 - a.slope * b.slope
  if (!(square >= 0)) return (low + high) / 2
  const d2 = Math.sqrt(square)
  const at =
    a.t <= b.t
      ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
      : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
  return Math.min(Math.max(at, low), high)
}

/** A step along `direction`, starting with `t`, from a point with value `f` and gradient `g`. */
export function strongWolfe(along: Along, t: number, direction: Tensor, f: number, g: Tensor): Found {
  const length = Number(max(abs(direction)).item())
  const slopeOf = (grad: Tensor): number => Number(dot(grad, direction).item())
  const start: Point = { t: 0, f, g, slope: slopeOf(g) }
  let evaluations = 0
  const at = (step: number): Point => {
    evaluations++
    const { f: value, g: grad } = along(step)
    return { t: step, f: value, g: grad, slope: slopeOf(grad) }
  }
  const tooHigh = (p: Point): boolean => p.f > f + C1 * p.t * start.slope
  const flat = (p: Point): boolean => Math.abs(p.slope) <= -C2 * start.slope

  // First, points between which there is a good step: the step grows until the function rises.
  let [before, point] = [start, at(t)]
  let bracket: readonly [Point, Point] | null = null
  let tries = 0
  for (; tries < MOST; tries++) {
    if (tooHigh(point) || (tries > 1 && point.f >= before.f) || (!flat(point) && point.slope >= 0)) {
      bracket = [before, point]
      break
    }
    if (flat(point)) return { t: point.t, f: point.f, g: point.g, evaluations }
    const next = cubicMinimum(before, point, [point.t + 0.01 * (point.t - before.t), point.t * 10])
    before = point
    point = at(next)
  }
  // Then the bracket gets smaller. Its ends keep their places: of two equal ones the first counts as the lower, as in PyTorch.
  const ends: [Point, Point] = [...(bracket ?? [start, point])]
  const lower = (): 0 | 1 => (ends[0].f <= ends[1].f ? 0 : 1)
  let low = lower()
  let stuck = false
  for (; tries < MOST && Math.abs(ends[1].t - ends[0].t) * length >= TOLERANCE; tries++) {
    const [left, right] = ends[0].t < ends[1].t ? ends : [ends[1], ends[0]]
    let step = cubicMinimum(left, right)
    const margin = 0.1 * (right.t - left.t)
    const near = Math.min(right.t - step, step - left.t) < margin
    if (near && (stuck || step >= right.t || step <= left.t)) {
      step = Math.abs(step - right.t) < Math.abs(step - left.t) ? right.t - margin : left.t + margin
      stuck = false
    } else stuck = near
    const tried = at(step)
    const high = low === 0 ? 1 : 0
    if (tooHigh(tried) || tried.f >= ends[low].f) {
      ends[high] = tried
      low = lower()
      continue
    }
    const done = flat(tried)
    if (!done && tried.slope * (ends[high].t - ends[low].t) >= 0) ends[high] = ends[low]
    ends[low] = tried
    if (done) break
  }
  const { t: found, f: value, g: gradient } = ends[low]
  return { t: found, f: value, g: gradient, evaluations }
}
