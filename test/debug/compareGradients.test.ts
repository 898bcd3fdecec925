// compareBackends with gradients: every gradient by name, faults named in the half where they are, right backends right.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareBackends } from 'tensorfx/debug'
import { PH, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { note } from '../../src/debug/compare/gradients.ts'
import type { GradientRow } from '../../src/debug/compare/gradients.ts'
import { RIGHT } from '../../src/debug/compare/measure.ts'
import type { Measured } from '../../src/debug/compare/measure.ts'
import type { Backend } from '../../src/dynamo/index.ts'
import { FAULTS, faultOf, replacing, rightValue, withFault } from './faultyBackends.ts'

const mlp = (): GraphModule => symbolicTrace(new nn.Sequential(new nn.Linear(3, 4), new nn.ReLU(), new nn.Linear(4, 2), new nn.Tanh()))

const numbers = (shape: readonly number[], seed = 1): Tensor => {
  const { next } = randomFrom(seed)
  return torch.tensor(Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 2 * next() - 1)).reshape(shape)
}
const leaf = (shape: readonly number[], seed = 1): Tensor => numbers(shape, seed).requiresGrad_(true)

const NAMES = ['input 0', '0.weight', '0.bias', '2.weight', '2.bias']

describe('gradients', { timeout: 60_000 }, () => {
  it('of a model are right on right backends, each by its name', async () => {
    const x = leaf([5, 3])
    const gm = mlp()
    torch.manualSeed(1)
    const before = torch.rand([1]).toArray()
    torch.manualSeed(1)
    const identity: Backend = (graph) => graph
    const backends = ['eager', 'inductor', 'aot_eager', identity]
    const result = await compareBackends(gm, [x], { backends, gradients: true, moreInputs: [[leaf([5, 3], 9)]] })
    expect(torch.rand([1]).toArray()).toEqual(before)
    expect([...result.statuses.values()], String(result)).toEqual(['right', 'right', 'right', 'right'])
    expect(result.gradients.map(({ name }) => name).toSorted()).toEqual(NAMES.toSorted())
    for (const { statuses, measured, shape, name } of result.gradients) {
      expect([...statuses.values()]).toEqual(['right', 'right', 'right', 'right'])
      expect(measured.get('inductor')?.error).toBeLessThan(1e-5)
      const parameter = [...gm.namedParameters()].find(([path]) => path === name)?.[1]
      expect(shape).toEqual((parameter ?? x).shape)
    }
    expect(String(result)).toMatch(/^gradient +value +eager +inductor/m)
    expect(String(result)).toMatch(/^2\.bias +float32 \[2\]/m)
    // Nothing of the program has changed.
    expect(x.grad).toBe(null)
    for (const parameter of gm.parameters()) expect(parameter.grad).toBe(null)
  })

  it('that are wrong have the node of the backward, and the node whose derivative that is', async () => {
    const wrong = withFault('threshold_backward', (value) => value.mul(1.5), 'backward')
    const last = withFault('neg', (value) => value.add(1), 'last')
    const forward = withFault('relu', (value) => value.add(1), 'forward')
    const result = await compareBackends(mlp(), [leaf([5, 3])], { backends: [wrong, last, forward, 'eager'], gradients: true })
    const said = [...result.culprits].map(([name, culprit]) => [name, culprit?.nodes.map((node) => node.name), culprit?.half, culprit?.forward])
    expect(said, String(result)).toEqual([
      ['backward', ['threshold_backward'], 'backward', 'relu'],
      ['last', ['neg'], 'backward', 'tanh'],
      ['forward', ['relu'], 'forward', null],
      ['eager', undefined, undefined, undefined],
    ])
    expect(Object.fromEntries(result.gradients.map(({ name, statuses }) => [name, statuses.get('backward')]))).toEqual({
      'input 0': 'wrong',
      '0.weight': 'wrong',
      '0.bias': 'wrong',
      '2.weight': 'right',
      '2.bias': 'right',
    })
    expect(String(result)).toMatch(/^backward: 'threshold_backward' differs \(error .*; found alone, in the backward of 'relu'\)$/m)
    const small = await result.minify('backward')
    expect([...small.gm.graph.nodes].map((node) => node.name)).toContain('threshold_backward')
    expect(small.gm.graph.nodes.length).toBeLessThanOrEqual(4)
  })

  it.each(Object.keys(FAULTS))('%s in the backward is named', async (kind) => {
    const gm = symbolicTrace((a: Tensor, b: Tensor) => torch.relu(a.matmul(b)).sin())
    const inputs = [leaf([3, 3], 2), leaf([3, 3], 3)]
    const node = kind === 'reuses its buffer' ? 'mm_1' : 'threshold_backward'
    const result = await compareBackends(gm, inputs, { backends: [withFault(node, faultOf(kind)), 'inductor'], gradients: true })
    const culprit = result.culprits.get('planted')
    expect(
      culprit?.nodes.map(({ name }) => name),
      String(result),
    ).toEqual([node])
    expect(culprit?.half).toBe('backward')
    expect(result.statuses.get('inductor')).toBe('right')
    const expected = { throws: 'failed', flaky: 'flaky', 'wrong from the second run on': 'flaky' }[kind] ?? 'wrong'
    expect(result.statuses.get('planted')).toBe(expected)
    const gradients = result.gradients.map(({ statuses }) => statuses.get('planted'))
    if (kind === 'throws') expect(gradients).toEqual(['failed', 'failed'])
    if (kind.startsWith('wrong ')) expect(gradients).not.toContain('right')
  })

  it('that are wrong only where the backward is a graph of its own are found there', async () => {
    const inHalf = (half: string): Backend =>
      withFault('threshold_backward', (value, _, gm) => (gm.className.endsWith(half) ? value.add(1) : value), `in${half}`)
    // The forward of such a program has no such node.
    const result = await compareBackends(mlp(), [leaf([5, 3])], { backends: [inHalf('_backward'), inHalf('_forward')], gradients: true })
    expect([...result.statuses.values()], String(result)).toEqual(['wrong', 'right'])
    expect(result.first).toMatchObject({ half: 'backward' })
    expect(result.gradients.find(({ name }) => name === '0.bias')?.statuses.get('in_backward')).toBe('wrong')
    const saves = replacing(
      'relu',
      (run, node) => ((run.module as GraphModule).className.endsWith('_forward') ? (rightValue(run, node) as Tensor).mul(2) : rightValue(run, node)),
      'saves',
    )
    const second = await compareBackends(mlp(), [leaf([5, 3])], { backends: [saves], gradients: true })
    expect(second.first).toMatchObject({ kind: 'wrong', half: 'forward' })
  })

  it('and state between the halves: a backward that is right by itself, and wrong after its forward', async () => {
    // How often a forward ran since the last backward: each half alone runs several times.
    let waiting = 0
    const after: Backend = (gm) => {
      const isBackward = gm.className.endsWith('_backward')
      return (...inputs: never[]) => {
        const out = gm.forward(...inputs) as readonly Tensor[]
        if (!isBackward) {
          waiting = gm.className.endsWith('_forward') ? waiting + 1 : 0
          return out
        }
        const wrong = waiting === 1
        waiting = 0
        return wrong ? out.map((value) => value.add(1)) : out
      }
    }
    const result = await compareBackends(mlp(), [leaf([5, 3])], { backends: [after], gradients: true })
    expect(result.statuses.get('after'), String(result)).toBe('wrong')
    expect(result.gradients.map(({ statuses }) => statuses.get('after'))).toEqual(result.gradients.map(() => 'wrong'))
  })

  it('of random operators, statistics, integer inputs, shared parameters and several results are compared', async () => {
    const model = new nn.Sequential(new nn.Linear(3, 4), new nn.BatchNorm1d(4), new nn.Dropout(0.5), new nn.Linear(4, 2))
    const layers = symbolicTrace(model)
    const statistics = [...layers.namedBuffers()].map(([name, value]) => [name, value.toArray()])
    const random = await compareBackends(layers, [numbers([6, 3])], { backends: ['eager', 'inductor', 'aot_eager'], gradients: true })
    expect([...random.statuses.values()], String(random)).toEqual(['right', 'right', 'right'])
    expect(random.gradients).toHaveLength(6)
    expect([...layers.namedBuffers()].map(([name, value]) => [name, value.toArray()])).toEqual(statistics)

    class Words extends nn.Module {
      readonly table = new nn.Embedding(5, 3)

      override forward(ids: Tensor, scale: Tensor, more: readonly [Tensor]): unknown {
        const [first] = more
        const rows = this.table.call(ids) as Tensor
        const scores = rows.matmul((this.table.weight as Tensor).transpose(0, 1))
        return { rows: rows.mul(scale), count: ids.add(1), sum: rows.sum().add(first), scores }
      }
    }
    const words = symbolicTrace(new Words(), { concreteArgs: { more: [PH] } })
    const ids = torch.tensor(
      [
        [0, 3],
        [4, 1],
      ],
      { dtype: 'int64' },
    )
    const several = await compareBackends(words, [ids, leaf([3], 4), [leaf([], 5)]], { backends: ['eager', 'inductor'], gradients: true })
    expect([...several.statuses.values()], String(several)).toEqual(['right', 'right'])
    expect(several.gradients.map(({ name }) => name).toSorted()).toEqual(['input 1', 'input 2[0]', 'table.weight'])
  })

  it('are compared in another runtime too, and not judged there where random numbers are drawn', async () => {
    const result = await compareBackends(mlp(), [leaf([2, 3])], { backends: ['onnxruntime'], gradients: true })
    expect([...result.statuses.values(), ...result.notes], String(result)).toEqual(['right'])
    expect(result.gradients.map(({ name, statuses }) => [name, statuses.get('onnxruntime')])).toEqual(NAMES.map((name) => [name, 'right']))
    const drops = symbolicTrace(new nn.Sequential(new nn.Linear(3, 4), new nn.Dropout(0.5)))
    const random = await compareBackends(drops, [leaf([2, 3])], { backends: ['onnxruntime', 'inductor'], gradients: true })
    expect([...random.statuses.values()]).toEqual(['not judged', 'right'])
    for (const { statuses } of random.gradients) expect([...statuses.values()]).toEqual(['not judged', 'right'])
  })

  it('have to be there', async () => {
    const gm = symbolicTrace((a: Tensor) => a.sin())
    const nothing = /with options\.gradients an input or a parameter must require grad/
    await expect(compareBackends(gm, [torch.ones([2])], { backends: ['eager'], gradients: true })).rejects.toThrow(nothing)
    const cut = symbolicTrace((a: Tensor) => a.detach().sin())
    await expect(compareBackends(cut, [leaf([2])], { backends: ['eager'], gradients: true })).rejects.toThrow(nothing)
    await expect(compareBackends(gm, [leaf([2])], { backends: ['eager'], gradients: 1 as never })).rejects.toThrow(
      "option 'gradients' must be true or false",
    )
    expect((await compareBackends(gm, [leaf([2])], { backends: ['eager'] })).gradients).toEqual([])
  })

  it('of graphs that write to an input are compared, unless it shares memory with another one', async () => {
    const gm = symbolicTrace((a: Tensor, b: Tensor, times: number) => {
      b.mul_(times)
      return a.mul(b)
    })
    const [a, base] = [leaf([3]), numbers([6], 2)]
    const apart = await compareBackends(gm, [a, base.narrow(0, 0, 3).clone(), 2], { backends: ['eager', 'inductor'], gradients: true })
    expect([...apart.statuses.values()], String(apart)).toEqual(['right', 'right'])
    expect(apart.gradients.map(({ name }) => name)).toEqual(['input 0'])
    const shared = symbolicTrace((x: Tensor, b: Tensor, c: Tensor) => {
      b.mul_(2)
      return x.mul(b).add(c)
    })
    const given = [a, base.narrow(0, 0, 3), base.narrow(0, 3, 3)]
    await expect(compareBackends(shared, given, { backends: ['eager'], gradients: true })).rejects.toThrow(/writes to an input which shares memory/)
  })

  it('of several sets of inputs have the worst error', () => {
    const node = mlp().graph.outputNode()
    const worst = (...found: readonly Measured[]): Measured | undefined => {
      const row: GradientRow = { name: 'w', node, dtype: 'float32', shape: [], measured: new Map(), statuses: new Map() }
      for (const one of found) note(row, 'b', one)
      expect(row.statuses.get('b')).toBe(row.measured.get('b')?.status === 'ok' ? 'right' : 'wrong')
      return row.measured.get('b')
    }
    const [little, more]: Measured[] = [1e-8, 1e-7].map((error) => ({ ...RIGHT, error }))
    const wrong: Measured = { ...RIGHT, status: 'differs', error: 0.5, rate: 1 }
    const tiny: Measured = { ...wrong, error: 1e-9 }
    if (little === undefined || more === undefined) throw new Error('two')
    expect([worst(little, more), worst(more, little), worst(little, wrong), worst(wrong, more), worst(more, tiny), worst(wrong, tiny)]).toEqual([
      more,
      more,
      wrong,
      wrong,
      tiny,
      wrong,
    ])
  })
})
