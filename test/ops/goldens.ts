// Reads PyTorch's numbers (test/goldens/numeric.json): inputs, outputs and gradients of one call each.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { isDType } from '../../src/kernels/index.ts'

const { tensor } = torch

interface StoredTensor {
  readonly shape: readonly number[]
  readonly dtype: string
  readonly data: readonly (number | string | boolean)[]
}

interface GoldenCase {
  readonly name: string
  readonly inputs: Readonly<Record<string, StoredTensor>>
  readonly outputs: readonly StoredTensor[]
  readonly grads?: Readonly<Record<string, StoredTensor | null>>
}

const { cases } = JSON.parse(readFileSync(fileURLToPath(new URL('../goldens/numeric.json', import.meta.url)), 'utf8')) as {
  cases: readonly GoldenCase[]
}
const byName = new Map(cases.map((c) => [c.name, c]))

const toNumber = (v: number | string | boolean): number => (v === 'nan' ? NaN : v === 'inf' ? Infinity : v === '-inf' ? -Infinity : Number(v))

/** The stored tensor. */
export function fromStored({ shape, dtype, data }: StoredTensor): Tensor {
  if (!isDType(dtype)) throw new Error(`${dtype} is not a dtype`)
  return tensor(data.map(toNumber), { dtype }).view(shape)
}

/** The hash of the goldens' helpers: uniform(i, seed) in [-1, 1). */
export function deterministic(shape: readonly number[], seed: number, scale = 1, shift = 0): Tensor {
  const n = shape.reduce((a, b) => a * b, 1)
  const data = Float32Array.from({ length: n }, (_, i) => {
    let x = (i + Math.imul(seed, 0x9e3779b9)) >>> 0
    x ^= x >>> 16
    x = Math.imul(x, 0x85ebca6b)
    x ^= x >>> 13
    x = Math.imul(x, 0xc2b2ae35)
    x ^= x >>> 16
    return ((x >>> 0) / 4294967296) * 2 * scale - scale + shift
  })
  return tensor(data).view(shape)
}

const flat = (t: Tensor): number[] => Array.from(t.contiguous().toTypedArray() as ArrayLike<number>, Number)

/** Compares with a stored tensor, element by element. */
export function expectClose(actual: Tensor, stored: StoredTensor, what: string, tolerance: number): void {
  expect([actual.dtype, actual.shape], `${what}: dtype and shape`).toEqual([stored.dtype, stored.shape])
  const got = flat(actual)
  stored.data.forEach((v, i) => {
    const want = toNumber(v)
    const value = got[i] as number
    if (Number.isFinite(want))
      expect(Math.abs(value - want), `${what}[${i}]: ${value} instead of ${want}`).toBeLessThanOrEqual(tolerance * (1 + Math.abs(want)))
    else expect(value, `${what}[${i}]`).toBe(want)
  })
}

/** Runs `fn` on the inputs of the case called `name` and compares outputs and gradients with PyTorch's. */
export function checkGolden(name: string, fn: (inputs: Record<string, Tensor>) => Tensor | readonly Tensor[], tolerance = 2e-5): void {
  const golden = byName.get(name)
  if (golden === undefined) throw new Error(`there is no golden called ${name}`)
  const inputs = Object.fromEntries(Object.entries(golden.inputs).map(([key, stored]) => [key, fromStored(stored)]))
  for (const input of Object.values(inputs)) if (input.dtype === 'float32') input.requiresGrad_()
  const result = fn(inputs)
  const outputs = Array.isArray(result) ? (result as readonly Tensor[]) : [result as Tensor]
  expect(outputs.length).toBe(golden.outputs.length)
  let loss: Tensor | null = null
  outputs.forEach((out, k) => {
    const stored = golden.outputs[k] as StoredTensor
    expectClose(out, stored, `output ${k}`, tolerance)
    if (stored.dtype !== 'float32' || !out.requiresGrad) return
    const term = out.mul(deterministic(out.shape, 900 + k)).sum()
    loss = loss === null ? term : (loss as Tensor).add(term)
  })
  if (golden.grads === undefined || loss === null) return
  ;(loss as Tensor).backward()
  for (const [key, stored] of Object.entries(golden.grads)) {
    const { grad } = inputs[key] as Tensor
    if (stored === null) expect(grad, `gradient of ${key}`).toBeNull()
    else if (grad !== null) expectClose(grad, stored, `gradient of ${key}`, tolerance)
    else
      expect(
        stored.data.every((v) => v === 0),
        `gradient of ${key} is missing`,
      ).toBe(true)
  }
}
