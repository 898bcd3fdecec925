// Sequences of different lengths: packing, padding, and recurrent layers over packed sequences.
import { describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GRU, LSTM, RNN, utils } from 'tensorfx/nn'
import type { Module } from 'tensorfx/nn'
import { treeFlatten, treeUnflatten } from 'tensorfx/pytree'
import { detInit, detInput } from '../helpers/deterministic.ts'

const { packPaddedSequence, padPackedSequence, padSequence, packSequence, unpackSequence, unpadSequence, PackedSequence } = utils.rnn
const { tensor } = torch
const values = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray(), Number)
const close = (a: Tensor, b: Tensor): void => {
  expect(a.shape).toEqual(b.shape)
  values(a).forEach((v, i) => expect(v).toBeCloseTo(values(b)[i] as number, 5))
}

describe('packing', () => {
  const padded = tensor([
    [1, 0, 0],
    [2, 3, 4],
    [5, 6, 0],
  ])

  test('goes step by step, the longest sequence first', () => {
    const packed = packPaddedSequence(padded, tensor([1, 3, 2]).long(), { batchFirst: true, enforceSorted: false })
    expect(packed.data.toArray()).toEqual([2, 5, 1, 3, 6, 4])
    expect([packed.batchSizes.toArray(), packed.sortedIndices?.toArray(), packed.unsortedIndices?.toArray()]).toEqual([
      [3, 2, 1],
      [1, 2, 0],
      [2, 0, 1],
    ])
    expect(String(packed)).toBe('PackedSequence(data: [6], batchSizes: [3, 2, 1])')
  })

  test('padPackedSequence undoes it, in the first order', () => {
    const packed = packPaddedSequence(padded, [1, 3, 2], { batchFirst: true, enforceSorted: false })
    const [back, lengths] = padPackedSequence(packed, { batchFirst: true })
    expect([back.toArray(), lengths.toArray(), lengths.dtype]).toEqual([padded.toArray(), [1, 3, 2], 'int64'])
    const [longer] = padPackedSequence(packed, { paddingValue: -1, totalLength: 4 })
    expect(longer.toArray()).toEqual([
      [1, 2, 5],
      [-1, 3, 6],
      [-1, 4, -1],
      [-1, -1, -1],
    ])
  })

  test('sequences are padded on either side, and cut out again', () => {
    const list = [tensor([1, 2, 3]), tensor([4])]
    expect(padSequence(list).toArray()).toEqual([
      [1, 4],
      [2, 0],
      [3, 0],
    ])
    expect(padSequence(list, { batchFirst: true, paddingValue: 9, paddingSide: 'left' }).toArray()).toEqual([
      [1, 2, 3],
      [9, 9, 4],
    ])
    expect(unpadSequence(padSequence(list), tensor([3, 1]).long()).map((t) => t.toArray())).toEqual([[1, 2, 3], [4]])
    expect(unpackSequence(packSequence(list)).map((t) => t.toArray())).toEqual([[1, 2, 3], [4]])
    expect(unpackSequence(packSequence(list.toReversed(), false)).map((t) => t.toArray())).toEqual([[4], [1, 2, 3]])
  })

  test('gradients go back to the steps, and not to the padding', () => {
    const x = detInput([3, 2, 2], 1).requiresGrad_()
    const [out] = padPackedSequence(packPaddedSequence(x, [3, 1]))
    out.mul(2).sum().backward()
    expect(x.grad?.toArray()).toEqual([
      [
        [2, 2],
        [2, 2],
      ],
      [
        [2, 2],
        [0, 0],
      ],
      [
        [2, 2],
        [0, 0],
      ],
    ])
  })

  test('is refused for lengths that do not fit', () => {
    expect(() => packPaddedSequence(padded, [1, 3, 2])).toThrow('the sequences must be sorted by length, the longest first, got [1, 3, 2]. Sort them')
    expect(() => packPaddedSequence(padded, [3, 2, 0])).toThrow('lengths must be 3 integers from 1 to 3, one for each sequence, got [3, 2, 0]')
    expect(() => packPaddedSequence(padded, [3, 2])).toThrow('lengths must be 3 integers')
    expect(() => padPackedSequence(packSequence([tensor([1, 2])]), { totalLength: 1 })).toThrow('totalLength must be an integer of at least 2, got 1')
    expect(() => padSequence([tensor([[1]]), tensor([1])])).toThrow('all alike after the first dimension; got shapes [1, 1], [1]')
    expect(() => new PackedSequence(tensor([1, 2]), [1, 2])).toThrow('batchSizes must be positive, must not grow, and add up to the rows of data')
  })

  test('a packed sequence is a nested value, with its data as the leaf', () => {
    const packed = packSequence([tensor([1, 2]), tensor([3])])
    const { leaves, spec } = treeFlatten({ packed })
    expect(leaves).toEqual([packed.data])
    const { packed: back } = treeUnflatten([packed.data.neg()], spec) as { packed: typeof packed }
    expect([back.data.toArray(), back.batchSizes.toArray()]).toEqual([
      [-1, -3, -2],
      [2, 1],
    ])
  })
})

