// Calls everything public with absurd arguments. A call may return, or throw a TensorfxError; a raw error of the engine is a finding, and so is a tensor with an
// impossible shape, or one that reaches outside its storage.
import { LEFT_OUT } from './leftOut.mjs'
import { hashOf, randomFrom } from './random.mjs'

/** Members that are not called: of every function, and what tests of the language call. */
const SKIPPED_MEMBERS = new Set(['constructor', 'dispose', 'op', 'then', 'toJSON', 'prototype', 'length', 'name', 'caller', 'arguments', 'callee'])

class UsersError extends Error {}

/** Values that arguments are drawn from. Made anew for each call, as a call may change them. */
function values({ torch, nn, fx, fake, more }) {
  const cyclic = []
  cyclic.push(cyclic)
  const cyclicObject = {}
  cyclicObject.self = cyclicObject
  const gm = fx.symbolicTrace((x) => torch.relu(x).add(1))
  return {
    absurd: [
      undefined,
      null,
      NaN,
      Infinity,
      -Infinity,
      -1,
      -7,
      0.5,
      2 ** 31,
      2 ** 53,
      1e15,
      1e300,
      '',
      'constructor',
      '__proto__',
      true,
      {},
      [],
      [-1, 5],
      [NaN, 0],
      [0.5],
      [2 ** 53],
      [1e15, 1e15],
      [null],
      [undefined],
      ['a'],
      { dim: NaN },
      { nothing: 1 },
      { constructor: 1 },
      Object.create(null),
      10n,
      Symbol('s'),
      () => {
        throw new UsersError('thrown by an argument')
      },
      class A {},
      new Map([[1, 2]]),
      new Date(0),
      cyclic,
      cyclicObject,
      new Proxy({}, {}),
      fake,
    ],
    usual: [
      torch.ones([2, 3]),
      torch.tensor([0, 1]).long(),
      torch.zeros([0]),
      torch.ones([]),
      torch.ones([1, 1, 4, 4]),
      torch.ones([2]).requiresGrad_(),
      1,
      0,
      2,
      [2, 3],
      [1],
      'float32',
      'sum',
      'x',
      false,
      (x) => x,
      gm,
      gm.graph,
      [...gm.graph.nodes][1],
      new nn.Linear(3, 2),
      [torch.ones([2]), torch.ones([2])],
      torch.zeros([3, 3]).requiresGrad_(),
      new nn.Parameter(torch.ones([2, 2])),
      [new nn.Parameter(torch.ones([2]))],
      new torch.optim.SGD([new nn.Parameter(torch.ones([2]))], { lr: 0.1 }),
      nn.Linear,
      'weight',
      'mean',
      0.25,
      (x) => torch.mul(x, x).sum(),
      { weight: torch.ones([2, 3]), bias: torch.ones([2]) },
      { params: [new nn.Parameter(torch.ones([2]))], lr: 0.1 },
      ...more(),
    ],
  }
}

