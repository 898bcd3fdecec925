// What reports say of the cost of kernels: FLOPs as FlopCounterMode counts them, bytes by the sizes of what is read and stored.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile } from 'tensorfx/compile'
import { FlopCounterMode, onEvent } from 'tensorfx/debug'
import type { CompileEvent } from 'tensorfx/debug'

const {
  nn: { functional: F },
} = torch

/** The kernels that a call launches, once it has been compiled. */
function launches(fn: () => unknown): readonly CompileEvent<'launch'>[] {
  fn()
  const events: CompileEvent<'launch'>[] = []
  using _listening = onEvent((event) => void events.push(event), { kinds: ['launch'] })
  fn()
  return events
}

function counted(fn: () => unknown): number {
  const counter = new FlopCounterMode()
  counter.during(fn)
  return counter.getTotalFlops()
}

const r = (...shape: number[]): Tensor => torch.randn(shape)
const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)

describe('the cost of kernels', () => {
  const functions: Readonly<Record<string, readonly [(...inputs: Tensor[]) => Tensor, ...Tensor[]]>> = {
    'mm and what is fused into it': [(a, b) => torch.relu(a.mm(b)).add(1), r(3, 4), r(4, 5)],
    bmm: [(a, b) => a.bmm(b), r(2, 3, 4), r(2, 4, 5)],
    'linear with a bias': [(x, w, b) => F.linear(x, w, b), r(2, 3, 4), r(5, 4), r(5)],
    'a strided convolution': [(x, w) => F.conv2d(x, w, null, { stride: 2, padding: 1 }), r(2, 3, 9, 8), r(4, 3, 3, 2)],
    'two products and a sum': [(a, b) => a.mm(b).tanh().mm(b).sum(), r(4, 4), r(4, 4)],
    'no product at all': [(a) => a.softmax(1).mul(a), r(4, 4)],
  }
  it.each(Object.keys(functions))('has the FLOPs of FlopCounterMode: %s', (name) => {
    const [fn, ...inputs] = functions[name] ?? [(x: Tensor) => x]
    const f = compile(fn)
    expect(sum(launches(() => f(...inputs)).map(({ flops }) => flops ?? 0))).toBe(counted(() => fn(...inputs)))
  })

  it('has them in training too, forward and backward', () => {
    const model = new nn.Sequential(new nn.Conv2d(2, 4, 3), new nn.ReLU(), new nn.Flatten(), new nn.Linear(4 * 16, 5))
    const x = r(3, 2, 6, 6)
    const compiled = compile((input: Tensor) => model(input).square().mean())
    const kernels = launches(() => compiled(x).backward())
    expect(sum(kernels.map(({ flops }) => flops ?? 0))).toBe(counted(() => model(x).square().mean().backward()))
    expect(new Set(kernels.map(({ program }) => program)).size).toBe(2)
  })

  it('counts what is read and stored once, and only the part of an operand that loops read', () => {
    const f = compile((a: Tensor, b: Tensor) => torch.relu(a.add(b)).mul(a))
    expect(launches(() => f(r(4, 6), r(6))).map(({ bytes, type }) => [type, bytes])).toEqual([['loops', 4 * (24 + 6 + 24)]])
    const g = compile((a: Tensor) => a.select(0, 1).add(1))
    expect(launches(() => g(r(10, 6))).map(({ bytes }) => bytes)).toEqual([4 * (6 + 6)])
    const half = compile((a: Tensor) => a.sum(1))
    expect(launches(() => half(torch.ones([3, 5], { dtype: 'float64' }))).map(({ bytes }) => bytes)).toEqual([8 * (15 + 3)])
  })

  it('leaves FLOPs of eager kernels to their operators, and names the nodes', () => {
    const f = compile((a: Tensor) => a.cumsum(0).mul(2))
    expect(launches(() => f(r(4, 4))).map(({ type, flops, origins }) => [type, flops, origins])).toEqual([
      ['extern', null, ['cumsum']],
      ['loops', 0, ['mul']],
    ])
  })
})
