// A call of an operator, as a function or as a method: an argument that overrides takes it over; otherwise the arguments are normalized and dispatched.
import { checkDevice, devices, dispatch, dispatchState, moved, withDevice } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { OVERRIDE, findOverride, isPlainObject } from '../../protocol/index.ts'
import type { OverrideKind } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { Device } from '../../tensor/index.ts'
import { asKeywords, normalize, splitOptions } from './normalize.ts'
import { usualArguments } from './usualArguments.ts'

/** A way to call an operator. */
export interface Call {
  /** With the arguments as the user wrote them, in a list that may be changed. */
  readonly with: (args: unknown[]) => unknown
  /** `x.add(y)`, the most frequent call of all. */
  readonly withTwo: (self: Tensor, other: unknown) => unknown
}

/** The arguments of an operator that makes a tensor without the option `device`, and the device; null without that option. */
function placedCall(op: OpDef, args: readonly unknown[]): { readonly args: unknown[]; readonly device: Device } | null {
  const options = args.at(-1)
  if (!isPlainObject(options) || options['device'] === undefined || !op.schema.args.some(({ name }) => name === 'requiresGrad')) return null
  const { device, ...rest } = options
  return { args: [...args.slice(0, -1), rest], device: checkDevice(op.qualname, device) }
}

/** Whether a capture notes that tensors are made on a device. */
const isCaptured = (device: Device): boolean => device !== 'cpu' && devices.operators !== null && dispatchState.mode?.knowsDevices === true

/** What an operator has made, on a device: a leaf, as it is. */
function madeOn(op: OpDef, device: Device, made: unknown): unknown {
  if (!(made instanceof Tensor) || made.device === device) return made
  const { requiresGrad } = made
  made.requiresGrad = false
  const there = moved(op.qualname, made, device)
  if (requiresGrad) there.requiresGrad = true
  return there
}

/**
 * Calls of `op`. `kind` is what an override hears: a function call or a method call. With `keywords`, it hears arguments that have defaults by name, given or not.
 * `before` gets the arguments of each call that is not overridden, before the operator does.
 */
export function callAs(op: OpDef, kind: OverrideKind, keywords = false, before?: (...args: readonly Arg[]) => void): Call {
  const usual = usualArguments(op)
  const callWith = (args: unknown[]): unknown => {
    const values = usual.of(args)
    if (values !== null) {
      before?.(...values)
      return dispatch(op, values)
    }
    const override = findOverride(args)
    if (override !== null) {
      const [positional, options] = keywords ? asKeywords(op, ...splitOptions(args)) : splitOptions(args)
      return override[OVERRIDE](kind, op.fn, positional, options)
    }
    const placed = placedCall(op, args)
    if (placed !== null && isCaptured(placed.device)) return withDevice(placed.device, () => callWith(placed.args))
    if (placed !== null) return madeOn(op, placed.device, callWith(placed.args))
    const normalized = normalize(op, args)
    before?.(...normalized)
    return dispatch(op, normalized)
  }
  return {
    with: callWith,
    withTwo: (self, other) => {
      const values = usual.ofTwo(self, other)
      return values === null ? callWith([self, other]) : dispatch(op, values)
    },
  }
}
