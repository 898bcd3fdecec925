// Whether a program means the same compiled as eagerly. Operators that compute elements one by one, and their gradients, must agree in every bit. Sums and matrix products may
// add up in another order: they may be at most twice as far from a float64 reference as eager, plus some units in the last place of the largest number on the way: 4, and more for
// sums of many, as roundings add up like a random walk. Since eager can be exact by luck, its distance is the largest of several runs, with data moved by one unit in the last place.
import { compareNotes, numbersIn, runProgram } from './run.mjs'

/** Operators that only move or choose elements, or compute exactly. */
const EXACT =
  /^(?:torch|torch\.ops\.tensorfx|torch\.Tensor|torch\.nn\.functional)\.(?:gather|cat|stack|sort|argsort|topk|amax|amin|max|min|any|all|argmax|argmin|select_backward|slice_backward|philox_\w+|embedding|max_pool2d_with_indices|\w+_scatter|as_strided_backward)$/

/** What is said of a value whose way is not known. */
const UNKNOWN = { size: 1, roundings: 1 }

/** Follows, through an eager run, which values come from operators that may round differently, how large the numbers on the way were, and how many roundings are in an element. */
function taintTracker({ withMode, dispatchBelowAutograd, Tensor, inLibrary }) {
  /** What is known of a value, by its memory. */
  const tainted = new WeakMap()
  const tensorsIn = (args) => args.flat(2).filter((arg) => arg instanceof Tensor && arg.storage !== null)
  // Disabled code runs outside of all modes: what it makes counts as rounded if anything does.
  const seen = new WeakSet()
  let any = false
  const taintOf = (t) => tainted.get(t.storage) ?? null
  const sizeOf = (t) => (/float/.test(t.dtype) ? largest(Array.from(t.toTypedArray(), Number).filter(Number.isFinite)) : 0)
  const note = (op, inputs, result) => {
    const before = inputs.map(taintOf).filter((taint) => taint !== null)
    const roundings = before.reduce((sum, taint) => sum + taint.roundings, 0)
    for (const t of [result].flat()) {
      if (t.storage === null) continue
      // As many elements of the inputs meet in one of the result.
      const meeting = inexact(op) ? largest(inputs.map((input) => input.numel / Math.max(1, t.numel))) : 1
      tainted.set(t.storage, {
        size: largest([1, ...before.map(({ size }) => size), ...[...inputs, t].map(sizeOf)]),
        roundings: roundings + Math.max(1, meeting),
      })
    }
  }
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
      const inputs = tensorsIn(args)
      if (isSum(op, args, result) || inexact(op) || inputs.some((t) => taintOf(t) !== null)) {
        any = true
        note(op, inputs, result)
      }
      return result
    },
  }
  return {
    around: (run) => withMode(mode, run),
    of: (t) => (t.storage === null ? null : taintOf(t)) ?? (any && !seen.has(t.storage) ? UNKNOWN : null),
    any: () => any,
  }
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

/** Says whether numbers of the compiled run may differ from eager's as they do. */
function tolerances(api, program, eager) {
  const tracker = taintTracker(api)
  const taint = runProgram(api, program, { taint: tracker })
  const reference = runProgram(api, program, { dtype: 'float64' })
  const others = [3, 5, 7].map((perturb) => runProgram(api, program, { perturb }))
  const at = (run, i) => (run.notes[i] === undefined || run.notes[i].label !== eager.notes[i].label ? [] : shotsOf(run.notes[i].value).map(numbersIn))
  return (i) => {
    const shots = eager.notes[i] === undefined ? [] : shotsOf(eager.notes[i].value)
    const marked = taint.notes[i] === undefined ? [] : shotsOf(taint.notes[i].value)
    const ref = at(reference, i)
    const noisy = others.map((run) => at(run, i))
    return (a, b) => {
      const k = shots.indexOf(a)
      // A number or a text does not tell where it was read.
      const taint = a.tensor ? (marked[k]?.taint ?? null) : tracker.any() ? UNKNOWN : null
      if (k < 0 || taint === null || (a.tensor && !/float/.test(a.dtype))) return false
      const [mine, theirs] = [numbersIn(a), numbersIn(b)]
      // The reference may take another way: a call that mixes dtypes is an error, and none in float64. Then eager itself is the reference.
      const exact = ref[k]?.length === mine.length ? ref[k] : mine
      const eps = ulpOf[a.dtype] ?? 2 ** -24
      const scale = Math.max(taint.size, largest(exact.filter(Number.isFinite)))
      const eagerDistance = Math.max(distance(mine, exact), ...noisy.map((run) => (run[k]?.length === exact.length ? distance(run[k], exact) : 0)))
      return distance(theirs, exact) <= 2 * eagerDistance + Math.max(8, 2 * Math.sqrt(taint.roundings)) * eps * scale + (a.unit ?? 0)
    }
  }
}

/**
 * Compares a program's meaning under `wrap` with eager's: null if they agree, 'invalid' for a program that is itself wrong, else the first difference. `eager` wraps f in
 * the run that is compared with; `history`: whether it matters which tensors require grad; `traced`: whether f is traced, and has no effect if it throws then.
 */
export function judge(api, program, wrap, { eager: asIs = (f) => f, history = true, traced = false } = {}) {
  const eager = runProgram(api, program, { wrap: asIs, history })
  if (eager.invalid) return 'invalid'
  const got = runProgram(api, program, { wrap, history })
  const found = compareNotes(eager.notes, got.notes, () => () => false, { traced })
  if (found === null || found.numeric !== true) return found
  return compareNotes(eager.notes, got.notes, tolerances(api, program, eager), { traced })
}
