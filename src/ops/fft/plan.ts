// Plans of discrete Fourier transforms of one length: factors and roots of unity, computed once. Lengths of small factors are transformed stage by stage; others as a convolution of a length
// of small factors (Bluestein).
import { present } from '../../errors/index.ts'
import { Tensor, windowOf } from '../../tensor/index.ts'
import { launch } from '../eager/launch.ts'
import { LARGEST_FACTOR, multiply, stageKernel } from './kernels.ts'

/** Complex numbers: the real parts and the imaginary parts, in float64. */
export type Parts<T> = readonly [re: T, im: T]

/** Transforms of one length. */
export interface Plan {
  /** Bytes that the plan keeps. */
  readonly bytes: number
  /** How many numbers each line of `x` and `work` has; what comes after the line's own numbers is 0 at the start. */
  readonly room: number
  /** Transforms the lines of `x`, with the help of as much memory in `work`; returns which of the two has the results. */
  run(x: Parts<Tensor>, work: Parts<Tensor>, lines: number): Parts<Tensor>
}

/** The factors of the stages; null if one is too large. */
function factorsOf(n: number): readonly number[] | null {
  const factors: number[] = []
  let left = n
  for (const factor of [4, 2, 3, 5, 7, 11, LARGEST_FACTOR]) for (; left % factor === 0; left /= factor) factors.push(factor)
  return left === 1 ? factors : null
}

/** cos and -sin of 2 pi k / n. By symmetry from the first eighth, where both are exact to the last bit or so. */
function rootsOf(n: number): Parts<Float64Array> {
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
  return [re, im]
}

/** Memory for `n` numbers. */
export const empty = (n: number): Parts<Tensor> => [Tensor.empty([n], 'float64'), Tensor.empty([n], 'float64')]

/** Copies numbers to where kernels read them. */
function tensorsOf(parts: Parts<Float64Array>): Parts<Tensor> {
  const tensors = empty(parts[0].length)
  parts.forEach((values, i) => {
    const { data, base } = windowOf(present(tensors[i], 'a part'))
    for (let k = 0; k < values.length; k++) data[base + k] = values[k] ?? 0
  })
  return tensors
}

interface Stage {
  readonly radix: number
  /** How many steps of the stage have roots of their own. */
  readonly steps: number
  readonly stride: number
  readonly roots: Parts<Tensor>
}

/** The stages of `n` numbers. In a stage of transforms of `length` numbers, result j of step p is multiplied by the root of index p * j of `length`. */
function stagesOf(n: number, factors: readonly number[]): readonly Stage[] {
  const [re, im] = rootsOf(n)
  const stages: Stage[] = []
  let stride = 1
  for (const radix of factors) {
    const steps = n / stride / radix
    const own: Parts<Float64Array> = [new Float64Array(steps * (radix - 1)), new Float64Array(steps * (radix - 1))]
    for (let p = 0, to = 0; p < steps; p++) {
      for (let j = 1; j < radix; j++, to++) {
        own[0][to] = re[p * j * stride] ?? 1
        own[1][to] = im[p * j * stride] ?? 0
      }
    }
    stages.push({ radix, steps, stride, roots: tensorsOf(own) })
    stride *= radix
  }
  return stages
}

function stagedPlan(n: number, factors: readonly number[]): Plan {
  const stages = stagesOf(n, factors)
  return {
    room: n,
    bytes: stages.reduce((bytes, { radix, steps }) => bytes + 16 * steps * (radix - 1), 0),
    run(x, work, lines) {
      let [from, to] = [x, work]
      for (const { radix, steps, stride, roots } of stages) {
        launch(stageKernel(radix, stride === 1), [...to, ...from, ...roots], [lines, n, steps, stride])
        ;[from, to] = [to, from]
      }
      return from
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
  const chirp: Parts<Float64Array> = [new Float64Array(n), new Float64Array(n)]
  const filter: Parts<Float64Array> = [new Float64Array(m), new Float64Array(m)]
  let square = 0
  for (let k = 0; k < n; k++) {
    const [c, s] = [double[0][square] ?? 1, double[1][square] ?? 0]
    chirp[0][k] = c
    chirp[1][k] = s
    for (const at of k === 0 ? [0] : [k, m - k]) {
      filter[0][at] = c
      filter[1][at] = -s
    }
    square = (square + 2 * k + 1) % (2 * n)
  }
  const factors = tensorsOf(chirp)
  const transformed = inner.run(tensorsOf(filter), empty(m), 1)
  const exchanged = ([re, im]: Parts<Tensor>): Parts<Tensor> => [im, re]
  return {
    room: m,
    bytes: 16 * (n + m) + inner.bytes,
    run(x, work, lines) {
      const other = (parts: Parts<Tensor>): Parts<Tensor> => (parts === x ? work : x)
      launch(multiply(), [...x, ...factors], [lines, n, m, 1])
      const there = inner.run(x, work, lines)
      launch(multiply(), [...there, ...transformed], [lines, m, m, 1])
      // With its parts exchanged the same transform goes back.
      const back = exchanged(inner.run(exchanged(there), exchanged(other(there)), lines))
      launch(multiply(), [...back, ...factors], [lines, n, m, 1 / m])
      return back
    },
  }
}

/** A plan for transforms of `n` numbers. */
export function planOf(n: number): Plan {
  const factors = factorsOf(n)
  return factors === null ? chirpPlan(n) : stagedPlan(n, factors)
}
