// docs/fx-modules.md: the 75 modules of torch.fx are there, every name exists where the table says, and every difference has its row.
import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const docs = new URL('../../docs/', import.meta.url)

interface Row {
  readonly module: string
  readonly where: string
  readonly names: readonly string[]
  readonly state: string
  readonly guide: string
}

const quoted = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, inner = '']) => inner)

const rows = readFileSync(new URL('fx-modules.md', docs), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line): Row => {
    const [, module = '', where = '', names = '', state = '', guide = ''] = line.split('|').map((cell) => cell.trim())
    return { module: quoted(module)[0] ?? '', where: quoted(where)[0] ?? '', names: quoted(names), state, guide }
  })

it('all 75 modules and symbolic_shapes have a row', () => {
  expect(new Set(rows.map((row) => row.module)).size).toBe(76)
})

it('a module is somewhere, or its row says why not', () => {
  expect(rows.filter((row) => (row.where === '' ? row.state === 'works' : row.names.length === 0)).map((row) => row.module)).toEqual([])
})

it('every name is exported from there', async () => {
  const missing: string[] = []
  for (const { where, names } of rows) {
    if (where === '') continue
    const exported: object = await import(/* @vite-ignore */ where)
    missing.push(...names.filter((name) => !(name in exported)).map((name) => `${where}: ${name}`))
  }
  expect(missing).toEqual([])
})

it('every module that is somewhere has a guide with an example that uses one of its names', () => {
  const code = (path: string): string =>
    [...readFileSync(new URL(path, docs), 'utf8').matchAll(/```ts[^\n]*\n([\s\S]*?)```/g)].map(([, text = '']) => text).join('\n')
  const without = rows.filter(({ where, names, guide }) => {
    const [, path] = /\((guide\/[a-z-]+\.md)\)/.exec(guide) ?? []
    return where !== '' && !(path !== undefined && names.some((name) => new RegExp(`\\b${name}\\b`).test(code(path))))
  })
  expect(without.map((row) => row.module)).toEqual([])
})

it('the rows of differences and the guides that it names exist', () => {
  const differences = readFileSync(new URL('differences-from-pytorch.md', docs), 'utf8')
  const named = rows.flatMap((row) => quoted(row.state)).filter((name) => /^[a-z-]+$/.test(name))
  expect(named.length).toBeGreaterThan(2)
  expect(named.filter((name) => !differences.includes(`| \`${name}\``))).toEqual([])
  const guides = rows.flatMap((row) => [...row.guide.matchAll(/\((guide\/[a-z-]+\.md)\)/g)].map(([, path = '']) => path))
  expect(guides.filter((path) => !existsSync(new URL(path, docs)))).toEqual([])
})
