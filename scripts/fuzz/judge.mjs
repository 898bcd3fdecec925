// Whether a program means the same compiled as eagerly. Operators that compute elements one by one, and their gradients, must agree in every bit. Sums and matrix products may
// add up in another order: they may be at most twice as far from a float64 reference as eager, plus 4 units in the last place. Since eager can be exact by
// luck, its distance is the largest of several runs, with data moved by one unit in the last place. For sums of many summands that is too little: what their roundings can come to is a bound that
// spread.mjs derives from the program.
import { compareNotes, numbersIn, runProgram } from './run.mjs'
import { spreadTracker } from './spread.mjs'

/**
 * What a GPU computes otherwise than WebAssembly code: functions for which that takes float64. test/webgpu/device/scalars.device.ts holds them to so many units in the last place; all other functions are the same polynomials.
 */
const DEVICE_FUNCTIONS = { names: ['log2', 'log10', 'tan', 'asin', 'acos', 'atan', 'asinh', 'acosh', 'atanh', 'pow', 'hypot'], ulps: 4 }

/** Operators that only move or choose elements, or compute exactly. */
const EXACT =
  /^(?:torch|torch\.ops\.tensorfx|torch\.Tensor|torch\.nn\.functional)\.(?:gather|cat|stack|sort|argsort|topk|amax|amin|max|min|any|all|argmax|argmin|select_backward|slice_backward|philox_\w+|embedding|max_pool2d_with_indices|\w+_scatter|as_strided_backward)$/

/** Follows, through an eager run, which values come from operators that may round differently. */
function taintTracker({ withMode, dispatchBelowAutograd, Tensor, inLibrary }) {
  const tainted = new WeakSet()
  // What is made outside of all modes counts as rounded if anything does.
  const seen = new WeakSet()
  let any = false
  const isTainted = (arg) => (arg instanceof Tensor ? arg.storage !== null && tainted.has(arg.storage) : Array.isArray(arg) && arg.some(isTainted))
  const inexact = (op) => {
    const { tags } = op.functional ?? op
    return !(tags.has('pointwise') || tags.has('view') || tags.has('creation') || EXACT.test(op.qualname))
  }
  // The engine adds up gradients. What a graph adds in one of its own is added before the rest: with three summands that is another order. Operators between two sums keep the summands of what they
  // get: a gradient may be a sum, then pass through the derivative of a view, and then be added to another.
  const summands = new WeakMap()
  const isSum = (op, args, result) => {
    const counts = args.flat().map((arg) => (arg instanceof Tensor && arg.storage !== null ? (summands.get(arg.storage) ?? 1) : 0))
    const adds = inLibrary() && (op.functional ?? op).qualname === 'torch.add'
    const count = adds ? counts.reduce((n, m) => n + m, 0) : Math.max(1, ...counts)
    if (count > 1) for (const t of [result].flat()) if (t.storage !== null) summands.set(t.storage, Math.max(count, summands.get(t.storage) ?? 1))
    return adds && count > 2
  }
  const mode = {
    name: 'taint',
    handle(op, args) {
      const result = dispatchBelowAutograd(op, args)
      for (const t of [result].flat()) if (t.storage !== null) seen.add(t.storage)
      if (isSum(op, args, result) || inexact(op) || args.some(isTainted)) {
        any = true
        for (const t of [result].flat()) if (t.storage !== null) tainted.add(t.storage)
      }
      return result
    },
  }
  return { around: (run) => withMode(mode, run), of: (t) => isTainted(t) || (any && !seen.has(t.storage)), any: () => any }
}

/** Runs with kernels that round every operation, as shaders do; others may round a product and a sum once. */
const strictly = ({ torch }, run) => {
  const before = torch.areDeterministicAlgorithmsEnabled()
  torch.useDeterministicAlgorithms(true)
  try {
    return run()
  } finally {
    torch.useDeterministicAlgorithms(before)
  }
}

/** Runs programs whose convolutions are strict: the direct sums, where others may take Winograd's algorithm. */
const withStrictConvolutions = (api) => (run) => {
  const { withMode, dispatchBelowAutograd } = api
  const mode = {
    name: 'strict convolutions',
    handle(op, args) {
      const call = () => dispatchBelowAutograd(op, args)
      return /conv/.test(op.name) ? strictly(api, call) : call()
    },
  }
  withMode(mode, run)
}

/** The parts of a note that hold numbers, in order: tensors, numbers and texts. */
function shotsOf(value, out = []) {
  if (numbersIn(value) !== null) out.push(value)
  else for (const item of value.list ?? (value.map ?? value.object ?? []).map(([, v]) => v)) shotsOf(item, out)
  return out
}

