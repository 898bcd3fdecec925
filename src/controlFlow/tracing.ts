// Control flow under symbolic tracing: functions become child graphs, and the call one node.
import { ArgumentError } from '../errors/index.ts'
import { TraceError, Tracer, isProxy, nodeOf, tracerOf } from '../fx/index.ts'
import type { BodySource, Node } from '../fx/index.ts'
import { isTensorLike } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { countLeaves, treeEqual, treeLeaves, treeSpecToString, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'

// eslint-disable-next-line typescript/no-explicit-any -- any function
export type AnyFunction = (...args: any[]) => unknown

/** Throws ArgumentError for what is no function. */
export function checkFunction(op: string, name: string, fn: unknown): void {
  if (typeof fn !== 'function' || isProxy(fn)) throw new ArgumentError(`${op}: ${name} must be a function, got ${fn === null ? 'null' : typeof fn}.`)
}

/** The tracer of the first traced value in these, null when all are real. Throws TraceError when it cannot record bodies. */
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

/** An input of a body: named after the value around that it stands for. */
export const inputFor = (value: unknown, i: number): BodySource['inputs'][number] =>
  isProxy(value) ? { name: nodeOf(value).name, outer: nodeOf(value) } : { name: `arg${i}`, outer: null }

/** An input of the same name that is a part of the value around. */
export const partOf = (value: unknown, i: number): BodySource['inputs'][number] => ({ ...inputFor(value, i), outer: null })

/** Records one call: child graphs for the bodies, a node for the call, and a getitem for each of its results. */
export function recordCall(
  tracer: Tracer,
  target: TargetFunction,
  sources: readonly BodySource[],
  args: (modules: readonly Node[], captured: readonly Node[]) => readonly unknown[],
  spec: () => TreeSpec,
): unknown {
  const { modules, captured } = tracer.traceBodies(sources)
  const call = tracer.createProxy('call_function', target, args(modules, captured), {})
  const structure = spec()
  const results = Array.from({ length: countLeaves(structure) }, (_, i) => call[i] as unknown)
  return treeUnflatten(results, structure)
}

/** Throws ArgumentError when two structures differ. */
export function checkStructure(op: string, firstName: string, first: TreeSpec, secondName: string, second: TreeSpec): void {
  if (!treeEqual(first, second))
    throw new ArgumentError(
      `${op}: ${firstName} and ${secondName} must have the same structure, got ${treeSpecToString(first)} and ${treeSpecToString(second)}.`,
    )
}
