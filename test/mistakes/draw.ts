// Draws mistakes: one change of a right call, of a kind that people make.
import { nn, optim, torch } from 'tensorfx'
import { OTHER_LIBRARIES } from '../../src/install/otherLibraries.ts'
import { attributeName, camelCase } from '../../src/protocol/index.ts'
import { OPTION_ALIASES } from '../../src/protocol/options.ts'
import type { Random } from '../../scripts/fuzz/random.mjs'
import { optionsOf } from './calls.ts'
import type { Call, Kind, Parameter } from './calls.ts'

/** What was done wrong. */
export const MISTAKES = [
  'another kind of value',
  'another kind of option',
  'another dtype',
  'no await',
  'not called',
  'an option of another spelling',
  'an option that does not exist',
  'two arguments in each other’s place',
  'an argument too many',
  'an argument that is missing',
  'given twice',
  'options before the rest',
  'a name of another library',
  'an option of another library',
] as const
export type MistakeKind = (typeof MISTAKES)[number]

export interface Mistake {
  readonly kind: MistakeKind
  readonly call: Call
  /** As a program writes it, for reports. */
  readonly code: string
  readonly run: () => unknown
  /** The names of which the message must have one: of the argument or option. Empty if no argument is wrong by itself. */
  readonly names: readonly string[]
  /** The value that is wrong; undefined if none is. */
  readonly value?: { readonly is: unknown }
  /** What the message must say to do: one of these. */
  readonly fixes: readonly RegExp[]
}

/** Values by kind, to give where another kind belongs. */
const VALUES: Readonly<Record<Kind | 'object' | 'class' | 'null' | 'bigint' | 'typed array' | 'nested array', () => unknown>> = {
  tensor: () => torch.ones([2, 2]),
  tensors: () => [torch.ones([2]), torch.ones([2])],
  integer: () => 2,
  integers: () => [1, 2],
  number: () => 0.5,
  boolean: () => true,
  string: () => 'abc',
  dtype: () => 'float32',
  module: () => new nn.Linear(2, 2),
  parameters: () => [new nn.Parameter(torch.ones([2]))],
  function: () => (a: unknown) => a,
  optimizer: () => new optim.SGD([new nn.Parameter(torch.ones([2]))]),
  state: () => new Map([['weight', torch.ones([2])]]),
  bytes: () => new Uint8Array(3),
  object: () => new Date(0),
  class: () => nn.Linear,
  null: () => null,
  bigint: () => 3n,
  'typed array': () => new Float32Array([1, 2]),
  'nested array': () => [
    [1, 2],
    [3, 4],
  ],
}

/** Which values are right for a kind besides its own. */
const ALSO: Readonly<Partial<Record<Kind, readonly string[]>>> = {
  number: ['integer'],
  integers: ['integer'],
  string: ['dtype'],
  tensors: ['parameters'],
  tensor: [],
  parameters: ['tensors'],
  function: ['class', 'module'],
}

/** What messages say a kind is. */
const WORDS: Readonly<Record<Kind, RegExp>> = {
  tensor: /Tensor|Parameter/,
  tensors: /[Aa]rray|Tensors/,
  integer: /integer|whole|number/,
  integers: /integers?|sizes/,
  number: /number|integer/,
  boolean: /true or false|boolean/,
  string: /string|name/,
  dtype: /dtype/,
  module: /Module/,
  parameters: /parameters?/,
  function: /function/,
  optimizer: /optimizer/,
  state: /Map|object/,
  bytes: /Uint8Array|bytes|ArrayBuffer/,
}

const wordsOf = ({ kinds }: Parameter): RegExp[] => kinds.map((kind) => WORDS[kind])

/** The call with these arguments and options. */
function withArguments(call: Call, positional: readonly unknown[], options: Readonly<Record<string, unknown>>): () => unknown {
  const args = Object.keys(options).length === 0 ? positional : [...positional, options]
  return () => call.run(...args)
}

type Draw = (call: Call, random: Random) => (Omit<Mistake, 'kind' | 'call'> & { readonly call?: Call }) | null

/** Whether sizes are spread over several positions. */
const isSpread = (call: Call, positional: readonly unknown[]): boolean =>
  positional.length > call.parameters.length ||
  (positional.length > 1 && call.parameters[0]?.kinds[0] === 'integers' && !Array.isArray(positional[0]))

/** A position that holds an argument with a known kind. */
function drawPosition(call: Call, random: Random, positional: readonly unknown[]): { at: number; parameter: Parameter } | null {
  const places = positional.flatMap((_, at) => {
    const parameter = call.parameters[at]
    return parameter === undefined || parameter.kinds.length === 0 || isSpread(call, positional) ? [] : [{ at, parameter }]
  })
  return places.length === 0 ? null : random.pick(places)
}

