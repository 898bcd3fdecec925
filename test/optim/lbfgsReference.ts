// LBFGS as PyTorch's torch/optim/lbfgs.py has it, statement by statement, on plain numbers in float64: the judge of ours.

type Vector = readonly number[]
export type Objective = (x: Vector) => { readonly f: number; readonly g: Vector }

export interface ReferenceOptions {
  readonly lr: number
  readonly maxIter: number
  readonly maxEval: number
  readonly toleranceGrad: number
  readonly toleranceChange: number
  readonly historySize: number
  readonly lineSearch: boolean
}

const dot = (a: Vector, b: Vector): number => a.reduce((sum, v, i) => sum + v * (b[i] ?? NaN), 0)
const plus = (a: Vector, b: Vector, alpha: number): Vector => a.map((v, i) => v + alpha * (b[i] ?? NaN))
const most = (a: Vector): number => Math.max(...a.map(Math.abs))

function cubicInterpolate(x1: number, f1: number, g1: number, x2: number, f2: number, g2: number, bounds: readonly [number, number] | null): number {
  const [xmin, xmax] = bounds ?? (x1 <= x2 ? [x1, x2] : [x2, x1])
  const d1 = g1 + g2 - (3 * (f1 - f2)) / (x1 - x2)
  const square = d1 ** 2 - g1 * g2
  if (!(square >= 0)) return (xmin + xmax) / 2
  const d2 = Math.sqrt(square)
  const at = x1 <= x2 ? x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2)) : x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
  return Math.min(Math.max(at, xmin), xmax)
}

function strongWolfe(objective: (t: number) => { f: number; g: Vector }, start: number, d: Vector, f: number, g: Vector, gtd: number) {
  const [c1, c2, toleranceChange, maxLs] = [1e-4, 0.9, 1e-9, 25]
  const dNorm = most(d)
  let t = start
  let { f: fNew, g: gNew } = objective(t)
  let evals = 1
  let gtdNew = dot(gNew, d)
  let [tPrev, fPrev, gPrev, gtdPrev] = [0, f, g, gtd]
  let done = false
  let iteration = 0
  let bracket: number[] = []
  let bracketF: number[] = []
  let bracketG: Vector[] = []
  let bracketGtd: number[] = []
  while (iteration < maxLs) {
    if (fNew > f + c1 * t * gtd || (iteration > 1 && fNew >= fPrev)) {
      ;[bracket, bracketF, bracketG, bracketGtd] = [
        [tPrev, t],
        [fPrev, fNew],
        [gPrev, gNew],
        [gtdPrev, gtdNew],
      ]
      break
    }
    if (Math.abs(gtdNew) <= -c2 * gtd) {
      ;[bracket, bracketF, bracketG, done] = [[t], [fNew], [gNew], true]
      break
    }
    if (gtdNew >= 0) {
      ;[bracket, bracketF, bracketG, bracketGtd] = [
        [tPrev, t],
        [fPrev, fNew],
        [gPrev, gNew],
        [gtdPrev, gtdNew],
      ]
      break
    }
    const [minStep, maxStep] = [t + 0.01 * (t - tPrev), t * 10]
    const before = t
    t = cubicInterpolate(tPrev, fPrev, gtdPrev, t, fNew, gtdNew, [minStep, maxStep])
    ;[tPrev, fPrev, gPrev, gtdPrev] = [before, fNew, gNew, gtdNew]
    ;({ f: fNew, g: gNew } = objective(t))
    evals++
    gtdNew = dot(gNew, d)
    iteration++
  }
  if (iteration === maxLs)
    [bracket, bracketF, bracketG, bracketGtd] = [
      [0, t],
      [f, fNew],
      [g, gNew],
      [gtd, gtdNew],
    ]
  const at = (list: readonly number[], i: number): number => list[i] ?? NaN
  let stuck = false
  let [low, high] = at(bracketF, 0) <= at(bracketF, bracketF.length - 1) ? [0, 1] : [1, 0]
  while (!done && iteration < maxLs) {
    if (Math.abs(at(bracket, 1) - at(bracket, 0)) * dNorm < toleranceChange) break
    t = cubicInterpolate(at(bracket, 0), at(bracketF, 0), at(bracketGtd, 0), at(bracket, 1), at(bracketF, 1), at(bracketGtd, 1), null)
    const [least, greatest] = [Math.min(...bracket), Math.max(...bracket)]
    const eps = 0.1 * (greatest - least)
    if (Math.min(greatest - t, t - least) < eps) {
      if (stuck || t >= greatest || t <= least) {
        t = Math.abs(t - greatest) < Math.abs(t - least) ? greatest - eps : least + eps
        stuck = false
      } else stuck = true
    } else stuck = false
    ;({ f: fNew, g: gNew } = objective(t))
    evals++
    gtdNew = dot(gNew, d)
    iteration++
    const put = (i: number): void => {
      ;[bracket[i], bracketF[i], bracketG[i], bracketGtd[i]] = [t, fNew, gNew, gtdNew]
    }
    if (fNew > f + c1 * t * gtd || fNew >= at(bracketF, low)) {
      put(high)
      ;[low, high] = at(bracketF, 0) <= at(bracketF, 1) ? [0, 1] : [1, 0]
    } else {
      if (Math.abs(gtdNew) <= -c2 * gtd) done = true
      else if (gtdNew * (at(bracket, high) - at(bracket, low)) >= 0)
        [bracket[high], bracketF[high], bracketG[high], bracketGtd[high]] = [
          at(bracket, low),
          at(bracketF, low),
          bracketG[low] ?? g,
          at(bracketGtd, low),
        ]
      put(low)
    }
  }
  return { f: at(bracketF, low), g: bracketG[low] ?? g, t: at(bracket, low), evals }
}

