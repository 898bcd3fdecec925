// The samples of the goldens: what PyTorch's fx makes of each, and what ours makes of its port.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Interpreter } from 'tensorfx/fx'
import { treeFlatten } from 'tensorfx/pytree'
import { samples, variants } from './all.ts'
import type { Sample } from './common.ts'
import { changesMeaning, transforms } from './transforms.ts'
import type { Transformed } from './transforms.ts'
import type { GraphModule } from 'tensorfx/fx'
import { mergeSameConstants, nodeRules, otherRules, usedDifferences, userName, userText, valueRules } from './differences.ts'
import { goldenGraph, goldenText, readGolden } from './golden.ts'
import type { GoldenError, GoldenMeta, GoldenNode, GoldenOutput, GoldenTransform } from './golden.ts'
import { checkCode, checkLayers, checkReadable } from './code.ts'
import { plain } from './s06_gpt2.ts'
import { failing } from './s09_control_flow_failure.ts'
import { checkGraph, checkOutput, checkShapes, checkTable, checkText, isError, run, traced } from './harness.ts'
import { parseGraph } from './parseGraph.ts'
import { isFull, tenth } from '../../helpers/rotation.ts'

const { allclose } = torch

/** Transforms of a sample that run this time. */
const ofThisRun = (sample: string, names: readonly string[]): readonly string[] => tenth(names, (name) => `${sample} ${name}`)

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

  it('code assigns and releases what PyTorch’s does, and the layers print alike', () => {
    const gm = traced(sample)
    checkCode(gm, golden.nodes, golden.code)
    checkLayers(gm, golden.str_gm)
  })

  it.each(
    ofThisRun(
      sample.golden,
      Object.keys(transforms).filter((name) => golden.transforms[name]?.str_graph !== undefined),
    ),
  )('%s makes PyTorch’s graph', (name) => {
    const theirs = golden.transforms[name] as GoldenTransform
    const ours = (transforms[name] as (gm: GraphModule) => Transformed)(traced(sample))
    const nodes = parseGraph(theirs.str_graph as string, stringsOf(golden.nodes))
    checkGraph(ours.gm, name.includes('cse') ? mergeSameConstants(nodes) : nodes, { annotated: ['annotate_types', 'normalize_ops'].includes(name) })
    ours.gm.graph.lint()
    if (theirs.before !== undefined) checkText(ours.before as GraphModule, theirs.before, stringsOf(golden.nodes))
    expect(ours.changed).toBe(theirs.changed)
    expect(ours.modified).toBe(theirs.modified)
    expect(ours.matches).toBe(theirs.matches)
    for (const [path, text] of Object.entries(theirs.submodules ?? {}))
      checkText(ours.gm.attribute(path) as GraphModule, text, stringsOf(golden.nodes))
    if (theirs.output === 'eager_output') checkOutput(run(ours.gm, (inputs as () => readonly unknown[])()), golden.eager_output as GoldenOutput)
  })

  // PyTorch's CSE knows no slices, its code generation loses a function that is not in a public module, and tracing again forgets the tracer.
  it.each(Object.keys(transforms).filter((name) => golden.transforms[name]?.error_type !== undefined))(
    '%s, which fails in PyTorch, works (difference: fewer-failures)',
    (name) => {
      expect(golden.transforms[name]?.error).toMatch(/unhashable type: 'slice'|_assert_is_none|slice indices must be integers/)
      const { gm } = (transforms[name] as (gm: GraphModule) => Transformed)(traced(sample))
      gm.graph.lint()
      if (inputs !== null && golden.gm_matches_eager === true) checkOutput(run(gm, inputs()), golden.eager_output as GoldenOutput)
    },
  )

  if (inputs !== null && Array.isArray(golden.shape_prop))
    it('ShapeProp notes what PyTorch’s does, and readable code shows it', () => {
      const gm = traced(sample)
      checkShapes(gm, golden.shape_prop as readonly GoldenMeta[], inputs())
      checkReadable(gm, golden.nodes, golden.readable_after_shape_prop as string)
    })
})

/** The string constants in the args of nodes. */
const stringsOf = (nodes: readonly GoldenNode[]): string[] =>
  nodes.flatMap((node) => [...node.args, ...Object.values(node.kwargs)].flatMap(stringsIn))

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null || 'node' in value || 'repr' in value || 'float' in value) return []
  return Object.values(value).flatMap(stringsIn)
}

