// The table in docs/what-a-tracer-sees.md: its code runs here, and each row has its test, each test its row.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import * as fx from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'
import { RewritingTracer } from 'tensorfx/rewriter'

const { tensor } = torch

type Verdict = 'recorded' | 'once' | 'refused' | 'unseen'
interface Row {
  readonly id: string
  readonly code: string
  readonly verdict: Verdict
  readonly note: string
}

const page = readFileSync(fileURLToPath(new URL('../../docs/what-a-tracer-sees.md', import.meta.url)), 'utf8')
const rows: Row[] = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => {
    const [, id = '', code = '', verdict = '', note = ''] = line.split(/(?<!\\)\|/).map((cell) => cell.trim())
    const text = /^(`+) ?(.*?) ?\1$/s.exec(code)?.[2] ?? ''
    return { id: id.replaceAll('`', ''), code: text.replaceAll('\\|', '|'), verdict: verdict as Verdict, note }
  })

const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const compile = (code: string): ((...args: unknown[]) => unknown) =>
  // oxlint-disable-next-line no-new-func -- the code of the page is what is tested
  new Function('torch', 'fx', 'nn', `return (${code})`)(torch, fx, nn) as never
const run = (m: fx.GraphModule, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)
/** What the nodes between placeholders and output do. */
const steps = (m: fx.GraphModule): string =>
  [...m.graph.nodes]
    .filter((n) => n.op !== 'placeholder' && n.op !== 'output')
    .map((n) => (typeof n.target === 'string' ? n.target : n.target.name))
    .join(' ')

/** For a row that traces: what the graph does, and checks of the traced module. */
type Traced = readonly [steps: string, check?: (m: fx.GraphModule) => void]

const traced: Readonly<Record<string, Traced>> = {
  method: ['relu'],
  function: ['relu'],
  property: ['getattr'],
  index: ['getitem'],
  'array-pattern': ['chunk getitem getitem add', (m) => expect(values(run(m, tensor([1, 2, 3, 4])))).toEqual([4, 6])],
  'object-pattern': ['getattr getattr add', (m) => expect(values(run(m, { a: tensor([1]), b: tensor([2]) }))).toEqual([3])],
  call: ['__call__', (m) => expect(run(m, (n: number) => n + 1)).toBe(4)],
  wrapped: ['len', (m) => expect(run(m, tensor([1, 2]))).toBe(2)],
  result: ['Map', (m) => expect((run(m, 7) as { b: Map<string, number> }).b.get('k')).toBe(7)],
  default: ['mul', (m) => expect([values(run(m, tensor([3]))), values(run(m, tensor([3]), 5))]).toEqual([[6], [15]])],
  options: ['mul', (m) => expect([values(run(m, tensor([3]))), values(run(m, tensor([3]), { scale: 5 }))]).toEqual([[6], [15]])],
  'rest-element': ['getitem getitem add', (m) => expect(values(run(m, tensor([1]), tensor([2])))).toEqual([3])],
  'plain-code': ['add add'],
  'outside-tensor': ['_tensor_constant0 add', (m) => expect(m.capturedConstants().map((c) => c.bytes)).toEqual([8])],
  random: ['_tensor_constant0 add', (m) => expect(values(run(m, tensor([0, 0])))).toEqual(values(run(m, tensor([0, 0]))))],
  'outside-value': ['mul', (m) => expect(typeof m.graph.outputNode().prev?.args[1]).toBe('number')],
  'side-effect': [
    '',
    (m) => {
      const host = globalThis as { traced?: boolean }
      expect(host.traced).toBe(true)
      delete host.traced
      run(m, 1)
      expect(host.traced).toBe(undefined)
    },
  ],
  'try-catch': ['relu', (m) => expect(() => run(m, {})).toThrow()],
  if: ['sum gt'],
  while: ['gt'],
  ternary: ['gt'],
  not: ['gt'],
  'and-or': ['gt lt'],
  boolean: ['gt'],
  identity: ['size neg'],
  'loose-null': ['neg'],
  typeof: ['neg'],
  instanceof: ['neg'],
  optional: ['getattr neg', (m) => expect(() => run(m, {})).toThrow()],
  'pattern-default': ['getattr', (m) => expect(run(m, {})).toBe(undefined)],
  'map-key': ['', (m) => expect(run(m, 3)).toBe('none')],
  await: ['', (m) => expect(run(m, { other: 1 })).toBe(undefined)],
  'module-write': [
    '',
    () => {
      const host = globalThis as { last?: unknown }
      expect(fx.isProxy(host.last)).toBe(true)
      delete host.last
    },
  ],
}

