// The search for the worst input: faults that show only for some values are found, right backends stay right, and the same seed gives the same inputs.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareBackends } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import { F } from 'tensorfx/nn'
import type { Backend } from '../../src/dynamo/index.ts'
import { turn } from '../helpers/rotation.ts'
import { faultOf, randomGraph, randomInputs, withFault } from './faultyBackends.ts'

const gm = symbolicTrace((x: Tensor, y: Tensor) => torch.tanh(x.mul(0.5)).add(y))
const inputs = [torch.tensor([0.5, -0.25, 1.5]), torch.tensor([1, 2, 3])]

/** Wrong by a half where the argument of tanh is so. */
const where = (name: string, condition: (x: Tensor) => Tensor): Backend =>
  withFault(
    'tanh',
    (value, args) =>
      value.add(
        condition(args[0] as Tensor)
          .to('float32')
          .mul(0.5),
      ),
    name,
  )

const BACKENDS: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  large: (x) => x.abs().gt(1000),
  'large and negative': (x) => x.lt(-50),
  negative: (x) => x.lt(-0.5),
  'near zero': (x) => x.abs().lt(1e-4),
  'exactly zero': (x) => x.eq(0),
  'beside one': (x) =>
    x
      .abs()
      .ge(0.5 - 1e-7)
      .logicalAnd(x.abs().le(0.5)),
  infinite: (x) => x.eq(Infinity),
}

