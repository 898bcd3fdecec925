// Control flow under symbolic tracing: functions become child graphs, and the call becomes one node.
import { ArgumentError } from '../errors/index.ts'
import { TraceError, Tracer, isProxy, nodeOf, tracerOf } from '../fx/index.ts'
import type { BodySource, Node } from '../fx/index.ts'
import { isTensorLike, isCallable, kindOf } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { countLeaves, treeLeaves } from '../pytree/index.ts'
import type { Flat } from './structure.ts'

/** Throws ArgumentError for anything but a function. */
export function checkFunction(op: string, name: string, fn: unknown): void {
  if (!isCallable(fn) || isProxy(fn)) throw new ArgumentError(`${op}: ${name} must be a function, got ${kindOf(fn)}.`)
}

/** The tracer of the first traced value among these; null if all are real. Throws TraceError if the tracer cannot record bodies. */
export function tracerAmong(op: string, values: unknown): Tracer | null {
  const traced = treeLeaves(values).find(isProxy)
  if (traced === undefined) return null
  const tracer = tracerOf(traced)
  if (!(tracer instanceof Tracer))
    throw new TraceError(
      `Unable to symbolically trace HigherOrderOperators: ${op} was called with a value of ${tracer.constructor.name}, which records no child graphs`,
      `Trace the program with a Tracer, or build the node by hand: torch.ops.higher_order.${op}(…) takes GraphModules.`,
    )
  return tracer
}

/** Whether a value becomes an input of a body: a tensor, traced or not. */
export const isInput = (value: unknown): boolean => isProxy(value) || isTensorLike(value)

/** Throws ArgumentError unless all leaves are tensors. */
export function checkTensors(op: string, name: string, leaves: readonly unknown[]): void {
  const at = leaves.findIndex((leaf) => !isInput(leaf))
  if (at >= 0)
    throw new ArgumentError(
      `${op}: ${name} must hold tensors only when it is traced, but value ${at} is ${typeof leaves[at]}; write torch.tensor(…).`,
    )
}

/** An input of a body, with the name of the outer value that it stands for. */
export const inputFor = (value: unknown, i: number): BodySource['inputs'][number] =>
  isProxy(value) ? { name: nodeOf(value).name, outer: nodeOf(value) } : { name: `arg${i}`, outer: null }

/** An input of the same name that is only a part of the outer value. */
export const partOf = (value: unknown, i: number): BodySource['inputs'][number] => ({ ...inputFor(value, i), outer: null })

/** Records one call: child graphs for the bodies, a node for the call, and a getitem for each of its results, in the structure of the result. */
export function recordCall<R>(
  tracer: Tracer,
  target: TargetFunction,
  sources: readonly BodySource[],
  args: (modules: readonly Node[], captured: readonly Node[]) => readonly unknown[],
  result: () => Flat<R>,
): R {
  const { modules, captured } = tracer.traceBodies(sources)
  const call: Readonly<Record<number, unknown>> = tracer.createProxy('call_function', target, args(modules, captured), {})
  const { spec, rebuild } = result()
  return rebuild(Array.from({ length: countLeaves(spec) }, (_, i) => call[i]))
}
