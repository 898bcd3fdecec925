// Draws faults that can be seen: an operator of a program, what is wrong with it, and when. What can be seen where follows from rules, by running the program once with
// the fault and without it, side by side.
import { randomFrom } from '../fuzz/random.mjs'
import { faultyBackend, operatorOf } from './faulty.mjs'
import { MODELS, MODES, runProgram, takesNaN } from './models.mjs'

/** Results that are right, in memory that is not the program's alone, or of another run. Each needs what the whole graph takes and gives, or several runs. */
export const MEMORY_KINDS = ['reused', 'stale', 'donated', 'shared']
export const NUMBERS = ['factor', 'offset', 'element', 'negative', 'makesNaN', 'besideNaN', 'integer', 'bool', 'written', ...MEMORY_KINDS]
export const ERRORS = ['throws']
export const DEATHS = ['exit', 'kill', 'hang', 'memory']
const KINDS = [...NUMBERS, ...NUMBERS, ...ERRORS, ...ERRORS, ...ERRORS, ...DEATHS]

/** The part of a value's size from which on a difference must be found. In half precision errors of rounding are about as large as that of a wrong element. */
const CLEAR = { float64: 0.02, float32: 0.02, float16: 0.1 }

/** The graphs that a program gives its backend, as they are when compiled, with what each run of them got. */
function graphsOf(api, spec) {
  const graphs = []
  runProgram(api, spec, (gm) => {
    graphs.push(gm)
    return (...inputs) => gm.forward(...inputs)
  })
  return graphs
}

export const isBackward = (gm) => gm.className.endsWith('_backward')

/** Operators that return their inputs' memory, or nothing that can be wrong. */
const isPlain = (node) => node.op === 'call_function' && node.target.op !== undefined && !node.target.op.tags?.has('view')

/** A fault drawn with this seed, in a program: { program, fault, seen }; null if it cannot be seen anywhere. */
export function drawFault(api, seed) {
  const random = randomFrom(seed)
  const program = {
    model: random.pick(Object.keys(MODELS)),
    mode: random.pick(MODES),
    dtype: random.pick(['float32', 'float32', 'float32', 'float64', 'float16']),
    seed: random.int(1000),
  }
  const kind = random.pick(KINDS)
  if (kind === 'besideNaN') Object.assign(program, { mode: 'eval', nan: true })
  if (kind === 'besideNaN' && !takesNaN(program)) program.model = random.pick(['mlp', 'cnn', 'lstm', 'pointwise'])
  const graphs = graphsOf(api, program)
  const wanted = random.chance(0.5) ? graphs.filter(isBackward) : graphs
  const nodes = (wanted.length === 0 ? graphs : wanted).flatMap((gm) => [...gm.graph.nodes]).filter((node) => isPlain(node) && fits(kind, node))
  if (nodes.length === 0) return null
  const node = random.pick(nodes)
  const producers = node.allInputNodes.filter((input) => isPlain(input))
  const fault = {
    operator: operatorOf(node),
    name: node.target.name,
    kind,
    ...(kind === 'integer' || kind === 'bool' ? {} : { dtype: program.dtype }),
    ...(producers.length > 0 && random.chance(0.2) ? { producer: operatorOf(random.pick(producers)) } : {}),
    ...(kind === 'throws' || DEATHS.includes(kind) ? { phase: random.pick(['compile', 'run']) } : {}),
    ...(random.chance(0.25) && !MEMORY_KINDS.includes(kind) ? { from: 2 + random.int(2) } : {}),
  }
  if (fault.phase === 'compile') delete fault.from
  if (fault.from === undefined && (kind === 'throws' || kind === 'factor') && random.chance(0.2)) fault.rate = 0.5
  const seen = whereSeen(api, program, fault)
  return seen.length === 0 ? null : { seed, program, fault, seen }
}

const dtypesOf = ({ meta: { val } }) => (Array.isArray(val) ? val : [val]).map((one) => one?.dtype)

function fits(kind, node) {
  const dtypes = dtypesOf(node)
  if (kind === 'integer') return dtypes.includes('int64')
  if (kind === 'bool') return dtypes.includes('bool')
  return dtypes.some((dtype) => dtype?.startsWith('float'))
}

/**
 * Where a fault can be seen, as pairs of reproAfter and reproLevel:
 * - an error: at levels 1 to 3; the end of a process: at 3. A backward graph is watched after aot only.
 * - wrong numbers: at level 4, if an output or an input of a graph is clearly another one than without the fault.
 */
function whereSeen(api, program, fault) {
  const found = { forward: false, backward: false }
  const copy = (value) => (value instanceof api.Tensor ? api.noGrad(() => value.detach().clone()) : value)
  const numeric = NUMBERS.includes(fault.kind)
  const marks = { ...fault, kind: 'mark', from: 1, rate: 1 }
  const harmless = { ...fault, rate: 1, ...(numeric ? {} : { kind: 'mark' }) }
  runProgram(api, program, (gm) => {
    const suspect = faultyBackend(api, numeric ? harmless : { ...marks, kind: 'throws', phase: fault.phase }, undefined)
    const where = isBackward(gm) ? 'backward' : 'forward'
    let compiled
    try {
      compiled = suspect(gm)
    } catch {
      found[where] = true
    }
    let runs = 0
    let last = null
    return (...inputs) => {
      const right = gm.forward(...inputs)
      if (compiled === undefined || found[where]) return right
      runs++
      const theirs = inputs.map(copy)
      try {
        const wrong = compiled(...theirs)
        if (!numeric) return right
        const all = [...[wrong].flat(), ...theirs]
        const wants = [...[right].flat(), ...inputs].map(copy)
        if (differ(api, wants, all.map(copy))) found[where] = true
        // The outputs of the run before, which this one must leave alone.
        if (last !== null && differ(api, last.wants, last.values.map(copy))) found[where] = true
        last = { values: [wrong].flat(), wants: [wrong].flat().map(copy) }
      } catch {
        // An error, as a fault that throws, or wrong numbers that another operator rejects.
        if (!numeric && runs >= (fault.from ?? 1)) found[where] = true
      }
      return right
    }
  })
  const after = [...(found.forward ? ['dynamo', 'aot'] : []), ...(found.backward ? (numeric ? ['dynamo', 'aot'] : ['aot']) : [])]
  const levels = numeric ? [4] : fault.kind === 'throws' ? [1, 2, 3] : [3]
  return [...new Set(after)].flatMap((place) => levels.map((level) => [place, level]))
}

/** Whether values differ clearly: by a part of the largest value of their tensor. */
export function differ({ Tensor }, wants, gots) {
  return wants.some((want, i) => {
    const got = gots[i]
    if (!(want instanceof Tensor) || !(got instanceof Tensor)) return false
    const [a, b] = [want, got].map((tensor) => [tensor.toArray()].flat(Infinity).map(Number))
    const isExact = !want.dtype.startsWith('float')
    const scale = Math.max(...a.map((x) => (Number.isFinite(x) ? Math.abs(x) : 0)))
    return a.some((x, k) => {
      if (isExact) return x !== b[k]
      if (Number.isNaN(x) || Number.isNaN(b[k])) return Number.isNaN(x) !== Number.isNaN(b[k])
      return Math.abs(x - b[k]) > CLEAR[want.dtype] * scale
    })
  })
}
