// Whether each test of PyTorch's is here is read from what ran, by a reporter (test/helpers/portedReporter.ts). Here: that it finds what is missing, and that
// docs/tests-not-ported.md is in order.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { portingErrors, pytorchTests, rowsNotPorted } from '../helpers/portedTests.ts'

describe('the check of what ran', () => {
  const classes = { 'test_fx.py::TestFX': ['test_graph', 'test_pickle'], 'fx/test_types.py::TestTypes': ['test_any'] }
  const rows = [{ names: ['test_pickle', 'fx/test_types.py'], why: 'There is no pickle in JavaScript.' }]

  it('accepts a test that passed, and rows for a test, a class or a file', () => {
    expect(portingErrors(['graphs > test_graph: builds one'], classes, rows)).toEqual([])
    expect(portingErrors([], classes, [{ names: ['test_fx.py::TestFX', 'test_any'], why: 'Not ported at all.' }])).toEqual([])
  })

  it('knows names without an underscore', () => {
    const finder = { 'fx/test_finder.py::TestFinder': ['testFinder'] }
    expect(portingErrors(['testFinder: finds'], finder, [])).toEqual([])
    expect(portingErrors(['a tester'], finder, [])).toHaveLength(1)
  })

  it('names a test that did not run: skipped, or only quoted in the source', () => {
    expect(portingErrors([], classes, rows)).toEqual([
      'test_fx.py::TestFX test_graph: no test with this name ran and passed, and docs/tests-not-ported.md does not say why',
    ])
  })

  it('names a row of a test that passed', () => {
    expect(portingErrors(['test_graph', 'test_pickle'], classes, rows)).toEqual([
      'test_pickle: docs/tests-not-ported.md says that it is not here, but it ran and passed',
    ])
  })
})

describe('docs/tests-not-ported.md', () => {
  const rows = rowsNotPorted()
  const known = new Set(Object.entries(pytorchTests()).flatMap(([group, names]) => [...names, group, ...group.split('::').slice(0, 1)]))

  it('names tests that PyTorch has, and gives a reason for each', () => {
    const table = readFileSync(new URL('../../docs/tests-not-ported.md', import.meta.url), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('|'))
    // Every line of the table is read, but for its head and the line below it.
    expect(rows).toHaveLength(table.length - 2)
    expect(rows.flatMap((row) => row.names).filter((name) => !known.has(name))).toEqual([])
    expect(rows.filter((row) => row.names.length === 0 || row.why.length < 20)).toEqual([])
  })

  it('the only reasons are JavaScript and the texts of errors', () => {
    expect(rows.filter((row) => !/texts of PyTorch's errors|\b(?:JavaScript|TypeScript)\b/.test(row.why))).toEqual([])
  })
})