/** The parameters after each step, and how often the function was computed until then. */
export function referenceSteps(
  objective: Objective,
  start: Vector,
  steps: number,
  options: ReferenceOptions,
): { readonly x: Vector; readonly evals: number }[] {
  const { lr, maxIter, maxEval, toleranceGrad, toleranceChange, historySize, lineSearch } = options
  let x = start
  let [nIter, evals, t, hDiag, prevLoss] = [0, 0, 0, 1, 0]
  let d: Vector = []
  let prevGrad: Vector = []
  let [dirs, stps, ro]: [Vector[], Vector[], number[]] = [[], [], []]
  return Array.from({ length: steps }, () => {
    let { f: loss, g: grad } = objective(x)
    let current = 1
    evals++
    if (most(grad) <= toleranceGrad) return { x, evals }
    for (let n = 1; n <= maxIter; n++) {
      nIter++
      if (nIter === 1) {
        d = grad.map((v) => -v)
        ;[dirs, stps, ro, hDiag] = [[], [], [], 1]
      } else {
        const y = plus(grad, prevGrad, -1)
        const s = d.map((v) => v * t)
        const ys = dot(y, s)
        if (ys > 1e-10) {
          if (dirs.length === historySize) for (const list of [dirs, stps, ro]) list.shift()
          dirs.push(y)
          stps.push(s)
          ro.push(1 / ys)
          hDiag = ys / dot(y, y)
        }
        const al: number[] = []
        let q: Vector = grad.map((v) => -v)
        for (let i = dirs.length - 1; i >= 0; i--) {
          al[i] = dot(stps[i] ?? [], q) * (ro[i] ?? NaN)
          q = plus(q, dirs[i] ?? [], -(al[i] ?? NaN))
        }
        let r: Vector = q.map((v) => v * hDiag)
        for (let i = 0; i < dirs.length; i++) r = plus(r, stps[i] ?? [], (al[i] ?? NaN) - dot(dirs[i] ?? [], r) * (ro[i] ?? NaN))
        d = r
      }
      prevGrad = grad
      prevLoss = loss
      t = nIter === 1 ? Math.min(1, 1 / grad.reduce((sum, v) => sum + Math.abs(v), 0)) * lr : lr
      const gtd = dot(grad, d)
      if (gtd > -toleranceChange) break
      let used = 0
      let flat = false
      if (lineSearch) {
        const from = x
        const found = strongWolfe((step) => objective(plus(from, d, step)), t, d, loss, grad, gtd)
        ;[loss, grad, t, used] = [found.f, found.g, found.t, found.evals]
        x = plus(from, d, t)
        flat = most(grad) <= toleranceGrad
      } else {
        x = plus(x, d, t)
        if (n !== maxIter) {
          ;({ f: loss, g: grad } = objective(x))
          flat = most(grad) <= toleranceGrad
          used = 1
        }
      }
      current += used
      evals += used
      if (n === maxIter || current >= maxEval || flat) break
      if (most(d.map((v) => v * t)) <= toleranceChange || Math.abs(loss - prevLoss) < toleranceChange) break
    }
    return { x, evals }
  })
}
