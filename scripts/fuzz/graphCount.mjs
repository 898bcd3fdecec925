// How many graphs programs take whose calls have other shapes each, next to PyTorch's rule: a way through a program (the operators that run, and which of their sizes and numbers are 0, 1 or more) has a graph for its first sizes, and
// another one when a size has another value for the first time. What PyTorch's own compiler makes of 16 such series is recorded; test/dynamo/recompiles.test.ts has them.
import { runProgram } from './run.mjs'

/** All that arguments hold but lists, maps and objects around it. */
function leavesOf(value, { Tensor }, out = []) {
  if (value === null || typeof value !== 'object' || value instanceof Tensor) out.push(value)
  else for (const item of value instanceof Map ? value.values() : Object.values(value)) leavesOf(item, { Tensor }, out)
  return out
}

/** What makes calls take other ways: sizes count as 0, 1 or more, numbers as well. */
function patternOf(args, api) {
  const sizeText = (size) => (Math.abs(size) > 1 ? 'n' : String(size))
  const text = (leaf) => {
    if (leaf instanceof api.Tensor) return `${leaf.dtype}[${leaf.shape.map(sizeText).join()}] ${leaf.requiresGrad} ${leaf.isContiguous()}`
    return Number.isInteger(leaf) ? sizeText(leaf) : typeof leaf
  }
  return leavesOf(args, api).map(text).join('; ')
}

/** The numbers of all that arguments hold, in their order. */
const numbersOf = (args, api) =>
  leavesOf(args, api).flatMap((leaf) => {
    if (leaf instanceof api.Tensor) return [...leaf.shape, ...(leaf.isContiguous() ? [] : leaf.stride())]
    return typeof leaf === 'number' ? [leaf] : []
  })

/** How many graphs PyTorch's rule gives to calls of one way with these numbers; with `dynamic: true` all sizes differ from the first call on. */
function generationsOf(lists, { dynamic = false }) {
  if (dynamic) return 1
  const changing = new Set()
  let generations = 1
  for (const list of lists) {
    const changed = list.flatMap((number, i) => (Object.is(number, lists[0][i]) || changing.has(i) ? [] : [i]))
    if (changed.length > 0) generations++
    for (const i of changed) changing.add(i)
  }
  return generations
}

/** The calls of a program's functions in their order, run eagerly: the way that each takes, and its sizes. */
function waysOf(api, program) {
  const calls = []
  let functions = 0
  const wrap = (f) => {
    const own = functions++
    return function (...args) {
      let operators = ''
      const mode = {
        name: 'the way of a call',
        handle(op, given) {
          operators += `${op.qualname}(${patternOf(given, api)});`
          return api.dispatchBelowAutograd(op, given)
        },
      }
      const call = { way: `${own} ${api.isGradEnabled()} ${patternOf(args, api)} `, numbers: numbersOf(args, api) }
      calls.push(call)
      try {
        return api.withMode(mode, () => f.apply(this, args))
      } finally {
        call.way += operators
      }
    }
  }
  runProgram(api, program, { wrap })
  return calls
}

/** For each call, compiled: how many graphs it made. */
function growthsOf(api, program, options) {
  const calls = []
  const wrap = (f) => {
    const compiled = api.compile(f, options)
    return function (...args) {
      const before = compiled.graphs().length
      const at = calls.push(0) - 1
      try {
        return compiled.apply(this, args)
      } finally {
        calls[at] = compiled.graphs().length - before
      }
    }
  }
  runProgram(api, program, { wrap })
  return calls
}

/**
 * The graphs that a program's calls make, and the most that PyTorch's rule gives: as many generations of the graphs of one call, of which graph breaks make several, as each way has.
 */
export function countGraphs(api, program, options) {
  const growths = growthsOf(api, program, options)
  const ways = new Map()
  waysOf(api, program).forEach(({ way, numbers }, i) => {
    const known = ways.get(way) ?? { most: 0, lists: [] }
    ways.set(way, known)
    known.most = Math.max(known.most, growths[i] ?? 0)
    known.lists.push(numbers)
  })
  const rule = [...ways.values()].reduce((sum, { most, lists }) => sum + most * generationsOf(lists, options), 0)
  return { graphs: growths.reduce((sum, one) => sum + one, 0), rule }
}
