// Plans of discrete Fourier transforms of one length: factors and roots of unity, computed once. Lengths of small factors are transformed stage by stage (Stockham's order, no
// permutation); others as a convolution of a length of small factors (Bluestein).

/** Numbers in two arrays: the real parts and the imaginary parts. */
export interface Complex {
  readonly re: Float64Array
  readonly im: Float64Array
}

/** Transforms of one length. */
export interface Plan {
  /** Bytes that the plan keeps. */
  readonly bytes: number
  /** Replaces the first n numbers of `x` by their transform; `work` is as long as the plan's own arrays demand. */
  run(x: Complex, work: Complex): void
  /** How many numbers `x` and `work` must have room for. */
  readonly room: number
}

/** The largest factor that a stage of its own takes. */
const LARGEST_FACTOR = 31

/** The factors of the stages, 4 before 2; null if one is too large. */
function factorsOf(n: number): readonly number[] | null {
  const factors: number[] = []
  let left = n
  for (const factor of [4, 2, 3, 5]) for (; left % factor === 0; left /= factor) factors.push(factor)
  for (let factor = 7; left > 1 && factor <= LARGEST_FACTOR; factor += 2) for (; left % factor === 0; left /= factor) factors.push(factor)
  return left === 1 ? factors : null
}

/** cos and -sin of 2 pi k / n. By symmetry from the first eighth, where both are exact to the last bit or so. */
function rootsOf(n: number): Complex {
  const [re, im] = [new Float64Array(n), new Float64Array(n)]
  for (let k = 0; k < n; k++) {
    // 8 k = octant * n + rest
    const octant = Math.floor((8 * k) / n)
    const mirrored = octant % 2 === 1
    const rest = mirrored ? (octant + 1) * n - 8 * k : 8 * k - octant * n
    const angle = (Math.PI / 4) * (rest / n)
    const [near, far] = [Math.cos(angle), Math.sin(angle)]
    const quadrant = ((octant + 1) >> 1) % 4
    const sign = mirrored ? -1 : 1
    const [c, s] =
      quadrant === 0 ? [near, sign * far] : quadrant === 1 ? [-sign * far, near] : quadrant === 2 ? [-near, -sign * far] : [sign * far, -near]
    re[k] = c
    im[k] = -s
  }
  return { re, im }
}

type Stage = (length: number, stride: number, x: Complex, y: Complex) => void

/** A stage of two: the halves added and subtracted. */
const stageOfTwo =
  (n: number, roots: Complex): Stage =>
  (length, stride, x, y) => {
    const m = length / 2
    const xr = x.re
    const xi = x.im
    const yr = y.re
    const yi = y.im
    const step = n / length
    for (let p = 0; p < m; p++) {
      const c = roots.re[p * step] ?? 1
      const s = roots.im[p * step] ?? 0
      for (let q = 0; q < stride; q++) {
        const a = q + stride * p
        const b = a + stride * m
        const ar = xr[a] ?? 0
        const ai = xi[a] ?? 0
        const br = xr[b] ?? 0
        const bi = xi[b] ?? 0
        const to = q + stride * 2 * p
        yr[to] = ar + br
        yi[to] = ai + bi
        yr[to + stride] = (ar - br) * c - (ai - bi) * s
        yi[to + stride] = (ar - br) * s + (ai - bi) * c
      }
    }
  }

/** A stage of four, where the inner roots of unity are 1, -i, -1 and i. */
const stageOfFour =
  (n: number, roots: Complex): Stage =>
  (length, stride, x, y) => {
    const m = length / 4
    const xr = x.re
    const xi = x.im
    const yr = y.re
    const yi = y.im
    const wr = roots.re
    const wi = roots.im
    const step = n / length
    for (let p = 0; p < m; p++) {
      const k = p * step
      const c1 = wr[k] ?? 1
      const s1 = wi[k] ?? 0
      const c2 = wr[2 * k] ?? 1
      const s2 = wi[2 * k] ?? 0
      const c3 = wr[3 * k] ?? 1
      const s3 = wi[3 * k] ?? 0
      for (let q = 0; q < stride; q++) {
        const a = q + stride * p
        const b = a + stride * m
        const c = b + stride * m
        const d = c + stride * m
        const ar = xr[a] ?? 0
        const ai = xi[a] ?? 0
        const br = xr[b] ?? 0
        const bi = xi[b] ?? 0
        const cr = xr[c] ?? 0
        const ci = xi[c] ?? 0
        const dr = xr[d] ?? 0
        const di = xi[d] ?? 0
        const pr = ar + cr
        const pi = ai + ci
        const mr = ar - cr
        const mi = ai - ci
        const qr = br + dr
        const qi = bi + di
        // -i (b - d)
        const tr = bi - di
        const ti = dr - br
        const to = q + stride * 4 * p
        yr[to] = pr + qr
        yi[to] = pi + qi
        const ur = mr + tr
        const ui = mi + ti
        yr[to + stride] = ur * c1 - ui * s1
        yi[to + stride] = ur * s1 + ui * c1
        const vr = pr - qr
        const vi = pi - qi
        yr[to + 2 * stride] = vr * c2 - vi * s2
        yi[to + 2 * stride] = vr * s2 + vi * c2
        const wr3 = mr - tr
        const wi3 = mi - ti
        yr[to + 3 * stride] = wr3 * c3 - wi3 * s3
        yi[to + 3 * stride] = wr3 * s3 + wi3 * c3
      }
    }
  }

