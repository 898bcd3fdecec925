// What the trace of a graph relied on, for those who keep graphs and use them again.
import { Guards, guardedCall } from '../../guards/index.ts'
import type { GuardedCall } from '../../guards/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import type { Module } from '../../module/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkArray, checkCount } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { failedGuard, isSymbolicGraph } from './symbolicGraphs.ts'

interface Traced {
  readonly key: string
  readonly guards: Guards
  /** The arguments of a symbolic trace, whose sizes its symbols answer for. */
  readonly tensors: readonly Pick<Tensor, 'dtype' | 'requiresGrad'>[]
}

const known = new WeakMap<GraphModule, Traced>()

/** Notes what the trace of a graph relied on; called when it has ended. */
export function noteGuards(gm: GraphModule, { key, tensors }: GuardedCall, outer: readonly Tensor[], modules: readonly Module[]): void {
  const isSymbolic = isSymbolicGraph(gm)
  known.set(gm, {
    key,
    guards: new Guards({ args: isSymbolic ? [] : tensors, outer, modules }),
    tensors: isSymbolic ? tensors.map(({ dtype, requiresGrad }) => ({ dtype, requiresGrad })) : [],
  })
}

/** What a symbolic trace relied on and is no more: the dtypes of the arguments, and what its symbols say of their sizes. */
function changeOfSymbolic(gm: GraphModule, args: readonly unknown[], call: GuardedCall, tensors: Traced['tensors']): string | null {
  if (call.tensors.length !== tensors.length) return 'the arguments have other values or another structure'
  const at = call.tensors.findIndex((tensor, i) => tensor.dtype !== tensors[i]?.dtype || tensor.requiresGrad !== tensors[i].requiresGrad)
  if (at >= 0) return `tensor ${at} of the arguments has another dtype or requiresGrad`
  try {
    return failedGuard('checkGuards', gm, args)
  } catch (error) {
    if (error instanceof ArgumentError) return error.message
    throw error
  }
}

/**
 * What has changed since {@link makeFx} traced `gm`, and its trace relied on; null if nothing has, so that the graph computes for `args` what its function does. It compares the arguments
 * (structure, values that are not tensors, shapes, dtypes, requiresGrad), the grad mode, the default dtype, tensors from outside, and the mode, parameters and hooks of modules: the list
 * in docs/guide/compile.md. What JavaScript variables hold is not seen. PyTorch's GuardManager.check_verbose.
 *
 *     const graphs = []
 *     const cached = (x) => {
 *       let gm = graphs.find((known) => checkGuards(known, [x]) === null)
 *       if (gm === undefined) graphs.push((gm = makeFx(f)(x)))
 *       return gm(x)
 *     }
 *
 * @throws ArgumentError if `gm` is no graph of makeFx.
 */
export function checkGuards(gm: GraphModule, args: readonly unknown[]): string | null {
  checkCount('checkGuards', arguments, 2)
  checkGraphModule('checkGuards', gm)
  checkArray('checkGuards', 'args', args)
  const traced = known.get(gm)
  if (traced === undefined)
    throw new ArgumentError(
      `checkGuards: '${gm.className}' is no graph that makeFx returned, so what it relies on is not known. Trace the function with makeFx.`,
    )
  const call = guardedCall(args)
  if (isSymbolicGraph(gm)) return traced.guards.change([])?.text ?? changeOfSymbolic(gm, args, call, traced.tensors)
  const change = traced.guards.change(call.tensors)
  if (change !== null) return change.text
  return traced.key === call.key ? null : 'the arguments have other values or another structure'
}
