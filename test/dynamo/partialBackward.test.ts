// A backward of some results of a compiled function, after a write to another result or to an argument: it is refused where an eager one is, since only values that the derivatives of these results
// read are checked, and gives the same gradients elsewhere. TENSORFX_FUZZ=2000 draws more programs.
import { describe, expect, it } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { randomFrom } from '../../scripts/fuzz/random.mjs'

const COUNT = Math.max(60, Number(process.env['TENSORFX_FUZZ'] ?? 0))
const FIRST = Number(process.env['TENSORFX_FUZZ_SEED'] ?? 0)

type Program = (a: Tensor, b: Tensor) => Tensor[]

/** A program of pointwise operators, copies and views, which returns some of its values. */
function drawProgram(seed: number): Program {
  const { int, pick } = randomFrom(seed)
  const steps = Array.from({ length: 4 + int(5) }, (_, i) => ({
    of: int(i + 2),
    with: int(i + 2),
    apply: pick<(x: Tensor, y: Tensor) => Tensor>([
      (x) => x.clone(),
      (x) => x.sin(),
      (x) => x.abs(),
      (x) => x.clamp(-1, 1),
      (x) => x.clone().mul_(2),
      (x) => x.reshape([2, 2]).t().reshape([4]),
      (x) => torch.cat(x.chunk(2).toReversed()),
      (x, y) => x.mul(y),
      (x, y) => x.add(y),
    ]),
  }))
  const returned = Array.from({ length: 3 }, () => 2 + int(steps.length))
  return (a, b) => {
    const values = [a, b]
    for (const step of steps) values.push(step.apply(values[step.of] as Tensor, values[step.with] as Tensor))
    return returned.map((i) => values[i] as Tensor)
  }
}

/** The gradients of result `from` after a write to the `written`-th of the results and arguments, or 'refused'. */
function gradientsAfter(fn: Program, written: number, from: number): unknown {
  const leaves = [0.5, 1.5].map((first) => torch.tensor([first, -0.25, 0.75, -1.25], { requiresGrad: true })) as [Tensor, Tensor]
  const results = fn(...leaves)
  noGrad(() => ([...results, ...leaves][written] as Tensor).detach().add_(1))
  try {
    ;(results[from] as Tensor).sum().backward()
  } catch (error) {
    if (/modified in place/.test(String(error))) return 'refused'
    throw error
  }
  return leaves.map((leaf) => leaf.grad?.toArray())
}

describe('a backward of one result, after a write to another or to an argument', () => {
  it.each(['eager', 'inductor'])('is refused where an eager one is: random programs on the backend %s', { timeout: 300_000 }, (backend) => {
    const count = backend === 'eager' ? COUNT : COUNT >> 2
    const seen = { refused: 0, allowed: 0 }
    for (let seed = FIRST; seed < FIRST + count; seed++) {
      const program = drawProgram(seed)
      const compiled = compile(program, { backend })
      const results = program(torch.ones([4]), torch.ones([4])).length
      for (let written = 0; written < results + 2; written++)
        for (let from = 0; from < results; from++) {
          const expected = gradientsAfter(program, written, from)
          expect(gradientsAfter(compiled, written, from), `seed ${seed}: write to ${written}, backward of ${from}`).toEqual(expected)
          seen[expected === 'refused' ? 'refused' : 'allowed']++
        }
    }
    expect(Math.min(seen.refused, seen.allowed)).toBeGreaterThan(count)
  })
})