function replaced(
  call: Call,
  random: Random,
  make: (value: unknown, parameter: Parameter) => { value: unknown; code: string; fixes: RegExp[] } | null,
) {
  const positional = call.positional()
  const place = drawPosition(call, random, positional)
  const made = place === null ? null : make(positional[place.at], place.parameter)
  if (place === null || made === null) return null
  positional[place.at] = made.value
  return {
    code: `${call.code}(… ${place.parameter.name} = ${made.code} …)`,
    run: withArguments(call, positional, call.options()),
    names: [place.parameter.name],
    value: { is: made.value },
    fixes: made.fixes,
  }
}

/** A value of a kind that the parameter does not take. */
function drawWrong(parameter: Parameter, random: Random): { value: unknown; code: string } {
  const right = new Set<string>(parameter.kinds.flatMap((kind) => [kind, ...(ALSO[kind] ?? [])]))
  // Null is no value for most options, and undefined is as if there were none.
  if (parameter.optional) right.add('null')
  // A dtype is a string that most options refuse by its value.
  const wrong = Object.keys(VALUES).filter((kind) => !right.has(kind) && !(right.has('string') && kind === 'dtype'))
  const kind = random.pick(wrong)
  return { value: VALUES[kind as Kind](), code: `<${kind}>` }
}

/** Arguments that hold indices or conditions, and what they must not be. */
const DTYPES: Readonly<Record<string, RegExp>> = { index: /integer dtype|long\(\)|int64/, indices: /integer dtype|long\(\)|int64/, mask: /bool/ }

