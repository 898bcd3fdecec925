// Gradients of graphs with sizes: a backward outside of the function is compiled once for all sizes, and gives the bits of eager mode.
import { describe, expect, it } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { withConfig } from 'tensorfx/compile'
import { onEvent } from 'tensorfx/debug'
import { times } from './against.ts'

const { functional: F } = nn

/** The graphs that `fn` compiles, by role. */
function rolesIn(fn: () => void): readonly string[] {
  const roles: string[] = []
  using _listening = onEvent((event) => roles.push(event.role), { kinds: ['graph'] })
  fn()
  return roles
}

interface Case {
  readonly name: string
  readonly fn: (x: Tensor, w: Tensor) => Tensor
  /** Sizes of x. */
  readonly sizes: readonly (readonly number[])[]
}

const sizes = [
  [33, 8],
  [44, 8],
  [20, 8],
  [57, 8],
  [33, 8],
  [44, 8],
]

const cases: readonly Case[] = [
  { name: 'a mean, whose gradient is divided by a size', fn: (x, w) => x.matmul(w).tanh().mean(), sizes },
  { name: 'a mean of one dimension, whose size is a shape and a divisor', fn: (x, w) => x.matmul(w).sum(1).sigmoid().mean(), sizes },
  {
    name: 'views by numbers of the program',
    fn: (x, w) =>
      x
        .matmul(w)
        .view([-1])
        .unflatten(0, [x.shape[0] ?? 0, -1])
        .tanh()
        .sum(),
    sizes,
  },
  { name: 'softmax and a loss', fn: (x, w) => F.crossEntropy(x.matmul(w), torch.arange(x.shape[0] ?? 0, { dtype: 'int64' }).remainder(8)), sizes },
  {
    name: 'parts and a concatenation',
    fn: (x, w) =>
      torch
        .cat([x.slice(0, 2, 18).relu(), x.matmul(w)])
        .square()
        .sum(),
    sizes,
  },
  { name: 'the same value twice, and a detached one', fn: (x, w) => x.mul(x.matmul(w)).add(x.detach().exp()).sum(0).norm(), sizes },
]

/** The value and the gradients of a call. */
function gradients(f: Case['fn'], shape: readonly number[]): readonly unknown[] {
  torch.manualSeed(shape.reduce((a, b) => 31 * a + b, 7))
  const [x, w] = [torch.randn(shape, { requiresGrad: true }), torch.randn([8, 8], { requiresGrad: true })]
  const loss = f(x, w)
  loss.backward()
  return [loss.toArray(), x.grad?.toArray(), w.grad?.toArray()]
}

describe.each([false, true])('backwards outside of the function (verifySizes: %s)', (verifySizes) => {
  it.each(cases)('$name', ({ fn, sizes: shapes }) => {
    withConfig({ verifySizes }, () => {
      const f = compile(fn, { dynamic: true })
      const roles = rolesIn(() => {
        for (const shape of shapes) {
          const [expected, got] = [gradients(fn, shape), gradients(f, shape)]
          // Fused kernels may round once where operators round twice.
          expect(
            torch
              .tensor(got.flat(3) as number[])
              .sub(torch.tensor(expected.flat(3) as number[]))
              .abs()
              .max()
              .item(),
          ).toBeLessThan(1e-4)
        }
      })
      expect(roles.filter((role) => role === 'backward')).toHaveLength(1)
      expect(f.graphs()).toHaveLength(1)
    })
  })
})

it('without fused kernels, the bits are those of eager mode', () => {
  for (const { fn, sizes: shapes } of cases) {
    const f = compile(fn, { dynamic: true, backend: 'eager' })
    for (const shape of shapes) expect(gradients(f, shape)).toEqual(gradients(fn, shape))
  }
})

it('a backward that asked of sizes what does not hold of others gets another one, and recompileReasons says what', () => {
  const fn = (x: Tensor, y: Tensor): Tensor => x.slice(0, 0, y.shape[0]).square().sum()
  const f = compile(fn, { dynamic: true })
  const of = (g: typeof fn, n: number, m: number): unknown => {
    const x = torch
      .arange(8 * n)
      .view([n, 8])
      .mul(0.01)
      .requiresGrad_()
    g(x, torch.ones([m])).backward()
    return x.grad?.toArray()
  }
  for (const [n, m] of [
    [40, 30],
    [20, 10],
    [40, 50],
    [30, 60],
    [50, 20],
  ] as const)
    expect(of(f, n, m)).toEqual(of(fn, n, m))
  expect(f.recompileReasons()).toEqual([
    expect.stringMatching(/^the compiled backward relies on s\d.*, which does not hold for the sizes of this call$/),
  ])
})

it('some of several heads, gradients of gradients, and hooks walk the tape', () => {
  const fn = (x: Tensor): Tensor[] => [x.exp().sum(0), x.sin().mean()]
  const f = compile(fn, { dynamic: true })
  for (const n of [30, 40, 50]) {
    const of = (g: typeof fn): readonly unknown[] => {
      const x = torch
        .arange(4 * n)
        .view([n, 4])
        .mul(0.01)
        .requiresGrad_()
      const [a, b] = g(x)
      b?.backward()
      const [first] = torch.autograd.grad(a?.sum() ?? x, x, { createGraph: true })
      const [second] = torch.autograd.grad(first?.square().sum() ?? x, x)
      return [x.grad?.toArray(), first?.toArray(), second?.toArray()]
    }
    expect(of(f)).toEqual(of(fn))
  }
})

it('with skipReplay, calls with sizes that were seen have gradients', () => {
  const w = torch.ones([8, 8], { requiresGrad: true })
  let calls = 0
  const fn = (x: Tensor): Tensor => {
    calls++
    return x.matmul(w).tanh().mean()
  }
  const f = compile(fn, { dynamic: true, skipReplay: true })
  const of = (g: typeof fn, n: number): unknown => {
    w.grad = null
    g(
      torch
        .arange(8 * n)
        .view([n, 8])
        .mul(0.001),
    ).backward()
    return w.grad === null ? null : (w.grad as Tensor).toArray()
  }
  const got = times(6, () => [30, 40].map((n) => of(f, n)))
  const before = calls
  expect(got.at(-1)).toEqual([30, 40].map((n) => of(fn, n)))
  expect(before).toBeLessThan(12)
})

it('a step with its backward inside returns nothing that only its gradients have read', () => {
  const w = torch.ones([8, 32], { requiresGrad: true })
  const step = compile(
    (x: Tensor) => {
      const hidden = x.matmul(w).relu()
      const loss = hidden.square().mean()
      loss.backward()
      return loss.detach()
    },
    { dynamic: true },
  )
  for (const n of [30, 40]) step(torch.ones([n, 8]))
  const [returned] = step.graphs()[0]?.graph.outputNode().args ?? []
  expect(String(returned)).not.toContain('relu')
})
