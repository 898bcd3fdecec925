// What runPasses tells listeners of events: one event for each pass, with the nodes that it made and removed, also for one that failed.
import { afterEach, expect, it } from 'vitest'
import { onEvent } from '../../src/events/index.ts'
import type { CompileEvent, Remover } from '../../src/events/index.ts'
import { runPasses } from '../../src/pipeline/index.ts'
import type { Pass } from '../../src/pipeline/index.ts'
import type { PassFacts } from '../../src/pipeline/runPasses.ts'

interface Named {
  readonly name: string
}

const [a, b, c]: readonly Named[] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]
const facts: PassFacts<Named[]> = { nodes: (value) => value, text: (value) => value.map(({ name }) => name).join(' ') }

/** Puts `b` in the place of `a`. */
const exchange: Pass<Named[]> = {
  name: 'exchange',
  run: (list) => {
    list.splice(list.indexOf(a as Named), 1, b as Named)
    return true
  },
}
const failing: Pass<Named[]> = {
  name: 'failing',
  run: () => {
    throw new RangeError('no')
  },
}

let remove: Remover | null = null
afterEach(() => {
  remove?.()
  remove = null
})

function listenToPasses(): CompileEvent<'pass'>[] {
  const events: CompileEvent<'pass'>[] = []
  remove = onEvent((event: CompileEvent<'pass'>) => void events.push(event), { kinds: ['pass'] })
  return events
}

it('counts the nodes before and after a pass, and names those that it made and removed', () => {
  const events = listenToPasses()
  const start = performance.now()
  const { value } = runPasses([exchange, { name: 'idle', run: () => false }], [a, c] as Named[], {}, facts)
  const took = performance.now() - start
  expect(value.map(({ name }) => name)).toEqual(['b', 'c'])
  expect(events).toMatchObject([
    { kind: 'pass', name: 'exchange', changed: true, before: 2, after: 2, created: ['b'], erased: ['a'], text: 'b c', error: null },
    { kind: 'pass', name: 'idle', changed: false, before: 2, after: 2, created: [], erased: [], text: null, error: null },
  ])
  for (const { milliseconds } of events) expect(milliseconds >= 0 && milliseconds <= took).toBe(true)
})

it('knows no nodes of a value that has none', () => {
  const events = listenToPasses()
  runPasses([exchange], [a] as Named[])
  expect(events).toMatchObject([{ name: 'exchange', changed: true, before: null, after: null, created: [], erased: [], text: null }])
})

it('tells of a pass that failed, and what it threw', () => {
  const events = listenToPasses()
  const start = performance.now()
  expect(() => runPasses([failing], [a, c] as Named[], {}, facts)).toThrow(new RangeError('no'))
  const took = performance.now() - start
  expect(events).toMatchObject([{ name: 'failing', changed: false, before: 2, after: null, created: [], erased: [], error: 'RangeError: no' }])
  expect((events[0]?.milliseconds ?? -1) >= 0 && (events[0]?.milliseconds ?? Infinity) <= took).toBe(true)
})

it('computes no nodes if no one listens to passes', () => {
  let asked = 0
  const counted: PassFacts<Named[]> = {
    nodes: (value) => {
      asked++
      return value
    },
    text: () => {
      asked++
      return ''
    },
  }
  runPasses([exchange], [a] as Named[], {}, counted)
  remove = onEvent(() => {}, { kinds: ['break'] })
  runPasses([exchange], [a] as Named[], {}, counted)
  expect(asked).toBe(0)
})
