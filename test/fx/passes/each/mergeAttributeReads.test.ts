// mergeAttributeReads: one get_attr node per attribute.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { cse, mergeAttributeReads, runPasses } from 'tensorfx/fx/passes'

const names = (gm: GraphModule): string[] => [...gm.graph.nodes].map((node) => node.name)
const numbers = (value: unknown): unknown => (value as Tensor).toArray()

describe('mergeAttributeReads', () => {
  it('reads an attribute once, and lets cse merge what is computed from it', () => {
    const two = torch.tensor([2])
    const gm = symbolicTrace((x: Tensor) => x.mul(two).add(x.mul(two)))
    const expected = numbers(gm.call(torch.ones([1])))
    expect(names(gm)).toEqual(['x', '_tensor_constant0', 'mul', '_tensor_constant0_1', 'mul_1', 'add', 'output'])
    const { value, runs } = runPasses([mergeAttributeReads, cse], gm, { verify: true })
    expect(runs.map((run) => run.changed)).toEqual([true, true])
    expect(names(value)).toEqual(['x', '_tensor_constant0', 'mul', 'add', 'output'])
    expect(numbers(value.call(torch.ones([1])))).toEqual(expected)
  })

  it('a write through one read is seen through the other, as before', () => {
    const make = (): GraphModule => {
      const state = torch.zeros([1])
      return symbolicTrace((x: Tensor) => {
        torch.add(state, x)
        const written = state.add_(x)
        return written.add(state)
      })
    }
    const [plain, merged] = [make(), runPasses([mergeAttributeReads], make()).value]
    expect(merged.graph.findNodes({ op: 'get_attr' }).length).toBe(1)
    for (let i = 0; i < 2; i++) expect(numbers(merged.call(torch.ones([1])))).toEqual(numbers(plain.call(torch.ones([1]))))
  })

  it('different attributes stay, and a second run changes nothing', () => {
    class Net extends nn.Module {
      a = new nn.Parameter(torch.ones([1]))
      b = new nn.Parameter(torch.ones([1]))
      override forward(x: Tensor): Tensor {
        return x.mul(this.a).add(this.b)
      }
    }
    const gm = symbolicTrace(new Net())
    expect(runPasses([mergeAttributeReads], gm).changed).toBe(false)
    expect(gm.graph.findNodes({ op: 'get_attr' }).map((node) => node.target)).toEqual(['a', 'b'])
  })
})
