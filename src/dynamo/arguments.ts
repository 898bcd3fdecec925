// Comparing the arguments of a call with those of a recorded one.
import { dispatchState } from '../dispatch/index.ts'
import type { Arg, OpDef } from '../dispatch/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { ArgStep, Step } from './traceTree.ts'

/** Whether a number at this position may differ from call to call in one compiled graph. */
export function isScalarArgument(op: OpDef, position: number): boolean {
  const arg = op.schema.args[position]
  if (arg === undefined || op.tags.has('custom') || op.pointwise?.baked?.includes(arg.name) === true) return false
  return (
    op.dynamicScalars.includes(arg.name) ||
    arg.type.base === 'Scalar' ||
    arg.type.base === 'float' ||
    (arg.type.base === 'Tensor' && op.tags.has('pointwise'))
  )
}

/** Equality of constants: Object.is, and arrays element by element. */
export function sameConstant(a: Arg | undefined, b: Arg | undefined): boolean {
  if (Object.is(a, b)) return true
  return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((v, i) => sameConstant(v, b[i]))
}

/** Whether the argument differs from the recorded one in a number at most. */
export function sameButForNumbers(r: ArgStep, arg: Arg | undefined): boolean {
  if (r.kind === 'slot' || r.kind === 'input') return arg instanceof Tensor
  if (r.kind === 'list') return Array.isArray(arg) && arg.length === r.items.length
  return typeof arg === 'number' ? r.kind === 'scalar' || typeof r.value === 'number' : r.kind === 'const' && sameConstant(r.value, arg)
}

/** Why a new path is recorded, as text. */
export function describeDifference(other: Step, op: OpDef, args: readonly Arg[]): string {
  if (other.op !== op) return `expected ${other.op?.qualname ?? 'nothing'}, got ${op.qualname}`
  if (other.recording !== dispatchState.recording)
    return `${op.qualname} was called with${other.recording ? '' : 'out'} gradients, is now called with${other.recording ? 'out' : ''}`
  const name = (i: number): string => `argument '${op.schema.args[i]?.name ?? i}' of ${op.qualname}`
  for (const [i, r] of other.args.entries()) {
    const arg = args[i]
    if (r.kind === 'const' && !sameConstant(r.value, arg))
      return `${name(i)} was ${JSON.stringify(r.value)}, is now ${arg instanceof Tensor ? 'a tensor' : JSON.stringify(arg)}`
  }
  for (const [i, r] of other.args.entries()) {
    const arg = args[i]
    if (r.kind !== 'input' || !(arg instanceof Tensor)) continue
    if (arg.dtype !== r.spec.dtype) return `${name(i)} had dtype ${r.spec.dtype}, now has ${arg.dtype}`
    if (arg.shape.join() !== r.spec.shape.join()) return `${name(i)} had shape [${r.spec.shape.join(', ')}], now has [${arg.shape.join(', ')}]`
    if (arg.strides.join() !== r.spec.strides.join())
      return `${name(i)} had strides [${r.spec.strides.join(', ')}], now has [${arg.strides.join(', ')}]`
    if (arg.requiresGrad !== r.spec.requiresGrad) return `${name(i)} ${arg.requiresGrad ? 'now requires grad' : 'no longer requires grad'}`
  }
  return `other operands of ${op.qualname}`
}
