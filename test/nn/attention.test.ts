// MultiheadAttention against PyTorch, and its masks and layouts against each other.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { MultiheadAttention } from 'tensorfx/nn'
import type { AttentionCallOptions } from 'tensorfx/nn'
import { detInit, detInput } from '../helpers/deterministic.ts'
import { expectClose, fromStored } from '../ops/goldens.ts'
import { camelCase } from '../../src/protocol/index.ts'

const { tensor } = torch

type Stored = Parameters<typeof fromStored>[0]
interface ModuleCase {
  readonly name: string
  readonly params: Readonly<Record<string, Stored>>
  readonly inputs: Readonly<Record<string, Stored>>
  readonly outputs: readonly Stored[]
  readonly grads: Readonly<Record<string, Stored>>
  readonly param_grads: Readonly<Record<string, Stored>>
}
const { cases } = JSON.parse(readFileSync(fileURLToPath(new URL('../goldens/numeric.json', import.meta.url)), 'utf8')) as {
  cases: readonly ModuleCase[]
}

const values = (t: Tensor): number[] => Array.from(t.contiguous().toTypedArray(), Number)
/** true above the diagonal: what a causal model must not see. */
const future = (n: number): Tensor => tensor(Array.from({ length: n }, (_, i) => Array.from({ length: n }, (__, j) => j > i)))

test.each([
  ['MHA_batch_first', {}],
  ['MHA_causal_noavg', { attnMask: future(3), averageAttnWeights: false }],
] as readonly (readonly [string, AttentionCallOptions])[])('%s: outputs and gradients are those of PyTorch', (name, options) => {
  const golden = cases.find((c) => c.name === name) as ModuleCase
  const attention = new MultiheadAttention(8, 2, { batchFirst: true })
  attention.loadStateDict(Object.fromEntries(Object.entries(golden.params).map(([key, stored]) => [camelCase(key), fromStored(stored)])))
  const x = fromStored(golden.inputs['x'] as Stored).requiresGrad_()
  const [output, weights] = attention.call(x, x, x, options) as readonly [Tensor, Tensor]
  expectClose(output, golden.outputs[0] as Stored, 'output', 2e-5)
  expectClose(weights, golden.outputs[1] as Stored, 'weights', 2e-5)
  output
    .mul(detInput(output.shape, 900))
    .sum()
    .add(weights.mul(detInput(weights.shape, 901)).sum())
    .backward()
  expectClose(x.grad as Tensor, golden.grads['x'] as Stored, 'gradient of x', 5e-5)
  for (const [key, stored] of Object.entries(golden.param_grads))
    expectClose((attention.getParameter(camelCase(key)) as unknown as Tensor).grad as Tensor, stored, `gradient of ${key}`, 5e-5)
})