const layers = {
  RNN: (bidirectional: boolean) => new RNN(3, 4, { numLayers: 2, bidirectional, nonlinearity: 'relu' }),
  GRU: (bidirectional: boolean) => new GRU(3, 4, { numLayers: 2, bidirectional }),
  LSTM: (bidirectional: boolean) => new LSTM(3, 4, { numLayers: 2, bidirectional, projSize: 2 }),
}
type Run = (layer: Module, x: Tensor | InstanceType<typeof PackedSequence>, states?: unknown) => readonly [unknown, unknown]
const run: Run = (layer, x, states = null) => Reflect.apply(layer, undefined, [x, states]) as readonly [unknown, unknown]

describe.each(Object.entries(layers))('%s', (_, make) => {
  test.each([false, true])('over packed sequences computes what it does over each alone (bidirectional: %s)', (bidirectional) => {
    const layer = detInit(make(bidirectional))
    const list = [detInput([2, 3], 1), detInput([4, 3], 2), detInput([1, 3], 3)]
    const sizes = layer instanceof LSTM ? [2, 4] : [4]
    const count = bidirectional ? 4 : 2
    const first = sizes.map((size, k) => detInput([count, 3, size], 10 + k))
    const given = (states: readonly Tensor[]): unknown => (layer instanceof LSTM ? states : states[0])
    const [output, last] = run(layer, packSequence(list, false), given(first))
    const outputs = unpackSequence(output as InstanceType<typeof PackedSequence>)
    for (const [i, x] of list.entries()) {
      const [alone, end] = run(layer, x, given(first.map((state) => state.select(1, i))))
      close(outputs[i] as Tensor, alone as Tensor)
      for (const [k, state] of [end].flat().entries()) close(([last].flat()[k] as Tensor).select(1, i), state as Tensor)
    }
  })

  test('compiled, it takes and returns packed sequences', () => {
    const layer = detInit(make(true))
    const compiled = compile((x: InstanceType<typeof PackedSequence>) => run(layer, x)[0] as InstanceType<typeof PackedSequence>)
    for (const [seed, lengths] of [
      [1, [3, 1]],
      [2, [3, 1]],
      [3, [2, 2]],
    ] as const) {
      const packed = packPaddedSequence(detInput([3, 2, 3], seed), lengths)
      const out = compiled(packed)
      expect(out.batchSizes.toArray()).toEqual(packed.batchSizes.toArray())
      close(out.data, (run(layer, packed)[0] as typeof out).data)
    }
  })
})

test('features that do not fit are refused', () => {
  expect(() => new LSTM(3, 4)(packSequence([detInput([2, 5], 1)]))).toThrow('nn.LSTM: the input must be packed or [steps, features], with 3 features')
})
