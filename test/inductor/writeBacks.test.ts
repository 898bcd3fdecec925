// Writes to inputs next to reductions: in place where each element is read before it is written, through a copy where not.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile } from 'tensorfx/compile'
import { compileFx } from 'tensorfx/inductor'
import type { CompiledGraph } from 'tensorfx/inductor'

/** Runs `step` eagerly and compiled on equal inputs, three times; checks the inputs afterwards, and says how many outputs were written in place. */
function inPlaceOutputs(step: (...args: Tensor[]) => unknown, make: () => Tensor[]): number {
  const graphs: CompiledGraph[] = []
  const fast = compile(step, {
    backend: (gm, inputs) => {
      const graph = compileFx(gm, inputs)
      graphs.push(graph)
      return graph
    },
  })
  const [eager, compiled] = [make(), make()]
  for (let round = 0; round < 3; round++) {
    step(...eager)
    fast(...compiled)
  }
  eager.forEach((tensor, i) => expect((compiled[i] as Tensor).sub(tensor).abs().max().item() as number).toBeLessThan(1e-5))
  expect(graphs).toHaveLength(1)
  return (graphs[0] as CompiledGraph).writtenInPlace.size
}

const numbers = (shape: readonly number[], seed: number): Tensor => {
  torch.manualSeed(seed)
  return torch.randn(shape)
}

describe('writes to inputs', () => {
  it('stand in place when computed from a reduction over other dimensions', () => {
    const count = inPlaceOutputs(
      (data, mean, scale) => {
        const m = data.mean(1)
        mean.lerp_(m, 0.1)
        scale.mul_(0.5).add_(data.sub(m.unsqueeze(1)).abs().sum(1))
      },
      () => [numbers([6, 40], 1), numbers([6], 2), numbers([6], 3)],
    )
    expect(count).toBe(2)
  })

  it('go through a copy when the reduction reads other elements of what is written', () => {
    const count = inPlaceOutputs(
      (data, x) => {
        x.copy_(data.add(x).sum(1))
      },
      () => [numbers([8, 8], 1), numbers([8], 2)],
    )
    expect(count).toBe(0)
  })

  it('go through a copy when a later kernel still reads the old value', () => {
    inPlaceOutputs(
      (data, x) => {
        const before = data.mm(x)
        x.copy_(x.mul(2).sum(0, true).add(x))
        data.copy_(before)
      },
      () => [numbers([5, 5], 1).mul(0.1), numbers([5, 5], 2).mul(0.1)],
    )
  })
})
