// The list of layers: it is in order and complete, CONTRIBUTING shows it, and the linter finds an import that breaks it.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { layerTable, layers, mayImport, placeOf } from '../../scripts/house/layers.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))

describe('the list of layers', () => {
  it('goes from bottom to top: a place imports only what stands before it', () => {
    const before = new Set<string>()
    for (const { place, imports } of layers) {
      const known = (name: string): boolean => name === '*' || before.has(name) || [...before].some((other) => other.startsWith(`${name}/`))
      expect([place, imports.filter((name) => !known(name))]).toEqual([place, []])
      before.add(place)
    }
  })

  it('has a row for every file, and a file for every row', () => {
    expect(sources.filter((name) => placeOf(name) === undefined)).toEqual([])
    const used = new Set(sources.map(placeOf))
    expect(layers.map((layer) => layer.place).filter((place) => !used.has(place))).toEqual([])
  })

  it('knows a wing of fx from fx itself', () => {
    expect(placeOf('fx/graph/node.ts')).toBe('fx/graph')
    expect(placeOf('fx/index.ts')).toBe('fx')
    expect(mayImport('fx/text', 'fx/graph')).toBe(true)
    expect(mayImport('fx/graph', 'fx/text')).toBe(false)
    expect(mayImport('dynamo', 'fx/run')).toBe(true)
    expect(mayImport('debug', 'fx/run')).toBe(true)
    expect(mayImport('debug', 'cli')).toBe(false)
  })

  it('is the table of CONTRIBUTING.md', () => {
    const cells = (line: string): string => line.replaceAll(/\s*\|\s*/g, '|').replaceAll(/-+/g, '-')
    const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').split('\n')
    const start = page.findIndex((line) => line.startsWith('| place '))
    const table = layerTable()
    expect(page.slice(start, start + table.length).map(cells)).toEqual(table.map(cells))
    expect(page[start + table.length]).toBe('')
  })
})

describe('folders of fx', () => {
  it('hold at most 16 files', () => {
    const counts = new Map<string, number>()
    for (const name of sources.filter((n) => n.startsWith('fx/'))) counts.set(dirname(name), (counts.get(dirname(name)) ?? 0) + 1)
    const full = [...counts].filter(([, count]) => count > 16)
    expect(full).toEqual([])
  })
})

describe('the linter', () => {
  const UPWARD = [
    "import type { Tensor } from '../tensor/index.ts'\nexport type A = Tensor\n",
    "export type { Tensor } from '../tensor/index.ts'\n",
    "export type * from '../tensor/index.ts'\n",
    "export type A = import('../tensor/index.ts').Tensor\n",
    "export const load = async (): Promise<unknown> => import('../tensor/index.ts')\n",
  ]
  /** Right and wrong files. One run of the linter reads them all. */
  const files: Readonly<Record<string, string>> = {
    'src/tensor/index.ts': 'export type Tensor = number\n',
    ...Object.fromEntries(UPWARD.map((text, i) => [`src/kernels/upward${i}.ts`, text])),
    'src/dispatch/downward.ts': "export type { Tensor } from '../tensor/index.ts'\n",
    'src/attic/a.ts': "export type { Tensor } from '../tensor/index.ts'\n",
    'src/kernels/emit/emit.ts': 'export const emit = 1\n',
    'src/kernels/ir/loopIr.ts': 'export const loop = 1\n',
    'src/kernels/schedules/gemm.ts': "export { emit } from '../emit/emit.ts'\nexport { loop } from '../ir/loopIr.ts'\n",
    'src/kernels/a.ts': "import type { B } from './b.ts'\nexport type A = B | 1\n",
    'src/kernels/b.ts': "import type { A } from './a.ts'\nexport type B = A[]\n",
    'src/kernels/long.ts': 'export {}\n'.repeat(451),
  }
  const work = mkdtempSync(join(tmpdir(), 'tensorfx-layers-'))
  afterAll(() => removeFolder(work))
  let errors: readonly string[] = []

  beforeAll(() => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(work, name)), { recursive: true })
      writeFileSync(join(work, name), text)
    }
    // The settings of this repository.
    writeFileSync(join(work, '.oxlintrc.json'), readFileSync(join(root, '.oxlintrc.json'), 'utf8').replaceAll('"./', `"${root}`))
    const { stdout } = spawnSync(process.execPath, [join(root, 'node_modules/oxlint/bin/oxlint'), '--format', 'unix'], {
      cwd: work,
      encoding: 'utf8',
    })
    errors = stdout.split('\n').filter((line) => line.includes('[Error'))
  })

  /** What it says of a file. */
  const saidOf = (name: string): readonly string[] => errors.filter((line) => line.slice(0, line.indexOf(':')).endsWith(name))

  it.each(UPWARD.map((text, i) => [text, i] as const))('finds an upward import: %s', (_, i) => {
    expect(saidOf(`src/kernels/upward${i}.ts`)).toEqual([expect.stringContaining("'kernels' may not import 'tensor'. It may import errors")])
  })

  it('lets downward imports pass, and finds folders without a row', () => {
    expect(saidOf('src/dispatch/downward.ts')).toEqual([])
    expect(saidOf('src/attic/a.ts')[0]).toContain('src/attic/a.ts has no row')
  })

  it('finds a schedule that imports an emitter', () => {
    expect(saidOf('src/kernels/schedules/gemm.ts')).toEqual([expect.stringContaining("'kernels/schedules' may not import 'kernels/emit'")])
  })

  it('counts type imports in circles, and lines of files', () => {
    for (const name of ['src/kernels/a.ts', 'src/kernels/b.ts']) expect(saidOf(name)).toEqual([expect.stringContaining('Dependency cycle')])
    expect(saidOf('src/kernels/long.ts')[0]).toContain('too many lines (451)')
  })

  it('says nothing else', () => {
    const wrong = Object.keys(files).filter((name) => saidOf(name).length > 0)
    expect(wrong).toEqual(Object.keys(files).filter((name) => /upward|attic|gemm|\/[ab]\.ts|long/.test(name)))
  })
})
