// What PyTorch's own tests of fx check (test/goldens/pytorch-tests.json: the names, by file and class) has a test here whose title says the name, or a row in
// docs/tests-not-ported.md that says why not. A row names tests, or a whole file or class of them (`fx/test_gradual_type.py`).
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const classes = JSON.parse(readFileSync(`${root}test/goldens/pytorch-tests.json`, 'utf8')) as Readonly<Record<string, readonly string[]>>

/** The lines of test files that hold titles: calls of it, test and describe, and the strings of tables of cases. */
const titles = readdirSync(`${root}test`, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts') && !name.endsWith('pytorchTests.test.ts'))
  .flatMap((name) => readFileSync(`${root}test/${name}`, 'utf8').split('\n'))
  .filter((line) => !line.trimStart().startsWith('//') && /['"`].*\btest_\w+/.test(line))
  .join('\n')
const tested = new Set(titles.match(/\btest_\w+/g))

const rows = readFileSync(`${root}docs/tests-not-ported.md`, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => {
    const [, names = '', why = ''] = line.split('|').map((cell) => cell.trim())
    return { names: [...names.matchAll(/`([^`]+)`/g)].map((m) => m[1] as string), why }
  })
const excused = new Set(rows.flatMap((row) => row.names))
const isExcused = (group: string, name: string): boolean => excused.has(name) || excused.has(group) || excused.has(group.split('::')[0] as string)

describe.each(Object.entries(classes))('%s', (group, names) => {
  it('every test has one here, or a row that says why not', () => {
    expect(names.filter((name) => !tested.has(name) && !isExcused(group, name))).toEqual([])
  })
})

describe('docs/tests-not-ported.md', () => {
  const all = new Set(Object.entries(classes).flatMap(([group, names]) => [...names, group, group.split('::')[0] as string]))

  it('names tests that there are, and gives a reason for each', () => {
    expect([...excused].filter((name) => !all.has(name))).toEqual([])
    expect(rows.filter((row) => row.names.length === 0 || row.why.length < 20)).toEqual([])
  })

  it('names no test that is here after all', () => {
    expect([...excused].filter((name) => tested.has(name))).toEqual([])
  })
})
