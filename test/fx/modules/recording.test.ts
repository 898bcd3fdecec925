// Events of a ShapeEnv, and their replay; PyTorch's experimental.recording. Events, states and texts of differences are PyTorch's.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { NotEqualError, RecordingShapeEnv, ShapeEnv, SymInt, replayShapeEnvEvents, shapeEnvCheckStateEqual } from 'tensorfx/fx/experimental'
import { textOf } from '../../../src/symbols/index.ts'
import { answer, stateOf } from '../../symbols/golden.ts'
import type { Json, Value } from '../../symbols/golden.ts'
import { describeGolden, messageOf, resultOf } from './golden.ts'

/** PyTorch's names of what has an event here. What it records of its own graph of questions (`_create_fx_call_function`) and of a search (`_find`) has none. */
const NAMES: Readonly<Record<string, string>> = {
  ShapeEnv: 'ShapeEnv',
  create_symbol: 'createSymbol',
  create_unbacked_symint: 'createUnbackedSymInt',
  evaluate_expr: 'evaluate',
  guard_or_defer_runtime_assert: 'check',
  _constrain_range: 'constrainRange',
  _constrain_unify: 'constrainUnify',
}
/** PyTorch's names of the fields that exist here. */
const FIELDS: Readonly<Record<string, string>> = {
  axioms: 'axioms',
  guards: 'guards',
  replacements: 'replacements',
  divisible: 'divisible',
  deferred_runtime_asserts: 'deferredRuntimeAsserts',
  num_deferred_runtime_asserts: 'numDeferredRuntimeAsserts',
  var_to_range: 'ranges',
}

const eventsOf = (env: RecordingShapeEnv): string[] => env.events.map(({ name }) => name)
const theirEvents = (names: readonly string[]): string[] => names.flatMap((name) => NAMES[name] ?? [])
const theirDifference = (text: string): string => text.replace(/^==> (\w+):/gm, (_, name: string) => `==> ${FIELDS[name] ?? name}:`)

/** The steps of a recorded source: `bool a>3;check u>=2`. */
interface Recorded {
  readonly source: string
  readonly steps?: readonly Json[]
  readonly events: readonly string[]
  readonly state: Json
  readonly replayed: Json
  readonly prefixes: readonly number[]
  readonly equal: { readonly error: string } | null
  readonly difference: { readonly error: string } | null
}

const OPERATORS: readonly (readonly [text: string, name: string])[] = [
  ['==', 'eq'],
  ['!=', 'ne'],
  ['>=', 'ge'],
  ['<=', 'le'],
  ['>', 'gt'],
  ['<', 'lt'],
  ['+', 'add'],
  ['%', 'mod'],
  ['*', 'mul'],
]

/** A side of a recorded question as nested arrays: comparisons, sums, remainders, `sym_max(a,b)`. */
function parsed(text: string): Json {
  const call = /^(sym_max|sym_min)\((\w+),(\w+)\)$/.exec(text)
  if (call !== null) return call.slice(1)
  for (const [symbol, name] of OPERATORS) {
    const at = text.indexOf(symbol)
    if (at > 0) return [name, parsed(text.slice(0, at)), parsed(text.slice(at + symbol.length))]
  }
  return /^-?\d+$/.test(text) ? Number(text) : text
}

const stepsOf = (source: string): readonly Json[] =>
  source.split(';').map((step): Json => {
    const [kind = '', ...rest] = step.trim().split(' ')
    return [kind, ...rest.map(parsed)]
  })

function recorded(steps: readonly Json[], usesData: boolean): RecordingShapeEnv {
  const env = new RecordingShapeEnv()
  const names = new Map<string, Value>([['a', env.createSymInt(6, 'dynamic')] as const, ['b', env.createSymInt(4, 'dynamic')] as const])
  if (usesData) names.set('u', env.createUnbackedSymInt())
  for (const step of steps) answer(env, step, names)
  return env
}

interface Compared {
  readonly kind: 'stateEqual'
  readonly first: Readonly<Record<string, unknown>>
  readonly second: Readonly<Record<string, unknown>>
  readonly result: { readonly error: string }
}

