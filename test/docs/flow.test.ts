// Walks through programs: what is observed of a fixture equals a list that was written by hand, cards go stale with their function alone, and dominators agree with their definition.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../helpers/folder.ts'
import { runTensorfx } from '../../src/cli/commands.ts'
import type { Result } from '../../src/cli/line.ts'
import { dominatorsOf } from '../../src/docs/flow/dominators.ts'
import { RECORDER, instrument } from '../../src/docs/flow/instrument.ts'
import { observe } from '../../src/docs/flow/observe.ts'
import type { Observed } from '../../src/docs/flow/observe.ts'
import { diagramOf } from '../../src/docs/flow/diagram.ts'
import { EDGES, OBSERVED } from './fixture/observed.ts'
import { writeProject } from './fixture/project.ts'

const folder = temporaryFolder('tensorfx flow ')
const preload = new URL('../../dist/docs/flow/preload.js', import.meta.url)
let edges: readonly Observed[]
beforeAll(() => {
  writeProject(folder, OBSERVED)
  edges = observe(folder, 'node run.mjs', 60, preload)
})
const run = async (...words: string[]): Promise<Result> => runTensorfx(['flow', ...words, '--project', folder], { print: () => {}, note: () => {} })

describe('an observed run', () => {
  it('has the edges of a list by hand: callbacks, getters, super calls, throws, async functions, generators, CommonJS', () => {
    const name = (id: string): string => id.slice(id.indexOf('#') + 1)
    const found = edges.filter(({ kind }) => kind === 'call').map(({ from, to, count }) => `${name(from)} > ${name(to)} ${count}`)
    expect(found.toSorted()).toEqual(EDGES.toSorted())
  })

  it('names files and functions as the model does, and local functions apart', () => {
    expect(edges).toContainEqual({ from: 'src/old.cjs#start', to: 'src/old.cjs#Counter.next', kind: 'call', count: 1 })
    expect(edges).toContainEqual({ from: 'src/calls.js#each', to: 'src/calls.js#callbacks', kind: 'closure', count: 2 })
  })

  it('says which command fails, and which runs nothing of the project', () => {
    expect(() => observe(folder, 'node absent.mjs', 60, preload)).toThrow(/'node absent\.mjs' ended with exit code 1[^]*absent\.mjs/)
    expect(() => observe(folder, 'node -e 0', 60, preload)).toThrow(/entered no function of the project/)
  })
})

describe('instrumented code', () => {
  /** Runs code with notes, and returns what it returns, with the ids that were entered and not left. */
  const evaluate = (code: string): readonly [value: unknown, open: number] => {
    let open = 0
    const frame = {}
    const recorder = {
      enter: () => (open++, frame),
      within: () => (open++, frame),
      exit: () => void open--,
      leave: (_: unknown, value: unknown) => value,
      back: (_: unknown, value: unknown) => value,
      delegate: (_: unknown, value: unknown) => value,
    }
    const noted = instrument(code, 'x.js', 'script')
    // oxlint-disable-next-line no-implied-eval, no-new-func -- the code of this test
    return [new Function(RECORDER, noted ?? 'throw 1')(recorder), open]
  }

  it.each([
    ['return (() => ({ a: 1 }))().a', 1],
    ['return ((a, b = () => 2) => a + b())(1)', 3],
    ["function f() { 'use strict'; return this === undefined } return f()", true],
    ['return [1, 2].map((x) => (x, x + 1)).join()', '2,3'],
    ['class A { static s = () => 4; #p = 1; get p() { return this.#p } static { this.t = 5 } } return [A.s(), new A().p, A.t].join()', '4,1,5'],
    ['function* g() { const x = yield 1; yield x * 2 } const i = g(); i.next(); return i.next(4).value', 8],
    ['function* g() { try { yield 1 } finally { yield 2 } } const i = g(); i.next(); i.return(7); return i.next().value', 7],
    ['try { (() => { throw 3 })() } catch (e) { return e }', 3],
    ['return (function () { return arguments.length })(1, 2)', 2],
    ['const o = { async *a() { for await (const x of [1]) { if (x) continue; yield x } }, f() {} }; return typeof o.a().next', 'function'],
    ['outer: for (const a of [1, 2]) { for (const b of [1]) { (() => b)(); continue outer } } return 1', 1],
  ])('returns what it returned: %s', (code, expected) => {
    const [value, open] = evaluate(code)
    expect(value).toEqual(expected)
    // Generators that were not ended are still open.
    if (!code.includes('*')) expect(open).toBe(0)
    // oxlint-disable-next-line no-implied-eval, no-new-func -- the code of this test
    expect(new Function(code)()).toEqual(expected)
  })

  it('leaves what cannot be parsed', () => expect(instrument('const = ', 'x.js', 'module')).toBeNull())
})

