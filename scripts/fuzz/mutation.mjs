// npm run fuzz:mutation -- N [seed]: random programs in which everything that was handed over or handed out is changed afterwards: lists of sizes, options, state dicts, lists of
// nodes, results. Nothing else may change by it: each program is run without the changes, with them, and without them again, and what it computes must be the same.
import { steps } from './mutationSteps.mjs'
import { hashOf, randomFrom } from './random.mjs'

/** How deep containers within containers are changed. */
const DEPTH = 4

const isPlain = (value) => [Object.prototype, null].includes(Object.getPrototypeOf(value))
const isContainer = (value) =>
  typeof value === 'object' &&
  value !== null &&
  (Array.isArray(value) || value instanceof Map || value instanceof Set || ArrayBuffer.isView(value) || isPlain(value))

/** Changes `value`, and what it holds, as a program may. Tensors, modules and nodes have methods for that and stay as they are; frozen objects refuse. */
export function vandalize(value, random, depth = DEPTH, seen = new Set()) {
  if (!isContainer(value) || seen.has(value)) return
  seen.add(value)
  const items = value instanceof Map || value instanceof Set ? [...value.values()] : ArrayBuffer.isView(value) ? [] : Object.values(value)
  if (depth > 0) for (const item of items) vandalize(item, random, depth - 1, seen)
  if (value instanceof Map || value instanceof Set) {
    if (random.chance(0.5)) value.clear()
    else if (value instanceof Map) for (const key of value.keys()) value.set(key, 4000)
    else value.add(4000)
    return
  }
  if (ArrayBuffer.isView(value)) {
    new Uint8Array(value.buffer, value.byteOffset, value.byteLength).fill(77)
    return
  }
  if (!Array.isArray(value)) {
    for (const key of Object.keys(value)) {
      if (random.chance(0.5)) Reflect.set(value, key, 4000)
      else Reflect.deleteProperty(value, key)
    }
    Reflect.set(value, 'added', 4000)
    return
  }
  const how = random.int(4)
  if (how === 0) for (let i = 0; i < value.length; i++) Reflect.set(value, i, 4000)
  else if (how === 1) Reflect.set(value, 'length', 0)
  else if (how === 2) for (const [i, item] of value.toReversed().entries()) Reflect.set(value, i, item)
  else Reflect.set(value, value.length, 4000)
}

/** What can be seen of a value, as text. */
function textOf(api, value) {
  if (value instanceof api.Tensor) {
    const { shape, strides, dtype, numel, offset } = value
    return JSON.stringify([shape, strides, dtype, numel, offset, value.isFake ? null : Array.from(value.toTypedArray(), String)])
  }
  if (Array.isArray(value)) return `[${value.map((item) => textOf(api, item)).join()}]`
  if (value instanceof Map) return `Map${textOf(api, [...value])}`
  if (typeof value === 'object' && value !== null && isPlain(value))
    return `{${Object.keys(value).map((key) => `${key}:${textOf(api, value[key])}`)}}`
  return ArrayBuffer.isView(value) ? `${value.constructor.name}${Array.from(value, String)}` : String(value)
}

/** Runs the program of `seed`: what was seen after each step, as lines. With `mutations`, what went in and out is changed between the steps. */
function run(api, seed, mutations, count) {
  const random = randomFrom(seed)
  api.torch.manualSeed(seed)
  /** Tensors, and what is looked at again after every step: compiled functions, graphs, modules. */
  const env = { api, random, tensors: [api.torch.arange(6).reshape(2, 3).add(0.5), api.torch.ones([3, 4])], later: [] }
  const lines = []
  for (let i = 0; i < count; i++) {
    const [name, step] = random.pick(Object.entries(steps))
    /** What the program gave and got. */
    const reach = []
    const seenBefore = lines.length
    try {
      const result = step(env, (value) => (reach.push(value), value))
      lines.push(`${i} ${name}: ${textOf(api, result)}`)
    } catch (error) {
      if (error.code === undefined) throw new Error(`${name}, seed ${seed}: ${error.stack}`, { cause: error })
      lines.push(`${i} ${name}: ${error.message}`)
    }
    if (mutations !== null) for (const value of reach) vandalize(value, mutations)
    if (env.tensors.length > 6) env.tensors.splice(0, 2)
    if (env.later.length > 3) env.later.shift()
    for (const [k, tensor] of env.tensors.entries()) lines.push(`${i} tensor ${k}: ${textOf(api, tensor)}`)
    for (const [what, look] of env.later) {
      // Only some of the steps: looking takes longer than all the rest.
      if (i < count - 1 && (seed + i) % 3 > 0) break
      try {
        lines.push(`${i} ${what}: ${textOf(api, look())}`)
      } catch (error) {
        lines.push(`${i} ${what}: ${error.message}`)
      }
    }
    if (lines.length === seenBefore) throw new Error('a step that nothing was seen of')
  }
  return lines
}

const differenceOf = (a, b) => {
  const at = a.findIndex((line, i) => line !== b[i])
  return at < 0 ? null : { expected: a[at], got: b[at] }
}

/** Runs the program of `seed`. Null if nothing changed, else what did. */
export function fuzzMutation(api, seed, count = 8) {
  const expected = run(api, seed, null, count)
  const changed = differenceOf(expected, run(api, seed, randomFrom(hashOf(`mutations ${seed}`)), count))
  const after = changed === null ? differenceOf(expected, run(api, seed, null, count)) : null
  api.reset()
  if (changed !== null) return { seed, ...changed, steps: expected.filter((line) => /^\d+ \w+:/.test(line)).map((line) => line.split(':')[0]) }
  return after === null ? null : { seed, ...after, steps: ['a later program'] }
}

/** Runs `count` programs with the seeds from `seed` on: the findings, at most `limit` of them. */
export function fuzzMutations(api, count, seed, limit = 10) {
  const findings = []
  for (let i = 0; i < count && findings.length < limit; i++) {
    const found = fuzzMutation(api, seed + i)
    if (found !== null) findings.push(found)
  }
  return findings
}

/** The names that programs use; `load` imports an entry. */
export async function mutationApi(load) {
  const [main, aot, compileEntry, func, interop, fx, pytree] = await Promise.all(
    ['tensorfx', 'aot', 'compile', 'func', 'interop', 'fx', 'pytree'].map(load),
  )
  return { ...main, ...aot, ...fx, ...pytree, func, interop, reset: compileEntry.reset, explain: compileEntry.explain }
}