describe('the worst input', { timeout: 60_000 }, () => {
  it.each(turn(Object.keys(BACKENDS)))('shows a fault that is there for some values only: %s', async (kind) => {
    const condition = BACKENDS[kind] ?? ((x: Tensor) => x.eq(7))
    const backends = [where('planted', condition), 'eager']
    const without = await compareBackends(gm, inputs, { backends })
    expect([...without.statuses.values()]).toEqual(['right', 'right'])
    expect(without.worst.size).toBe(0)
    const result = await compareBackends(gm, inputs, { backends, worstInput: { seed: 3 } })
    expect([...result.statuses.values()], String(result)).toEqual(['wrong', 'right'])
    const worst = result.worst.get('planted')
    expect(worst).toMatchObject({ names: ['x'], status: 'wrong' })
    expect(worst?.error).toBeGreaterThan(0.1)
    // The tensors show the fault again.
    const [a, b] = (worst?.inputs ?? []) as readonly [Tensor, Tensor]
    expect(condition(a.mul(0.5)).any().item()).toBe(true)
    expect([a.shape, a.dtype, b.shape]).toEqual([[3], 'float32', [3]])
    expect(result.first).toMatchObject({ set: 1, backend: 'planted' })
    expect(result.first?.nodes.map((node) => node.name)).toEqual(['tanh'])
    expect(String(result)).toMatch(/^planted: the worst inputs found are other values of 'x' \(wrong, error ([\d.e+-]+|Infinity)\)$/m)
    expect(String(result)).toMatch(/^eager: the worst inputs found are .* \(right, error/m)
    // So does minify.
    const small = await result.minify('planted')
    expect([...small.gm.graph.nodes].map((node) => node.name)).toContain('tanh')
    const again = await compareBackends(gm, [a, b], { backends })
    expect([...again.statuses.values()]).toEqual(['wrong', 'right'])
  })

  it('goes on from the best that it has found', async () => {
    // The error grows with the distance from what was given.
    const grows = withFault('mul', (value) => value.add(value.abs().sub(1).clamp(0, 1e30).mul(1e-5)), 'grows')
    const plain = symbolicTrace((x: Tensor) => x.mul(2))
    const errorOf = async (tries: number): Promise<number> =>
      (await compareBackends(plain, [torch.tensor([0.25])], { backends: [grows], worstInput: { tries, seed: 5 } })).worst.get('grows')?.error ?? NaN
    const [few, many] = [await errorOf(4), await errorOf(60)]
    expect(many).toBeGreaterThanOrEqual(few)
    const peak = withFault('mul', (value) => value.add(value.sub(3).square().neg().mul(100).exp()), 'peak')
    const result = await compareBackends(plain, [torch.tensor([0.25])], { backends: [peak], worstInput: { tries: 400, seed: 1 } })
    // Relative to 1 + 3 at the peak.
    expect(result.worst.get('peak')?.error).toBeGreaterThan(0.05)
  })

  it('is the same for the same seed, and leaves the program alone', async () => {
    const of = async (seed: number): Promise<unknown> => {
      const backends = [where('planted', (x) => x.lt(-0.5))]
      const found = (await compareBackends(gm, inputs, { backends, worstInput: { tries: 30, seed } })).worst.get('planted')
      return found?.inputs.map((value) => (value as Tensor).toArray())
    }
    torch.manualSeed(4)
    const next = torch.rand([2]).toArray()
    torch.manualSeed(4)
    const first = await of(1)
    expect(torch.rand([2]).toArray()).toEqual(next)
    expect(await of(1)).toEqual(first)
    expect(await of(2)).not.toEqual(first)
    expect(inputs.map((value) => value.toArray())).toEqual([
      [0.5, -0.25, 1.5],
      [1, 2, 3],
    ])
  })

  it('keeps integers in range, names the input that matters, and passes over what eager kernels reject', async () => {
    class Words extends nn.Module {
      readonly table = new nn.Embedding(6, 2)

      override forward(ids: Tensor, scale: Tensor, mask: Tensor): unknown {
        return (this.table.call(ids) as Tensor).mul(scale).mul(mask)
      }
    }
    const words = symbolicTrace(new Words())
    const given = [torch.tensor([1, 4, 2], { dtype: 'int64' }), torch.tensor([2, 3]), torch.tensor([true, false])]
    const seen: number[] = []
    const spy: Backend =
      (graph) =>
      (...values: never[]) => {
        const ids = values[0] as unknown
        if (typeof ids === 'object' && ids !== null && 'dtype' in ids && ids.dtype === 'int64') seen.push(...(ids as Tensor).toTypedArray())
        return graph.forward(...values)
      }
    const atThree: Backend = withFault('mul', (value, args) => value.add((args[1] as Tensor).gt(100).to('float32')), 'scaled')
    const result = await compareBackends(words, given, { backends: [spy, atThree, 'inductor'], worstInput: {} })
    expect([...result.statuses.values()], String(result)).toEqual(['right', 'wrong', 'right'])
    expect(result.worst.get('scaled')?.names).toEqual(['scale'])
    expect([...new Set(seen)].toSorted()).toEqual([1, 2, 3, 4])
    const rejecting = symbolicTrace((table: Tensor, at: Tensor) => F.embedding(at.round().to('int64'), table))
    const rejected = await compareBackends(rejecting, [torch.ones([3, 1]), torch.tensor([0, 2])], {
      backends: ['inductor'],
      worstInput: { tries: 20 },
    })
    expect([...rejected.statuses.values()]).toEqual(['right'])
  })

  it('of gradients: a backward that is wrong for some values', async () => {
    const backward = withFault('threshold_backward', (value) => value.add(value.abs().gt(500).to('float32').mul(value)), 'backward')
    const square = symbolicTrace((x: Tensor) => torch.relu(x).square())
    const leaf = torch.tensor([1, 2, -3], { requiresGrad: true })
    const result = await compareBackends(square, [leaf], { backends: [backward, 'inductor'], gradients: true, worstInput: {} })
    expect([...result.statuses.values()], String(result)).toEqual(['wrong', 'right'])
    expect(result.first).toMatchObject({ half: 'backward', forward: 'relu', set: 1 })
    expect(result.worst.get('backward')?.names).toEqual(['x'])
    expect(result.gradients.map(({ name, statuses }) => [name, ...statuses.values()])).toEqual([['input 0', 'wrong', 'right']])
  })

  it('is none for a backend that cannot be run, and says what is wrong with its options', async () => {
    const result = await compareBackends(gm, inputs, { backends: [withFault('tanh', faultOf('throws'))], worstInput: {} })
    expect([...result.statuses.values(), result.worst.size]).toEqual(['failed', 0])
    const later = withFault('tanh', (value, args) => {
      if (((args[0] as Tensor).abs().max().item() as number) > 1e3) throw new RangeError('out of range')
      return value
    })
    const throwing = await compareBackends(gm, inputs, { backends: [later], worstInput: {} })
    expect(throwing.first).toMatchObject({ kind: 'failed', set: 1, reason: expect.stringContaining('out of range') })
    const bad = async (worstInput: unknown): Promise<unknown> => compareBackends(gm, inputs, { backends: ['eager'], worstInput: worstInput as never })
    await expect(bad({ tries: 0 })).rejects.toThrow(/options\.worstInput\.tries/)
    await expect(bad({ seed: -1 })).rejects.toThrow(/options\.worstInput\.seed/)
    await expect(bad({ trys: 3 })).rejects.toThrow(/trys/)
    await expect(bad(3)).rejects.toThrow(/options\.worstInput/)
  })

  it('finds nothing wrong in right backends', async () => {
    for (const seed of turn([0, 1, 2, 3, 4, 5])) {
      const result = await compareBackends(randomGraph(seed), randomInputs(seed), {
        backends: ['inductor', 'eager'],
        worstInput: { tries: 40, seed },
      })
      expect([seed, ...result.statuses.values()], String(result)).toEqual([seed, 'right', 'right'])
    }
  })
})
