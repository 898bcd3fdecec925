// Whether a program means the same compiled as eagerly. Operators that compute elements one by one, and their gradients, must agree in every bit. Sums and matrix products may
// add up in another order: they may be at most twice as far from a float64 reference as eager, plus 4 units in the last place. Since eager can be exact by
// luck, its distance is the largest of several runs, with data moved by one unit in the last place.
import { compareNotes, runProgram } from './run.mjs'

/** Operators that only move or choose elements, or compute exactly. */
const EXACT =
  /^(?:torch|torch\.ops\.tensorfx|torch\.Tensor|torch\.nn\.functional)\.(?:gather|cat|stack|sort|argsort|topk|amax|amin|max|min|any|all|argmax|argmin|select_backward|slice_backward|philox_\w+|embedding|max_pool2d_with_indices|\w+_scatter|as_strided_backward)$/

/** Follows, through an eager run, which values come from operators that may round differently. */
function taintTracker({ withMode, dispatchBelowAutograd, Tensor, inLibrary }) {
  const tainted = new WeakSet()
  let any = false
  const isTainted = (arg) => (arg instanceof Tensor ? arg.storage !== null && tainted.has(arg.storage) : Array.isArray(arg) && arg.some(isTainted))
  const inexact = (op) => {
    const { tags } = op.functional ?? op
    return !(tags.has('pointwise') || tags.has('view') || tags.has('creation') || EXACT.test(op.qualname))
  }
  // The engine adds up gradients. What a graph adds in one of its own is added before the rest: with three summands that is another order.
  const summands = new WeakMap()
  const isSum = (op, args, result) => {
    if (!inLibrary() || (op.functional ?? op).qualname !== 'torch.add') return false
    const count = args.reduce((n, arg) => n + (arg instanceof Tensor && arg.storage !== null ? (summands.get(arg.storage) ?? 1) : 0), 0)
    if (result.storage !== null) summands.set(result.storage, count)
    return count > 2
  }
  const mode = {
    name: 'taint',
    handle(op, args) {
      const result = dispatchBelowAutograd(op, args)
      if (isSum(op, args, result) || inexact(op) || args.some(isTainted)) {
        any = true
        for (const t of [result].flat()) if (t.storage !== null) tainted.add(t.storage)
      }
      return result
    },
  }
  return { around: (run) => withMode(mode, run), of: isTainted, any: () => any }
}

/** Numbers of the notes, in order: one array per tensor or number. */
function arraysOf(value, out = []) {
  if (value.tensor) out.push(value.data.map(Number))
  else if ('number' in value) out.push([value.number])
  else for (const item of value.list ?? (value.map ?? value.object ?? []).map(([, v]) => v)) arraysOf(item, out)
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
  const at = (run, i) => (run.notes[i] === undefined || run.notes[i].label !== eager.notes[i].label ? [] : arraysOf(run.notes[i].value))
  const taints = (value, out = []) => {
    if (value.tensor) out.push(value.taint)
    else if ('number' in value) out.push(tracker.any()) // A number does not tell where it was read.
    else for (const item of value.list ?? (value.map ?? value.object ?? []).map(([, v]) => v)) taints(item, out)
    return out
  }
  return (i) => {
    const flags = taint.notes[i] === undefined ? [] : taints(taint.notes[i].value)
    const ref = at(reference, i)
    const noisy = others.map((run) => at(run, i))
    const mine = at(eager, i)
    const shots = []
    const collect = (value) => {
      if (value.tensor || 'number' in value) shots.push(value)
      else for (const item of value.list ?? (value.map ?? value.object ?? []).map(([, v]) => v)) collect(item)
    }
    collect(eager.notes[i]?.value ?? { plain: '' })
    return (a, b) => {
      const k = shots.findIndex((shot) => shot === a || (shot.tensor !== true && 'number' in a && Object.is(shot.number, a.number)))
      if (k < 0 || flags[k] !== true || ref[k] === undefined || (a.tensor && !/float/.test(a.dtype))) return false
      const exact = ref[k]
      if (exact.length !== mine[k].length) return false
      const eps = ulpOf[a.dtype] ?? 2 ** -24
      const scale = Math.max(1, largest(exact.filter(Number.isFinite)))
      const eagerDistance = Math.max(distance(mine[k], exact), ...noisy.map((run) => (run[k]?.length === exact.length ? distance(run[k], exact) : 0)))
      return distance(b.data.map(Number), exact) <= 2 * eagerDistance + 8 * eps * scale
    }
  }
}

/**
 * Compares a program's meaning under `wrap` with eager's: null if they agree, 'invalid' for a program that is itself wrong, else the first difference. `eager` wraps f in
 * the run that is compared with; `history`: whether it matters which tensors require grad.
 */
export function judge(api, program, wrap, { eager: asIs = (f) => f, history = true } = {}) {
  const eager = runProgram(api, program, { wrap: asIs, history })
  if (eager.invalid) return 'invalid'
  const got = runProgram(api, program, { wrap, history })
  const found = compareNotes(eager.notes, got.notes, () => () => false)
  if (found === null || found.numeric !== true) return found
  return compareNotes(eager.notes, got.notes, tolerances(api, program, eager))
}
