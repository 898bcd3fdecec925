// What a program runs of a backend: forward and backward as graphs of their own, then the whole graph.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { Interpreter, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import type { Backend } from '../../src/dynamo/index.ts'
import { present } from '../../src/errors/index.ts'
import { backwardOf, formsOf } from '../../src/debug/runs/forms.ts'

const leaf = (): Tensor => torch.tensor([0.5, 1], { requiresGrad: true })
const tanh = (): GraphModule => symbolicTrace((x: Tensor) => [torch.tanh(x)])
const operators = (gm: GraphModule): string[] => [...gm.graph.nodes].filter((node) => node.op.startsWith('call_')).map((node) => node.name)

/** A backend that is right, and what it got. */
function noting(): { readonly backend: Backend; readonly got: { gm: GraphModule; inputs: readonly unknown[] }[] } {
  const got: { gm: GraphModule; inputs: readonly unknown[] }[] = []
  return { backend: (gm, inputs) => (got.push({ gm, inputs }), gm), got }
}

/** The halves of the graphs that a backend gets; null for a whole one. */
function halves(gm: GraphModule, inputs: readonly unknown[], onlyFwd = false): readonly unknown[] {
  const { backend, got } = noting()
  for (const form of formsOf(backend, gm, inputs, onlyFwd)) expect(form).toBeTypeOf('function')
  return got.map((one) => one.gm.meta['half'] ?? null)
}

describe('the forms of a graph', () => {
  it('are the pair of its halves, and the whole: each computes the results, the pair with gradients', () => {
    const { backend, got } = noting()
    const [gm, x] = [tanh(), leaf()]
    const forms = [...formsOf(backend, gm, [x], false)]
    const other = leaf()
    const [pair, whole] = forms.map((form) => (form(other) as readonly Tensor[])[0])
    expect([pair?.toArray(), whole?.toArray()]).toEqual([torch.tanh(x).toArray(), torch.tanh(x).toArray()])
    pair?.sum().backward()
    expect((present(other.grad, 'a gradient').toArray() as number[]).map((value) => value.toFixed(5))).toEqual(
      [0.5, 1].map((v) => (1 - Math.tanh(v) ** 2).toFixed(5)),
    )
    expect(forms).toHaveLength(2)
    // The backward is compiled when it is needed.
    expect(got.map((one) => [one.gm.meta['half'] ?? null, operators(one.gm)])).toEqual([
      ['forward', ['tanh']],
      [null, ['tanh']],
      ['backward', expect.arrayContaining([expect.stringMatching(/^mul/)])],
    ])
    // Graph and inputs are copies.
    expect(got.some((one) => one.gm === gm || one.inputs.includes(x))).toBe(false)
    expect(got[1]?.inputs.map((value) => (value as Tensor).toArray())).toEqual([[0.5, 1]])
    expect(x.grad).toBeNull()
  })

  it('are made one after the other, and what the backend throws is thrown', () => {
    const compiled: string[] = []
    const failing: Backend = (gm) => {
      compiled.push(String(gm.meta['half'] ?? 'whole'))
      if (gm.meta['half'] === 'forward') throw new RangeError('no forward here')
      return gm
    }
    expect(() => [...formsOf(failing, tanh(), [leaf()], false)]).toThrow('no forward here')
    expect(compiled).toEqual(['forward'])
    expect(formsOf(failing, tanh(), [leaf()], true).next().done).toBe(false)
    expect(compiled).toEqual(['forward', 'whole'])
  })

  it('are only the whole where there is no gradient, or it cannot be had', () => {
    const pair = ['forward', null]
    expect(halves(tanh(), [leaf()])).toEqual(pair)
    expect(halves(tanh(), [leaf()], true)).toEqual([null])
    expect(halves(tanh(), [torch.ones([2])])).toEqual([null])
    const weighted = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2)))
    const scale = leaf()
    const held = symbolicTrace((x: Tensor) => [torch.mul(x, scale)])
    expect(halves(held, [torch.ones([2])])).toEqual(pair)
    // A layer holds parameters that the graph does not read; a result that is no list is no graph of compile.
    expect(halves(weighted, [torch.ones([2])])).toEqual([null])
    expect(
      halves(
        symbolicTrace((x: Tensor) => torch.tanh(x)),
        [leaf()],
      ),
    ).toEqual([null])
    // It writes.
    expect(
      halves(
        symbolicTrace((x: Tensor) => [torch.mul(x, 2).add_(1)]),
        [leaf()],
      ),
    ).toEqual([null])
    // It cannot be traced.
    expect(
      halves(
        symbolicTrace((x: Tensor) => [torch.nonzero(x), torch.tanh(x)]),
        [leaf()],
      ),
    ).toEqual([null])
  })

  it('of a name are those of the backend that is registered', () => {
    const { backend, got } = noting()
    registerBackend('forms_noting', backend, { tags: ['debug'] })
    expect([...formsOf('forms_noting', tanh(), [leaf()], false)]).toHaveLength(2)
    expect(got).toHaveLength(2)
    expect(() => [...formsOf('forms_absent', tanh(), [leaf()], false)]).toThrow('forms_absent')
  })
})

describe('the backward of a graph', () => {
  it('is the graph that compile makes, with the inputs of a run', () => {
    const x = leaf()
    const found = present(backwardOf(tanh(), [x]), 'a backward')
    expect(operators(found.gm)).toEqual(expect.arrayContaining([expect.stringMatching(/^mul/)]))
    // The saved result and the gradient of the sum.
    const values = found.inputs.map((value) => (value as Tensor).toArray())
    expect(values).toContainEqual(torch.tanh(x).toArray())
    const [gradient] = new Interpreter(found.gm).run(...found.inputs) as readonly Tensor[]
    expect(gradient?.shape).toEqual([2])
    expect(x.grad).toBeNull()
  })

  it('is none where there is no gradient', () => {
    expect(backwardOf(tanh(), [torch.ones([2])])).toBeNull()
    expect(
      backwardOf(
        symbolicTrace((x: Tensor) => torch.tanh(x)),
        [leaf()],
      ),
    ).toBeNull()
  })
})
