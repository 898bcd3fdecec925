// Inductor's rewrites, by name: each fires on its pattern, and its condition keeps what it would not compute, or not faster. Eager is the judge of the values.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile } from 'tensorfx/compile'
import { onEvent } from 'tensorfx/debug'
import { rewrites } from '../../src/inductor/rewrites.ts'

const F = nn.functional

/** The rewrites that compiling `fn` for `inputs` applies; the results must be those of eager. */
function appliedTo(fn: (...inputs: Tensor[]) => Tensor | Tensor[], ...inputs: readonly Tensor[]): readonly string[] {
  const applied: string[] = []
  const stop = onEvent((event) => {
    if (event.kind === 'lower') applied.push(...event.rewrites)
  })
  try {
    const given = compile(fn)(...inputs)
    const wanted = fn(...inputs)
    for (const [i, value] of [given].flat().entries()) expect(torch.allclose(value, [wanted].flat()[i] ?? value, { atol: 1e-5 })).toBe(true)
  } finally {
    stop()
  }
  return applied
}

const image = (...shape: readonly number[]): Tensor =>
  torch
    .arange(
      shape.reduce((a, b) => a * b, 1),
      { dtype: 'float32' },
    )
    .mul(7)
    .remainder(11)
    .reshape(shape)

/** The gradients for the input and for the weight. */
const gradients =
  (options: { readonly stride?: number; readonly padding?: number; readonly dilation?: number; readonly groups?: number }) =>
  (x: Tensor, w: Tensor): Tensor[] => {
    const [a, b] = [x.detach().requiresGrad_(), w.detach().requiresGrad_()]
    F.conv2d(a, b, null, options).sin().sum().backward()
    return [a.grad ?? x, b.grad ?? w]
  }

const inputGradient = (x: Tensor, w: Tensor): Tensor => {
  const a = x.detach().requiresGrad_()
  F.conv2d(a, w).sin().sum().backward()
  return a.grad ?? x
}

const poolGradient =
  (size: number) =>
  (x: Tensor): Tensor => {
    const a = x.detach().requiresGrad_()
    torch.maxPool2d(a, size).sin().sum().backward()
    return a.grad ?? x
  }

const [POOL, POOL_GRADIENT, CONVOLUTION, INDEX, SLICE] = rewrites.map(({ name }) => name)

interface Case {
  readonly name: string | undefined
  readonly fires: () => readonly string[]
  /** Calls of the same operator that do not meet the condition. */
  readonly guarded: Readonly<Record<string, () => readonly string[]>>
}

const cases: readonly Case[] = [
  {
    name: POOL,
    fires: () => appliedTo((x) => torch.maxPool2d(x, 2), image(1, 2, 6, 6)),
    guarded: {
      padding: () => appliedTo((x) => torch.maxPool2d(x, 3, { padding: 1 }), image(1, 2, 6, 6)),
      dilation: () => appliedTo((x) => torch.maxPool2d(x, 2, { dilation: 2 }), image(1, 2, 6, 6)),
      'a window of 25 elements': () => appliedTo((x) => torch.maxPool2d(x, 5), image(1, 1, 10, 10)),
      'a last window that is not whole': () => appliedTo((x) => torch.maxPool2d(x, 2, { ceilMode: true }), image(1, 1, 5, 5)),
    },
  },
  {
    name: POOL_GRADIENT,
    fires: () => appliedTo(poolGradient(2), image(1, 2, 6, 6)),
    guarded: { 'windows that do not tile the image': () => appliedTo(poolGradient(2), image(1, 1, 5, 5)) },
  },
  {
    name: CONVOLUTION,
    fires: () => appliedTo(gradients({ padding: 1 }), image(1, 2, 6, 6), image(3, 2, 3, 3)),
    guarded: {
      'a call for one of them': () => appliedTo(inputGradient, image(1, 2, 6, 6), image(3, 2, 3, 3)),
      float64: () => appliedTo(gradients({ padding: 1 }), image(1, 2, 6, 6).double(), image(3, 2, 3, 3).double()),
    },
  },
  { name: INDEX, fires: () => appliedTo((x, y) => torch.selectScatter(x, y, 0, -1), image(4, 3), image(3)), guarded: {} },
  {
    name: SLICE,
    fires: () => appliedTo((x, y) => torch.sliceScatter(x, y, 0, 2, 4), image(6, 3), image(2, 3)),
    guarded: {
      'a step': () => appliedTo((x, y) => torch.sliceScatter(x, y, 0, 0, 6, 2), image(6, 3), image(3, 3)),
      'parts of unequal sizes': () => appliedTo((x, y) => torch.sliceScatter(x, y, 0, 1, 3), image(6, 3), image(2, 3)),
    },
  },
]

describe("inductor's rewrites", () => {
  it('are all among the cases, and say what they do', () => {
    expect(cases.map(({ name }) => name)).toEqual(rewrites.map(({ name }) => name))
    expect(new Set(rewrites.map(({ name }) => name)).size).toBe(rewrites.length)
    for (const { what } of rewrites) expect(what).toMatch(/^[A-Z].*\.$/)
  })

  describe.each(cases)('$name', ({ name, fires, guarded }) => {
    it('fires', () => expect(fires()).toContain(name))
    it.each(Object.entries(guarded))('is kept from: %s', (_, run) => expect(run()).not.toContain(name))
  })
})
