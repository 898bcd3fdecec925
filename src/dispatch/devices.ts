// Tensors on a device: who computes with them. Null until the program has loaded a device, so that without one nothing is asked.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { valueText } from '../protocol/index.ts'
import type { DType } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Device, Storage } from '../tensor/index.ts'
import { isArgList } from './args.ts'
import type { Arg, OpDef, Result } from './op.ts'

/** Computes with tensors that are on a device. */
export interface DeviceOperators {
  /** Whether a call with these arguments is the program's own, and one of them is on the device: then {@link within} makes it. */
  begins(args: readonly Arg[]): boolean
  /**
   * Makes a call of an operator; within it the operators that it is composed of make their tensors where its arguments are. Throws ArgumentError, which names two arguments, for tensors of different
   * devices.
   */
  within(op: OpDef, args: readonly Arg[], asIs: boolean): Result
  /** Runs a derivative: what it makes is where the gradients are. */
  forGradients<T>(grads: readonly (Tensor | null)[], derivative: () => T): T
  /** Runs an operator on the device; null if it does not concern it. Throws UnsupportedError, which names the operator, for what the device cannot compute. */
  run(op: OpDef, args: readonly Arg[]): Result | null
  /** The tensor on another device. Autograd follows it. */
  move(tensor: Tensor, device: Device): Tensor
  /** Whether a call has arguments on one device and results on another, as `to` and `copy_` have. */
  crosses(op: OpDef, args: readonly Arg[]): boolean
  /** Memory on the device for elements, which are undefined. */
  allocate(dtype: DType, numel: number): Storage
  /** Writes the elements of `source`, which is on the device, to `target`: a tensor there of the same shape and dtype. */
  copy(source: Tensor, target: Tensor): void
}

/**
 * What computes with tensors on a device (null if no device was loaded), and where operators without tensors among their arguments make theirs: the device of the call that is running. One object, because the hot path
 * reads fields faster than module bindings.
 */
export const devices: { operators: DeviceOperators | null; here: Device } = { operators: null, here: 'cpu' }

/** Runs `fn`, whose operators make their tensors on a device. */
export function withDevice<T>(device: Device, fn: () => T): T {
  const outer = devices.here
  devices.here = device
  try {
    return fn()
  } finally {
    devices.here = outer
  }
}

/** Whether a value names a device. */
export const isDevice = (value: unknown): value is Device => value === 'cpu' || value === 'webgpu'

/** What to say of a value that names none. */
export const noDevice = (value: unknown): string => `there is no device ${valueText(value)}, only 'cpu' and, with tensorfx/webgpu, 'webgpu'.`

/** The device that an option names. Throws ArgumentError for anything else. */
export function checkDevice(where: string, value: unknown): Device {
  if (isDevice(value)) return value
  throw new ArgumentError(`${where}: option 'device': ${noDevice(value)}`)
}

/** The tensor on a device. Throws UnsupportedError if no module for the device was imported. */
export function moved(where: string, tensor: Tensor, device: Device): Tensor {
  if (tensor.device === device) return tensor
  if (devices.operators === null)
    throw new UnsupportedError(`${where}: tensors on '${device}' come with a module of their own: write import 'tensorfx/webgpu'.`)
  return devices.operators.move(tensor, device)
}

/** Where a call makes its results: on the device of one of its tensors, else on that of all of them, the CPU, and without tensors where the call is made. */
export function deviceOfResults(args: readonly Arg[]): Device {
  if (devices.operators === null) return 'cpu'
  return deviceAmong(args) ?? devices.here
}

/** The device of the tensors among arguments, as far as it is not the CPU; null without tensors. */
function deviceAmong(args: readonly Arg[]): Device | null {
  let found: Device | null = null
  for (const arg of args) {
    const device = arg instanceof Tensor ? arg.device : isArgList(arg) ? deviceAmong(arg) : null
    if (device !== null && device !== 'cpu') return device
    found ??= device
  }
  return found
}

/** Whether an argument is a tensor on a device, or a list with one. */
export const isOnDevice = (arg: Arg): boolean => (arg instanceof Tensor ? arg.device !== 'cpu' : isArgList(arg) && arg.some(isOnDevice))
