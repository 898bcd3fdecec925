// A backward of some results of a compiled function, after a write to another result or to an argument: it is refused where an eager one is, since only values that the derivatives of these results
// read are checked, and gives the same gradients elsewhere: what a result does not depend on gives it no gradients, neither zeros nor 0 · ∞. Programs also write to an argument, which then has a history
// of its own, and under noGrad to what derivatives read. A third of the programs each day; TENSORFX_FUZZ=2000 draws more.
import { describe, expect, it } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { FunctionContext } from 'tensorfx/autograd'
import { aotFunction } from 'tensorfx/aot'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { seeds } from '../helpers/rotation.ts'

const COUNT = Math.max(60, Number(process.env['TENSORFX_FUZZ'] ?? 0))
const FIRST = Number(process.env['TENSORFX_FUZZ_SEED'] ?? 0)

/** The halves of a tensor. The backward takes the gradients of both, or zeros, in one call. */
class Halves extends torch.autograd.Function {
  static override forward(_: FunctionContext, x: Tensor): Tensor[] {
    return x.chunk(2).map((half) => half.clone())
  }

  static override backward(_: FunctionContext, ...grads: Tensor[]): Tensor {
    return torch.cat(grads)
  }
}

type Program = (a: Tensor, b: Tensor, c: Tensor) => Tensor[]

/** A program of pointwise operators, copies, views and writes, which returns some of its values. */
function drawProgram(seed: number): Program {
  const { int, pick } = randomFrom(seed)
  const steps = Array.from({ length: 4 + int(5) }, (_, i) => ({
    of: int(i + 2),
    with: int(i + 2),
    apply: pick<(x: Tensor, y: Tensor, c: Tensor) => Tensor | Tensor[]>([
      (x) => x.clone(),
      (x) => x.sin(),
      (x) => x.abs(),
      (x) => x.abs().sqrt(),
      (x) => x.clamp(-1, 1),
      (x) => x.clone().mul_(2),
      (x) => x.reshape([2, 2]).t().reshape([4]),
      (x) => torch.cat(x.chunk(2).toReversed()),
      (x) => x.chunk(2).map((half) => torch.cat([half, half])),
      (x) => [Halves.apply(x)].flat().map((half) => torch.cat([half, half])),
      (x, y) => x.mul(y),
      (x, y) => x.add(y),
      (x, y, c) => (c.addcmul_(x, y), x),
      (x) => (noGrad(() => x.detach().mul_(1)), x),
    ]),
  }))
  const returned = Array.from({ length: 3 }, () => 2 + int(steps.length))
  return (a, b, c) => {
    const values = [a, b]
    for (const step of steps) values.push(...[step.apply(values[step.of] as Tensor, values[step.with] as Tensor, c)].flat())
    return returned.map((i) => values[i] as Tensor)
  }
}

/** The gradients of result `from` after a write to the `written`-th of the results and arguments, or 'refused'. */
function gradientsAfter(fn: Program, written: number, from: number): unknown {
  const leaves = [0.5, 1.5].map((first) => torch.tensor([first, -0.25, 0, -1.25], { requiresGrad: true })) as [Tensor, Tensor]
  const argument = torch.ones([4])
  const results = fn(...leaves, argument)
  noGrad(() => ([...results, ...leaves][written] as Tensor).detach().add_(1))
  const start = results[from] ?? argument
  if (!start.requiresGrad) return 'constant'
  try {
    start.sum().backward()
  } catch (error) {
    if (/modified in place/.test(String(error))) return 'refused'
    throw error
  }
  return leaves.map((leaf) => leaf.grad?.toArray())
}

const COMPILERS: Readonly<Record<string, (fn: Program) => Program>> = {
  eager: (fn) => compile(fn, { backend: 'eager' }),
  inductor: (fn) => compile(fn, { backend: 'inductor' }),
  aotFunction: (fn) =>
    aotFunction(fn, {
      fwCompiler: (gm) => {
        return (...inputs) => gm.forward(...inputs)
      },
    }),
}

describe('a backward of one result, or of a written argument, after a write to another or to an argument', () => {
  it.each(Object.entries(COMPILERS))('is refused where an eager one is: random programs with %s', { timeout: 300_000 }, (name, wrap) => {
    const drawn = seeds('TENSORFX_FUZZ', name === 'inductor' ? COUNT >> 2 : COUNT, FIRST)
    const seen = { refused: 0, allowed: 0 }
    for (const seed of drawn) {
      const program = drawProgram(seed)
      const wrapped = wrap(program)
      const results = program(torch.ones([4]), torch.ones([4]), torch.ones([4])).length
      for (let written = 0; written < results + 2; written++)
        for (let from = 0; from <= results; from++) {
          const expected = gradientsAfter(program, written, from)
          expect(gradientsAfter(wrapped, written, from), `seed ${seed}: write to ${written}, backward of ${from}`).toEqual(expected)
          seen[expected === 'refused' ? 'refused' : 'allowed']++
        }
    }
    expect(Math.min(seen.refused, seen.allowed)).toBeGreaterThan(drawn.length)
  })
})
