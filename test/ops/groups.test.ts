// The groups of operators: each operator is in one, each group has an entry, and operators that are looked up late exist.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { opByName } from 'tensorfx/ops'
import { expect, it } from 'vitest'
import { findOperators } from '../../scripts/generateOps.mjs'
import { groupsIn } from '../../scripts/operatorGroups.mjs'
import { rareOps } from '../../src/kernels/scalars/rareOps.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const operators = findOperators()
const { groups, groupOf, unusedPaths } = groupsIn(`${root}src/ops`)

it('groups.json names only files and operators that there are', () => {
  expect(unusedPaths(operators)).toEqual([])
})

it('a file without a group is refused, with what to do', () => {
  expect(() => groupOf(`${root}src/ops/newFile.ts`, 'anything')).toThrow(
    'src/ops/newFile.ts declares operators, and src/ops/groups.json does not say of which group. Add it to one.',
  )
  expect(groupOf(`${root}src/ops/pointwise/newFile.ts`, 'anything')).toBe('core')
})

it('each group but core has an entry, which the package exports and lists among the modules with effects', () => {
  const { exports, sideEffects } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { exports: object; sideEffects: readonly string[] }
  const others = groups.filter((group) => group !== 'core').toSorted()
  expect(
    Object.keys(exports)
      .flatMap((name) => (name.startsWith('./ops/') ? [name.slice(6)] : []))
      .toSorted(),
  ).toEqual(others)
  expect(sideEffects.flatMap((name) => (name.startsWith('./dist/entries/ops/') ? [name.slice(19, -3)] : [])).toSorted()).toEqual(others)
  expect(
    readdirSync(`${root}src/entries/ops`)
      .map((name) => name.slice(0, -3))
      .toSorted(),
  ).toEqual(others)
})

it('operators that are looked up at the call are registered under these names', () => {
  const sources = ['ops', 'nn'].flatMap((room) =>
    readdirSync(`${root}src/${room}`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(`${root}src/${room}/${name}`, 'utf8')),
  )
  /** The constant that `import type` gives a local name. */
  const imported = (text: string, local: string): string => new RegExp(`import type \\{[^}]*\\b(\\w+) as ${local}\\b`).exec(text)?.[1] ?? local
  const looked = sources.flatMap((text) =>
    [...text.matchAll(/lateOperator<typeof (\w+)>\('([\w.]+)'\)/g)].map(([, local = '', name = '']) => [imported(text, local), name] as const),
  )
  expect(looked.length).toBeGreaterThan(4)
  for (const [constant, name] of looked)
    expect([constant, opByName(name)?.fn.name]).toEqual([constant, operators.find((op) => op.constant === constant)?.name])
})

it('operators of core compute without the scalar operations that only other groups load', () => {
  const text = (file: string): string => readFileSync(file, 'utf8')
  const rare = (file: string): string[] => Object.keys(rareOps).filter((op) => new RegExp(`\\bcall\\('${op}'`).test(text(file)))
  const files = (inCore: boolean): string[] => [
    ...new Set(operators.flatMap(({ file, constant }) => ((groupOf(file, constant) === 'core') === inCore ? [file] : []))),
  ]
  expect(files(true).flatMap((file) => rare(file).map((op) => `${file}: ${op}`))).toEqual([])
  // The search does find them.
  expect(files(false).flatMap(rare).length).toBeGreaterThan(5)
})