/** Everything that can be called, by name: functions and classes of the entries, their static members, and methods of samples (`of` is the function itself); and what is left out in vain. */
export function surfaceOf(entries, samples) {
  const found = new Map()
  const stale = new Set(Object.keys(LEFT_OUT))
  const leftOut = (name) => {
    const key = Object.keys(LEFT_OUT).find((key) => name === key || name.startsWith(`${key}.`))
    if (key !== undefined) stale.delete(key)
    return key !== undefined
  }
  const seen = new Set()
  const add = (name, of, call) => {
    if (!leftOut(name) && !found.has(name)) found.set(name, Object.assign(call, { of }))
  }
  const isClass = (value) => /^class\b/.test(Function.prototype.toString.call(value))
  const visit = (path, value, depth) => {
    if (depth > 3 || value === null || (typeof value !== 'object' && typeof value !== 'function') || seen.has(value)) return
    seen.add(value)
    // Programs catch errors, and seldom make any of ours.
    if (typeof value === 'function' && value.prototype instanceof Error) return
    if (typeof value === 'function' && !(isClass(value) && leftOut(`new ${path}`)))
      add(path, value, isClass(value) ? (args) => Reflect.construct(value, args) : (args) => Reflect.apply(value, undefined, args))
    const prototype = Object.getPrototypeOf(value)
    const isNamespace = value[Symbol.toStringTag] === 'Module' || prototype === Object.prototype || prototype === null || typeof value === 'function'
    if (!isNamespace && depth > 0 && Object.getPrototypeOf(prototype) !== Object.prototype && path.split('.').length > 2) return
    for (const key of Object.getOwnPropertyNames(value).toSorted()) {
      if (SKIPPED_MEMBERS.has(key) || key.startsWith('_')) continue
      const descriptor = Object.getOwnPropertyDescriptor(value, key)
      // Test runners make modules of getters.
      if (descriptor !== undefined && ('value' in descriptor || value[Symbol.toStringTag] === 'Module'))
        visit(`${path}.${key}`, value[key], depth + 1)
    }
  }
  // Sorted, as it depends on how modules are loaded which names come first.
  for (const [entry, module] of Object.entries(entries)) for (const key of Object.keys(module).toSorted()) visit(`${entry}.${key}`, module[key], 0)
  for (const [name, make] of Object.entries(samples)) {
    const methods = new Map()
    for (let level = make(); level !== null && level !== Object.prototype && level !== Function.prototype; level = Object.getPrototypeOf(level))
      for (const key of Object.getOwnPropertyNames(level)) {
        const descriptor = Object.getOwnPropertyDescriptor(level, key)
        if (typeof descriptor?.value === 'function' && !SKIPPED_MEMBERS.has(key) && !key.startsWith('_') && !methods.has(key))
          methods.set(key, descriptor.value)
      }
    for (const [key, method] of methods)
      add(`${name}.${key}`, method, (args) => {
        const self = make()
        return Reflect.apply(self[key], self, args)
      })
  }
  return { found, stale }
}

/** What is wrong with the tensors in a result; null if nothing is. */
function wrongTensors(result, Tensor, depth = 0) {
  if (result instanceof Tensor) {
    const { shape, strides, offset, storage, dtype } = result
    if (shape.some((size) => !Number.isSafeInteger(size) || size < 0)) return `a tensor of shape [${shape}]`
    if (storage === null || shape.includes(0)) return null
    let [lowest, highest] = [offset, offset]
    shape.forEach((size, i) => {
      const span = (size - 1) * strides[i]
      if (span < 0) lowest += span
      else highest += span
    })
    const inside = lowest >= 0 && (highest + 1) * result.elementSize() <= storage.nbytes
    return inside ? null : `a ${dtype} tensor of shape [${shape}], strides [${strides}] and offset ${offset} over ${storage.nbytes} bytes`
  }
  if (!Array.isArray(result) || depth > 2) return null
  for (const item of result.slice(0, 10)) {
    const wrong = wrongTensors(item, Tensor, depth + 1)
    if (wrong !== null) return wrong
  }
  return null
}

/** Where an argument comes from: a place in a pool, or an object of options whose values come from such places. */
const place = (random, absurd) => ({ pool: random.chance(absurd) ? 'absurd' : 'usual', at: random.next() })

/** Places of arguments for round `round`: any, or those of an earlier call whose outcome was new, with a change. */
function draw(random, earlier, options, round) {
  const absurd = round % 2 === 0 ? 0.4 : 0.8
  if (earlier.length === 0 || random.chance(0.3)) return Array.from({ length: random.int(5) }, () => place(random, absurd))
  const list = [...random.pick(earlier)]
  const at = random.int(list.length + 1)
  if (options.length > 0 && random.chance(0.5)) {
    const old = list.at(-1)
    const known = old !== undefined && 'options' in old
    list.splice(known ? -1 : list.length, 1, { options: [...(known ? old.options : []), [random.pick(options), place(random, 0.6)]] })
  } else if (at < list.length && random.chance(0.2)) list.splice(at, 1)
  else list[at] = place(random, 0.5)
  return list
}