/** For a row that is refused: a part of the message. */
const refused: Readonly<Record<string, string>> = {
  submodule: 'module Sequential is not installed as a submodule',
  comparison: 'cannot be used as inputs to control flow',
  arithmetic: 'cannot be used as inputs to control flow',
  template: 'cannot be used as inputs to control flow',
  json: 'cannot be used as inputs to control flow',
  value: 'item() asks for the value of a traced tensor',
  'as-index': 'cannot be used as inputs to control flow',
  math: 'cannot be used as inputs to control flow',
  length: "'length' is not supported",
  loop: 'Proxy object cannot be iterated',
  keys: 'the keys of a traced value are not known',
  in: 'the properties of a traced value are not known',
  assign: 'assigning the element [0]',
  'rest-length': 'has no known length',
  arguments: 'declares no parameters and reads `arguments`',
  async: 'an async function cannot be traced',
  generator: 'a generator cannot be traced',
  bool: 'cannot be used as inputs to control flow',
}

describe('what a tracer sees', () => {
  it('every row has a test, and every test a row', () => {
    const ids = rows.map((r) => r.id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.toSorted()).toEqual([...Object.keys(traced), ...Object.keys(refused), 'parameter-shape'].toSorted())
  })

  it.each(rows.filter((r) => r.verdict === 'refused').map((r) => [r.id, r] as const))('%s is refused', (id, row) => {
    expect(() => fx.symbolicTrace(compile(row.code))).toThrow(refused[id] as string)
  })

  it.each(rows.filter((r) => r.verdict !== 'refused' && r.id in traced).map((r) => [r.id, r] as const))(
    '%s: the graph is what the row says',
    (id, row) => {
      const [expected, check] = traced[id] as Traced
      const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
      const m = fx.symbolicTrace(compile(row.code))
      expect(warn.mock.calls.length > 0).toBe(row.note.endsWith('warns'))
      warn.mockRestore()
      expect(steps(m)).toBe(expected)
      check?.(m)
    },
  )

  it('parameter-shape: of a parameter of the traced module', () => {
    class Root extends nn.Module {
      readonly fc = new nn.Linear(2, 3)
      override forward(x: Tensor): Tensor {
        return this.fc.weight.shape[0] === 3 ? x.add(this.fc.weight.shape[0]) : x
      }
    }
    expect(rows.find((r) => r.id === 'parameter-shape')?.code).toContain('.weight.shape[0]')
    expect(String(fx.symbolicTrace(new Root()).graph)).toContain('call_method[target=add](args = (%x, 3), kwargs = {})')
  })

  it('the rules that rows name exist', async () => {
    const { default: plugin } = (await import('../../lint-rules/index.js')) as { default: { rules: Record<string, unknown> } }
    const named = new Set([...page.matchAll(/`(no-tensor-[a-z]+)`/g)].map((m) => m[1] as string))
    for (const rule of named) expect(Object.keys(plugin.rules)).toContain(rule)
  })
})

describe('with rewritten sources', () => {
  const section = page.slice(page.indexOf('## With rewritten sources'))
  const idsOf = (verdict: string): string[] => {
    const line = section.split('\n').find((text) => text.startsWith(`- **${verdict}**`)) ?? ''
    return [...line.matchAll(/`([a-z-]+)`/g)].map(([, id = '']) => id)
  }
  const trace = (code: string): fx.GraphModule => {
    const tracer = new RewritingTracer({ scope: { torch, fx, nn }, unusedConditions: 'ignore' })
    const graph = tracer.trace(compile(code))
    return new fx.GraphModule(tracer.root, graph)
  }

  it('every unseen row is in one of the two lists', () => {
    const unseen = rows.filter((row) => row.verdict === 'unseen').map((row) => row.id)
    expect([...idsOf('refused'), ...idsOf('asserted')].toSorted()).toEqual(unseen.toSorted())
  })

  it.each(idsOf('refused'))('%s is refused', (id) => {
    expect(() => trace(rows.find((row) => row.id === id)?.code ?? '')).toThrow(fx.TraceError)
  })

  it.each(idsOf('asserted'))('%s: the graph refuses a value that is missing', (id) => {
    const m = trace(rows.find((row) => row.id === id)?.code ?? '')
    expect(() => run(m, { grad: null })).toThrow(fx.AssertionFailed)
  })
})
