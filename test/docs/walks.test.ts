// The walks that the site shows: their text by hand is about the functions as they are, and what stands beside PyTorch's debugger was entered when they were recorded.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { checkFlows, proseIn } from '../../src/docs/flow/index.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = `${root}docs/flows/`
const names = readdirSync(folder).flatMap((file) => (file.endsWith('.flow.json') ? [file.slice(0, -'.flow.json'.length)] : []))
const readme = readFileSync(`${folder}README.md`, 'utf8')

interface Recorded {
  readonly root: string
  readonly command: string
  readonly observed: readonly { readonly from: string; readonly to: string }[]
}
const recorded = (name: string): Recorded => JSON.parse(readFileSync(`${folder}${name}.flow.json`, 'utf8'))

describe('the walks that are kept', () => {
  it('have text by hand that was read since its functions changed', () => {
    const { flows, stale } = checkFlows(root, { out: folder })
    // Read the text of these cards again; then `npx tensorfx flow --accept --out docs/flows`. What is gone was renamed: `npm run walks`.
    expect(stale.map(({ flow, id, kind }) => `${flow}: ${id} (${kind})`)).toEqual([])
    expect(flows).toBe(names.length)
  })

  it.each(names)('%s: the text is about functions that ran, and the page of walks has a row', (name) => {
    const { root: from, observed, command } = recorded(name)
    const entered = new Set(observed.map(({ to }) => to))
    expect(entered).toContain(from)
    expect(command).toMatch(/^node scripts\/walks\/\w+\.mjs/)
    const prose = [...proseIn(readFileSync(`${folder}${name}.prose.md`, 'utf8')).keys()]
    expect(prose.length).toBeGreaterThan(0)
    expect(prose.filter((id) => !entered.has(id))).toEqual([])
    expect(readme).toContain(`| \`${name}\``)
  })

  it('are all that the page of walks lists', () => {
    const [, listed = ''] = /\| walk[^]*?\n\|[ |-]*\n([^]*?)\n\n/.exec(readme) ?? []
    expect(listed.split('\n').map((row) => /^\| `([^`]+)`/.exec(row)?.[1])).toHaveLength(names.length)
  })

  it('stand beside the 20 functions of PyTorch’s debugger: each was entered, or has a reason why not', () => {
    const [, table = ''] = /<!-- beside:[^>]*-->([^]*)<!-- \/beside -->/.exec(readme) ?? []
    const rows = table
      .trim()
      .split('\n')
      .slice(2)
      .map((row) => row.split('|').map((cell) => cell.trim().replaceAll('`', '')))
    expect(new Set(rows.map(([, name]) => name)).size).toBe(20)
    for (const [, name, walk = '', id = '', reason = ''] of rows) {
      expect([name, id === '' ? reason !== '' : reason === '' && names.includes(walk)]).toEqual([name, true])
      if (id !== '') expect(recorded(walk).observed.map(({ to }) => to)).toContain(id)
    }
  })
})