const DRAWS: Readonly<Record<MistakeKind, Draw>> = {
  'another kind of value': (call, random) =>
    replaced(call, random, (_, parameter) => ({ ...drawWrong(parameter, random), fixes: wordsOf(parameter) })),
  'another kind of option': (call, random) => {
    const options = optionsOf(call)
    if (options.length === 0) return null
    const parameter = random.pick(options)
    const { value, code } = drawWrong(parameter, random)
    return {
      code: `${call.code}(…, { ${parameter.name}: ${code} })`,
      run: withArguments(call, call.positional(), { ...call.options(), [parameter.name]: value }),
      names: [parameter.name],
      value: { is: value },
      fixes: wordsOf(parameter),
    }
  },
  'another dtype': (call) => {
    const positional = call.positional()
    const at = call.parameters.findIndex(({ name }, i) => DTYPES[name] !== undefined && positional[i] instanceof torch.Tensor)
    const [tensor, parameter] = [positional[at], call.parameters[at]]
    if (!(tensor instanceof torch.Tensor) || parameter === undefined || tensor.isFloatingPoint()) return null
    positional[at] = tensor.float()
    return {
      code: `${call.code}(… ${parameter.name} = float32 …)`,
      run: withArguments(call, positional, call.options()),
      names: [parameter.name],
      fixes: [DTYPES[parameter.name] ?? /dtype/],
    }
  },
  'no await': (call, random) => replaced(call, random, (value) => ({ value: Promise.resolve(value), code: 'Promise', fixes: [/await/] })),
  'not called': (call, random) =>
    replaced(call, random, (value, parameter) =>
      parameter.kinds.includes('function') ? null : { value: () => value, code: '<function>', fixes: [/[Cc]all it/] },
    ),
  'an option of another spelling': (call, random) => {
    const names = call.optionNames.filter((name) => attributeName(name) !== name)
    if (names.length === 0) return null
    const name = random.pick(names)
    const wrong = attributeName(name)
    const at = call.parameters.findIndex((p) => p.name === name)
    const positional = at >= 0 ? call.positional().slice(0, at) : call.positional()
    if (at >= 0 && at < call.positional().length && call.parameters[at]?.optional !== true) return null
    return {
      code: `${call.code}(…, { ${wrong}: … })`,
      run: withArguments(call, positional, { ...call.options(), [wrong]: 1 }),
      names: [wrong],
      fixes: [new RegExp(`\\b${name}\\b`)],
    }
  },
  'an option that does not exist': (call, random) => {
    if (call.optionNames.length === 0) return null
    const wrong = random.pick(['out', 'layout', 'inplace_', 'flavour'])
    if (call.optionNames.includes(wrong)) return null
    return {
      code: `${call.code}(…, { ${wrong}: … })`,
      run: withArguments(call, call.positional(), { ...call.options(), [wrong]: 1 }),
      names: [wrong],
      fixes: [/[Kk]nown are/],
    }
  },
  'two arguments in each other’s place': (call, random) => {
    const positional = call.positional()
    const at = random.int(Math.max(1, positional.length - 1))
    const [one, other] = [call.parameters[at], call.parameters[at + 1]]
    if (one === undefined || other === undefined || isSpread(call, positional) || at + 1 >= positional.length) return null
    const isOther = (a: Parameter, b: Parameter): boolean =>
      a.kinds.length > 0 && !a.kinds.some((kind) => b.kinds.some((k) => k === kind || (ALSO[k] ?? []).includes(kind)))
    if (!isOther(one, other) || !isOther(other, one)) return null
    ;[positional[at], positional[at + 1]] = [positional[at + 1], positional[at]]
    return {
      code: `${call.code}(… ${other.name}, ${one.name} …)`,
      run: withArguments(call, positional, call.options()),
      names: [one.name],
      value: { is: positional[at] },
      fixes: call.of === 'operators' ? [/Swap/] : [/must be/],
    }
  },
  'an argument too many': (call) => {
    const positional = call.positional()
    // Sequential takes any number of modules.
    if (
      call.of === 'functions' ||
      call.code === 'nn.Sequential' ||
      call.parameters.some((p) => p.kinds.includes('integers') || p.kinds.includes('tensors') || p.kinds.length === 0)
    )
      return null
    const all = [
      ...positional,
      ...call.parameters.slice(positional.length).map(() => undefined),
      ...Array.from({ length: 16 }, () => undefined),
      'more',
    ]
    return { code: `${call.code}(…, 'more')`, run: withArguments(call, all, {}), names: [], fixes: [/arguments? given|too many|takes/] }
  },
  'an argument that is missing': (call, random) => {
    const needed = call.parameters.filter((p) => !p.optional)
    const positional = call.positional()
    if (needed.length === 0 || positional.length < needed.length) return null
    const at = random.int(needed.length)
    const options = call.options()
    const parameter = call.parameters[at]
    if (parameter === undefined || parameter.optional || Object.hasOwn(options, parameter.name)) return null
    return {
      code: `${call.code}(${needed.slice(0, at).map((p) => p.name)})`,
      run: withArguments(call, positional.slice(0, at), options),
      names: [parameter.name],
      fixes: [/missing|must be|expected/],
    }
  },
  'given twice': (call, random) => {
    const positional = call.positional()
    const place = drawPosition(call, random, positional)
    // A list that is spread over the arguments has the next position too.
    if (place === null || !call.optionNames.includes(place.parameter.name) || call.parameters.some((p) => p.kinds.includes('integers'))) return null
    return {
      code: `${call.code}(…, { ${place.parameter.name}: … })`,
      run: withArguments(call, positional, { ...call.options(), [place.parameter.name]: positional[place.at] }),
      names: [place.parameter.name],
      fixes: [/given twice/],
    }
  },
  'a name of another library': (call, random) => {
    const home = random.pick(Object.keys(HOMES) as (keyof typeof OTHER_LIBRARIES)[])
    const { owner, make } = HOMES[home]
    const [name, instead] = random.pick(Object.entries<string>(OTHER_LIBRARIES[home]))
    // Tables are in snake case; programs write either.
    const written = random.chance(0.5) ? camelCase(name) : name
    return {
      call: { ...call, name: `${owner}.${written}`, code: `${owner}.${written}` },
      code: `${owner}.${written}`,
      run: () => Reflect.get(make(), written),
      names: [written],
      fixes: [new RegExp(`does not exist here: ${instead.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}`)],
    }
  },
  'an option of another library': (call, random) => {
    const [alias, targets] = random.pick(Object.entries(OPTION_ALIASES))
    const ours = targets.find((name) => call.optionNames.includes(name))
    if (ours === undefined || call.optionNames.includes(alias)) return null
    const at = call.parameters.findIndex((p) => p.name === ours)
    const positional = at >= 0 ? call.positional().slice(0, at) : call.positional()
    return {
      code: `${call.code}(…, { ${alias}: … })`,
      run: withArguments(call, positional, { ...call.options(), [alias]: 1 }),
      names: [alias],
      fixes: [new RegExp(`did you mean '${ours}'`)],
    }
  },
  'options before the rest': (call) => {
    const positional = call.positional()
    const first = call.parameters[0]
    if (first === undefined || first.kinds.length === 0 || first.kinds.includes('state') || call.optionNames.length === 0) return null
    const options = { [call.optionNames.at(-1) ?? '']: true }
    return {
      code: `${call.code}({ … }, …)`,
      run: () => call.run(options, ...positional),
      names: [first.name, 'last'],
      fixes: [...wordsOf(first), /last/],
    }
  },
}

/** What has no names of other libraries, by the table of what it says. */
const HOMES: Readonly<Record<keyof typeof OTHER_LIBRARIES, { readonly owner: string; readonly make: () => object }>> = {
  torch: { owner: 'torch', make: () => torch },
  tensor: { owner: 'x', make: () => torch.ones([2, 3]) },
  nn: { owner: 'torch.nn', make: () => torch.nn },
  optim: { owner: 'torch.optim', make: () => torch.optim },
  module: { owner: 'module', make: () => new nn.Sequential(new nn.Linear(2, 2)) },
  optimizer: { owner: 'optimizer', make: () => new optim.SGD([new nn.Parameter(torch.ones([2]))]) },
}

/** How many calls are tried for a kind of mistake; few have an argument that holds indices. */
const TRIES = 500

/** A mistake: each kind is as frequent as the others. */
export function drawMistake(calls: readonly Call[], random: Random): Mistake {
  const kind = random.pick(MISTAKES)
  for (let i = 0; i < TRIES; i++) {
    const call = random.pick(calls)
    const made = DRAWS[kind](call, random)
    if (made !== null) return { kind, call, ...made }
  }
  throw new Error(`no call can be made with this mistake: ${kind}`)
}