/** A stage of any factor: a small transform by its definition. */
function stageOf(factor: number, n: number, roots: Complex): Stage {
  const { re: ir, im: ii } = rootsOf(factor)
  const [ar, ai] = [new Float64Array(factor), new Float64Array(factor)]
  return (length, stride, x, y) => {
    const m = length / factor
    const step = n / length
    for (let p = 0; p < m; p++) {
      for (let q = 0; q < stride; q++) {
        for (let k = 0; k < factor; k++) {
          const from = q + stride * (p + k * m)
          ar[k] = x.re[from] ?? 0
          ai[k] = x.im[from] ?? 0
        }
        for (let j = 0; j < factor; j++) {
          let sr = 0
          let si = 0
          for (let k = 0; k < factor; k++) {
            const root = (j * k) % factor
            const c = ir[root] ?? 1
            const s = ii[root] ?? 0
            sr += (ar[k] ?? 0) * c - (ai[k] ?? 0) * s
            si += (ar[k] ?? 0) * s + (ai[k] ?? 0) * c
          }
          const c = roots.re[p * step * j] ?? 1
          const s = roots.im[p * step * j] ?? 0
          const to = q + stride * (factor * p + j)
          y.re[to] = sr * c - si * s
          y.im[to] = sr * s + si * c
        }
      }
    }
  }
}

function stagedPlan(n: number, factors: readonly number[]): Plan {
  const roots = rootsOf(n)
  const kinds = new Map<number, Stage>([
    [2, stageOfTwo(n, roots)],
    [4, stageOfFour(n, roots)],
  ])
  const stages = factors.map((factor): readonly [number, Stage] => {
    const stage = kinds.get(factor) ?? stageOf(factor, n, roots)
    kinds.set(factor, stage)
    return [factor, stage]
  })
  return {
    room: n,
    bytes: 16 * n,
    run(x, work) {
      let [from, to] = [x, work]
      let [length, stride] = [n, 1]
      for (const [factor, stage] of stages) {
        stage(length, stride, from, to)
        length /= factor
        stride *= factor
        ;[from, to] = [to, from]
      }
      if (from === x) return
      x.re.set(from.re.subarray(0, n))
      x.im.set(from.im.subarray(0, n))
    },
  }
}

/** jk = (j² + k² - (k - j)²) / 2 makes the transform a convolution with a chirp. */
function chirpPlan(n: number): Plan {
  let m = 1
  while (m < 2 * n - 1) m *= 2
  const inner = planOf(m)
  // exp(-i pi k² / n): the squares are taken modulo 2n, where they are exact.
  const double = rootsOf(2 * n)
  const chirp: Complex = { re: new Float64Array(n), im: new Float64Array(n) }
  const filter: Complex = { re: new Float64Array(m), im: new Float64Array(m) }
  let square = 0
  for (let k = 0; k < n; k++) {
    const [c, s] = [double.re[square] ?? 1, double.im[square] ?? 0]
    chirp.re[k] = c
    chirp.im[k] = s
    for (const at of k === 0 ? [0] : [k, m - k]) {
      filter.re[at] = c
      filter.im[at] = -s
    }
    square = (square + 2 * k + 1) % (2 * n)
  }
  const scratch: Complex = { re: new Float64Array(m), im: new Float64Array(m) }
  inner.run(filter, scratch)
  return {
    room: m,
    bytes: 16 * (2 * n + 2 * m) + inner.bytes,
    run(x, work) {
      for (let k = 0; k < n; k++) {
        const [a, b, c, s] = [x.re[k] ?? 0, x.im[k] ?? 0, chirp.re[k] ?? 1, chirp.im[k] ?? 0]
        x.re[k] = a * c - b * s
        x.im[k] = a * s + b * c
      }
      x.re.fill(0, n, m)
      x.im.fill(0, n, m)
      inner.run(x, work)
      // The product, with its parts exchanged: so that the same transform goes back.
      for (let k = 0; k < m; k++) {
        const [a, b, c, s] = [x.re[k] ?? 0, x.im[k] ?? 0, filter.re[k] ?? 0, filter.im[k] ?? 0]
        x.im[k] = a * c - b * s
        x.re[k] = a * s + b * c
      }
      inner.run(x, work)
      for (let k = 0; k < n; k++) {
        const [a, b, c, s] = [(x.im[k] ?? 0) / m, (x.re[k] ?? 0) / m, chirp.re[k] ?? 1, chirp.im[k] ?? 0]
        x.re[k] = a * c - b * s
        x.im[k] = a * s + b * c
      }
    },
  }
}

/** A plan for transforms of length `n`. */
export function planOf(n: number): Plan {
  const factors = factorsOf(n)
  return factors === null ? chirpPlan(n) : stagedPlan(n, factors)
}
