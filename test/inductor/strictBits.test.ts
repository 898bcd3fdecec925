// Strict code computes the bits that products and convolutions had before kernels were schedules (commit 0ab0f8c): test/goldens/strict.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { withStrict } from '../../src/kernels/engine/computing.ts'
import { processEngine } from '../../src/kernels/engine/engine.ts'
import { digestsOf } from '../goldens/strict/program.mjs'
import { tenth } from '../helpers/rotation.ts'

type Digests = Readonly<Record<string, readonly string[]>>
const recorded = JSON.parse(readFileSync(new URL('../goldens/strict/digests.json', import.meta.url), 'utf8')) as Digests
const chosen = new Set(tenth(Object.keys(recorded), (name) => name))
const all = (isStrict: boolean, isChosen = (name: string) => chosen.has(name)): Digests => {
  const compiled = (f: (...args: Tensor[]) => Tensor) => compile(f, { options: { strict: isStrict } })
  return withStrict(isStrict, () => digestsOf({ torch, compiled }, isChosen))
}

test('strict products and convolutions have the bits of 0ab0f8c, eager and compiled, as have their gradients', () => {
  const found = all(true)
  expect(Object.keys(found)).toHaveLength(chosen.size)
  for (const [name, digests] of Object.entries(found)) expect(digests, name).toEqual(recorded[name])
})

test('other code has other bits where multiply-add is fused', () => {
  const found = Object.entries(all(false, (name) => name === 'mm 4'))
  expect(found.map(([name, digests]) => digests.join() === recorded[name]?.join())).toEqual([processEngine() !== 'wasm-relaxed'])
})