const { cases: recordedCases } = JSON.parse(readFileSync(new URL('../../goldens/symbols/recording.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly (Recorded | Compared)[]
}
const cases = recordedCases.filter((one) => 'source' in one)
const comparisons = recordedCases.filter((one) => 'kind' in one)

/** A remainder that was found to be 0 is 0 at once in PyTorch, so that nothing is asked the second time. */
const ASKED_AGAIN = 'bool a%2==0;bool a%2==0'
/** That a remainder by 2 is not negative is no knowledge here but arithmetic. */
const withoutRemainders = (text: string): string => text.replaceAll('(PythonMod(u0, 2)) < 0: False, ', '')

describe('events (difference: recorded-events) of a ShapeEnv are PyTorch’s, and replaying them gives its state', () => {
  for (const golden of cases) {
    it(golden.source, () => {
      const usesData = golden.events.includes('create_unbacked_symint')
      const steps = stepsOf(golden.source)
      const env = recorded(steps, usesData)
      // A size that was stated to be one has an event of its own here.
      const events = eventsOf(env).filter((name) => name !== 'advise')
      expect(golden.source === ASKED_AGAIN ? events.slice(0, -1) : events).toEqual(theirEvents(golden.events))
      expect(stateOf(env)).toEqual(golden.state)
      const again = replayShapeEnvEvents(env.events)
      expect(stateOf(again)).toEqual(golden.replayed)
      expect(golden.equal).toBe(null)
      expect(() => env.checkEqual(again)).not.toThrow()
      const prefixes = golden.events.flatMap((name, i) => (NAMES[name] === undefined ? [] : [golden.prefixes[i]]))
      const ours = env.events.flatMap(({ name }, i) => (name === 'advise' ? [] : [replayShapeEnvEvents(env.events.slice(0, i + 1)).guards.length]))
      expect(golden.source === ASKED_AGAIN ? ours.slice(0, -1) : ours).toEqual(prefixes)
      const without = recorded(steps.slice(0, -1), usesData)
      if (golden.difference === null) expect(() => env.checkEqual(without)).not.toThrow()
      else expect(messageOf(() => env.checkEqual(without)).trim()).toBe(theirDifference(withoutRemainders(golden.difference.error)).trim())
    })
  }

  for (const { first, second, result } of comparisons) {
    it(`${JSON.stringify(first)} and ${JSON.stringify(second)}`, () => {
      expect(messageOf(() => shapeEnvCheckStateEqual(first, second)).trim()).toBe(result.error)
    })
  }
})

const sint = (env: ShapeEnv, value: number): SymInt => {
  const made = env.createSymInt(value, 'dynamic')
  if (typeof made === 'number') throw new Error('a number')
  return made
}
const guards = (env: ShapeEnv): string[] => env.guards.map(({ expr }) => textOf(expr))

describeGolden('recording', {
  events_are_listed: (golden) => {
    const env = new RecordingShapeEnv()
    sint(env, 5).gt(3).toBool()
    const u = env.createUnbackedSymInt()
    env.check(u.ge(2))
    expect(eventsOf(env)).toEqual(theirEvents(resultOf<[string[], number]>(golden)[0]))
  },
  replay_gives_the_same_guards: (golden) => {
    const env = new RecordingShapeEnv()
    const [a, b] = [sint(env, 5), sint(env, 7)]
    a.lt(b).toBool()
    a.add(1).eq(6).toBool()
    const again = replayShapeEnvEvents(env.events)
    expect([guards(env), guards(again), guards(env).join() === guards(again).join(), again === env]).toEqual(resultOf(golden))
  },
  replay_of_a_prefix: (golden) => {
    const env = new RecordingShapeEnv()
    const [a, b] = [sint(env, 5), sint(env, 7)]
    a.lt(b).toBool()
    const count = env.events.length
    a.remainder(2).eq(1).toBool()
    expect([guards(env).length, guards(replayShapeEnvEvents(env.events.slice(0, count))).length]).toEqual(resultOf(golden))
  },
  failing_calls_are_removed: (golden) => {
    const env = new RecordingShapeEnv()
    const u = env.createUnbackedSymInt()
    const count = env.events.length
    expect(() => u.gt(3).toBool()).toThrow('data-dependent')
    // PyTorch's third event is of its graph of questions.
    expect([count, env.events.length, env.events.length + 1]).toEqual([resultOf<number[]>(golden)[0], count, resultOf<number[]>(golden)[1]])
  },
  equality_of_states: (golden) => {
    const env = new RecordingShapeEnv()
    sint(env, 5).gt(3).toBool()
    const other = new RecordingShapeEnv()
    sint(other, 5)
    const [same, error] = resultOf<[null, string]>(golden)
    expect(env.checkEqual(replayShapeEnvEvents(env.events)) ?? null).toBe(same)
    expect(error).toContain('NotEqualError')
    expect(() => env.checkEqual(other)).toThrow(NotEqualError)
  },
  not_equal_text: (golden) => {
    const [p, q, o] = [{ a: 1, b: { x: 1, y: 2 } }, { a: 2, b: { y: 2, x: 1 } }, { c: 1 }]
    const [values, fields] = resultOf<[{ error: string }, { error: string }]>(golden)
    expect(messageOf(() => shapeEnvCheckStateEqual(p, q))).toBe(values.error)
    expect(messageOf(() => shapeEnvCheckStateEqual(p, o))).toBe(fields.error)
    expect(() => shapeEnvCheckStateEqual(p, q, ['a'])).not.toThrow()
    expect(() => shapeEnvCheckStateEqual(p, q, ['b'], () => 0)).not.toThrow()
  },
  first_event_must_construct: (golden) => {
    const env = new RecordingShapeEnv()
    sint(env, 5)
    expect(messageOf(() => replayShapeEnvEvents(env.events.slice(1))).split(', got')[0]).toBe(resultOf<{ error: string }>(golden).error)
  },
  'event_text_and_kinds (difference: recorded-events)': (golden) => {
    const env = new RecordingShapeEnv()
    sint(env, 5).gt(3).toBool()
    const theirs = resultOf<boolean[][]>(golden).filter((kinds) => kinds[1] === false)
    expect(env.events.map((event) => [event.isEvaluateExpr(), false, event.isDeferRuntimeAssert()])).toEqual(theirs)
    expect(env.events.map(String)).toEqual(['event: ShapeEnv ()', 'event: createSymbol (5, dynamic)', 'event: evaluate (s0 > 3)'])
  },
  'fake_tensor_meta (difference: recorded-events)': () => {
    const env = new RecordingShapeEnv()
    env.createSymbolicLayout([2, 3], [3, 1])
    // The sizes of a tensor are events; there is no record of the tensor itself.
    expect(env.events.map(String).slice(1)).toEqual(['event: createSymbol (2, duck)', 'event: createSymbol (3, duck)'])
  },
})

it('what a program asks of a tensor is replayed as well', () => {
  const env = new RecordingShapeEnv()
  const size = env.createDataSize(9)
  env.check(size.ge(3))
  const again = replayShapeEnvEvents(env.events)
  expect(stateOf(again)).toEqual(stateOf(env))
  expect(stateOf(again)).not.toEqual(stateOf(new ShapeEnv()))
})
