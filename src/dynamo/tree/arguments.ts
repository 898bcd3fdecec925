// Comparing the arguments of a call with those of a recorded one.
import { isArgList, isInt32 } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { agreesAsMet, agreesButForSizes, changeOf, metTensorState, metValues, operatorState } from '../../guards/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { Mismatch } from '../reports/reports.ts'
import { agreesInSizes, isSize } from './sizes.ts'
import type { SizePolicy } from './sizes.ts'
import type { ArgStep, InputSpec, NumberKind, Step } from './traceTree.ts'

/** Whether a number is of the kind that a graph was compiled for. */
export const isOfKind = (value: unknown, kind: NumberKind): boolean =>
  typeof value === 'number' && (kind === 'any' || (kind === 'size' ? isSize(value) : isInt32(value)))

/** Equality of constants: Object.is, and arrays element by element. */
export function sameConstant(a: Arg | undefined, b: Arg | undefined): boolean {
  if (Object.is(a, b)) return true
  return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((v, i) => sameConstant(v, b[i]))
}

/** Whether the argument differs from the recorded one in a number at most; `inLists`: or in numbers of a list. */
export function sameButForNumbers(r: ArgStep, arg: Arg | undefined, inLists: boolean): boolean {
  if (r.kind === 'slot' || r.kind === 'input') return arg instanceof Tensor
  if (r.kind === 'list') return Array.isArray(arg) && arg.length === r.items.length
  if (inLists && r.kind === 'const' && isNumbers(r.value) && isNumbers(arg)) return arg.length === r.value.length
  return typeof arg === 'number' ? r.kind === 'scalar' || typeof r.value === 'number' : r.kind === 'const' && sameConstant(r.value, arg)
}

/** Whether a value is a list of numbers: sizes of a shape. */
const isNumbers = (value: Arg | undefined): value is readonly number[] => isArgList(value) && value.every((item) => typeof item === 'number')

/** What stands at a position of a recorded list. */
export function itemOf(list: ArgStep | undefined, i: number): ArgStep | undefined {
  if (list?.kind === 'list') return list.items[i]
  const value = list?.kind === 'const' && isArgList(list.value) ? list.value[i] : undefined
  return value === undefined ? undefined : { kind: 'const', value }
}

const mismatch = (expected: string, actual: string, text: string): Mismatch => ({ expected, actual, text })

/** Why a new path is recorded: how a call differs from the recorded step. `policy`: what decides which sizes become inputs of the new path; null: none does. */
export function describeDifference(other: Step, op: OpDef, args: readonly Arg[], policy: SizePolicy | null): Mismatch {
  const recorded = other.op?.qualname ?? 'nothing'
  if (other.op !== op) return mismatch(recorded, op.qualname, `expected ${recorded}, got ${op.qualname}`)
  const change = changeOf(operatorState, null, other.state)
  if (change !== null) return mismatch(change.expected, change.actual, `${op.qualname} ${change.text}`)
  const name = (i: number): string => `argument '${op.schema.args[i]?.name ?? i}' of ${op.qualname}`
  const numbers = (): Mismatch | null => {
    for (const [i, r] of other.args.entries()) {
      const arg = args[i]
      if (arg === undefined || !isNumeric(r) || agreesInNumbers(r, arg)) continue
      const [was, is] = [recordedText(r), arg instanceof Tensor ? 'a tensor' : String(JSON.stringify(arg))]
      return mismatch(
        was,
        is,
        `${name(i)} was ${was}, is now ${is}${policy !== null && op.schema.args[i]?.type.isSize === true && [arg].flat().some(isSize) ? BECOME_INPUTS : ''}`,
      )
    }
    return null
  }
  const tensors = (): Mismatch | null => {
    for (const [i, given] of other.args.entries()) {
      const arg = args[i] ?? null
      const pairs = given.kind === 'list' && isArgList(arg) ? given.items.map((item, k) => [item, arg[k]] as const) : [[given, arg] as const]
      for (const [r, tensor] of pairs) {
        if (r.kind !== 'input' || !(tensor instanceof Tensor) || agreesWithInput(tensor, r.spec)) continue
        const found = changeOf(metTensorState, tensor, metValues(r.spec.state))
        if (found === null) continue
        const known = policy === null || r.spec.name === null ? '' : ` (${r.spec.name})`
        return mismatch(found.expected, found.actual, `${name(i)}${known} ${found.text}${policy?.tensorText(r.spec, tensor) ?? ''}`)
      }
    }
    return null
  }
  // What sizes are computed from comes before them.
  const found = policy === null ? (numbers() ?? tensors()) : (tensors() ?? numbers())
  return found ?? mismatch('the recorded operands', 'other ones', `other operands of ${op.qualname}`)
}

const BECOME_INPUTS = ': those of at least 2 that have changed are inputs of the graph from now on'

/** Whether a recorded argument is a constant, or has numbers that are inputs. */
const isNumeric = (r: ArgStep): boolean => r.kind === 'const' || r.kind === 'scalar' || (r.kind === 'list' && r.items.every(isNumeric))

function agreesInNumbers(r: ArgStep, arg: Arg): boolean {
  if (r.kind === 'list') return isArgList(arg) && arg.length === r.items.length && r.items.every((item, i) => agreesInNumbers(item, arg[i] ?? null))
  return r.kind === 'scalar' ? isOfKind(arg, r.number) : r.kind === 'const' && sameConstant(r.value, arg)
}

const recordedText = (r: ArgStep): string =>
  r.kind === 'list'
    ? `[${r.items.map(recordedText).join()}]`
    : r.kind === 'const'
      ? String(JSON.stringify(r.value))
      : r.kind === 'scalar' && r.number === 'size'
        ? 'a size'
        : 'a number'

/** Whether a tensor from outside is one that a recorded input may be. */
export const agreesWithInput = (tensor: Tensor, { state, sizes }: InputSpec): boolean =>
  sizes === null ? agreesAsMet(tensor, state) : agreesButForSizes(tensor, state) && agreesInSizes(sizes, tensor, state.sizes)