describe('a walk', () => {
  it('is written, and a changed statement makes exactly its card stale; comments and layout none', async () => {
    const out = join(folder, 'docs/flows')
    mkdirSync(out, { recursive: true })
    writeFileSync(
      join(out, 'consumes.flow.json'),
      JSON.stringify({ schema: 1, root: 'src/calls.js#consumes', command: 'node run.mjs', observed: edges, options: {}, cards: [] }),
    )
    const written = await run('src/calls.js#consumes', '--format', 'html,md,json', '--pin', 'four,two,inner')
    expect([written.code, written.text.split('\n')[0]]).toEqual([0, 'consumes → numbers → inner'])
    const page = readFileSync(join(out, 'consumes.md'), 'utf8')
    for (const part of ['graph TD', 'n0["consumes"]:::main', 'export function* numbers() {', 'entered 1 time', 'line 67 · ran 1 time'])
      expect(page).toContain(part)
    expect((await run('--check')).text).toBe('1 walks, 5 cards: 0 of them stale.')

    const path = join(folder, 'src/calls.js')
    const source = readFileSync(path, 'utf8')
    writeFileSync(
      path,
      source
        .replace('yield one(1)\n  two(yield)', '// why\n  yield one(\n    1,\n  )\n  two(yield)')
        .replace('{\n  yield three(1)', '{ yield three(1)'),
    )
    expect(await run('--check')).toMatchObject({ code: 0 })
    writeFileSync(path, source.replace('yield three(1)', 'yield three(2)'))
    expect(await run('--check')).toMatchObject({
      code: 1,
      data: { stale: [{ flow: 'consumes', id: 'src/calls.js#inner', kind: 'changed', lines: ['-   yield three(1)', '+   yield three(2)'] }] },
    })
    writeFileSync(path, source.replaceAll('inner()', 'within()'))
    expect((await run('--check')).text).toContain('src/calls.js#inner is now src/calls.js#within')
    writeFileSync(path, source)
  })

  it('has text by hand, which goes stale and is accepted', async () => {
    const prose = join(folder, 'docs/flows/consumes.prose.md')
    writeFileSync(prose, '::card src/calls.js#four@000000000000\nIt **returns** `x`.\n')
    expect((await run('--check')).text).toContain('src/calls.js#four has changed since its text was written')
    expect((await run('--accept')).text).toBe('Accepted the text of 1 cards.')
    expect((await run('--check')).code).toBe(0)
    await run('src/calls.js#consumes', '--pin', 'four,two,inner')
    expect(readFileSync(join(folder, 'docs/flows/consumes.html'), 'utf8')).toContain('It <strong>returns</strong>')
  })

  it('says which function there is', async () => {
    expect((await run('src/calls.js#consumse')).text).toMatch(/no function 'src\/calls\.js#consumse'[^]*Did you mean 'src\/calls\.js#consumes'\?/)
    expect((await run('Base.runs')).text).toContain("Did you mean 'src/calls.js#Base.run'?")
  })
})

describe('graphs', () => {
  const graph = fc
    .integer({ min: 2, max: 9 })
    .chain((n) => fc.tuple(fc.constant(n), fc.array(fc.tuple(fc.nat(n - 1), fc.nat(n - 1)), { maxLength: 24 })))
  const nextOf = (pairs: readonly (readonly [number, number])[]) => (id: string) =>
    pairs.filter(([from]) => String(from) === id).map(([, to]) => String(to))
  const reachable = (root: string, next: (id: string) => readonly string[], without: string | null): ReadonlySet<string> => {
    const seen = new Set(root === without ? [] : [root])
    for (const id of seen) for (const to of next(id)) if (to !== without) seen.add(to)
    return seen
  }

  it('dominators are the nodes without which there is no way', () => {
    fc.assert(
      fc.property(graph, ([n, pairs]) => {
        const next = nextOf(pairs)
        const found = dominatorsOf('0', next)
        const all = reachable('0', next, null)
        for (let i = 1; i < n; i++) {
          const chain: string[] = []
          for (let at = found.get(String(i)); at !== undefined; at = found.get(at)) chain.push(at)
          const expected = all.has(String(i)) ? [...all].filter((id) => id !== String(i) && !reachable('0', next, id).has(String(i))) : []
          expect(chain.toSorted()).toEqual(expected.toSorted())
        }
      }),
    )
  })

  it('diagrams keep the ways between what they draw', () => {
    fc.assert(
      fc.property(graph, fc.array(fc.nat(8), { minLength: 1, maxLength: 6 }), ([n, pairs], chosen) => {
        const next = nextOf(pairs)
        const ids = [...new Set(chosen.filter((i) => i < n).map(String))]
        const { edges: drawn } = diagramOf(ids, next)
        const inDiagram = (id: string) => drawn.filter(({ from }) => from === id).map(({ to }) => to)
        for (const a of ids)
          for (const b of ids) if (a !== b) expect(reachable(a, inDiagram, null).has(b), `${a} ${b}`).toBe(reachable(a, next, null).has(b))
      }),
    )
  })
})
