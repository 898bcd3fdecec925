// Whole models against PyTorch: the same weights and inputs give the same outputs, and the modules print the same text.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { noGrad } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { Module } from 'tensorfx/nn'
import { samples } from '../helpers/models.ts'
import type { Sample } from '../helpers/models.ts'
import { expectClose } from '../ops/goldens.ts'

type Stored = Parameters<typeof expectClose>[1]
interface Golden {
  readonly eager_output: Stored | Readonly<Record<string, readonly Stored[]>>
  readonly repr?: string
}

const goldens = JSON.parse(readFileSync(fileURLToPath(new URL('../goldens/models.json', import.meta.url)), 'utf8')) as Record<string, Golden>

const run = (model: Module, inputs: readonly Tensor[]): unknown =>
  noGrad(() => (model.forward as (this: Module, ...args: unknown[]) => unknown).apply(model, [...inputs]))

test.each(Object.entries(samples))('%s computes what PyTorch computes', (name: string, { make, inputs }: Sample) => {
  const golden = goldens[name] as Golden
  const output = run(make(), inputs())
  const expected = 'shape' in golden.eager_output ? [golden.eager_output as Stored] : (Object.values(golden.eager_output)[0] as readonly Stored[])
  const actual = (Array.isArray(output) ? output : [output]) as readonly Tensor[]
  expect(actual.length).toBe(expected.length)
  expected.forEach((stored, i) => expectClose(actual[i] as Tensor, stored, `${name} output ${i}`, 2e-5))
})

test.each(['mymodule', 'mlp3', 'cnn'] as const)('%s prints as in PyTorch', (name) => {
  expect(String(samples[name].make())).toBe((goldens[name] as Golden).repr)
})
