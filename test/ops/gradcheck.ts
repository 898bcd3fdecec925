// Gradients against finite differences, in float64.
import { expect } from 'vitest'
import { enableGrad, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const { tensor } = torch
const { grad } = torch.autograd

const STEP = 1e-5

/** float64 numbers of the shape, away from each other and from 0, so that no kink of an operator is near. */
export function sample(shape: readonly number[], seed: number, low = -1.5, high = 1.5): Tensor {
  const n = shape.reduce((a, b) => a * b, 1)
  const data = Float64Array.from({ length: n }, (_, i) => {
    const x = Math.sin((i + 1) * 12.9898 + seed * 78.233) * 43758.5453
    const u = x - Math.floor(x)
    const v = low + (high - low) * u
    return Math.abs(v) < 0.05 ? v + 0.1 : v
  })
  return tensor(data).view(shape)
}

const flat = (t: Tensor): number[] => Array.from(t.contiguous().toTypedArray() as ArrayLike<number>, Number)

/** A fixed weighting of the outputs, so that every output element matters differently. */
function loss(result: Tensor | readonly Tensor[]): Tensor {
  const list = (Array.isArray(result) ? result : [result]) as readonly Tensor[]
  const terms = list.filter((t) => t.dtype === 'float64').map((t, k) => t.mul(sample(t.shape, 50 + k)).sum())
  return terms.reduce((a, b) => a.add(b))
}

/** Checks the gradient of `fn` with respect to every float64 input. */
export function gradcheck(fn: (...inputs: Tensor[]) => Tensor | readonly Tensor[], inputs: readonly Tensor[], tolerance = 1e-6): void {
  const wanted = inputs.filter((t) => t.dtype === 'float64')
  for (const input of wanted) input.requiresGrad_()
  const analytic = grad(loss(fn(...inputs)), wanted, { allowUnused: true })
  wanted.forEach((input, which) => {
    const values = flat(input)
    const got = analytic[which] === null ? values.map(() => 0) : flat(analytic[which] as Tensor)
    const wrong = values.flatMap((value, i) => {
      const at = (shifted: number): number =>
        noGrad(() => {
          const changed = Float64Array.from(values)
          changed[i] = shifted
          const replaced = tensor(changed).view(input.shape)
          return Number(loss(fn(...inputs.map((t) => (t === input ? replaced : t)))).item())
        })
      const numeric = (at(value + STEP) - at(value - STEP)) / (2 * STEP)
      const isRight = Math.abs((got[i] as number) - numeric) <= tolerance * (1 + Math.abs(numeric))
      return isRight ? [] : [`element ${i}: ${got[i]} instead of ${numeric}`]
    })
    expect(wrong, `input ${which}`).toEqual([])
  })
}

/** Checks second derivatives: the gradient, recorded, is itself checked. */
export function gradgradcheck(fn: (...inputs: Tensor[]) => Tensor | readonly Tensor[], inputs: readonly Tensor[], tolerance = 1e-5): void {
  const first = (...args: Tensor[]): Tensor[] => {
    const leaves = args.map((t) => (t.dtype === 'float64' && !t.requiresGrad ? t.detach().requiresGrad_() : t))
    const wanted = leaves.filter((t) => t.dtype === 'float64')
    const run = (): (Tensor | null)[] => grad(loss(fn(...leaves)), wanted, { createGraph: true, allowUnused: true })
    return enableGrad(run).filter((t) => t !== null)
  }
  gradcheck(first, inputs, tolerance)
}