/** The argument at a place. */
const argumentAt = (place, pools) =>
  'options' in place
    ? Object.fromEntries(place.options.map(([name, value]) => [name, argumentAt(value, pools)]))
    : pools[place.pool][Math.floor(place.at * pools[place.pool].length)]

/** What an error says, but for values and numbers. */
const essenceOf = (error) =>
  `${error?.name}: ${String(error?.message)
    .replace(/'[^']*'|\d+/g, '_')
    .slice(0, 80)}`

/** The names of options, when an error lists them. */
const optionsIn = (error) => /[Kk]nown are ([\w, ]+)\./.exec(String(error?.message))?.[1].split(', ') ?? []

const textOf = (value) => {
  try {
    if (Array.isArray(value))
      return `[${value
        .slice(0, 5)
        .map((item) => (Array.isArray(item) ? 'array' : textOf(item)))
        .join(', ')}]`
    if (typeof value === 'bigint') return `${value}n`
    if (typeof value === 'function') return value.name === '' ? 'function' : `function ${value.name}`
    if (typeof value === 'object' && value !== null)
      return value.constructor?.name === 'Object' ? `{${Object.keys(value)}}` : (value.constructor?.name ?? 'object')
    return typeof value === 'string' ? `'${value}'` : String(value)
  } catch {
    return 'value'
  }
}

/**
 * Calls every function of the surface whose name `isChosen` takes, `rounds` times. `library` is the entries by name (`tensorfx` is the front door), and what else arguments may be
 * (`more`); `reset` undoes what a call may change for others. Returns the findings: which call, and what happened.
 */
export async function fuzzArguments(library, { seed, rounds, isChosen = () => true, reset = () => {} }) {
  const { torch, nn, fx, Tensor, TensorfxError } = library.entries.tensorfx
  const fake = library.fake()
  const { found: surface, stale } = surfaceOf(library.entries, library.samples)
  const findings = []
  for (const name of stale) findings.push({ name, text: name, what: 'is left out, but there is no such function' })
  let calls = 0
  for (const [name, call] of surface) {
    if (!isChosen(name)) continue
    const random = randomFrom(seed ^ hashOf(name))
    const outcomes = new Set()
    const earlier = []
    let options = []
    const note = (outcome, places) => {
      if (outcomes.has(outcome)) return
      outcomes.add(outcome)
      earlier.push(places)
    }
    for (let round = 0; round < rounds; round++) {
      const places = draw(random, earlier, options, round)
      const pools = values({ torch, nn, fx, fake, more: library.more })
      const args = places.map((place) => argumentAt(place, pools))
      const text = `${name}(${args.map(textOf).join(', ')})`
      calls++
      try {
        let result = call(args)
        if (result instanceof Promise) result = await result
        const wrong = wrongTensors(result, Tensor)
        if (wrong !== null) findings.push({ name, text, what: `returned ${wrong}` })
        note('returned', places)
      } catch (error) {
        note(essenceOf(error), places)
        options = [...new Set([...options, ...optionsIn(error)])]
        // An argument may be a class, which cannot be called.
        if (/^Class constructor (?:A|Linear) cannot be invoked/.test(String(error?.message))) continue
        if (!(error instanceof TensorfxError) && !(error instanceof UsersError) && !causedBy(error, UsersError))
          findings.push({
            name,
            text,
            what: error instanceof Error ? `${error.name}: ${error.message}` : `threw ${textOf(error)}`,
            stack: error?.stack,
          })
        else if (error instanceof TensorfxError && error.code === 'TFX_INTERNAL')
          findings.push({ name, text, what: error.message, stack: error.stack })
      }
      await reset()
    }
  }
  return { functions: surface.size, calls, findings }
}

const causedBy = (error, Class) =>
  error instanceof Error && (error.cause instanceof Class || (error.cause instanceof Error && causedBy(error.cause, Class)))
