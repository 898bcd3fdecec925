// Files with tensors of every dtype: safetensors that PyTorch wrote, and what we write, bit for bit.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, test } from 'vitest'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import { loadGraphModule, readSafetensors, saveGraphModule, writeSafetensors } from 'tensorfx/interop'
import { InputReader, InputWriter } from 'tensorfx/debug'
import { MemoryFileStore } from '../../src/debug/files/fileStore.ts'
import { storedElements } from '../../src/tensor/index.ts'

const golden = (name: string): Uint8Array => readFileSync(fileURLToPath(new URL(`../goldens/dtypes/${name}`, import.meta.url)))

interface Stored {
  readonly shape: readonly number[]
  readonly data: readonly (number | boolean)[]
}
interface Weights {
  readonly state: Readonly<Record<string, readonly [DType, readonly number[]]>>
  readonly values: Readonly<Record<string, Stored>>
}
const weights = JSON.parse(Buffer.from(golden('weights.json')).toString('utf8')) as Weights

const bitsOf = (t: Tensor): number[] => {
  const { buffer, byteOffset, byteLength } = storedElements(t)
  return [...new Uint8Array(buffer, byteOffset, byteLength)]
}

/** A tensor of each dtype, with values at its limits. */
const extremes: readonly (readonly [DType, Tensor])[] = [
  ['bool', torch.tensor([true, false, true])],
  ['uint8', torch.tensor([0, 255, 7], { dtype: 'uint8' })],
  ['int8', torch.tensor([-128, 127, 7], { dtype: 'int8' })],
  ['int16', torch.tensor([-32768, 32767, 7], { dtype: 'int16' })],
  ['int32', torch.tensor([-(2 ** 31), 2 ** 31 - 1, 7], { dtype: 'int32' })],
  ['int64', torch.tensor([-(2n ** 63n), 2n ** 63n - 1n, 7n])],
  ['float16', torch.tensor([65504, 6e-8, NaN, -0, Infinity], { dtype: 'float16' })],
  ['bfloat16', torch.tensor([3e38, 1e-40, NaN, -0, -Infinity], { dtype: 'bfloat16' })],
  ['float32', torch.tensor([3e38, 1e-45, NaN, -0])],
  ['float64', torch.tensor([1e308, 5e-324, NaN, -0], { dtype: 'float64' })],
]

describe('safetensors', () => {
  const { tensors } = readSafetensors(golden('weights.safetensors'))

  it.each(Object.entries(weights.state))('that PyTorch wrote are read: %s', (name, [dtype, shape]) => {
    const tensor = tensors.get(name)
    expect([tensor?.dtype, tensor?.shape]).toEqual([dtype, shape])
    const values = tensor?.reshape([-1]).toArray() as readonly number[]
    // The golden has 9 digits of each float.
    weights.values[name]?.data.forEach((want, i) => {
      if (typeof want === 'boolean' || Number.isInteger(want)) expect(values[i]).toBe(want)
      else expect(Math.abs((values[i] ?? NaN) - want)).toBeLessThanOrEqual(Math.abs(want) * 1e-8)
    })
  })

  it('that PyTorch wrote are written again with the same bytes for each tensor', () => {
    const again = readSafetensors(writeSafetensors(tensors)).tensors
    expect([...again.keys()]).toEqual([...tensors.keys()])
    for (const [name, tensor] of tensors) {
      const back = again.get(name)
      expect([back?.dtype, back === undefined ? null : bitsOf(back)], name).toEqual([tensor.dtype, bitsOf(tensor)])
    }
  })
})

describe.each(extremes)('%s', (dtype, tensor) => {
  test('survives a safetensors file', () => {
    const back = readSafetensors(writeSafetensors([['x', tensor]])).tensors.get('x')
    expect([back?.dtype, back === undefined ? null : bitsOf(back)]).toEqual([dtype, bitsOf(tensor)])
  })
  test('survives a file with a GraphModule', () => {
    const gm = symbolicTrace((x) => torch.cat([x as Tensor, tensor]))
    const back = loadGraphModule(saveGraphModule(gm)).call(torch.zeros([1], { dtype })) as Tensor
    expect([back.dtype, bitsOf(back.narrow(0, 1, tensor.numel).contiguous())]).toEqual([dtype, bitsOf(tensor)])
  })
  test("survives the store of a repro's inputs", () => {
    const store = new MemoryFileStore()
    const writer = new InputWriter(store, 'inputs')
    writer.add('x', tensor)
    const reader = new InputReader(store, 'inputs')
    // The lines are code of a repro script.
    // eslint-disable-next-line no-new-func
    new Function('reader', writer.lines().join('\n'))(reader)
    const back = reader.args[0] as Tensor
    expect([back.dtype, bitsOf(back)]).toEqual([dtype, bitsOf(tensor)])
  })
})
