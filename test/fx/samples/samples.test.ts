// The samples of the goldens: what PyTorch's fx makes of each, and what ours makes of its port.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { samples } from './all.ts'
import { nodeRules, otherRules, usedDifferences, userName, userText, valueRules } from './differences.ts'
import { goldenGraph, goldenText, readGolden } from './golden.ts'
import type { GoldenMeta, GoldenOutput } from './golden.ts'
import { checkGraph, checkOutput, checkShapes, checkTable, isError, run, traced } from './harness.ts'
import { parseGraph } from './parseGraph.ts'

describe.each(samples)('$golden', (sample) => {
  const golden = readGolden(sample.golden)
  const inputs = sample.inputs
  const given = inputs !== null && golden.eager_output !== undefined && !isError(golden.eager_output)

  it('PyTorch’s own nodes print as PyTorch prints them, and their text reads back', () => {
    const graph = goldenGraph(golden.nodes)
    expect(goldenText(graph)).toBe(golden.str_graph)
    expect(goldenText(goldenGraph(parseGraph(golden.str_graph, stringsOf(golden.nodes))))).toBe(golden.str_graph)
    checkTable(golden.nodes, golden.tabular)
  })

  it('the trace has PyTorch’s nodes', () => {
    const gm = traced(sample)
    gm.graph.lint()
    checkGraph(gm, golden.nodes)
    if (sample.trace?.().tracer === undefined) expect(gm.className).toBe(userName(golden.class_name))
  })

  if (given)
    it('the program and its graph give PyTorch’s numbers', () => {
      const output = golden.eager_output as GoldenOutput
      checkOutput(run(sample.make(), inputs()), output)
      const matches = golden.gm_matches_eager
      if (isError(matches)) expect(() => run(traced(sample), inputs())).toThrow(userText(matches.error))
      else checkOutput(run(traced(sample), inputs()), output)
    })

  if (inputs !== null && Array.isArray(golden.shape_prop))
    it('ShapeProp notes what PyTorch’s does', () => checkShapes(traced(sample), golden.shape_prop as readonly GoldenMeta[], inputs()))
})

function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsOf) : []
}

describe('docs/differences-from-pytorch.md', () => {
  const table = readFileSync(new URL('../../../docs/differences-from-pytorch.md', import.meta.url), 'utf8')
  const rows = [...table.matchAll(/^\| `([\w-]+)` *\|/gm)].map((m) => m[1] as string)
  const rules = new Set([...Object.keys(nodeRules), ...Object.keys(valueRules), ...otherRules])

  it('has one row for each difference', () => {
    expect([...new Set(rows)]).toEqual(rows)
    expect([...rules, ...usedDifferences].filter((id) => !rows.includes(id))).toEqual([])
  })

  it('has no row that no test needs', () => {
    expect([...rules].filter((id) => !usedDifferences.has(id))).toEqual([])
    const titles = testFiles().map((file) => readFileSync(file, 'utf8'))
    expect(rows.filter((id) => !rules.has(id) && !titles.some((text) => text.includes(`(difference: ${id})`)))).toEqual([])
  })
})

function testFiles(): string[] {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(root, name))
}
