// Faults of every kind, planted in random programs: compareBackends names the kind and the node, and never calls such a backend right.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareBackends } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import type { Backend } from '../../src/dynamo/index.ts'
import { seeds } from '../helpers/rotation.ts'
import { FAULTS, faultOf, places, randomGraph, randomInputs, withFault } from './faultyBackends.ts'

/** What is said of a fault of each kind. */
const SAID: Readonly<Record<string, object>> = {
  throws: { kind: 'failed', reason: expect.stringMatching(/^RangeError: no kernel for this node/), thrown: expect.any(RangeError), rate: 1 },
  'overwrites its input': { kind: 'wrong', rule: 'overwrites an input', rate: 1 },
  'reuses its buffer': { kind: 'wrong', rule: 'overwrites an earlier output', rate: 1 },
  flaky: { kind: 'flaky' },
  'wrong from the second run on': { kind: 'flaky' },
}
const WRONG = { kind: 'wrong', rule: null, rate: 1 }

const programs = Number(process.env['TENSORFX_FUZZ'] ?? 6)

describe('a planted fault', () => {
  it.each(Object.keys(FAULTS))(
    '%s: its kind and its node are named',
    async (kind) => {
      for (const seed of seeds('TENSORFX_FUZZ', programs)) {
        const gm = randomGraph(seed)
        const node = randomFrom(seed * 31 + kind.length).pick(places(gm))
        const backend = withFault(node.name, faultOf(kind))
        const result = await compareBackends(gm, randomInputs(seed), { backends: [backend, 'eager'] })
        const culprit = result.culprits.get('planted')
        expect([seed, culprit?.nodes.map(({ name }) => name)], `${kind} at ${node.name} of program ${seed}:\n${String(result)}`).toEqual([
          seed,
          [node.name],
        ])
        expect(culprit, String(result)).toMatchObject(SAID[kind] ?? WRONG)
        expect(result.statuses.get('planted')).not.toBe('right')
        expect(result.statuses.get('eager')).toBe('right')
        const line =
          String(result)
            .split('\n')
            .find((text) => text.startsWith('planted:')) ?? ''
        expect(line).toContain(`'${node.name}'`)
        expect(line).not.toContain('no node differs')
      }
    },
    60_000,
  )

  it('that comes and goes is named with its rate', async () => {
    const gm = symbolicTrace((a: Tensor) => a.sin().mul(2).cos())
    const result = await compareBackends(gm, [torch.tensor([1, 2])], { backends: [withFault('mul', faultOf('flaky'), 'unsteady')] })
    const culprit = result.culprits.get('unsteady')
    expect(culprit).toMatchObject({
      kind: 'flaky',
      found: 'alone',
      reason: expect.stringMatching(/^not right in (9|10) of 16 runs with the same inputs$/),
    })
    expect(culprit?.rate).toBeGreaterThan(0.5)
    expect(String(result)).toMatch(/unsteady: flaky at 'mul': wrong in (56|63)% of the runs/)
  })

  it('in small numbers is one: a product with 1e-6 that is 0', async () => {
    const gm = symbolicTrace((a: Tensor) => a.mul(1e-6))
    const zero = withFault('mul', (value) => value.mul(0), 'zero')
    const halved = withFault('mul', (value) => value.mul(0.5), 'halved')
    for (const scale of [1, 1e-3, 1e3, 1e-20]) {
      const result = await compareBackends(gm, [torch.tensor([0.5, -1, 2]).mul(scale)], { backends: [zero, halved, 'eager', 'inductor'] })
      expect([scale, ...result.statuses.values()]).toEqual([scale, 'wrong', 'wrong', 'right', 'right'])
    }
  })

  it('in integers is one, by 1 beyond 2^53', async () => {
    const gm = symbolicTrace((a: Tensor) => a.mul(1))
    const next = withFault('mul', (value) => value.add(1), 'next')
    const result = await compareBackends(gm, [torch.tensor([9007199254740993n, 5n], { dtype: 'int64' })], { backends: [next, 'eager'], tol: 2 })
    expect([...result.statuses.values()]).toEqual(['wrong', 'right'])
  })

  it('beside NaN and infinity is one', async () => {
    const gm = symbolicTrace((a: Tensor) => a.log())
    const hidden = withFault('log', (value) => value.nanToNum({ nan: NaN, posinf: Infinity, neginf: -Infinity }).add(1), 'hidden')
    const moved = withFault('log', (value) => value.flip(0), 'moved')
    const result = await compareBackends(gm, [torch.tensor([-1, 0, 1, 2, 3])], { backends: [hidden, moved, 'eager', 'inductor'] })
    expect([...result.statuses.values()]).toEqual(['wrong', 'wrong', 'right', 'right'])
    expect(result.culprits.get('moved')?.error).toBe(Infinity)
  })

  it('that shows only in a whole graph is found there, whatever its kind', async () => {
    const gm = symbolicTrace((a: Tensor) => a.sin().mul(2).relu().cos())
    const inWhole = (kind: string): Backend => {
      const fault = faultOf(kind)
      return withFault('relu', (value, args, whole) => (whole.graph.nodes.length > 4 ? fault(value, args, whole) : value), kind)
    }
    const kinds = ['wrong value', 'throws', 'flaky', 'reuses its buffer']
    const result = await compareBackends(gm, [torch.tensor([0.3, -0.2])], { backends: kinds.map(inWhole) })
    expect(
      [...result.culprits].map(([name, culprit]) => [name, culprit?.kind, culprit?.rule, culprit?.nodes.some((node) => node.name === 'relu')]),
    ).toEqual([
      ['wrong value', 'wrong', null, true],
      ['throws', 'failed', null, true],
      ['flaky', 'flaky', null, true],
      ['reuses its buffer', 'wrong', 'overwrites an earlier output', true],
    ])
  })

  it('in what is written to a weight is named, and the weights of the model stay as they are', async () => {
    const { nn } = await import('tensorfx')
    const model = new nn.Sequential(new nn.Linear(3, 4), new nn.BatchNorm1d(4))
    const gm = symbolicTrace(model)
    const before = [...model.stateDict()].map(([name, value]) => [name, (value as Tensor).toArray()])
    const overwrites: Backend =
      (graph) =>
      (...inputs: never[]) => {
        const out: unknown = graph.forward(...inputs)
        for (const parameter of graph.parameters()) parameter.detach().mul_(2)
        return out
      }
    const still: Backend = (graph) => {
      graph.eval()
      return (...inputs: never[]) => graph.forward(...inputs)
    }
    const forgets: Backend =
      (graph) =>
      (...inputs: never[]) => {
        const out: unknown = graph.forward(...inputs)
        for (const [name, buffer] of graph.namedBuffers()) if (name.endsWith('runningMean')) buffer.zero_()
        return out
      }
    const x = torch.tensor([
      [1, 2, 3],
      [3, -1, 0.5],
      [0, 1, 1],
    ])
    const result = await compareBackends(gm, [x], { backends: ['eager', 'inductor', 'aot_eager', overwrites, still, forgets] })
    expect([...result.culprits].map(([name, culprit]) => [name, culprit?.kind, culprit?.rule, culprit?.nodes[0]?.target])).toEqual([
      ['eager', undefined, undefined, undefined],
      ['inductor', undefined, undefined, undefined],
      ['aot_eager', undefined, undefined, undefined],
      ['overwrites', 'wrong', 'overwrites a weight', '0'],
      ['still', 'wrong', null, '1'],
      ['forgets', 'wrong', null, '1'],
    ])
    expect(result.culprits.get('forgets')?.reason).toBe("what it writes to '1.runningMean'")
    expect([...model.stateDict()].map(([name, value]) => [name, (value as Tensor).toArray()])).toEqual(before)
  })
})
