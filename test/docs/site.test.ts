// The parts of the site that need no built package: Markdown as pages, programs of the playground, how it prints values, and the search. scripts/testSite.mjs drives the whole.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import { found } from '../../src/docs/page/search.ts'
import type { Entry } from '../../src/docs/page/search.ts'
import { readMarkdown } from '../../scripts/site/markdown.mjs'
import { programOf } from '../../scripts/site/playground/program.mjs'
import { show } from '../../scripts/site/playground/show.mjs'

describe('Markdown as a page', () => {
  const read = (text: string): ReturnType<typeof readMarkdown> => readMarkdown(text, (address) => ({ url: address }))

  it('has anchors as GitHub makes them, each once', () => {
    const { title, blocks } = read('# A title\n\n## `fx.Graph` & more\n\n## Twice\n\n## Twice\n')
    expect(title).toBe('A title')
    expect(blocks.map((block) => ('id' in block ? block.id : ''))).toEqual(['fxgraph--more', 'twice', 'twice-1'])
  })

  it('has lists in lists, tables with marks, quotes and code', () => {
    const { blocks } = read('- a\n  - **b**\n\n| h | `i` |\n| - | - |\n| [x](y.md) | 1 \\| 2 |\n\n> q\n\n```ts continue\nconst a = 1\n```\n')
    expect(blocks).toMatchObject([
      { kind: 'list', items: [[{ kind: 'text' }, { kind: 'list', items: [[{ text: [{ kind: 'strong', text: ['b'] }] }]] }]] },
      { kind: 'table', head: ['h', 'i'], rows: [[[{ kind: 'link', text: ['x'], to: { url: 'y.md' } }], ['1 | 2']]] },
      { kind: 'quote' },
      { kind: 'code', language: 'ts', text: 'const a = 1' },
    ])
  })
})

describe('a program of the playground', () => {
  /** Runs a program; its imports are `modules`. Resolves to what it declares. */
  async function run(source: string, modules: Readonly<Record<string, unknown>> = {}): Promise<Record<string, unknown>> {
    let declared: Record<string, unknown> = {}
    // oxlint-disable-next-line no-eval -- what the worker does
    const program: (require: (name: string) => unknown, show: (names: Record<string, unknown>) => void) => Promise<void> = (0, eval)(
      programOf(source),
    )
    await program(
      (name) => modules[name],
      (names) => (declared = names),
    )
    return declared
  }

  it('hands out what it declares at its top, exported or not', async () => {
    const source =
      'export const a = 1\nlet { b, c: [d = 4] }: { b: number; c: number[] } = { b: 2, c: [] }\nfunction f(): void {}\nclass C {}\nif (a === 1) { const hidden = 1 }\nexport { b as other }'
    const declared = await run(source)
    expect(Object.keys(declared)).toEqual(['a', 'b', 'd', 'f', 'C'])
    expect(declared).toMatchObject({ a: 1, b: 2, d: 4 })
  })

  it('has its default export as model', async () => {
    expect(await run('export default (x: number): number => x + 1')).toMatchObject({ model: expect.any(Function) })
  })

  it('imports names, other names, defaults and everything; types are no imports', async () => {
    const modules = { m: { x: 1, y: 2, default: 3 } }
    const source =
      "import three, { x, y as why } from 'm'\nimport * as all from 'm'\nimport type { T } from 'nothing'\nexport const sum = [three, x, why, all.y]"
    expect((await run(source, modules))['sum']).toEqual([3, 1, 2, 2])
  })

  it('may wait at its top', async () => {
    expect((await run('export const a = await Promise.resolve(7)'))['a']).toBe(7)
  })

  it('keeps its lines, so that errors name them', async () => {
    const source = "import {\n  x,\n} from 'm'\ninterface A {\n  b: number\n}\n\nthrow new Error(`line 8 ${x}`)"
    const error = await run(source, { m: { x: 1 } }).catch((thrown: unknown) => thrown)
    expect(error instanceof Error ? error.stack : '').toMatch(/playground\.ts:8:/)
  })

  it('is refused with a line if it is not a program', () => {
    expect(() => programOf('const a = 1\nconst b = )')).toThrow(/2:/)
  })
})

describe('the playground has', () => {
  /** Entries that need Node or other scripts, that only generated code imports, and groups of operators, which export nothing. */
  const NOT_THERE = /^tensorfx\/(?:distributed|native|register|debug\/worker|rewriter\/runtime|lint-rules|package\.json|ops\/\w+)/

  it('every entry point that runs in a page', () => {
    const text = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
    const { exports }: { readonly exports: Readonly<Record<string, unknown>> } = JSON.parse(text('package.json'))
    const entries = Object.keys(exports).map((name) => name.replace('.', 'tensorfx'))
    const there = [...text('scripts/site/playground/entries.mjs').matchAll(/^ {2}(?:'([\w/]+)': \w+|(tensorfx)),$/gm)].map(
      ([, name, front]) => name ?? front,
    )
    expect(there.toSorted()).toEqual(entries.filter((name) => !NOT_THERE.test(name)).toSorted())
  })
})

describe('the playground prints', () => {
  it.each([
    ['text', 'text'],
    [['a', 1, null, undefined, 2n], '["a", 1, null, undefined, 2n]'],
    [{ a: { 'b-c': [true] } }, '{ a: { "b-c": [true] } }'],
    [new Map([[1, 2]]), 'Map [[1, 2]]'],
    [new Float32Array([1, 0.5]), 'Float32Array [1, 0.5]'],
    [() => 1, '[function (anonymous)]'],
  ])('%o', (value, text) => expect(show(value)).toBe(text))

  it('tensors as they print themselves, and long lists line by line', () => {
    expect(show(torch.tensor([1, 2]))).toBe('tensor([1., 2.])')
    expect(show(Array.from({ length: 200 }, (_, i) => i)).split('\n')).toHaveLength(103)
  })

  it('ends at what refers to itself', () => {
    const value: { self?: unknown } = {}
    value.self = value
    expect(show(value)).toContain('{…}')
  })
})

describe('the search', () => {
  const entries: readonly Entry[] = [
    'symbolicTrace',
    'torch.relu',
    'torch.real',
    'Debugging a compile',
    'Debugging transformations',
    'compile',
    'TFX_SHAPE',
    'Linear',
  ].map((name) => [name, 'page', '', '', 1])
  it.each([
    ['symbolicTrcae', 'symbolicTrace'],
    ['torch.reul', 'torch.relu'],
    ['reul', 'torch.relu'],
    ['debuging a compile', 'Debugging a compile'],
    ['transformations', 'Debugging transformations'],
    ['compile', 'compile'],
    ['tfx_shpae', 'TFX_SHAPE'],
    ['symbolic trace', 'symbolicTrace'],
  ])('of %s finds %s first', (query, name) => expect(found(entries, query, 5)[0]?.[0]).toBe(name))

  it('finds nothing for what is no name', () => {
    expect(found(entries, 'qwertyuiop', 5)).toEqual([])
    expect(found(entries, 'debugging qwertyuiop', 5)).toEqual([])
    expect(found(entries, '  ', 5)).toEqual([])
  })
})