const ulpOf = { float16: 2 ** -11, bfloat16: 2 ** -8 }
const largest = (list) => list.reduce((m, x) => (Math.abs(x) > m ? Math.abs(x) : m), 0)
const distance = (a, b) =>
  a.reduce((m, x, i) => Math.max(m, Object.is(x, b[i]) || (Number.isNaN(x) && Number.isNaN(b[i])) ? 0 : Math.abs(x - b[i])), 0)

/** Says whether numbers of the compiled run may differ from eager's as they do; `how` the eager run was made. */
function tolerances(api, program, eager, { functions, ...how }) {
  const tracker = taintTracker(api)
  const taint = runProgram(api, program, { ...how, taint: tracker })
  const reference = runProgram(api, program, { ...how, dtype: 'float64' })
  const others = [3, 5, 7].map((perturb) => runProgram(api, program, { ...how, perturb }))
  let spread = null
  /** Whether two orders of the same sums can be as far apart. */
  const withinSpread = (i, k, mine, theirs) => {
    spread ??= runProgram(api, program, { ...how, taint: spreadTracker(api, functions) })
    const note = spread.notes[i]
    const bounds = note?.label === eager.notes[i].label ? shotsOf(note.value)[k]?.taint : null
    return (
      Array.isArray(bounds) &&
      mine.length === theirs.length &&
      mine.every((x, e) => Object.is(x, theirs[e]) || Math.abs(x - theirs[e]) <= (bounds[mine.length === 2 * bounds.length ? e >> 1 : e] ?? 0))
    )
  }
  const at = (run, i) => (run.notes[i] === undefined || run.notes[i].label !== eager.notes[i].label ? [] : shotsOf(run.notes[i].value).map(numbersIn))
  return (i) => {
    const shots = eager.notes[i] === undefined ? [] : shotsOf(eager.notes[i].value)
    const marked = taint.notes[i] === undefined ? [] : shotsOf(taint.notes[i].value)
    const ref = at(reference, i)
    const noisy = others.map((run) => at(run, i))
    return (a, b) => {
      const k = shots.indexOf(a)
      // A number or a text does not tell where it was read.
      const isTainted = a.tensor ? marked[k]?.taint : tracker.any()
      // A complex number is two, which a GPU may have computed.
      const mayDiffer = functions === null ? /float/ : /float|complex/
      if (k < 0 || (a.tensor && !mayDiffer.test(a.dtype))) return false
      const [mine, theirs] = [numbersIn(a), numbersIn(b)]
      if (!isTainted) return functions !== null && a.tensor === true && withinSpread(i, k, mine, theirs)
      // The reference may take another way: a call that mixes dtypes is an error, and none in float64. Then eager itself is the reference.
      const exact = ref[k]?.length === mine.length ? ref[k] : mine
      const eps = ulpOf[a.dtype] ?? 2 ** -24
      const scale = Math.max(1, largest(exact.filter(Number.isFinite)))
      const eagerDistance = Math.max(distance(mine, exact), ...noisy.map((run) => (run[k]?.length === exact.length ? distance(run[k], exact) : 0)))
      return distance(theirs, exact) <= 2 * eagerDistance + 8 * eps * scale + (a.unit ?? 0) || (a.tensor === true && withinSpread(i, k, mine, theirs))
    }
  }
}

/**
 * Compares a program's meaning under `wrap` with eager's: null if they agree, 'invalid' for a program that is itself wrong, else the first difference. `eager` wraps f in
 * the run that is compared with; `history`: whether it matters which tensors require grad; `traced`: whether f is traced, and has no effect if it throws then; `device`: whether a GPU runs f.
 */
export function judge(api, program, wrap, { device = false, ...options } = {}) {
  return device
    ? strictly(api, () => judgeRuns(api, program, wrap, { ...options, functions: DEVICE_FUNCTIONS }))
    : judgeRuns(api, program, wrap, options)
}

/** Whether a value is the error of a GPU that did not answer in time: a driver that computes on the CPU can take minutes to compile a kernel with many functions. */
const tookTooLong = (value) => value?.error === 'DeviceLostError' && /did not answer within/.test(value.message)

function judgeRuns(api, program, wrap, { eager: asIs = (f) => f, history = true, traced = false, functions = null }) {
  // Programs of convolutions are compared with another way to compute them: eager mode and compiled code have most of their kernels in common.
  const around = program.kinds.includes('convolutions') ? withStrictConvolutions(api) : undefined
  const how = { wrap: asIs, history, around }
  const eager = runProgram(api, program, how)
  if (eager.invalid) return 'invalid'
  const got = runProgram(api, program, { wrap, history })
  if (got.notes.some(({ value }) => tookTooLong(value))) return 'too slow'
  const found = compareNotes(eager.notes, got.notes, () => () => false, { traced })
  if (found === null || found.numeric !== true) return found
  return compareNotes(eager.notes, got.notes, tolerances(api, program, eager, { ...how, functions }), { traced })
}
