// The faults that npm run fuzz:planted plants into what knows of sizes that change still have their places in the sources. That the fuzzer finds them takes minutes, and is for that command.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { faults, planted } from '../../scripts/fuzz/planted.mjs'

const sourceOf = (file: string): string => readFileSync(new URL(`../../src/${file}.ts`, import.meta.url), 'utf8')

it.each(faults.map((fault) => [fault.name, fault] as const))('%s', (_, fault) => {
  expect(planted(fault, sourceOf(fault.file))).not.toBe(sourceOf(fault.file))
})

it('a fault whose place is gone is named', () => {
  expect(() => planted({ name: 'a fault', file: 'x', from: 'gone', to: '' }, 'here')).toThrow("'a fault': 'gone' is 0 times in x")
})