describe('attention', () => {
  const make = (batchFirst: boolean): MultiheadAttention => detInit(new MultiheadAttention(8, 2, { batchFirst })).eval()
  const x = detInput([2, 3, 8], 1)
  const y = detInput([2, 4, 8], 2)

  test('does not depend on the layout', () => {
    const [a] = make(true).call(x, y, y)
    const [b] = make(false).call(x.transpose(0, 1), y.transpose(0, 1), y.transpose(0, 1))
    values(b.transpose(0, 1)).forEach((v, i) => expect(v).toBeCloseTo(values(a)[i] as number, 5))
    const [single, weights] = make(true).call(x.select(0, 1), y.select(0, 1), y.select(0, 1))
    expect((weights as Tensor).shape).toEqual([3, 4])
    values(single).forEach((v, i) => expect(v).toBeCloseTo(values(a.select(0, 1))[i] as number, 5))
  })

  test('gives the same output with and without weights', () => {
    const mask = {
      attnMask: tensor([
        [false, true, false, false],
        [false, false, true, false],
        [true, false, false, false],
      ]),
    }
    const [a] = make(true).call(x, y, y, mask)
    const [b, none] = make(true).call(x, y, y, { ...mask, needWeights: false })
    expect(none).toBeNull()
    values(b).forEach((v, i) => expect(v).toBeCloseTo(values(a)[i] as number, 5))
  })

  test('ignores padding', () => {
    const padding = tensor([
      [false, false, true, false],
      [false, false, false, true],
    ])
    const [, weights] = make(true).call(x, y, y, { keyPaddingMask: padding })
    const w = (weights as Tensor).toArray() as number[][][]
    expect(w[0]?.every((row) => row[2] === 0)).toBe(true)
    expect(w[1]?.every((row) => row[3] === 0)).toBe(true)
  })

  test('takes the padding of one sequence without its batch', () => {
    const padding = tensor([false, true, true, false])
    const [, weights] = make(true).call(x.select(0, 0), y.select(0, 0), y.select(0, 0), { keyPaddingMask: padding })
    expect(((weights as Tensor).toArray() as number[][]).every((row) => row[1] === 0 && row[2] === 0)).toBe(true)
  })

  describe.each([true, false])('batchFirst: %s', (batchFirst) => {
    const at = (t: Tensor): Tensor => (batchFirst ? t : t.transpose(0, 1))
    const options = { batchFirst, addBiasKv: true, addZeroAttn: true }

    test('addBiasKv and addZeroAttn append two columns, which masks leave open', () => {
      const attention = detInit(new MultiheadAttention(8, 2, options)).eval()
      const all = tensor([
        [true, true, true, true],
        [true, true, true, true],
      ])
      const [out, weights] = attention.call(at(x), at(y), at(y), { keyPaddingMask: all, attnMask: future(3).narrow(1, 0, 1).expand([3, 4]) })
      const w = weights as Tensor
      expect([out.shape, w.shape]).toEqual([at(x).shape, [2, 3, 6]])
      expect(w.narrow(-1, 0, 4).abs().max().item()).toBe(0)
      values(w.sum(-1)).forEach((v) => expect(v).toBeCloseTo(1, 5))
      // What is appended is the same for every sequence: the learned value and a value of zeros.
      const [other] = attention.call(at(x), at(y.neg()), at(y.mul(2)), { keyPaddingMask: all })
      values(other).forEach((v, i) => expect(v).toBeCloseTo(values(out)[i] as number, 5))
    })

    test('the output does not depend on whether weights are wanted', () => {
      const attention = detInit(new MultiheadAttention(8, 2, { ...options, kdim: 5 })).eval()
      const [key, value] = [detInput([2, 4, 5], 3), y]
      const mask = {
        attnMask: future(4).narrow(0, 0, 3),
        keyPaddingMask: tensor([true, false, false, false, false, true, false, false]).view([2, 4]),
      }
      const [a] = attention.call(at(x), at(key), at(value), mask)
      const [b] = attention.call(at(x), at(key), at(value), { ...mask, needWeights: false })
      values(b).forEach((v, i) => expect(v).toBeCloseTo(values(a)[i] as number, 5))
    })
  })

  test('the parameters have the names and the order of PyTorch', () => {
    const names = [...new MultiheadAttention(8, 2, { kdim: 5, addBiasKv: true }).stateDict({ names: 'pytorch' }).keys()]
    expect(names).toEqual(['q_proj_weight', 'k_proj_weight', 'v_proj_weight', 'in_proj_bias', 'bias_k', 'bias_v', 'out_proj.weight', 'out_proj.bias'])
  })

  test('refuses shapes and options that do not fit', () => {
    expect(() => new MultiheadAttention(7, 2)).toThrow(/divisible by numHeads/)
    expect(() => make(true).call(detInput([2, 3, 7], 1), y, y)).toThrow(/query must have .* 8 features/)
    expect(() => make(true).call(x, y, y, { attnMask: future(3) })).toThrow(/attnMask has shape \[3, 3\]; expected \[3, 4\]/)
    expect(() => make(true).call(x, y, y, { isCausal: true })).toThrow(/isCausal only describes the mask; pass the mask too/)
    expect(() => new MultiheadAttention(8, 2, { kdim: 0 })).toThrow(/kdim must be an integer of at least 1, got 0/)
    const other = new MultiheadAttention(8, 2, { kdim: 5, vdim: 6, batchFirst: true })
    expect(() => other.call(x, y, y)).toThrow(/key must have 2 or 3 dimensions, as many as query, and 5 features/)
  })
})