describe.each(variants)('$name, of which there is no golden', (variant) => {
  const inputs = variant.inputs as () => readonly unknown[]
  const same = (a: unknown, b: unknown): void => {
    const [x, y] = [a, b].map((value) => treeFlatten(value).leaves as Tensor[]) as [Tensor[], Tensor[]]
    expect(x.map((t) => t.shape)).toEqual(y.map((t) => t.shape))
    for (const [i, t] of x.entries()) expect(allclose(t, y[i] as Tensor)).toBe(true)
  }

  it('the graph computes what the program does', () => {
    const gm = traced(variant)
    gm.graph.lint()
    same(run(gm, inputs()), run(variant.make(), inputs()))
    same(new Interpreter(gm).run(...inputs()), run(variant.make(), inputs()))
  })

  it.each(
    ofThisRun(
      variant.name,
      Object.keys(transforms).filter((name) => !changesMeaning.includes(name)),
    ),
  )('%s keeps what it computes', (name) => {
    const { gm } = (transforms[name] as (gm: GraphModule) => Transformed)(traced(variant))
    gm.graph.lint()
    same(run(gm, inputs()), run(variant.make(), inputs()))
  })
})

it('every transform of the goldens is applied', () => {
  const names = new Set(samples.flatMap((sample) => Object.keys(readGolden(sample.golden).transforms)))
  expect([...names].filter((name) => transforms[name] === undefined)).toEqual([])
  expect(Object.keys(transforms).filter((name) => !names.has(name))).toEqual([])
})

describe('what cannot be traced', () => {
  it('s09: a condition on a value is an error with PyTorch’s text', () => {
    const golden = readGolden(failing.golden)
    expect(() => traced(failing)).toThrow((golden.trace_error as GoldenError).error)
    checkOutput(run(failing.make(), (failing.inputs as () => readonly unknown[])()), golden.eager_output as GoldenOutput)
  })

  it('s10: a missing argument is undefined, and the assertion on it says so (difference: undefined-is-default)', () => {
    const sample = samples.find(({ golden }) => golden === 'concrete_args') as Sample
    expect(readGolden(sample.golden).gm_matches_eager).toMatchObject({ error_type: 'builtins.TypeError' })
    expect(() => run(traced(sample), (sample.inputs as () => readonly unknown[])())).toThrow(
      'b has been specialized to have value False but got another value',
    )
  })

  it('s06: buffers are nodes, so that slicing one with a traced size works without a tracer of its own', () => {
    const golden = readGolden(plain.golden)
    expect(golden.trace_error?.error).toMatch(/slice indices must be integers/)
    const inputs = (plain.inputs as () => readonly unknown[])()
    const gm = traced(plain)
    checkGraph(gm, readGolden('gpt2.proxy_buffers').nodes)
    checkOutput(run(gm, inputs), golden.eager_output as GoldenOutput)
  })
})

describe('docs/differences-from-pytorch.md', () => {
  const table = readFileSync(new URL('../../../docs/differences-from-pytorch.md', import.meta.url), 'utf8')
  const rows = [...table.matchAll(/^\| `([\w-]+)` *\|/gm)].map((m) => m[1] as string)
  const rules = new Set([...Object.keys(nodeRules), ...Object.keys(valueRules), ...otherRules])

  it('has one row for each difference', () => {
    expect([...new Set(rows)]).toEqual(rows)
    const named = testFiles().flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/\(difference: ([\w-]+)\)/g)].map((m) => m[1] as string))
    expect([...rules, ...usedDifferences, ...named].filter((id) => !rows.includes(id))).toEqual([])
  })

  // Which rows are needed is seen when all transforms run.
  if (isFull)
    it('has no row that no test needs', () => {
      expect([...rules].filter((id) => !usedDifferences.has(id))).toEqual([])
      const titles = testFiles().map((file) => readFileSync(file, 'utf8'))
      expect(rows.filter((id) => !rules.has(id) && !titles.some((text) => text.includes(`(difference: ${id})`)))).toEqual([])
    })
})

/** The files with tests: those that vitest runs, and the suites of ranks that they run. */
function testFiles(): string[] {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') || name.startsWith('distributed/suites/'))
    .map((name) => join(root, name))
}
