// The one list of kinds of state: a change of each, between two calls, is right in all that answers calls from records.
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { allState } from '../../src/guards/index.ts'
import type { Moment } from '../../src/guards/index.ts'
import { beyondMakeFx, plans } from './plans.ts'
import { makeFxGraphs, users } from './users.ts'

const names = allState.flatMap(({ kinds }) => kinds.map(({ name }) => name))

it('each kind of the list has a planted change, and there are no others', () => {
  expect(Object.keys(plans).toSorted()).toEqual(names.toSorted())
})

describe.each(names)('%s', (name) => {
  it.each(Object.entries(users))('changes between two calls of %s', (user, { use, reference }) => {
    const scenarios = plans[name]?.filter((scenario) => user !== makeFxGraphs || !beyondMakeFx.includes(scenario)) ?? []
    for (const scenario of scenarios) expect(scenario(use)).toEqual(scenario(reference))
  })
})

const moments: Readonly<Record<Moment, string>> = {
  call: 'at the call',
  met: 'at the call; if it is not an argument, at the operator that gets it',
  operator: 'at each operator',
  segment: 'at each operator; a change ends the graph',
  tape: 'when a backward may start from the results',
  program: 'no: your code runs',
  input: 'no: the graph takes it as an input',
}

it('is the table of the guide', async () => {
  const guide = await readFile(new URL('../../docs/guide/compile.md', import.meta.url), 'utf8')
  const cells = (line: string): string[] => line.split('|').map((cell) => cell.trim())
  const rows = guide.split('\n').map(cells)
  const first = rows.findIndex(([, of]) => of === 'of')
  const table = allState.flatMap(({ of, kinds }) => kinds.map(({ name, compile }) => ['', of, name, moments[compile], '']))
  expect(rows.slice(first, first + 2 + table.length).map((row) => row.map((cell) => cell.replace(/^-+$/, '---')))).toEqual([
    ['', 'of', 'state', 'compared by compile', ''],
    ['', '---', '---', '---', ''],
    ...table,
  ])
  expect(rows[first + 2 + table.length]).toEqual([''])
})
