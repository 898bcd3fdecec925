// What derivatives of functions have in common: inputs that stand for the arguments on the tape, and whether others need the tape of the derivative itself.
import { GradNode, enableGrad, grad, isGradEnabled, producerOf } from '../autograd/index.ts'
import type { Edge } from '../autograd/index.ts'
import { ArgumentError, DTypeError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { view, zerosLike } from '../ops/index.ts'
import { valueText } from '../protocol/index.ts'
import { treeFlatten, treeMap, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'

/** Tensors of a nested value, and the value with others in their places. */
export interface Tensors {
  readonly tensors: readonly Tensor[]
  readonly spec: TreeSpec
}

/** The tensors of a nested value. Throws ArgumentError for anything else in it. */
export function tensorsOf(where: string, name: string, value: unknown): Tensors {
  const { leaves, spec } = treeFlatten(value)
  const tensors = leaves.map((leaf) => {
    if (leaf instanceof Tensor) return leaf
    throw new ArgumentError(`${where}: ${name} must be a Tensor, or arrays and objects of tensors, got ${valueText(leaf)}.`)
  })
  if (tensors.length === 0) throw new ArgumentError(`${where}: ${name} has no tensors.`)
  return { tensors, spec }
}

/** A tensor in the place of `x` that gradients can be taken for. It is connected to `x`, for derivatives around this one. */
export function inputFor(where: string, x: Tensor): Tensor {
  if (!dtypeInfo[x.dtype].differentiable)
    throw new DTypeError(
      `${where}: only floating-point and complex tensors have derivatives, got ${x.dtype}; convert it: x.float(). Options such as argnums name the others.`,
    )
  const input = view(x, x.shape)
  if (!input.requiresGrad) input.requiresGrad = true
  return input
}

/** Runs `fn` on inputs in the places of the tensors, with recording on. */
export function runOn<T>(
  where: string,
  { tensors, spec }: Tensors,
  fn: (value: unknown) => T,
): { readonly inputs: readonly Tensor[]; readonly result: T } {
  const inputs = tensors.map((x) => inputFor(where, x))
  return { inputs, result: enableGrad(() => fn(treeUnflatten(inputs, spec))) }
}

/** The tensors at the end of the tape behind some tensors: leaves, and those of the tensors themselves that have no history. Each once. */
export function* leavesBehind(tensors: readonly Tensor[]): Generator<Tensor> {
  const seen = new Set<Edge>()
  const stack: Edge[] = tensors.map((tensor) => producerOf(tensor) ?? tensor)
  for (let edge = stack.pop(); edge !== undefined; edge = stack.pop()) {
    if (edge === null || seen.has(edge)) continue
    seen.add(edge)
    if (edge instanceof GradNode) stack.push(...edge.targets)
    else yield edge
  }
}

/** Whether the outputs depend on tensors that require grad besides `own`: then derivatives around this one need its tape. */
function dependsOnOthers(outputs: readonly Tensor[], own: readonly Tensor[]): boolean {
  for (const leaf of leavesBehind(outputs.filter(({ requiresGrad }) => requiresGrad))) if (!own.includes(leaf)) return true
  return false
}

/** The gradients of outputs, zeros where an input does not matter. The tape stays. `createGraph` records the walk itself. */
export function gradients(
  outputs: readonly Tensor[],
  inputs: readonly Tensor[],
  gradOutputs: readonly Tensor[],
  createGraph: boolean,
): readonly Tensor[] {
  const kept = outputs.flatMap((t, i) => (t.requiresGrad ? [[t, gradOutputs[i]] as const] : []))
  if (kept.length === 0) return inputs.map((x) => zerosLike(x))
  const found = grad(
    kept.map(([t]) => t),
    inputs,
    { gradOutputs: kept.map(([, g]) => g ?? null), allowUnused: true, retainGraph: true, createGraph },
  )
  return found.map((g, i) => g ?? zerosLike(inputs[i] ?? g ?? new Tensor([], 'float32', null)))
}

/** Whether the tape of a derivative is kept, because it may be differentiated again. */
export const needsTape = (outputs: readonly Tensor[], own: readonly Tensor[]): boolean => isGradEnabled() && dependsOnOthers(outputs, own)

/** The nested value without its history, unless it depends on tensors besides `own`. */
export function release(value: unknown, own: readonly Tensor[]): unknown {
  return treeMap(value, (leaf) => (leaf instanceof Tensor && leaf.requiresGrad && !needsTape([leaf], own) ? leaf.detach() : leaf))
}
