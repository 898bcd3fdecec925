// The one list of kinds of state: a change of each, between two calls, is right in all that answers calls from records.
import { describe, expect, it } from 'vitest'
import { allState } from '../../src/guards/index.ts'
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
